"""ONNX networks of any inputs: several, of any rank and type, recurrent; what is missing is named."""

import numpy as np
import onnx
import onnxruntime.datasets
import pytest
from onnx import TensorProto, helper

import nashcast as nc
from nashcast.checks import check_encoder
from nashcast.encoders import OnnxModel
from nashcast.encoders.base import Noise, input_context

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


def save(path, nodes, inputs, outputs):
    """inputs, outputs: (name, type, shape)."""
    values = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
    model = helper.make_model(
        helper.make_graph(nodes, "network", *values), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


@pytest.fixture
def recurrent(tmp_path):
    """A state h ← h + mean(x)·sr and the output 2h; `sr` is one number, an integer. Named as Silero names its own."""
    nodes = [
        helper.make_node("ReduceMean", ["input"], ["m"], axes=[1], keepdims=1),
        helper.make_node("Cast", ["sr"], ["r"], to=FLOAT),
        helper.make_node("Mul", ["m", "r"], ["a"]),
        helper.make_node("Add", ["state", "a"], ["stateN"]),
        helper.make_node("Add", ["stateN", "stateN"], ["output"]),
    ]
    inputs = [("input", FLOAT, ["batch", "length"]), ("state", FLOAT, ["batch", 1]), ("sr", INT64, [])]
    outputs = [("output", FLOAT, ["batch", 1]), ("stateN", FLOAT, ["batch", 1])]
    return save(tmp_path / "recurrent.onnx", nodes, inputs, outputs)


def encoded(built, x, state=None):
    context = input_context(np.asarray(x, dtype=float), Noise(1, 0), state)
    after = built.advance(context)
    return built.encode(context._replace(state=after)), after


def test_a_recurrent_state_is_found_and_carried(recurrent):
    built = OnnxModel(recurrent, features=1, constants={"sr": 3}).build(4, 1)
    state = built.start()
    for step in range(1, 5):
        features, state = encoded(built, [1.0, 2.0, 3.0, 2.0], state)
        np.testing.assert_allclose(features, [[2.0 * 3.0 * 2.0 * step]])
    check_encoder(OnnxModel(recurrent, features=1, constants={"sr": 3}), x_dim=2, y_dim=1)


def test_a_saved_federation_carries_the_state_on(recurrent, tmp_path):
    def make():
        return nc.Federation([nc.Agent(OnnxModel(recurrent, features=1, constants={"sr": 2}))])

    rng, one, other = np.random.default_rng(0), make(), make()
    rows = [(rng.standard_normal(3), rng.standard_normal()) for _ in range(30)]
    for x, y in rows[:20]:
        one.predict_one(x)
        one.learn_one(x, y)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for x, y in rows[20:]:
        assert one.predict_one(x) == other.predict_one(x)
        one.learn_one(x, y)
        other.learn_one(x, y)


def test_an_input_that_is_missing_is_named(recurrent):
    with pytest.raises(
        nc.InvalidInput, match=r"whose input 'sr' \(int64, one number\) is missing. Pass constants=\{'sr'"
    ):
        OnnxModel(recurrent, features=1).build(4, 1)
    with pytest.raises(nc.InvalidInput, match=r"constants: got 'rate'. The network has 'input', 'state', 'sr'"):
        OnnxModel(recurrent, features=1, constants={"rate": 1}).build(4, 1)
    with pytest.raises(nc.InvalidInput, match=r"output: got 'y'. The network has 'output', 'stateN'"):
        OnnxModel(recurrent, features=1, constants={"sr": 1}, output="y").build(4, 1)


@pytest.fixture
def two_inputs(tmp_path):
    """a·b as whole numbers, of a (1, 2, 2) and b (2,)."""
    nodes = [helper.make_node("Mul", ["a", "b"], ["y"])]
    inputs = [("a", INT32, [1, 2, 2]), ("b", INT32, [2])]
    return save(tmp_path / "two.onnx", nodes, inputs, [("y", INT32, [1, 2, 2])])


def test_several_inputs_of_any_rank_and_type(two_inputs):
    encoder = OnnxModel(two_inputs, features=4, inputs={"a": [0, 1, 2, 3], "b": [5, 4]})
    features, _ = encoded(encoder.build(6, 1), [1, 2, 3, 4, 10, 100])
    np.testing.assert_array_equal(features, [[100.0, 20.0, 300.0, 40.0]])
    with pytest.raises(nc.InvalidInput, match=r"whose input 'a' .*, 'b' .* is missing. .* inputs=\{'a': …, 'b': …\}"):
        OnnxModel(two_inputs, features=4).build(6, 1)
    with pytest.raises(nc.InvalidInput, match=r"inputs: got place 6 for 'b'. x has x_dim = 6 numbers"):
        OnnxModel(two_inputs, features=4, inputs={"a": [0, 1, 2, 3], "b": [5, 6]}).build(6, 1)


def test_a_function_prepares_what_a_network_takes(two_inputs):
    def prepare(picture):
        return {"a": picture[None], "b": np.array([1, 2])}

    encoder = OnnxModel(two_inputs, features=4, prepare=prepare, column="picture")
    federation = nc.Federation([nc.Agent(encoder, name="box")])
    for t in range(12):
        x = {"picture": np.full((2, 2), t) if t != 7 else None, "number": 1.0}
        federation.predict_one(x)
        federation.learn_one(x, 3.0 * t)
    assert federation.health["absences"] == {"box": 1}
    assert federation.health["reasons"]["box"] == "NashcastError: its input has nothing in the column 'picture'"
    objects = [{"picture": np.full((2, 2), t)} for t in range(12)]
    check_encoder(encoder, x_dim=1, y_dim=1, steps=12, objects=objects)


def test_lengths_that_are_not_fixed_must_be_given(tmp_path):
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["y"])]
    shape = ["batch", 3, "height", "width"]
    path = save(tmp_path / "pool.onnx", nodes, [("x", FLOAT, shape)], [("y", FLOAT, ["batch", 3, 1, 1])])
    with pytest.raises(nc.InvalidInput, match=r"Its lengths are not fixed: pass shapes=\{'x': \(1, 3, …, …\)\}"):
        OnnxModel(path, features=3).build(24, 1)
    built = OnnxModel(path, features=3, shapes={"x": (1, 3, 2, 4)}).build(24, 1)
    features, _ = encoded(built, np.arange(24))
    np.testing.assert_allclose(features, [[3.5, 11.5, 19.5]])
    with pytest.raises(
        nc.InvalidInput, match=r"shapes: got \(1, 2, 2, 4\) for 'x'. The network takes \(any, 3, any, any\)"
    ):
        OnnxModel(path, features=3, shapes={"x": (1, 2, 2, 4)}).build(16, 1)


@pytest.mark.parametrize(("name", "x_dim"), [("sigmoid", 60), ("mul_1", 6), ("logreg_iris", 6)])
def test_files_shipped_with_onnxruntime_run(name, x_dim):
    path = onnxruntime.datasets.get_example(f"{name}.onnx")
    encoder = OnnxModel(path, features=1, seed=1)
    inputs = np.abs(np.random.default_rng(2).standard_normal((12, x_dim)))
    check_encoder(encoder, x_dim=x_dim, y_dim=1, inputs=inputs)
