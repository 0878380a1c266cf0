"""Rows as users pass them: read by name, copied, put in order, and refused without a trace."""

import json
from collections import OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nashcast.errors import InvalidInput
from nashcast.federation.incoming.columns import Columns

DAYS = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
DAYS_MESSAGE = "dates (datetime64[D]). Convert them to numbers first, e.g. seconds since the start of the data."
HOURS = np.array([1, 2], dtype="timedelta64[h]")
HOURS_MESSAGE = "durations (timedelta64[h]). Convert them to numbers first, e.g. seconds since the start of the data."
COMPLEX_MESSAGE = "complex numbers (complex128). Pass the real and imaginary parts as two columns."
TEXT_MESSAGE = "Pass numbers, e.g. float(text)."


class Series:
    """What is read of a pandas Series."""

    def __init__(self, values, index):
        self.values, self.index = values, index

    def to_numpy(self):
        return np.array(self.values)


class Table(Series):
    columns = ("a", "b")


def message_of(call, *args):
    with pytest.raises(InvalidInput) as caught:
        call(*args)
    return str(caught.value)


def same(found, expected):
    assert found.dtype == np.float64
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "row",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], dtype=np.uint8),
        np.array([1.0, 2.0], dtype=np.float16),
        np.array([[1.0, 9.0], [2.0, 9.0]])[:, 0],
        [Decimal("1"), Fraction(2)],
        [np.array(1.0), np.float32(2)],
        np.array([1, Decimal(2)], dtype=object),
        range(1, 3),
        Series([1.0, 2.0], range(2)),
        namedtuple("Row", "b a")(1, 2),
    ],
)
def test_rows_without_names(row):
    columns = Columns(None, 2)
    same(columns.read_input(row), [1.0, 2.0])
    same(columns.read_target("y", row), [1.0, 2.0])
    assert (columns.x_dim, columns.x_names, columns.y_names) == (2, None, None)


@pytest.mark.parametrize(
    "row",
    [
        {"b": 1, "a": True, "c": 2.5},
        {"c": np.float32(2.5), "a": np.bool_(True), "b": np.array(1)},
        OrderedDict(a=Decimal(1), c=Fraction(5, 2), b=np.int64(1)),
        MappingProxyType({"c": 2.5, "b": 1, "a": 1}),
        Series([2.5, 1.0, 1.0], ["c", "a", "b"]),
        Series(np.array([Decimal(1), 2.5, 1], dtype=object), np.array(["a", "c", "b"])),
    ],
)
def test_rows_with_names_in_any_order(row):
    columns = Columns(None, 3)
    for _ in range(2):
        same(columns.read_input(row), [1.0, 1.0, 2.5])
        same(columns.read_target("y", row), [1.0, 1.0, 2.5])
    same(columns.read_input({"a": 4.0, "c": 6.0, "b": 5.0}), [4.0, 5.0, 6.0])
    same(columns.read_input(Series([7, 8, 9], ["b", "c", "a"])), [9.0, 7.0, 8.0])
    assert (columns.x_dim, columns.x_names, columns.y_names) == (3, ["a", "b", "c"], ["a", "b", "c"])


@pytest.mark.parametrize("one", [3, 3.0, np.int8(3), np.array(3.0), Decimal(3), Fraction(3), [3], True + 2])
def test_one_number(one):
    columns = Columns(1, 1)
    same(columns.read_input(one), [3.0])
    same(columns.read_target("y", one), [3.0])


def test_bools_are_zero_and_one():
    same(Columns(None, 1).read_input(np.array([True, False])), [1.0, 0.0])
    same(Columns(None, 1).read_target("y", True), [1.0])


def test_missing_inputs_are_nan():
    columns = Columns(None, 1)
    columns.read_input({"a": 1.0, "b": 2.0})
    same(columns.read_input({"b": 2.0}), [np.nan, 2.0])
    same(columns.read_input({"b": None, "a": np.nan}), [np.nan, np.nan])
    same(columns.read_input({}), [np.nan, np.nan])
    same(columns.read_input(Series([3.0], ["a"])), [3.0, np.nan])
    same(Columns(2, 1).read_input([None, 2.0]), [np.nan, 2.0])


def test_missing_targets():
    for missing in (None, np.nan, [np.nan], {"a": None}, {"a": np.nan}):
        assert Columns(0, 1).read_target("y", missing, missing_allowed=True) is None
    assert Columns(0, 2).read_target("y", [1.0, np.nan], missing_allowed=True) is None
    refused = Columns(0, 2).read_target
    assert message_of(refused, "start", None) == "start: got None. Pass y_dim = 2 numbers."
    assert message_of(refused, "y", [1, np.nan]) == "y[1]: got nan, which is not finite. Pass a finite number."
    assert (
        message_of(refused, "y", {"a": 1, "b": None}) == "y['b']: got nan, which is not finite. Pass a finite number."
    )
    columns = Columns(0, 2)
    columns.read_target("y", {"a": 1, "b": 2})
    assert message_of(columns.read_target, "y", {"b": 1}, True) == "y: got no value of a. Pass the keys a, b."


def test_no_inputs():
    for columns in (Columns(0, 1), Columns(None, 1)):
        for nothing in (None, (), [], {}, np.empty(0)):
            same(columns.read_input(nothing), [])
            assert columns.x_dim == 0
        assert message_of(columns.read_input, 1.0) == "x: got shape (1,). Pass an array of shape (x_dim,) = (0,)."
        assert message_of(columns.read_input, {"a": 1}) == "x: got keys a. Pass None: the stream has no inputs."
    columns = Columns(3, 1)
    message = "x: got None, but x_dim is 3. Pass 3 numbers, NaN where one is missing."
    assert message_of(columns.read_input, None) == message
    assert message_of(columns.read_input, {}).startswith("x: got 0 keys ().")


def test_one_buffer_used_again_changes_nothing():
    columns, buffer = Columns(2, 2), np.array([1.0, 2.0])
    x, y = columns.read_input(buffer), columns.read_target("y", buffer)
    shown = columns.show(y)
    buffer[:] = 9.0
    same(x, [1.0, 2.0])
    same(y, [1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 3.0
    shown[0] = 5.0
    same(y, [1.0, 2.0])
    assert buffer.flags.writeable


# A row, and what follows "x: got " or "y: got " in the message.
REFUSED = [
    (np.ma.array([1.0, 2.0]), "a masked array. Pass value.filled(np.nan), or an array without a mask."),
    ([1.0, np.ma.masked], "a masked entry. Pass np.nan in its place."),
    (np.array([1j, 2.0]), COMPLEX_MESSAGE),
    (1j, COMPLEX_MESSAGE),
    (np.array([1j, Decimal(1)], dtype=object), COMPLEX_MESSAGE),
    (DAYS, DAYS_MESSAGE),
    (HOURS, HOURS_MESSAGE),
    (np.array([DAYS[0], 1.0], dtype=object), DAYS_MESSAGE),
    ("12", f"str '12'. {TEXT_MESSAGE}"),
    (b"12", f"bytes b'12'. {TEXT_MESSAGE}"),
    (bytearray(b"12"), f"bytearray bytearray(b'12'). {TEXT_MESSAGE}"),
    (["1", "2"], "text (<U1). Pass numbers, e.g. array.astype(float)."),
    (np.array([b"1", b"2"]), "text (|S1). Pass numbers, e.g. array.astype(float)."),
    (np.array(["1", 2.0], dtype=object), f"str '1'. {TEXT_MESSAGE}"),
    (np.array([object(), 2.0]), "an entry of type object. Pass numbers only."),
    ({1.0, 2.0}, "a set, which has no order. Pass a list or an array."),
    (frozenset([1.0]), "a frozenset, which has no order. Pass a list or an array."),
    ({"a": 1}.keys(), "a dict_keys, which has no order. Pass a list or an array."),
    ((value for value in [1.0, 2.0]), "a generator, which can be read only once. Pass list(value)."),
    (map(float, [1, 2]), "a map, which can be read only once. Pass list(value)."),
    ([1.0, 10**400], "an integer beyond the largest float. Rescale it."),
    (np.zeros(1, dtype=[("a", float)]), "entries of type [('a', '<f8')]. Pass an array of numbers."),
    (Table([1.0, 2.0], ["a", "b"]), "a table (Table). Pass one row at a time, e.g. table.iloc[i] or a dict."),
    ({1: 2.0, "b": 1.0}, "the key int 1. Name every column by a string."),
    (Series([1.0, 2.0], [1, 2]), "the key int 1. Name every column by a string."),
    (Series([1.0, 2.0], ["a", "a"]), "the key 'a' twice. Give every column a name of its own."),
]


@pytest.mark.parametrize(("row", "message"), REFUSED, ids=lambda part: f"{type(part).__name__}")
def test_rows_refused_by_name(row, message):
    for columns in (Columns(None, 2), Columns(2, 2)):
        before = columns.save()
        assert message_of(columns.read_input, row) == f"x: got {message}"
        assert message_of(columns.read_target, "y", row, True) == f"y: got {message}"
        assert columns.save() == before


SHAPES = [
    (Columns(2, 2), [1.0], "got shape (1,). Pass an array of shape ({dim},) = (2,)."),
    (Columns(2, 2), 1.0, "got shape (1,). Pass an array of shape ({dim},) = (2,)."),
    (Columns(None, 2), [[1.0, 2.0]], "got shape (1, 2). Pass an array of shape ({dim},)"),
    (Columns(2, 2), {"a": 1.0}, "got 1 keys (a). Pass a dict with {dim} = 2 keys first; it fixes their names."),
    (Columns(2, 2), dict.fromkeys("cab", 1.0), "got 3 keys (a, b, c). Pass a dict with {dim} = 2 keys first"),
]


@pytest.mark.parametrize(("columns", "row", "message"), SHAPES)
def test_wrong_shapes_fix_nothing(columns, row, message):
    before = columns.save()
    assert message_of(columns.read_input, row).startswith(f"x: {message.format(dim='x_dim')}")
    assert message_of(columns.read_target, "y", row).startswith(f"y: {message.format(dim='y_dim')}")
    assert columns.save() == before
    same(columns.read_input({"u": 1.0, "v": 2.0}), [1.0, 2.0])


VALUES = [
    ("1", f"str '1'. {TEXT_MESSAGE}"),
    (1j, COMPLEX_MESSAGE),
    (DAYS[0], DAYS_MESSAGE),
    (HOURS[0], HOURS_MESSAGE),
    ([1.0], "shape (1,). Pass one number."),
    ({"a": 1.0}, "a dict. Pass its values in order, e.g. [row[key] for key in keys]."),
    (np.ma.masked, "a masked array. Pass value.filled(np.nan), or an array without a mask."),
    (object, "an entry of type type. Pass numbers only."),
    (10**400, "an integer beyond the largest float. Rescale it."),
    (np.inf, "inf, which is not finite. Pass a finite number, or NaN if it is missing."),
]


@pytest.mark.parametrize(("value", "message"), VALUES)
def test_a_refused_value_is_named_by_its_column(value, message):
    columns = Columns(None, 2)
    before = columns.save()
    assert message_of(columns.read_input, {"a": 1.0, "b": value}) == f"x['b']: got {message}"
    assert message_of(columns.read_target, "y", {"a": 1.0, "b": value}) == f"y['b']: got {message}"
    assert columns.save() == before


@pytest.mark.parametrize("sign", [1, -1])
def test_values_beyond_1e150(sign):
    huge, limit = sign * 1e160, sign * 1e150
    same(Columns(1, 1).read_input(limit), [limit])
    same(Columns(1, 1).read_target("y", limit), [limit])
    words = "which is beyond 1e150, the largest {kind} accepted. Rescale the {kind}s."
    target, source = words.format(kind="target"), words.format(kind="input")
    columns = Columns(None, 2)
    assert message_of(columns.read_target, "y", [1.0, huge]) == f"y[1]: got {huge:g}, {target}"
    assert (
        message_of(columns.read_target, "y", {"load": huge, "a": np.nan}, True) == f"y['load']: got {huge:g}, {target}"
    )
    assert message_of(columns.read_input, {"temp": huge, "wind": 1}) == f"x['temp']: got {huge:g}, {source}"
    assert message_of(columns.read_input, huge) == f"x: got {huge:g}, {source}"
    assert message_of(columns.read_input, [0, sign * 10**200]) == f"x[1]: got {sign * 1e200:g}, {source}"
    assert columns.save() == Columns(None, 2).save()
    assert message_of(Columns(0, 1).read_target, "y", [sign * np.inf]).startswith(
        f"y: got {sign * np.inf}, which is not"
    )


def test_unknown_names_are_refused_with_a_suggestion():
    columns = Columns(None, 1)
    columns.read_input({"temperature": 1.0, "wind": 2.0})
    message = message_of(columns.read_input, {"temprature": 1.0, "wind": 2.0})
    known = "Pass the keys temperature, wind."
    assert message == f"x: got the unknown key 'temprature'. Did you mean 'temperature'? {known}"
    assert message_of(columns.read_input, {"zz": 1.0}) == f"x: got the unknown key 'zz'. {known}"
    columns = Columns(None, 12)
    columns.read_target("y", {f"n{i:02}": i for i in range(12)})
    message = message_of(columns.read_target, "y", {"other": 1.0})
    assert message.endswith("Pass the keys n00, n01, n02, n03, n04, n05, n06, n07 and 4 more.")


def test_rows_with_and_without_names_do_not_mix_unless_there_is_one_column():
    named, plain = Columns(2, 2), Columns(2, 2)
    named.read_input({"a": 1, "b": 2})
    named.read_target("y", {"a": 1, "b": 2})
    plain.read_input([1, 2])
    plain.read_target("y", [1, 2])
    for label, of_named, of_plain in (
        ("x", named.read_input, plain.read_input),
        ("y", lambda y: named.read_target("y", y), lambda y: plain.read_target("y", y)),
    ):
        message = f"{label}: got an array without names. Pass a dict with the keys a, b."
        assert message_of(of_named, [1.0, 2.0]) == message
        assert message_of(of_plain, {"a": 1, "b": 2}) == f"{label}: got keys a, b. Pass an array as before."
    one = Columns(1, 1)
    for row in (1.0, {"a": 1.0}, 1.0, Series([1.0], ["a"])):
        same(one.read_input(row), [1.0])
        same(one.read_target("y", row), [1.0])
    assert (one.x_names, one.y_names) == (["a"], ["a"])


def test_an_input_with_a_refused_target_changes_nothing():
    columns = Columns(None, 1)
    before = columns.save()
    for row in (({"a": 1.0}, "1"), ({"a": "1"}, {"b": 1.0}), ([1.0, 2.0], np.inf)):
        message_of(columns.read_row, *row)
        assert columns.save() == before
    inputs, target = columns.read_row({"a": 1.0}, {"b": 2.0})
    same(inputs, [1.0])
    same(target, [2.0])
    assert (columns.x_names, columns.y_names) == (["a"], ["b"])
    assert columns.read_row({"a": 1.0}, None)[1] is None


def test_forecasts_have_the_form_of_the_targets():
    one, two, named = Columns(0, 1), Columns(0, 2), Columns(0, 2)
    named.read_target("y", {"b": 0.0, "a": 0.0})
    shown = one.show(np.array([1.5]))
    assert type(shown) is float
    assert shown == 1.5
    np.testing.assert_array_equal(two.show(np.array([1.5, 2.5])), [1.5, 2.5])
    assert named.show(np.array([1.5, 2.5])) == {"a": 1.5, "b": 2.5}
    horizon = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(one.show(horizon[:, :1]), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(two.show(horizon), horizon)
    shown = named.show(horizon)
    assert list(shown) == ["a", "b"]
    np.testing.assert_array_equal(shown["b"], [1.0, 3.0, 5.0])
    for copied in (one.show(horizon[:, :1]), two.show(horizon), shown["b"]):
        copied[:] = -1.0
    np.testing.assert_array_equal(horizon, np.arange(6.0).reshape(3, 2))
    one.read_target("y", {"load": 1.0})
    assert one.show(np.array([1.5])) == {"load": 1.5}
    np.testing.assert_array_equal(one.show(horizon[:, :1])["load"], [0.0, 2.0, 4.0])


@pytest.mark.parametrize("rows", [(None, None), ([1, 2], [1, 2]), ({"b": 1, "a": 2}, {"c": 1, "d": 2}), (None, [1, 2])])
def test_saved_and_restored(rows):
    first, second = Columns(None, 2), Columns(None, 2)
    if rows != (None, None):
        first.read_row(*rows)
    second.restore(json.loads(json.dumps(first.save())))
    assert second.save() == first.save()
    for name in ("x_dim", "y_dim", "x_names", "y_names"):
        assert getattr(second, name) == getattr(first, name)
    for row in ([1, 2], {"a": 1, "b": 2}, {"c": 1, "d": 2}, None):
        outcomes = []
        for columns in (first, second):
            try:
                outcomes.append(columns.read_input(row).tolist())
            except InvalidInput as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def edited(**changes):
    good = {"dim": 2, "names": ["a", "b"], "unnamed": False}
    return {"inputs": {**good, **changes}, "targets": good}


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (None, "saved columns: got NoneType None. Pass what Columns.save() returned."),
        ({"inputs": {}}, "saved columns: got dict {'inputs': {}}. Pass what Columns.save() returned."),
        ({"inputs": 3, "targets": 3}, "saved inputs: got int 3. Pass what Columns.save() returned."),
        (edited(dim=-1), "saved inputs.dim: got int -1. Pass a whole number ≥ 0."),
        (edited(dim=2.0), "saved inputs.dim: got float 2.0. Pass a whole number ≥ 0."),
        (edited(dim=3), "saved inputs.names: got list ['a', 'b']. Pass 3 different strings in order."),
        (edited(names=["b", "a"]), "saved inputs.names: got list ['b', 'a']. Pass 2 different strings in order."),
        (edited(names=["a", "a"]), "saved inputs.names: got list ['a', 'a']. Pass 2 different strings in order."),
        (edited(names=["a", 1]), "saved inputs.names: got list ['a', 1]. Pass 2 different strings in order."),
        (edited(names="ab"), "saved inputs.names: got str 'ab'. Pass 2 different strings in order."),
        (edited(unnamed=1), "saved inputs.unnamed: got int 1. Pass True or False."),
        (edited(dim=3, names=None), "saved columns: got x_dim 3. Restore columns with x_dim = 2."),
        (
            edited() | {"targets": edited(dim=3, names=None)["inputs"]},
            "saved columns: got y_dim 3. Restore columns with y_dim = 2.",
        ),
    ],
)
def test_a_refused_restore_changes_nothing(saved, message):
    columns = Columns(2, 2)
    columns.read_row({"u": 1, "v": 2}, {"p": 1, "q": 2})
    before = columns.save()
    assert message_of(columns.restore, saved) == message
    assert columns.save() == before


def test_real_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas is optional; the stand-in above covers what is read of it")
    table = pandas.DataFrame({"wind": [1, 2], "sun": [0.5, None], "rain": [True, False]})
    columns = Columns(None, 2)
    same(columns.read_input(table.iloc[0]), [1.0, 0.5, 1.0])
    same(columns.read_input(table[["sun", "rain", "wind"]].iloc[1]), [0.0, np.nan, 2.0])
    same(columns.read_input({"rain": 1, "wind": pandas.NA}), [1.0, np.nan, np.nan])
    same(columns.read_input(pandas.Series([1.0, None], ["sun", "rain"], dtype="Float64")), [np.nan, 1.0, np.nan])
    same(columns.read_target("y", pandas.Series([1.0, 2.0])), [1.0, 2.0])
    assert message_of(columns.read_input, table).startswith("x: got a table (DataFrame).")
    dates = pandas.Series(pandas.to_datetime(["2024-01-01"]), ["sun"])
    assert message_of(columns.read_input, dates).startswith("x['sun']: got dates (datetime64[")
    texts = pandas.Series(["1.5"], ["sun"])
    assert message_of(columns.read_input, texts) == f"x['sun']: got str '1.5'. {TEXT_MESSAGE}"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(ANYTHING, max_size=5), st.sampled_from([None, 0, 1, 2]), st.integers(1, 2))
def test_any_row_is_read_in_range_or_refused_without_a_trace(rows, x_dim, y_dim):
    columns = Columns(x_dim, y_dim)
    for row in rows:
        for read in (columns.read_input, lambda y: columns.read_target("y", y, True)):
            before = columns.save()
            try:
                values = read(row)
            except InvalidInput:
                assert columns.save() == before
                continue
            if values is not None:
                assert values.shape == ((columns.x_dim,) if read == columns.read_input else (y_dim,))
                assert np.nanmax(np.abs(values), initial=0.0) <= 1e150
