"""Texts and pictures in inputs: they reach the encoders that ask for them, and nothing else."""

import numpy as np
import pandas as pd
import pytest

import nashcast as nc
from nashcast.agents.history import History
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


def readers():
    return nc.Federation([nc.Agent(Length(), name="reader"), nc.Agent(nc.encoders.Lags(), name="lags")])


def test_a_replay_is_the_steps_one_by_one():
    stream = rows()
    targets = np.array([[y] for _, y in stream])
    said = run(readers(), stream)
    said[0] = 0.0
    table = pd.DataFrame([x for x, _ in stream])
    for inputs in ([x for x, _ in stream], table, table.to_dict("list")):
        np.testing.assert_array_equal(readers().replay(inputs, targets).forecasts[:, 0], said)
    bare = nc.Federation([nc.Agent(Length(""))]).replay([x["text"] for x, _ in stream], targets)
    assert np.abs(bare.forecasts - targets)[30:].max() < 0.05


def the_table(stream):
    """Row t + 1 holds what the input of row t was to forecast."""
    targets = [3.0, *(y for _, y in stream[:-1])]
    return pd.DataFrame([x for x, _ in stream]).assign(target=targets)


def test_a_table_of_texts_is_read_as_it_is(tmp_path):
    stream = rows()
    federation, plain = readers(), readers()
    plain.learn_one({"text": None, "number": None}, 3.0)
    result = federation.backtest(the_table(stream)[:50], target="target", inputs=["number", "text"])
    for (x, y), said in zip(stream[:49], result.forecasts[:, 0, 0], strict=False):
        assert plain.predict_one(x) == said
        plain.learn_one(x, y)
    assert result.absences == {}
    # A gap in the table has no text; a state that was saved goes on with the text of the last row.
    federation.save(tmp_path / "state")
    other = readers()
    other.load(tmp_path / "state")
    for row in range(50, 60):
        line = the_table(stream).iloc[row]
        pd.testing.assert_frame_equal(federation.forecast(line), other.forecast(line))
    assert not federation.health["absences"]


def test_texts_of_a_gap_are_missing_and_one_text_may_be_the_whole_input():
    stream = rows()
    table = the_table(stream).assign(time=pd.date_range("2024-01-01", periods=60, freq="h")).drop(index=[40, 41])
    federation = readers()
    federation.backtest(table, target="target", inputs=["number", "text"], date="time")
    assert federation.health["absences"] == {"reader": 2}
    bare = nc.Federation([nc.Agent(Length(""))])
    result = bare.backtest(the_table(stream), target="target", inputs="text", burn_in=30)
    assert result.summary["MAE"] < 0.05


def test_pictures_in_a_table():
    class Brightness(Length):
        def build(self, x_dim, y_dim):
            built = BuiltLength(self.objects, y_dim)
            built.encode = lambda context: np.full((y_dim, 1), context.objects["picture"].mean())
            return built

    rng = np.random.default_rng(0)
    light = rng.integers(0, 200, 50)
    pictures = [np.full((4, 4 + i % 2, 3), value, dtype=np.uint8) for i, value in enumerate(light)]
    for each in (pictures, [one[:, :4] for one in pictures]):
        federation = nc.Federation([nc.Agent(Brightness("picture"))])
        columns = {"picture": each, "target": [5.0, *light[:-1].astype(float)]}
        result = federation.backtest(columns, target="target", inputs="picture", burn_in=30)
        assert result.summary["MAE"] < 1.0


def test_refusals_in_tables_and_replays():
    table = the_table(rows(20))
    with pytest.raises(nc.InvalidInput, match=r"inputs: got no column 'text'. An agent reads it: pass inputs="):
        readers().backtest(table, target="target", inputs=["number"])
    with pytest.raises(nc.InvalidInput, match=r"inputs: got .* name its column alone, or make its encoder with column"):
        nc.Federation([nc.Agent(Length(""))]).backtest(table, target="target", inputs=["number", "text"])
    with pytest.raises(nc.InvalidInput, match=r"inputs: got str 'a'. Pass a list with a dict with the keys text and"):
        readers().replay("a", np.zeros((1, 1)))
    with pytest.raises(nc.InvalidInput, match=r"Pass a list with a text or picture for each step"):
        nc.Federation([nc.Agent(Length(""))]).replay("a", np.zeros((1, 1)))
    with pytest.raises(nc.InvalidInput, match=r"targets: got shape \(3, 1\)"):
        readers().replay([{"text": "a"}], np.zeros((3, 1)))


def test_inputs_too_wide_to_remember_are_refused_with_what_to_do():
    with pytest.raises(nc.InvalidInput, match=r"x: got 1000000000000 numbers. .* as one column"):
        History(10**12, np.zeros(1))


def test_the_paper_s_federation_says_that_it_takes_numbers():
    federation = nc.paper_federation([nc.Agent(Length(), name="reader")])
    with pytest.raises(nc.InvalidInput, match=r"encoder: got a Length of agent 'reader', which reads a text .*Federat"):
        federation.learn_one([1.0], 1.0)


def test_refusals():
    with pytest.raises(nc.InvalidInput, match=r"agents: got encoders of the whole input beside encoders of 'text'"):
        nc.Federation([nc.Agent(Length()), nc.Agent(Length(""))])
    federation = nc.Federation([nc.Agent(Length())])
    with pytest.raises(nc.InvalidInput, match=r"x: got list .* Pass a dict with the keys text and the numbers"):
        federation.predict_one([1.0])
    # A text that no agent asks for is refused, as before.
    with pytest.raises(nc.InvalidInput, match=r"x\['other'\]: got str 'word'. Pass numbers"):
        federation.predict_one({"text": "a", "other": "word"})
