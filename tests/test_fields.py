"""Fields are taken with checks; each refusal names the field."""

import numpy as np
import pytest

from nashcast.errors import InvalidInput
from nashcast.fields import Fields

REMEDY = "Restore what a component made with the same settings saved."


def saved():
    return {
        "step": np.array(3),
        "weights": np.array([[0.25, 0.75], [0.5, np.nan]]),
        "flags": np.array([True, False]),
        "inner.a": np.array([1.0]),
        "inner.deep.b": np.array([-1.0, np.inf]),
        "empty": np.zeros((0, 3)),
    }


def test_fields_are_taken_as_copies():
    arrays = saved()
    fields = Fields(arrays)
    step = fields.take("step", shape=(), dtype=np.int64, min=3, max=3)
    weights = fields.take("weights", shape=(None, 2), min=0.25, max=0.75, finite=False)
    weights[0, 0] = step[()] = 9
    np.testing.assert_array_equal(arrays["weights"], saved()["weights"])
    assert arrays["step"] == 3
    np.testing.assert_array_equal(fields.take("flags", shape=(2,), dtype=bool), [True, False])
    assert fields.take("empty", shape=(None, 3), min=1.0).shape == (0, 3)
    assert "inner.a" in fields
    inner = fields.part("inner.")
    assert "inner.a" not in fields
    fields.done()
    np.testing.assert_array_equal(inner.take("a", shape=(1,)), [1.0])
    assert inner.part("deep.").take("b", shape=(2,), finite=False)[1] == np.inf
    inner.done()
    assert list(arrays) == list(saved())


@pytest.mark.parametrize(
    ("take", "message"),
    [
        (lambda f: f.take("other", shape=()), "saved other: got nothing."),
        (lambda f: f.take("step", shape=()), "saved step: got type int64. Pass type float64."),
        (lambda f: f.take("flags", shape=(2,), dtype=np.uint8), "saved flags: got type bool. Pass type uint8."),
        (lambda f: f.take("step", shape=(1,), dtype=int), "saved step: got shape (). Pass shape (1,)."),
        (lambda f: f.take("weights", shape=(2, 3)), "saved weights: got shape (2, 2). Pass shape (2, 3)."),
        (lambda f: f.take("empty", shape=(None, 2)), "saved empty: got shape (0, 3). Pass shape (any, 2)."),
        (lambda f: f.take("weights", shape=(2, 2)), "saved weights: got entries that are not finite."),
        (lambda f: f.take("step", shape=(), dtype=int, min=4), "saved step: got 3. Pass numbers ≥ 4."),
        (
            lambda f: f.take("weights", shape=(2, 2), max=0.5, finite=False),
            "saved weights: got 0.75. Pass numbers ≤ 0.5.",
        ),
        (
            lambda f: f.part("inner.").part("deep.").take("b", shape=(2,)),
            "saved inner.deep.b: got entries that are not finite.",
        ),
        (lambda f: f.done(), "saved step: got a field that is not known."),
        (lambda f: f.part("inner.").done(), "saved inner.a: got a field that is not known."),
    ],
)
def test_refused_fields_are_named(take, message):
    with pytest.raises(InvalidInput) as caught:
        take(Fields(saved()))
    assert str(caught.value) == f"{message} {REMEDY}"


def test_a_refused_field_is_not_taken():
    fields = Fields(saved())
    with pytest.raises(InvalidInput):
        fields.take("step", shape=(2,), dtype=np.int64)
    assert fields.take("step", shape=(), dtype=np.int64) == 3
    with pytest.raises(InvalidInput, match="got nothing"):
        fields.take("step", shape=(), dtype=np.int64)
