"""Texts and pictures in inputs: they reach the encoders that ask for them, and nothing else."""

import numpy as np
import pandas as pd
import pytest

import nashcast as nc
from nashcast.encoders import BuiltEncoder


class Length:
    """The length of the text in a column."""

    def __init__(self, column="text"):
        self.objects = (column,)

    def build(self, x_dim, y_dim):
        return BuiltLength(self.objects, y_dim)


class BuiltLength(BuiltEncoder):
    features = 1
    accepts_missing = True

    def __init__(self, objects, y_dim):
        self.objects, self.y_dim = objects, y_dim

    def encode(self, context):
        (text,) = context.objects.values()
        return np.full((self.y_dim, 1), float(len(text)))


def rows(count=60):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, count)
    return [({"text": "a" * n, "number": 1.0 * t}, float(n)) for t, n in enumerate(lengths)]


def run(federation, stream):
    said = []
    for x, y in stream:
        said.append(federation.predict_one(x))
        federation.learn_one(x, y)
    return np.array(said)


def test_a_target_that_the_text_tells_is_forecast_from_it():
    stream = rows()
    targets = np.array([y for _, y in stream])
    said = run(nc.Federation([nc.Agent(Length(), name="reader"), nc.Agent(nc.encoders.Trend())]), stream)
    assert np.abs(said - targets)[30:].max() < 0.05
    # A row of a table, and an input that is a text and nothing else.
    table = pd.DataFrame([x for x, _ in stream])
    federation = nc.Federation([nc.Agent(Length(), name="reader"), nc.Agent(nc.encoders.Trend())])
    again = run(federation, [(table.iloc[t], y) for t, (_, y) in enumerate(stream)])
    np.testing.assert_array_equal(again, said)
    bare = run(nc.Federation([nc.Agent(Length(""))]), [(x["text"], y) for x, y in stream])
    assert np.abs(bare - targets)[30:].max() < 0.05


def test_the_same_numbers_with_another_text_are_another_input():
    federation = nc.Federation([nc.Agent(Length())])
    run(federation, rows(40))
    short = federation.predict_one({"text": "a", "number": 1.0})
    assert federation.predict_one({"text": "aaaaaaaa", "number": 1.0}) > short + 4.0
    assert federation.predict_one({"text": "a", "number": 1.0}) == short


def test_a_missing_text_benches_its_agent_only():
    federation = nc.Federation([nc.Agent(Length(), name="reader"), nc.Agent(nc.encoders.Trend(), name="trend")])
    stream = rows(20)
    for missing in (None, float("nan"), pd.NA):
        stream.append(({"text": missing, "number": 1.0}, 3.0))
    stream.append(({"number": 1.0}, 3.0))
    run(federation, stream)
    assert federation.health["absences"] == {"reader": 4}


def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path):
    stream, made = rows(50), [nc.Federation([nc.Agent(Length()), nc.Agent(nc.encoders.Lags())]) for _ in range(2)]
    run(made[0], stream[:30])
    made[0].save(tmp_path / "state")
    made[1].load(tmp_path / "state")
    np.testing.assert_array_equal(run(made[0], stream[30:]), run(made[1], stream[30:]))


def test_texts_before_the_first_label_are_read_too():
    federation = nc.Federation([nc.Agent(Length(), name="reader")])
    for x, y in rows(30):
        federation.learn_one(x, y if x["number"] > 5 else None)
    assert not federation.health["absences"]


def test_refusals():
    with pytest.raises(nc.InvalidInput, match=r"agents: got encoders of the whole input beside encoders of 'text'"):
        nc.Federation([nc.Agent(Length()), nc.Agent(Length(""))])
    federation = nc.Federation([nc.Agent(Length())])
    with pytest.raises(nc.InvalidInput, match=r"x: got list .* Pass a dict with the keys text and the numbers"):
        federation.predict_one([1.0])
    # A text that no agent asks for is refused, as before.
    with pytest.raises(nc.InvalidInput, match=r"x\['other'\]: got str 'word'. Pass numbers"):
        federation.predict_one({"text": "a", "other": "word"})
