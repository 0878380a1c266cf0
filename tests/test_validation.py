"""Arguments are refused by name, with what was passed and what to pass instead."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from nashcast import validation as check
from nashcast.errors import InvalidInput

DAY = np.datetime64("2024-01-01")


def refused(message, function, *args, **kwargs):
    with pytest.raises(InvalidInput) as caught:
        function("ridge", *args, **kwargs)
    assert str(caught.value) == f"ridge: got {message}"
    assert caught.value.argument == "ridge"


def test_numbers_are_converted_to_contiguous_float64():
    given = np.arange(6.0)
    assert check.numbers("x", given, "(6,)") is given
    for value in ([1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.int8), [Decimal(1), Fraction(2)], range(1, 3)):
        found = check.numbers("x", value, "(2,)")
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, [1.0, 2.0])
    np.testing.assert_array_equal(check.numbers("x", [True, False], "(2,)"), [1.0, 0.0])
    np.testing.assert_array_equal(check.numbers("x", [1.0, None], "(2,)"), [1.0, np.nan])
    reversed_view = given[::-1]
    assert check.numbers("x", reversed_view, "(6,)").flags.c_contiguous
    np.testing.assert_array_equal(check.numbers("x", reversed_view, "(6,)"), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.array([1.0], mask=[True]), "a masked array. Pass value.filled(np.nan), or an array without a mask."),
        ([1.0, np.ma.masked], "a masked entry. Pass np.nan in its place."),
        ("1.5", "str '1.5'. Pass numbers, e.g. float(text)."),
        (b"1.5", "bytes b'1.5'. Pass numbers, e.g. float(text)."),
        (["1.5", 2], "text (<U21). Pass numbers, e.g. array.astype(float)."),
        ([1j], "complex numbers (complex128). Pass the real and imaginary parts as two columns."),
        (np.array([1], np.complex64), "complex numbers (complex64). Pass the real and imaginary parts as two columns."),
        (
            np.array([DAY]),
            "dates (datetime64[D]). Convert them to numbers first, e.g. seconds since the start of the data.",
        ),
        (
            [np.timedelta64(3, "h")],
            "durations (timedelta64[h]). Convert them to numbers first, e.g. seconds since the start of the data.",
        ),
        ({1.0}, "a set, which has no order. Pass a list or an array."),
        (iter([1.0]), "a list_iterator, which can be read only once. Pass list(value)."),
        ({"a": 1.0}, "a dict. Pass its values in order, e.g. [row[key] for key in keys]."),
        (np.array([{}], dtype=object), "a dict. Pass its values in order, e.g. [row[key] for key in keys]."),
        (np.array(["1"], dtype=object), "str '1'. Pass numbers, e.g. float(text)."),
        (np.array([1j, None]), "complex numbers (complex128). Pass the real and imaginary parts as two columns."),
        ([datetime.date(2024, 1, 1)], "an entry of type date. Pass numbers only."),
        ([10**400], "an integer beyond the largest float. Rescale it."),
        ([[1.0], [1.0, 2.0]], "list [[1.0], [1.0, 2.0]]. Pass numbers of shape (x_dim,)."),
        (np.zeros(1, dtype=[("a", float)]), "entries of type [('a', '<f8')]. Pass an array of numbers."),
    ],
)
def test_numbers_refuses_what_numpy_would_convert_silently(value, message):
    refused(message, check.numbers, value, "(x_dim,)")


def test_shapes_and_finite_entries():
    refused("shape (3,). Pass an array of shape (y_dim,) = (2,).", check.shaped, [1, 2, 3], (2,), "(y_dim,)")
    refused(
        "shape (0, 2). Pass an array of shape (steps, x_dim), every length at least 1.",
        check.of_rank,
        np.zeros((0, 2)),
        ("steps", "x_dim"),
    )
    message = "nan at index (1,). Remove or fill the 2 entries that are not finite."
    refused(message, check.array, [1, np.nan, np.inf], (3,), "(3,)")
    for values in ([np.nan], [np.inf], [-np.inf, 1.0], [1.0, np.inf, -np.inf]):
        assert check.all_finite(np.array(values)) is False
    for values in ([], [1e308, 1e308], [-1e308, -1e308]):
        assert check.all_finite(np.array(values)) is True
    assert check.all_finite(np.zeros((4, 4))[::2, ::2]) is True


def test_one_number_in_range():
    assert check.number("ridge", Decimal("0.5"), above=0.0, min=0.5, max=0.5) == 0.5
    refused("0. Pass a number > 0.", check.number, 0, above=0.0)
    refused("0.25. Pass a number ≥ 0.5.", check.number, 0.25, min=0.5)
    refused("2. Pass a number ≤ 1.", check.number, 2.0, max=1.0)
    refused("nan. Pass a finite number.", check.number, np.nan)
    refused("an integer beyond the largest float. Pass a finite number.", check.number, 10**400)
    refused("list [1, 2]. Pass one number.", check.number, [1, 2])
    refused("0. Pass numbers > 0.", check.in_range, np.array([1.0, 0.0]), above=0.0)
    refused("-1. Pass numbers ≥ 0.", check.in_range, np.array([1.0, -1.0]), min=0.0)


def test_one_integer():
    found = check.integer("steps", np.uint8(3), min=3)
    assert found == 3
    assert type(found) is int
    refused("int 2. Pass a whole number ≥ 3.", check.integer, 2, min=3)
    refused("float 3.0. Pass a whole number ≥ 3.", check.integer, 3.0, min=3)
    refused("bool True. Pass a whole number ≥ 0.", check.integer, True, min=0)
    refused("timedelta64 np.timedelta64(3,'h'). Pass a whole number ≥ 0.", check.integer, np.timedelta64(3, "h"), min=0)
    refused("an object of type int. Pass a whole number ≥ 0.", check.integer, -(10**5000), min=0)


def test_one_number_for_all_agents_or_one_each():
    np.testing.assert_array_equal(check.per_agent("ridge", 2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(check.per_agent("ridge", [1, 2, 3], 3), [1.0, 2.0, 3.0])
    refused("shape (2,). Pass an array of shape (agents,) = (3,).", check.per_agent, [1, 2], 3)
