"""Encoders that wrap what others made, against the real packages and a real local server."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from river import compose
from river import linear_model as river_linear
from river import preprocessing as river_preprocessing
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from nashcast import encoders
from nashcast.encoders import Callable, Noise
from nashcast.encoders.adapters.onnx import OnnxModel
from nashcast.encoders.adapters.river import RiverModel
from nashcast.encoders.adapters.sklearn import SklearnRegressor, SklearnTransformer
from nashcast.encoders.black_box.forecaster import Forecaster
from nashcast.encoders.http.embeddings import Embeddings
from nashcast.errors import InvalidInput, NashcastError
from support.encoding import encode_step

X_DIM = 3
INPUTS = np.random.default_rng(5).standard_normal((90, X_DIM))
TARGETS = INPUTS @ np.array([[1.0, -1.0], [2.0, 0.5], [0.0, 3.0]]) + np.array([4.0, -7.0])
NOISE = Noise(1, 0)
# What types forbid and a user may still pass.
THREE: Any = 3
WORD: Any = "01"


class Server:
    """A local embeddings server. `script` holds what to do instead of answering well, one entry for each request."""

    def __init__(self, size=7):
        self.size, self.script, self.requests, self.keys = size, [], [], []
        self.reverse, self.paths = False, []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                owner.answer(self)

            def do_GET(self):
                owner.answer(self)

            def log_request(self, *args):
                pass  # pytest shows what a test prints

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def embed(self, text):
        return [float(sum(ord(c) * (i + 1) ** (j % 3) for j, c in enumerate(text)) % 101) for i in range(self.size)]

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.paths.append(f"{handler.command} {handler.path}")
        self.requests.append(json.loads(body or b"null"))
        self.keys.append(handler.headers.get("Authorization"))
        todo = self.script.pop(0) if self.script else None
        if isinstance(todo, float):
            time.sleep(todo)
            handler.close_connection = True
            return
        if todo == "hang up":
            handler.close_connection = True
            return
        if isinstance(todo, int):
            # An error that repeats the key, as real servers do.
            self.reply(handler, todo, f"bad key {self.keys[-1]}".encode())
            return
        if isinstance(todo, bytes):
            self.reply(handler, 200, todo)
            return
        data = [{"index": i, "embedding": self.embed(t)} for i, t in enumerate(self.requests[-1]["input"])]
        if self.reverse:
            data.reverse()
        self.reply(handler, 200, json.dumps({"data": data}).encode())

    def reply(self, handler, code, body):
        handler.send_response(code)
        if code in (302, 307):
            handler.send_header("Location", self.url + "/elsewhere")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def stop(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def save_network(
    path, x_dim=X_DIM, batch: str | int = "batch", outputs=8, kind=TensorProto.FLOAT, rank=2, inputs=1, flat=False
):
    """tanh(x W), saved; `flat` sums the batch away."""
    numbers = np.float32 if kind == TensorProto.FLOAT else np.float64
    weights = np.random.default_rng(2).standard_normal((x_dim, outputs)).astype(numbers)
    shape = [batch, x_dim] if rank == 2 else [batch, 1, x_dim]
    nodes = [helper.make_node("MatMul", ["x", "W"], ["a"]), helper.make_node("Tanh", ["a"], ["z"])]
    last, out = "z", [*shape[:-1], outputs]
    if flat:
        nodes.append(helper.make_node("ReduceSum", ["z"], ["s"], keepdims=0))
        last, out = "s", []
    graph = helper.make_graph(
        nodes, "network",
        [helper.make_tensor_value_info(name, kind, shape) for name in ["x", "other"][:inputs]],
        [helper.make_tensor_value_info(last, kind, out)],
        [numpy_helper.from_array(weights, "W")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return weights


def river_scaler():
    scaler = river_preprocessing.StandardScaler()
    for x in INPUTS:
        scaler.learn_one({str(i): v for i, v in enumerate(x)})
    return scaler


def river_regressor():
    model = river_preprocessing.StandardScaler() | river_linear.LinearRegression()
    for x, y in zip(INPUTS, TARGETS[:, 0], strict=True):
        model.learn_one({str(i): v for i, v in enumerate(x)}, y)
    return model


# name: (description made from a folder and a server, y_dim, features)
ENCODERS = {
    "forecaster": (lambda folder, server: Forecaster(lambda x: [x[0], x[1] + x[2]]), 2, 1),
    "sklearn transformer": (lambda f, s: SklearnTransformer(PCA(2).fit(INPUTS), features=1), 2, 1),
    "sklearn projected": (lambda f, s: SklearnTransformer(PolynomialFeatures(3).fit(INPUTS), 4, seed=3), 2, 4),
    "sklearn sparse": (
        lambda f, s: SklearnTransformer(OneHotEncoder(handle_unknown="ignore").fit(INPUTS[:9]), 4, seed=3), 2, 4,
    ),
    "sklearn regressor": (lambda f, s: SklearnRegressor(LinearRegression().fit(INPUTS, TARGETS)), 2, 1),
    "sklearn forest": (
        lambda f, s: SklearnRegressor(RandomForestRegressor(5, random_state=0).fit(INPUTS, TARGETS[:, 0])), 1, 1,
    ),
    "river transformer": (lambda f, s: RiverModel(river_scaler(), features=3), 1, 3),
    "river projected": (lambda f, s: RiverModel(river_scaler(), features=1, seed=4), 2, 1),
    "river regressor": (lambda f, s: RiverModel(river_regressor()), 1, 1),
    "onnx": (lambda f, s: save_network(f / "n.onnx") is not None and OnnxModel(f / "n.onnx", 4), 2, 4),
    "onnx projected": (
        lambda f, s: save_network(f / "n.onnx") is not None and OnnxModel(str(f / "n.onnx"), 3, seed=1), 2, 3,
    ),
    "onnx double, one at a time": (
        lambda f, s: save_network(f / "n.onnx", batch=1, kind=TensorProto.DOUBLE) is not None
        and OnnxModel(f / "n.onnx", 3, seed=1), 2, 3,
    ),
    "embeddings": (lambda f, s: Embeddings(s.url, "tiny", features=2, seed=6), 2, 2),
}  # fmt: skip


@pytest.fixture(params=list(ENCODERS))
def case(request, tmp_path, server):
    make, y_dim, features = ENCODERS[request.param]
    return make(tmp_path, server).build(X_DIM, y_dim), y_dim, features


def one_by_one(built, inputs):
    state, rows = built.start(), []
    for t, x in enumerate(inputs):
        Z, state = encode_step(built, x, state, Noise(1, t))
        rows.append(Z)
    return np.stack(rows), state


def test_shapes_and_declared_features(case):
    built, y_dim, features = case
    assert built.features == features
    rows, _ = one_by_one(built, INPUTS[:30])
    assert rows.shape == (30, y_dim, features)
    assert rows.dtype == np.float64
    assert np.isfinite(rows).all()


def test_only_forecasters_are_relative(case, request):
    forecasts = ("forecaster", "sklearn regressor", "sklearn forest", "river regressor")
    assert case[0].relative == (request.node.callspec.params["case"] in forecasts)


def test_encoding_is_pure(case):
    built, _, _ = case
    _, state = one_by_one(built, INPUTS[:50])
    x, before = INPUTS[50].copy(), copied(state)
    first, after = encode_step(built, x, state, NOISE)
    kept = first.copy()
    encode_step(built, INPUTS[51], after, NOISE)
    second, again = encode_step(built, x, state, NOISE)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(x, INPUTS[50])
    assert_same_state(state, before)
    assert_same_state(after, again)


def test_a_series_is_encoded_as_its_inputs_one_by_one(case, request):
    built, _, _ = case
    expected, expected_state = one_by_one(built, INPUTS)
    got, state = built.encode_series(INPUTS, built.start(), 1, 0)
    # A package may sum a batch in another order: equal to rounding, which in ONNX files is that of float32.
    rounding = 1e-5 if request.node.callspec.params["case"].startswith("onnx") else 1e-12
    np.testing.assert_allclose(got, expected, rtol=rounding, atol=rounding)
    assert_same_state(state, expected_state)


def copied(state):
    return tuple(np.copy(part) for part in state) if isinstance(state, tuple) else state


def assert_same_state(one, other):
    assert type(one) is type(other)
    for a, b in zip(one or (), other or (), strict=True):
        np.testing.assert_array_equal(a, b)


def encode(description, x, y_dim):
    built = description.build(len(x), y_dim)
    return encode_step(built, np.asarray(x, dtype=float), built.start(), NOISE)[0]


# Forecaster


def test_forecaster_gives_the_forecast_itself():
    np.testing.assert_array_equal(encode(Forecaster(lambda x: x[:2] * 10), [1.0, 2.0, 3.0], 2), [[10.0], [20.0]])
    np.testing.assert_array_equal(encode(Forecaster(lambda x: 5), [1.0], 1), [[5.0]])


def test_forecaster_keeps_no_buffer_of_the_function():
    buffer = np.zeros(1)

    def forecast(x):
        buffer[:] = x
        return buffer

    built = Forecaster(forecast).build(1, 1)
    first, _ = encode_step(built, np.array([1.0]), None, NOISE)
    encode_step(built, np.array([2.0]), None, NOISE)
    assert first[0, 0] == 1.0


def test_forecaster_messages():
    with pytest.raises(InvalidInput, match=r"function: got int 3. Pass something that can be called"):
        Forecaster(THREE)
    with pytest.raises(InvalidInput, match=r"function: got a forecast of 3 numbers. .* y_dim = 2 numbers"):
        encode(Forecaster(lambda x: x), [1.0, 2.0, 3.0], 2)
    with pytest.raises(InvalidInput, match=r"function: got str 'up'. Pass numbers, e.g. float\(text\)"):
        encode(Forecaster(lambda x: "up"), [1.0], 1)


# scikit-learn


def test_sklearn_numbers():
    x = INPUTS[0]
    regressor = make_pipeline(StandardScaler(), LinearRegression()).fit(INPUTS, TARGETS)
    np.testing.assert_allclose(encode(SklearnRegressor(regressor), x, 2)[:, 0], TARGETS[0], rtol=1e-10)
    scaler = StandardScaler().fit(INPUTS)
    scaled = (x - INPUTS.mean(axis=0)) / INPUTS.std(axis=0)
    np.testing.assert_allclose(encode(SklearnTransformer(scaler, 3), x, 1)[0], scaled, rtol=1e-10)


def test_larger_answers_go_through_the_projection_of_callable():
    model = PolynomialFeatures(3).fit(INPUTS)
    expected = encode(Callable(lambda x: np.asarray(model.transform([x])), features=2, seed=9), INPUTS[0], 2)
    np.testing.assert_array_equal(encode(SklearnTransformer(model, 2, seed=9), INPUTS[0], 2), expected)


def test_sklearn_predicts_a_series_in_one_call():
    class Counting(LinearRegression):
        calls = 0

        def predict(self, X):
            type(self).calls += 1
            return super().predict(X)

    built = SklearnRegressor(Counting().fit(INPUTS, TARGETS)).build(X_DIM, 2)
    built.encode_series(INPUTS, None, 1, 0)
    assert Counting.calls == 1


def test_sklearn_messages():
    with pytest.raises(InvalidInput, match=r"model: got a PCA that is not fitted. Call its fit first"):
        SklearnTransformer(PCA(2), features=1)
    with pytest.raises(InvalidInput, match=r"model: got a LinearRegression that is not fitted"):
        SklearnRegressor(LinearRegression())
    with pytest.raises(InvalidInput, match=r"model: got an object of type LinearRegression. .* with fit and transform"):
        SklearnTransformer(LinearRegression().fit(INPUTS, TARGETS), features=1)
    with pytest.raises(InvalidInput, match=r"model: got an object of type PCA. .* with fit and predict"):
        SklearnRegressor(PCA(2).fit(INPUTS))
    for wrong, got in ((LinearRegression, "the class LinearRegression"), (3, "an object of type int")):
        with pytest.raises(InvalidInput, match=rf"model: got {got}. Pass a fitted scikit-learn regressor"):
            SklearnRegressor(wrong)
    fitted = PCA(2).fit(INPUTS)
    with pytest.raises(InvalidInput, match=r"features: got int 0"):
        SklearnTransformer(fitted, features=0)
    with pytest.raises(InvalidInput, match=r"got -1. Pass a whole number"):
        SklearnTransformer(fitted, features=1, seed=-1)
    with pytest.raises(InvalidInput, match=r"model: got a PCA fitted on inputs of 3 numbers. .* x_dim = 5"):
        SklearnTransformer(fitted, features=1).build(5, 1)
    with pytest.raises(InvalidInput, match=r"model: got an answer of 2 numbers. .* = 1: give a seed"):
        encode(SklearnTransformer(fitted, features=1), INPUTS[0], 1)
    with pytest.raises(InvalidInput, match=r"model: got an answer of 2 numbers. .* = 6 numbers: ask for fewer"):
        encode(SklearnTransformer(fitted, features=3, seed=1), INPUTS[0], 2)
    with pytest.raises(InvalidInput, match=r"model: got a forecast of 2 numbers. .* y_dim = 1"):
        encode(SklearnRegressor(LinearRegression().fit(INPUTS, TARGETS)), INPUTS[0], 1)


# river


def test_river_numbers():
    model, x = river_regressor(), INPUTS[0]
    named: dict[Any, float] = {str(i): v for i, v in enumerate(x)}
    assert encode(RiverModel(model), x, 1)[0, 0] == model.predict_one(named)
    scaler = river_scaler()
    expected = scaler.transform_one(named)
    np.testing.assert_array_equal(encode(RiverModel(scaler, features=3), x, 1)[0], [expected[k] for k in "012"])


def test_river_names_and_the_order_of_features():
    first, second = compose.Select("a"), compose.Select("b")
    for model in (compose.Select("b", "a"), compose.Select("a", "b"), first + second, second + first):
        got = encode(RiverModel(model, features=2, names=["b", "c", "a"]), [1.0, 2.0, 3.0], 1)
        np.testing.assert_array_equal(got, [[3.0, 1.0]])


def test_learning_outside_does_not_reach_the_agent_nor_the_other_way():
    model = river_regressor()
    weights = dict(model["LinearRegression"].weights)
    built = RiverModel(model).build(X_DIM, 1)
    before, _ = encode_step(built, INPUTS[0], None, NOISE)
    built.encode_series(INPUTS, None, 1, 0)
    assert dict(model["LinearRegression"].weights) == weights
    for x in INPUTS:
        model.learn_one({str(i): v for i, v in enumerate(x)}, 1000.0)
    np.testing.assert_array_equal(encode_step(built, INPUTS[0], None, NOISE)[0], before)


def test_river_messages():
    with pytest.raises(
        InvalidInput, match=r"model: got an object of type int. Pass a river regressor, forecaster or transformer"
    ):
        RiverModel(3)
    with pytest.raises(
        InvalidInput,
        match=r"model: got an object of type LogisticRegression. Pass a river regressor, forecaster or transformer",
    ):
        RiverModel(river_linear.LogisticRegression())
    with pytest.raises(InvalidInput, match=r"features: got int 2. Omit it"):
        RiverModel(river_regressor(), features=2)
    with pytest.raises(InvalidInput, match=r"features: got NoneType None. Pass a whole number"):
        RiverModel(river_scaler())
    with pytest.raises(InvalidInput, match=r"got -1. Pass a whole number"):
        RiverModel(river_scaler(), features=1, seed=-1)
    for names in ("abc", THREE, ["a", THREE, "c"]):
        with pytest.raises(InvalidInput, match=r"names: got .* Pass a list of words"):
            RiverModel(river_regressor(), names=names)
    with pytest.raises(InvalidInput, match=r"names: got .* a different name"):
        RiverModel(river_regressor(), names=["a", "a", "b"])
    with pytest.raises(InvalidInput, match=r"names: got 2 names. .* x_dim = 3"):
        RiverModel(river_regressor(), names=["a", "b"]).build(3, 1)
    with pytest.raises(InvalidInput, match=r"model: got a Pipeline. It forecasts one target .* y_dim = 2"):
        RiverModel(river_regressor()).build(3, 2)


# ONNX


def test_onnx_numbers(tmp_path):
    weights = save_network(tmp_path / "n.onnx")
    got = encode(OnnxModel(tmp_path / "n.onnx", features=4), INPUTS[0], 2)
    np.testing.assert_allclose(got.ravel(), np.tanh(INPUTS[0] @ weights), rtol=1e-5)


def test_onnx_messages(tmp_path):
    path = tmp_path / "n.onnx"
    with pytest.raises(InvalidInput, match=r"path: got int 3. Pass the path"):
        OnnxModel(THREE, features=1)
    with pytest.raises(InvalidInput, match=r"path: got '.*n.onnx', which is no file. Pass the path"):
        OnnxModel(path, features=1)
    path.write_bytes(b"this is no network")
    with pytest.raises(InvalidInput, match=r"path: got '.*n.onnx'. onnxruntime cannot load it, export it again: "):
        OnnxModel(path, features=1).build(X_DIM, 1)
    save_network(path)
    with pytest.raises(InvalidInput, match=r"features: got int 0"):
        OnnxModel(path, features=0)
    with pytest.raises(InvalidInput, match=r"got -1. Pass a whole number"):
        OnnxModel(path, features=1, seed=-1)
    with pytest.raises(InvalidInput, match=r"path: got '.*', which takes 3 numbers. Inputs have x_dim = 4"):
        OnnxModel(path, features=1).build(4, 1)
    with pytest.raises(InvalidInput, match=r"path: got an answer of 8 numbers. .* = 1: give a seed"):
        encode(OnnxModel(path, features=1), INPUTS[0], 1)
    save_network(path, batch=5)
    with pytest.raises(InvalidInput, match=r"the input 'x' \(float32, shape \(5, 3\)\), which takes 15 numbers"):
        OnnxModel(path, features=1).build(X_DIM, 1)
    save_network(path, inputs=2)
    with pytest.raises(InvalidInput, match=r"whose input 'x' .*, 'other' .* is missing. Pass constants=\{'x': …"):
        OnnxModel(path, features=1).build(X_DIM, 1)


def test_onnx_that_mixes_a_batch_is_refused(tmp_path):
    save_network(tmp_path / "n.onnx", flat=True)
    built = OnnxModel(tmp_path / "n.onnx", features=1).build(X_DIM, 1)
    with pytest.raises(InvalidInput, match=r"first output is not one row for each input. Export it"):
        built.encode_series(INPUTS, None, 1, 0)


def test_onnx_that_declares_no_size_but_needs_one(tmp_path):
    path = tmp_path / "n.onnx"
    save_network(path)
    model = onnx.load(str(path))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "any"
    onnx.save(model, str(path))
    with pytest.raises(InvalidInput, match=r"path: got '.*'. It could not be run on 5 numbers an input: "):
        encode(OnnxModel(path, features=8), [1.0] * 5, 1)


# Embeddings


def test_embeddings_numbers_and_request(server):
    description = Embeddings(server.url + "/", "tiny", features=2, seed=6, template='{"numbers": [{x}]}')
    text = '{"numbers": [1.0, -2.5, 1e-09]}'
    expected = encode(Callable(lambda x: server.embed(text), features=2, seed=6), [1.0, -2.5, 1e-9], 2)
    np.testing.assert_array_equal(encode(description, [1.0, -2.5, 1e-9], 2), expected)
    assert server.paths == ["POST /v1/embeddings"]
    assert server.requests == [{"model": "tiny", "input": [text]}]
    assert server.keys == [None]


def test_a_text_is_asked_for_once(server):
    built = Embeddings(server.url, "tiny", features=2, seed=6).build(X_DIM, 1)
    first, _ = encode_step(built, INPUTS[0], None, NOISE)
    second, _ = encode_step(built, INPUTS[0], None, NOISE)
    np.testing.assert_array_equal(first, second)
    assert len(server.requests) == 1


def test_the_cache_is_bounded(server, monkeypatch):
    monkeypatch.setattr("nashcast.encoders.http.embeddings._CACHED_TEXTS", 2)
    built = Embeddings(server.url, "tiny", features=2, seed=6).build(X_DIM, 1)
    whole, _ = built.encode_series(INPUTS[:5], None, 1, 0)
    assert len(server.requests) == 1
    np.testing.assert_array_equal(encode_step(built, INPUTS[4], None, NOISE)[0], whole[4])
    assert len(server.requests) == 1
    np.testing.assert_array_equal(encode_step(built, INPUTS[0], None, NOISE)[0], whole[0])
    assert len(server.requests) == 2


def test_a_series_is_sent_in_requests_of_64_without_repeats(server):
    server.reverse = True  # the order is in the answer's index
    description = Embeddings(server.url, "tiny", features=2, seed=6)
    built = description.build(X_DIM, 1)
    encode_step(built, INPUTS[3], None, NOISE)
    series, _ = built.encode_series(np.vstack([INPUTS, INPUTS[:10]]), None, 1, 0)
    assert [len(request["input"]) for request in server.requests] == [1, 64, 25]
    np.testing.assert_array_equal(series[7], encode(description, INPUTS[7], 1))
    np.testing.assert_array_equal(series[90:], series[:10])


@pytest.mark.parametrize("trouble", [[503, 503], [429], [500, "hang up"], [0.6]], ids=str)
def test_passing_trouble_is_waited_out(server, trouble):
    server.script = list(trouble)
    description = Embeddings(server.url, "tiny", features=2, seed=6, timeout=0.3)
    began = time.monotonic()
    got = encode(description, INPUTS[0], 1)
    assert time.monotonic() - began >= 0.1 * (2 ** len(trouble) - 1)
    assert len(server.requests) == len(trouble) + 1
    np.testing.assert_array_equal(got, encode(description, INPUTS[0], 1))


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ([503] * 3, r"/v1/embeddings: answered HTTP 503, asked 3 times. See that the server runs"),
        ([429] * 3, r"answered HTTP 429, asked 3 times"),
        ([0.4] * 3, r"did not answer within 0.2 s, asked 3 times. .* raise timeout or retries"),
        (["hang up"] * 3, r"broke off the connection \(RemoteDisconnected\), asked 3 times"),
    ],
)
def test_trouble_that_stays(server, trouble, message):
    server.script = trouble
    with pytest.raises(NashcastError, match=message):
        encode(Embeddings(server.url, "tiny", features=2, seed=6, timeout=0.2), INPUTS[0], 1)
    assert len(server.requests) == 3


def test_no_server_at_all():
    stopped = Server()
    stopped.stop()
    with pytest.raises(NashcastError, match=r"could not be reached \(.*refused.*\), asked 1 times"):
        encode(Embeddings(stopped.url, "tiny", features=2, seed=6, retries=0), INPUTS[0], 1)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(404, "Check url, which must not end in /embeddings"), (401, "Put a key"), (400, "Check url and model"),
     (302, "Check url"), (307, "Check url")],
)  # fmt: skip
def test_refusals_are_not_repeated(server, code, remedy):
    server.script = [code]
    with pytest.raises(NashcastError, match=rf"answered HTTP {code}. {remedy}"):
        encode(Embeddings(server.url, "tiny", features=2, seed=6), INPUTS[0], 1)
    assert server.paths == ["POST /v1/embeddings"]


@pytest.mark.parametrize(
    "answer",
    [b"not json", b"\xff\xfe", b"[]", b"3", b'{"data": []}', b'{"data": null}', b'{"data": [3]}', b'{"data": [{}]}',
     b'{"data": [{"embedding": "text"}]}', b'{"data": [{"embedding": []}]}', b'{"data": [{"embedding": [NaN, 1]}]}',
     b'{"data": [{"embedding": [[1, 2], [3, 4]]}]}', b'{"data": [{"embedding": [1, 2]}, {"embedding": [1, 2]}]}'],
    ids=lambda answer: answer.decode("latin-1"),
)  # fmt: skip
def test_malformed_answers(server, answer):
    server.script = [answer]
    with pytest.raises(NashcastError, match=r"/v1/embeddings: the answer is not .* Check that url is an OpenAI"):
        encode(Embeddings(server.url, "tiny", features=2, seed=6), INPUTS[0], 1)
    assert len(server.requests) == 1


def test_too_small_an_embedding(server):
    with pytest.raises(InvalidInput, match=r"model: got an answer of 7 numbers. .* = 8 numbers: ask for fewer"):
        encode(Embeddings(server.url, "tiny", features=4, seed=6), INPUTS[0], 2)


def test_the_key_is_sent_and_shown_nowhere(server, monkeypatch):
    secret = "sk-very-secret-123"
    description = Embeddings(server.url, "tiny", features=2, seed=6, retries=0, api_key_variable="NASHCAST_TEST_KEY")
    monkeypatch.delenv("NASHCAST_TEST_KEY", raising=False)
    built = description.build(X_DIM, 1)
    with pytest.raises(InvalidInput, match=r"api_key_variable: got NASHCAST_TEST_KEY, which is not set. Set"):
        encode_step(built, INPUTS[0], None, NOISE)
    assert server.requests == []
    monkeypatch.setenv("NASHCAST_TEST_KEY", secret + "\n")  # as `cat` of a file gives it
    encode_step(built, INPUTS[0], None, NOISE)
    assert server.keys == [f"Bearer {secret}"]
    shown = [repr(description), repr(built), repr(vars(built))]
    for trouble in (401, 503, b"not json", "hang up"):
        server.script = [trouble]
        with pytest.raises(NashcastError) as caught:
            encode_step(built, INPUTS[1], None, NOISE)
        shown += [str(caught.value), repr(caught.value.__cause__)]
    monkeypatch.setenv("NASHCAST_TEST_KEY", f"{secret}\nX-Other: 1")
    with pytest.raises(InvalidInput, match=r"whose value no key can have. Set NASHCAST_TEST_KEY") as caught:
        encode_step(built, INPUTS[1], None, NOISE)
    shown.append(str(caught.value))
    assert not any(secret in text for text in shown)


def test_embeddings_messages():
    def made(url="http://host/v1", model="tiny", features=2, seed=1, **options):
        return Embeddings(url, model, features, seed, **options)

    for url in ("ftp://host", "file:///etc/passwd", "host/v1", "http://", "http://ho st", "http://host/\n"):
        with pytest.raises(InvalidInput, match=r"url: got .* Pass an http or https address"):
            made(url=url)
    for url in (THREE, "http://[host", "http://host:99999999"):
        with pytest.raises(InvalidInput, match=r"url: got .* Pass the server's address"):
            made(url=url)
    for url in ("https://me:secret@host", "https://host/v1?key=secret", "https://host/v1#secret"):
        with pytest.raises(InvalidInput, match=r"url: got an address with a login, a query or a fragment") as caught:
            made(url=url)
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"model: got str ''. Pass the model's name"):
        made(model="")
    with pytest.raises(InvalidInput, match=r"features: got int 0"):
        made(features=0)
    with pytest.raises(InvalidInput, match=r"got -1. Pass a whole number"):
        made(seed=-1)
    with pytest.raises(InvalidInput, match=r"timeout: got 0. Pass a number > 0"):
        made(timeout=0)
    with pytest.raises(InvalidInput, match=r"retries: got int -1"):
        made(retries=-1)
    with pytest.raises(InvalidInput, match=r"template: got str 'numbers'. Write \{x\}"):
        made(template="numbers")
    with pytest.raises(InvalidInput, match=r"api_key_variable: got something .* never the key itself") as caught:
        made(api_key_variable="sk-secret")
    assert "secret" not in str(caught.value)


# Packages that are not there


@pytest.mark.parametrize(
    ("module", "package", "extra", "use"),
    [
        ("sklearn", "scikit-learn", "sklearn", "from nashcast.encoders.adapters.sklearn import *; SklearnRegressor(1)"),
        ("river", "river", "river", "from nashcast.encoders.adapters.river import *; RiverModel(1)"),
        ("onnxruntime", "onnxruntime", "onnx",
         "from nashcast.encoders.adapters.onnx import *; OnnxModel(sys.executable, 1).build(1, 1)"),
        ("statsforecast", "statsforecast", "statsforecast",
         "from nashcast.encoders.adapters.statsforecast import *; StatsForecast('AutoETS')"),
        ("sktime", "sktime", "sktime", "from nashcast.encoders.adapters.sktime import *; Sktime(1)"),
        ("chronos", "chronos-forecasting", "chronos", "from nashcast.encoders.adapters.chronos import *; Chronos('c')"),
        ("transformers", "transformers", "huggingface",
         "from nashcast.encoders.adapters.huggingface import *; HuggingFace('h')"),
    ],
)  # fmt: skip
def test_a_missing_package_names_its_pip_line(module, package, extra, use):
    code = f"import sys; sys.modules[{module!r}] = None\n{use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(f"encoder: got no package {package}. Install it: pip install 'nashcast[{extra}]'.")


def test_heavy_packages_are_not_imported_with_the_adapters():
    folder = Path(encoders.__file__).parent
    modules = [
        path.relative_to(folder).with_suffix("")
        for part in ("adapters", "black_box", "http")
        for path in folder.glob(f"{part}/*.py")
    ]
    assert len(modules) > 20
    code = "import sys\n" + "".join(f"import nashcast.encoders.{'.'.join(path.parts)}\n" for path in modules)
    heavy = {"chronos", "onnxruntime", "pandas", "river", "sklearn", "sktime", "statsforecast", "torch", "transformers"}
    code += f"print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
