"""The shipped contract checks: what is built in keeps every contract, and each catches what breaks it."""

# The broken classes below break types too, on purpose.
# pyright: reportArgumentType=false, reportCallIssue=false, reportOptionalOperand=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from river import linear_model as river_linear
from river import preprocessing as river_preprocessing
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures

from nashcast import InvalidInput, NashcastError
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer
from nashcast.checks import ContractViolation, agent_checks, check_agent, check_encoder, encoder_checks, is_plain
from nashcast.encoders import (
    Analogs,
    BuiltEncoder,
    BuiltForecaster,
    BuiltLearner,
    Callable,
    Context,
    EchoState,
    Embeddings,
    Forecaster,
    ForecastSet,
    Lags,
    Linear,
    OnnxModel,
    Persistence,
    Quadratic,
    Quantiles,
    RandomFeatures,
    RandomLags,
    Reservoir,
    RiverModel,
    RowEncoder,
    Seasonal,
    SeasonalSmoothing,
    SklearnRegressor,
    SklearnTransformer,
    Transformer,
    Trend,
)
from nashcast.encoders.network.transformer import weight_shapes
from nashcast.games.moments.features import Moments

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "write-an-encoder.md"
DIMENSIONS = [(1, 1), (4, 1), (1, 3), (4, 3)]  # x_dim, y_dim


def named(encoder):
    """Its description without addresses in memory, so that tests have the same names in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(encoder))


def wide(x):
    return np.sin(np.arange(1.0, 13.0) * x.sum())


BUILT_IN = [
    Persistence(),
    RandomFeatures(features=3, seed=1),
    RandomFeatures(features=2, seed=3, noise=0.0),
    EchoState(features=2, seed=1),
    EchoState(features=2, seed=1, activation="tanh"),
    EchoState(features=2, seed=1, activation="relu", spectral_radius=0.9),
    Linear(lags=1),
    Linear(lags=3),
    Callable(wide, features=2, seed=5),
]
# Those that look at the targets too: agents of the paper's algorithm have no use for them.
OF_TARGETS = [
    Trend(),
    Lags(),
    Lags(lags=8, changes=True),
    Seasonal(),
    Quadratic(),
    RandomLags(hidden=5, seed=2),
    Reservoir(hidden=5, seed=2),
    Analogs(),
    Analogs(memory=6),
    SeasonalSmoothing(),
]


@pytest.mark.parametrize(("x_dim", "y_dim"), DIMENSIONS)
@pytest.mark.parametrize("encoder", [*BUILT_IN, *OF_TARGETS], ids=named)
def test_built_in_encoders_keep_every_contract(encoder, x_dim, y_dim):
    assert check_encoder(encoder, x_dim=x_dim, y_dim=y_dim) == [name for name, _ in encoder_checks()]


@pytest.mark.parametrize("encoder", OF_TARGETS, ids=named)
def test_encoders_of_targets_need_no_inputs_and_may_have_many(encoder):
    for x_dim in (0, 40):
        check_encoder(encoder, x_dim=x_dim, y_dim=2)


@pytest.mark.parametrize(("x_dim", "y_dim"), DIMENSIONS)
def test_a_callable_that_returns_just_enough_keeps_every_contract(x_dim, y_dim):
    check_encoder(Callable(lambda x: wide(x)[:y_dim], features=1), x_dim=x_dim, y_dim=y_dim)


# Encoders around a model of someone else's, each for x_dim = 3 and one y_dim.

FITTED_ON = np.random.default_rng(5).standard_normal((90, 3))
FITTED_TO = FITTED_ON @ np.array([[1.0, -1.0], [2.0, 0.5], [0.0, 3.0]]) + np.array([4.0, -7.0])


def river_regressor():
    model = river_preprocessing.StandardScaler() | river_linear.LinearRegression()
    for x, y in zip(FITTED_ON, FITTED_TO[:, 0], strict=True):
        model.learn_one({str(i): v for i, v in enumerate(x)}, y)
    return model


def river_scaler():
    scaler = river_preprocessing.StandardScaler()
    for x in FITTED_ON:
        scaler.learn_one({str(i): v for i, v in enumerate(x)})
    return scaler


def network(path, kind, batch):
    """The path of tanh(x W), 3 numbers to 8, saved."""
    weights = np.random.default_rng(2).standard_normal((3, 8)).astype(helper.tensor_dtype_to_np_dtype(kind))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["a"]), helper.make_node("Tanh", ["a"], ["z"])], "network",
        [helper.make_tensor_value_info("x", kind, [batch, 3])], [helper.make_tensor_value_info("z", kind, [batch, 8])],
        [numpy_helper.from_array(weights, "W")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def transformer(y_dim, context):
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) for name, shape in weight_shapes(3, 2 * y_dim, 6).items()}
    return Transformer(weights, y_dim=y_dim, context=context)


class Embedder(BaseHTTPRequestHandler):
    """A text server whose embeddings, of 7 numbers, depend on every character."""

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        data = [{"index": i, "embedding": self.embed(text)} for i, text in enumerate(texts)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def embed(self, text):
        return [sum(ord(c) * (i + 1) ** (j % 3) for j, c in enumerate(text)) % 101 for i in range(7)]

    def log_request(self, *args):
        pass


@pytest.fixture
def embeddings_url(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embedder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


WRAPPED = {
    "forecaster": (lambda folder: Forecaster(lambda x: [x[0], x[1] + x[2]]), 2),
    "sklearn regressor": (lambda folder: SklearnRegressor(LinearRegression().fit(FITTED_ON, FITTED_TO)), 2),
    "sklearn transformer": (lambda folder: SklearnTransformer(PolynomialFeatures(3).fit(FITTED_ON), 4, seed=3), 2),
    "river regressor": (lambda folder: RiverModel(river_regressor()), 1),
    "river transformer": (lambda folder: RiverModel(river_scaler(), features=1, seed=4), 2),
    "onnx": (lambda folder: OnnxModel(network(folder / "n", TensorProto.FLOAT, "batch"), 4), 2),
    "onnx projected": (lambda folder: OnnxModel(network(folder / "n", TensorProto.FLOAT, "batch"), 3, seed=1), 2),
    "onnx double": (lambda folder: OnnxModel(network(folder / "n", TensorProto.DOUBLE, "batch"), 3, seed=1), 2),
    "onnx, one at a time": (lambda folder: OnnxModel(network(folder / "n", TensorProto.FLOAT, 1), 3, seed=1), 2),
    "transformer": (lambda folder: transformer(1, context=1), 1),
    "transformer of several steps": (lambda folder: transformer(3, context=4), 3),
}


@pytest.mark.parametrize(("make", "y_dim"), WRAPPED.values(), ids=WRAPPED)
def test_encoders_around_a_model_keep_every_contract(make, y_dim, tmp_path):
    assert check_encoder(make(tmp_path), x_dim=3, y_dim=y_dim) == [name for name, _ in encoder_checks()]


def test_embeddings_of_a_server_keep_every_contract(embeddings_url):
    check_encoder(Embeddings(embeddings_url, "tiny", features=2, seed=6), x_dim=3, y_dim=2)


@pytest.mark.parametrize(("x_dim", "y_dim"), DIMENSIONS)
@pytest.mark.parametrize("encoder", BUILT_IN, ids=named)
def test_the_built_in_agent_keeps_every_contract(encoder, x_dim, y_dim):
    passed = check_agent(lambda: PaperAgent(encoder, decay=0.1), x_dim=x_dim, y_dim=y_dim)
    assert passed == [name for name, _ in agent_checks()]


def test_the_built_in_agent_with_long_memory_and_with_relative_features():
    check_agent(lambda: PaperAgent(RandomFeatures(features=3, seed=1), forgetting=0.9), x_dim=2, y_dim=2)
    check_agent(lambda: PaperAgent(Of(RelativeForecast)), x_dim=2, y_dim=2)


def test_the_seed_and_the_inputs_can_be_chosen():
    inputs = np.linspace(5.0, 6.0, 16).reshape(8, 2)
    for seed in range(3):
        check_encoder(RandomFeatures(features=2, seed=4), x_dim=2, y_dim=2, inputs=inputs, seed=seed)
    np.testing.assert_array_equal(inputs, np.linspace(5.0, 6.0, 16).reshape(8, 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": np.zeros((7, 2))}, r"inputs: got shape \(7, 2\)"),
        ({"inputs": np.zeros((9, 3))}, r"inputs: got shape \(9, 3\)"),
        ({"inputs": np.full((9, 2), np.nan)}, "inputs: got nan"),
        ({"x_dim": -1}, "x_dim: got int -1"),
        ({"y_dim": 1.5}, "y_dim: got float 1.5"),
    ],
)
def test_misuse_is_no_violation(change, words):
    with pytest.raises(InvalidInput, match=words):
        check_encoder(Persistence(), **{"x_dim": 2, "y_dim": 1, **change})
    if "inputs" not in change:
        with pytest.raises(InvalidInput, match=words):
            check_agent(lambda: PaperAgent(Persistence()), **{"x_dim": 2, "y_dim": 1, **change})


def test_check_agent_wants_a_function():
    with pytest.raises(InvalidInput, match="make_agent: got PaperAgent"):
        check_agent(PaperAgent(Persistence()), x_dim=1, y_dim=1)


class Pair(NamedTuple):
    x: float
    steps: int


def test_what_is_a_plain_state():
    for state in (None, 1, 2.5, np.float64(1.0), np.zeros(3), np.zeros(2, dtype=bool), (), (1, (None, np.ones(1)))):
        assert is_plain(state)
    for state in ("x", [1.0], {}, {1}, np.array([None]), np.array(["a"]), np.ma.array([1.0]), (1, [2]), object(), len):
        assert not is_plain(state)


# One encoder that keeps every contract, and for each contract some that break it and none before it.


class Sound(BuiltEncoder):
    """A running sum of inputs, bounded, plus noise of its own for each feature, shared by the targets."""

    features = 2
    sigma = 0.2

    def __init__(self, x_dim, y_dim):
        self.y_dim = y_dim

    def start(self):
        return 0.0

    def features_of(self, total, noise):
        return np.tile(np.tanh(total) + self.sigma * noise.standard_normal(2), (self.y_dim, 1))

    def advance(self, context):
        return 0.5 * context.state + float(context.x.sum())

    def encode(self, context):
        return self.features_of(context.state, context.noise)


class SoundWithoutMemory(Sound):
    def start(self):
        return None

    def advance(self, context):
        return None

    def encode(self, context):
        return self.features_of(context.x.sum(), context.noise)

    def moments(self, inputs, features, noise):
        T, p, d = features.shape
        mean = np.broadcast_to(np.tanh(inputs.sum(axis=1))[:, None, None], (T, p, d)).copy()
        covariance = np.zeros((T, p, p, d, d))
        covariance[:] = self.sigma**2 * np.eye(d)
        return Moments(mean, covariance)


class Certain(Sound):
    sigma = 0.0


class Walk(Sound):
    """Z_t = Z_{t-1} + σW_t: the state is the features' first row."""

    def start(self):
        return np.zeros(2)

    def advance(self, context):
        return context.state + self.sigma * context.noise.standard_normal(2)

    def encode(self, context):
        return np.tile(context.state, (self.y_dim, 1))

    def moments(self, inputs, features, noise):
        T, p, d = features.shape
        mean = np.broadcast_to(features[0], (T, p, d)).copy()
        covariance = np.zeros((T, p, p, d, d))
        covariance[:] = self.sigma**2 * np.eye(d) * np.arange(T)[:, None, None, None, None]
        return Moments(mean, covariance)


class RelativeForecast(Certain):
    relative = True


class Of:
    """A description that builds this class."""

    def __init__(self, built):
        self.built = built

    def build(self, x_dim, y_dim):
        return self.built(x_dim, y_dim)


@pytest.mark.parametrize("built", [SoundWithoutMemory, Certain, Walk, RelativeForecast])
@pytest.mark.parametrize(("x_dim", "y_dim"), DIMENSIONS)
def test_the_encoders_broken_below_are_sound_before(built, x_dim, y_dim):
    check_encoder(Of(built), x_dim=x_dim, y_dim=y_dim)


class NoFeatures(Certain):
    features = None


class HalfAFeature(Certain):
    features = 0.5


class NegativeFeatures(Certain):
    features = -1


class Perhaps(Certain):
    accepts_missing = "perhaps"


class DoesNotBuild(Certain):
    def __init__(self, x_dim, y_dim):
        raise RuntimeError("no such model.")


class Flat(Certain):
    def features_of(self, total, noise):
        return super().features_of(total, noise)[0]


class SeriesOfOneTarget(Certain):
    def encode_series(self, inputs, state, key, first_step):
        Z, state = super().encode_series(inputs, state, key, first_step)
        return Z[:, :1], state


class ListOfNumbers(Certain):
    def features_of(self, total, noise):
        return super().features_of(total, noise).tolist()


class Logarithm(Certain):
    def features_of(self, total, noise):
        Z = super().features_of(total, noise)
        return np.where(Z > 0, Z, np.nan)


class Single(Certain):
    def features_of(self, total, noise):
        return super().features_of(total, noise).astype(np.float32)


class SingleSeries(Certain):
    def encode_series(self, inputs, state, key, first_step):
        Z, state = super().encode_series(inputs, state, key, first_step)
        return Z.astype(np.float32), state


class ListState(Certain):
    def start(self):
        return [0.0]

    def advance(self, context):
        return [super().advance(context._replace(state=context.state[0]))]

    def encode(self, context):
        return super().encode(context._replace(state=context.state[0]))


class GeneratorState(Certain):
    def advance(self, context):
        total = 0.0 if isinstance(context.state, float) else context.state[0]
        return super().advance(context._replace(state=total)), np.random.default_rng(0)

    def encode(self, context):
        return super().encode(context._replace(state=context.state[0]))


class Learns(Certain):
    def __init__(self, x_dim, y_dim):
        super().__init__(x_dim, y_dim)
        self.mean = np.zeros(x_dim)

    def advance(self, context):
        self.mean = 0.9 * self.mean + 0.1 * context.x
        return super().advance(context._replace(x=context.x - self.mean))


class LearnsWhileEncoding(Certain):
    steps = 0

    def encode(self, context):
        self.steps += 1
        return super().encode(context) / self.steps


class WritesToX(Certain):
    def advance(self, context):
        context.x[:] -= 0.1
        return super().advance(context)


class WritesToTargets(Certain):
    past_targets = 3

    def encode(self, context):
        context.targets[-1] += 1.0
        return super().encode(context)


class WritesTheSame(Certain):
    def encode(self, context):
        context.x[:] = context.x
        return super().encode(context)


class WritesToState(Certain):
    def start(self):
        return np.zeros(1)

    def advance(self, context):
        context.state[0] = 0.5 * context.state[0] + context.x.sum()
        return context.state

    def encode(self, context):
        return self.features_of(context.state[0], context.noise)


class OwnRandomness(Certain):
    def __init__(self, x_dim, y_dim):
        super().__init__(x_dim, y_dim)
        self.rng = np.random.default_rng(1)

    def features_of(self, total, noise):
        return super().features_of(total, noise) + 0.01 * self.rng.standard_normal()


class MomentsWithOwnRandomness(SoundWithoutMemory):
    rng = np.random.default_rng(1)

    def moments(self, inputs, features, noise):
        mean, covariance = super().moments(inputs, features, noise)
        return Moments(mean + 1e-6 * self.rng.standard_normal(), covariance)


class MomentsWriteToFeatures(SoundWithoutMemory):
    def moments(self, inputs, features, noise):
        result = super().moments(inputs, features, noise)
        features -= result.mean
        return result


class Unseeded(Certain):
    def __init__(self, x_dim, y_dim):
        super().__init__(x_dim, y_dim)
        self.weight = np.random.default_rng().standard_normal()

    def features_of(self, total, noise):
        return super().features_of(self.weight * total, noise)


class ScalesTheSeries(Certain):
    def encode_series(self, inputs, state, key, first_step):
        return super().encode_series(inputs - inputs.mean(axis=0), state, key, first_step)


class LooksThroughTheRow(Certain):
    def advance(self, context):
        later = 0.0 if context.x.base is None else context.x.base[-1].sum()
        return super().advance(context._replace(x=context.x + later))


class LooksThroughTheTargets(Certain):
    past_targets = 1

    def encode(self, context):
        return super().encode(context) + context.targets.base[context.targets.base.any(axis=1)][-1].sum()


class RoundedSeries(Certain):
    def encode_series(self, inputs, state, key, first_step):
        Z, state = super().encode_series(inputs, state, key, first_step)
        return np.round(Z, 9), state


class SeriesFromTheStart(Certain):
    def encode_series(self, inputs, state, key, first_step):
        return super().encode_series(inputs, self.start(), key, first_step)


class SeriesFromStepZero(SoundWithoutMemory):
    def encode_series(self, inputs, state, key, first_step):
        return super().encode_series(inputs, state, key, 0)


class SeriesKeepsItsState(Certain):
    def encode_series(self, inputs, state, key, first_step):
        return super().encode_series(inputs, state, key, first_step)[0], state


class NamedState(Certain):
    def start(self):
        return Pair(0.0, 0)

    def advance(self, context):
        return Pair(super().advance(context._replace(state=context.state.x)), context.state.steps + 1)

    def encode(self, context):
        return super().encode(context._replace(state=context.state.x))


class AnotherKindOfState(Certain):
    """A number first, then an array."""

    def advance(self, context):
        return np.atleast_1d(super().advance(context._replace(state=float(np.sum(context.state)))))

    def encode(self, context):
        return super().encode(context._replace(state=float(context.state[0])))


class UsesTargetsUndeclared(Certain):
    def encode(self, context):
        return super().encode(context) + context.targets.sum()


class SpreadsNaN(Certain):
    accepts_missing = True


class SpreadsNaNLater(Certain):
    accepts_missing = True

    def encode(self, context):
        Z = super().encode(context)
        return Z if np.isfinite(context.x).all() else np.zeros_like(Z)


class FillsNaN(Certain):
    accepts_missing = True

    def advance(self, context):
        return super().advance(context._replace(x=np.nan_to_num(context.x)))


class NoisyButCertain(SoundWithoutMemory):
    def moments(self, inputs, features, noise):
        return None


class Changed(SoundWithoutMemory):
    """Moments changed by `change`, a pair of functions."""

    mean = staticmethod(lambda m: m)
    covariance = staticmethod(lambda C: C)

    def moments(self, inputs, features, noise):
        m, C = super().moments(inputs, features, noise)
        return Moments(self.mean(m), self.covariance(C))


def changed(name, **functions):
    return type(name, (Changed,), {key: staticmethod(function) for key, function in functions.items()})


class OnlyAMean(SoundWithoutMemory):
    def moments(self, inputs, features, noise):
        return super().moments(inputs, features, noise).mean


def skewed(C):
    C[:, 0, 1, 0, 1] += 0.01
    return C


def too_correlated(C):
    C[:, 0, 1] *= 2.0
    C[:, 1, 0] *= 2.0
    return C


class UncertainStart(Walk):
    def moments(self, inputs, features, noise):
        m, C = super().moments(inputs, features, noise)
        return Moments(m, C + C[1:2])


class ForgetsTheStart(Walk):
    def moments(self, inputs, features, noise):
        m, C = super().moments(inputs, features, noise)
        return Moments(np.zeros_like(m), C)


class GrowsTooFast(Walk):
    def moments(self, inputs, features, noise):
        m, C = super().moments(inputs, features, noise)
        return Moments(m, C * 1.4)


class SampledWithBias(SoundWithoutMemory):
    def moments(self, inputs, features, noise):
        m, C = super().moments(inputs, features, noise)
        return Moments(m + 0.1 + 0.05 * noise.standard_normal(1)[0], C)


class Counted(RowEncoder):
    """The value of each target, and how many rows there were before."""

    features = 2

    def __init__(self, x_dim, y_dim):
        self.y_dim = y_dim

    def start(self):
        return 0

    def advance(self, context):
        return context.state + 1

    def encode(self, context):
        return self.encode_rows(context.rows, context.state - 1)[0][0]

    def encode_rows(self, rows, state):
        counted = np.broadcast_to(state + np.arange(rows.count)[:, None], (rows.count, self.y_dim))
        return np.stack([rows.value(0), counted * 1.0], axis=2), state + rows.count


class StandardisesTheRows(Counted):
    def encode_rows(self, rows, state):
        Z, state = super().encode_rows(rows, state)
        return Z - Z.mean(axis=0), state


class ForgetsRows(Counted):
    def encode_rows(self, rows, state):
        return super().encode_rows(rows, state)[0], state + 1


class OtherRows(Counted):
    def encode_rows(self, rows, state):
        Z, after = super().encode_rows(rows, state)
        return Z, after

    def encode(self, context):
        return super().encode(context) + 1.0


class LastValue(BuiltForecaster):
    """The last target, and nothing beyond the next one."""

    forecasts = 2
    past_targets = 1

    def __init__(self, x_dim, y_dim):
        self.y_dim = y_dim

    def forecast(self, context, horizon):
        said = np.full((2, horizon, self.y_dim), np.nan)
        said[:, 0] = context.targets[-1]
        return said


class NoHorizon(LastValue):
    def forecast(self, context, horizon):
        return super().forecast(context, 1)


class OtherFeatures(LastValue):
    def encode(self, context):
        return super().encode(context) - context.targets[-1][:, None]


class Infinite(LastValue):
    def forecast(self, context, horizon):
        said = super().forecast(context, horizon)
        said[:, 1:] = np.inf
        return said


class UnsortedQuantiles(LastValue):
    levels = (0.1, 0.9)

    def forecast_set(self, context, horizon):
        levels = (0.1, 0.9)
        return ForecastSet(
            self.forecast(context, horizon), Quantiles(levels, np.tile([1.0, 0.0], (horizon, self.y_dim, 1)))
        )


class OtherForecasts(LastValue):
    def forecast_set(self, context, horizon):
        return ForecastSet(self.forecast(context, horizon) + 1.0)


class RunningMean(BuiltLearner):
    """The mean of the targets so far."""

    row_size = 1
    past_targets = 1

    def __init__(self, x_dim, y_dim):
        self.y_dim, self.total, self.count = y_dim, np.zeros(y_dim), 0

    def row(self, context):
        return context.targets[-1, :1]

    def forecast_row(self, row, horizon):
        return np.tile(self.total / max(self.count, 1), (1, horizon, 1))

    def learn_row(self, row, target):
        self.total, self.count = self.total + target, self.count + 1

    def save_state(self):
        return {"total": self.total, "count": np.array(self.count)}

    def restore_state(self, saved):
        self.total, self.count = saved["total"], int(saved["count"])


class WiderRow(RunningMean):
    row_size = 2


class LearnsFromForecasts(RunningMean):
    asked = 0

    def forecast_row(self, row, horizon):
        self.asked += 1
        return super().forecast_row(row, horizon)

    def learn_row(self, row, target):
        super().learn_row(row, target * self.asked)
        self.asked = 1


class SharesItsMean(RunningMean):
    """Counts lessons in one place for all builds."""

    lessons = 0

    def __init__(self, x_dim, y_dim):
        super().__init__(x_dim, y_dim)
        SharesItsMean.lessons = 0

    def learn_row(self, row, target):
        super().learn_row(row, target)
        SharesItsMean.lessons += 1

    def forecast_row(self, row, horizon):
        return super().forecast_row(row, horizon) + SharesItsMean.lessons

    def save_state(self):
        return None


class ForgetsTheCount(RunningMean):
    def restore_state(self, saved):
        self.total = saved["total"]


class SavesAnObject(RunningMean):
    def save_state(self):
        return {"total": [1.0]}


@pytest.mark.parametrize("built", [Counted, LastValue, RunningMean])
@pytest.mark.parametrize(("x_dim", "y_dim"), DIMENSIONS)
def test_rows_and_forecasters_broken_below_are_sound_before(built, x_dim, y_dim):
    check_encoder(Of(built), x_dim=x_dim, y_dim=y_dim)


BROKEN_ENCODERS = [
    ("builds", NoFeatures, "features is NoneType None"),
    ("builds", HalfAFeature, "features is float 0.5"),
    ("builds", NegativeFeatures, "features is int -1"),
    ("builds", Perhaps, "accepts_missing is str 'perhaps'"),
    ("builds", DoesNotBuild, r"raised RuntimeError: no such model\. Set"),
    ("shapes", Flat, r"encode gave an array of shape \(2,\)"),
    ("shapes", SeriesOfOneTarget, r"encode_series gave an array of shape \(24, 1, 2\)"),
    ("shapes", ListOfNumbers, "encode gave list"),
    ("numbers", Logarithm, "not finite"),
    ("numbers", Single, "what encode gave at step 0 has type float32"),
    ("numbers", SingleSeries, "what encode_series gave has type float32"),
    ("plain state", ListState, "the state before step 0 is list"),
    ("plain state", GeneratorState, "the state before step 1 is tuple"),
    ("purity", Learns, "the second time"),
    ("purity", LearnsWhileEncoding, "other features the second time"),
    ("purity", WritesToX, "changed the context it was given"),
    ("purity", WritesToTargets, "changed the context it was given"),
    ("purity", WritesTheSame, "read-only"),
    ("purity", WritesToState, "changed the state it was given"),
    ("purity", OwnRandomness, "other features the second time"),
    ("purity", MomentsWithOwnRandomness, "moments gave a different result"),
    ("purity", MomentsWriteToFeatures, "moments changed its inputs or features"),
    ("determinism", Unseeded, "two builds"),
    ("causality", ScalesTheSeries, "through encode_series"),
    ("causality", LooksThroughTheRow, "through encode, "),
    ("causality", LooksThroughTheTargets, "through encode, "),
    ("batched", RoundedSeries, "off from encode one by one"),
    ("batched", SeriesFromTheStart, "off from encode one by one"),
    ("batched", SeriesFromStepZero, "off from encode one by one"),
    ("batched", SeriesKeepsItsState, "ends in another state"),
    ("batched", UsesTargetsUndeclared, "off from encode one by one"),
    ("resuming", NamedState, "AttributeError"),
    ("resuming", AnotherKindOfState, "a state of another encoder"),
    ("missing inputs", SpreadsNaN, "x with NaN at step 0 gave features not finite at step 0"),
    ("missing inputs", SpreadsNaNLater, "x with NaN at step 0 gave features not finite at step 1"),
    ("rows", StandardisesTheRows, "encode_rows of 12 rows is off|encode_rows of 24 rows is off"),
    ("rows", ForgetsRows, "ends in another state"),
    ("rows", OtherRows, "not what advance and encode gave"),
    ("forecasts", NoHorizon, r"not \(forecasts, horizon, y_dim\) = \(2, 3, 3\)"),
    ("forecasts", OtherFeatures, "something else than the forecast of the next target"),
    ("forecasts", Infinite, "is infinite"),
    ("quantiles", UnsortedQuantiles, "below one of a lower level"),
    ("quantiles", OtherForecasts, "other forecasts than forecast"),
    ("learner rows", WiderRow, r"row gave shape \(1,\) at step 0"),
    ("learning apart", LearnsFromForecasts, "asked for more forecasts learnt something else"),
    ("own copy", SharesItsMean, "they share what they learnt"),
    ("saved learner", ForgetsTheCount, "restored after 12 lessons"),
    ("saved learner", SavesAnObject, r"save_state gave list \[1.0\] under 'total'"),
    ("certain features", NoisyButCertain, "moments gives None"),
    ("moment shapes", OnlyAMean, "not a mean and a covariance"),
    ("moment shapes", changed("FlatMean", mean=lambda m: m[:, :, 0]), r"the mean is an array of shape \(4, 3\)"),
    ("moment shapes", changed("OneRow", covariance=lambda C: C[:, 0]), r"not an array of shape \(4, 3, 3, 2, 2\)"),
    ("moment shapes", changed("Nowhere", mean=lambda m: m * np.nan), "the mean has 24 entries that are not finite"),
    ("moment shapes", changed("Half", covariance=lambda C: C.astype(np.float32)), "the covariance has type float32"),
    ("covariance", changed("Skewed", covariance=skewed), r"not Cov\[l,k\] transposed"),
    ("covariance", changed("Negative", covariance=lambda C: -C), "eigenvalue -0.12 < 0"),
    ("covariance", changed("TooCorrelated", covariance=too_correlated), "eigenvalue"),
    ("known start", UncertainStart, "have a variance of 0.04"),
    ("known start", ForgetsTheStart, "is not those features"),
    ("moments", changed("MeanOff", mean=lambda m: m + 0.05), "the mean is"),
    ("moments", changed("Overconfident", covariance=lambda C: 0.7 * C), "a covariance is 0.028"),
    ("moments", changed("Uncorrelated", covariance=lambda C: C * np.eye(3)[:, :, None, None]), "a covariance is 0,"),
    ("moments", GrowsTooFast, "at step [123] of the window a covariance"),
    ("moments", SampledWithBias, "the mean is"),
]


@pytest.mark.parametrize(("contract", "built", "words"), BROKEN_ENCODERS, ids=lambda v: getattr(v, "__name__", None))
def test_an_encoder_that_breaks_one_contract_is_caught(contract, built, words):
    with pytest.raises(ContractViolation, match=words) as caught:
        check_encoder(Of(built), x_dim=2, y_dim=3)
    assert caught.value.contract == contract
    assert str(caught.value).startswith(f"contract '{contract}' is broken: ")
    assert isinstance(caught.value, NashcastError)


def test_an_encoder_that_fills_what_is_missing_keeps_every_contract():
    check_encoder(Of(FillsNaN), x_dim=2, y_dim=3)


def test_every_encoder_contract_is_broken_once_above():
    assert {contract for contract, _, _ in BROKEN_ENCODERS} == {name for name, _ in encoder_checks()}


# Agents: the built-in one, broken in one place.


class SoundAgent(PaperAgent):
    def __init__(self):
        super().__init__(RandomFeatures(features=2, seed=1))


class SaysNothing(SoundAgent):
    def begin(self, x_dim, target, key, lookback):
        super().begin(x_dim, target, key, lookback)


class HasNoName(SoundAgent):
    def begin(self, x_dim, target, key, lookback):
        return super().begin(x_dim, target, key, lookback)._replace(name=None)


class CountsInHalves(SoundAgent):
    def begin(self, x_dim, target, key, lookback):
        return super().begin(x_dim, target, key, lookback)._replace(features=2.5)


class BareArray(SoundAgent):
    def forecast(self, x):
        return super().forecast(x).forecast


class TooManyNumbers(SoundAgent):
    def forecast(self, x):
        return Answer(np.append(super().forecast(x).forecast, 0.0))


class NoReason(SoundAgent):
    def forecast(self, x):
        return Answer(None)


class AlwaysSitsOut(SoundAgent):
    def forecast(self, x):
        return Answer(None, "too early")


class AdoptsToNaN(SoundAgent):
    def adopt(self, sync):
        return Answer(super().adopt(sync).forecast * np.nan)


class ShowsTooMuch(SoundAgent):
    def view(self):
        view = super().view()
        return view._replace(features=np.concatenate([view.features, view.features]))


class ShowsNoCovariance(SoundAgent):
    def view(self):
        return super().view()._replace(covariance=None)


class NoRidge(SoundAgent):
    def view(self):
        return super().view()._replace(ridge=0.0)


class BareView(SoundAgent):
    def view(self):
        return tuple(super().view())


class ScalesX(SoundAgent):
    def forecast(self, x):
        answer = super().forecast(x)
        x *= 0.5
        return answer


class ShiftsTheTarget(SoundAgent):
    def learn(self, target):
        super().learn(target)
        target -= 1.0


class ShiftsTheSync(SoundAgent):
    def adopt(self, sync):
        answer = super().adopt(sync)
        sync.forecast[:] = 0.0
        return answer


class ShiftsTheFirstTarget(SoundAgent):
    def begin(self, x_dim, target, key, lookback):
        hello = super().begin(x_dim, target, key, lookback)
        target[:] = 0.0
        return hello


class OwnNoise(SoundAgent):
    def begin(self, x_dim, target, key, lookback):
        return super().begin(x_dim, target, int(np.random.default_rng().integers(2**62)), lookback)


class SharesBetweenAgents(SoundAgent):
    made = 0

    def begin(self, x_dim, target, key, lookback):
        SharesBetweenAgents.made += 1
        return super().begin(x_dim, target, key + SharesBetweenAgents.made, lookback)


class LearnsInForecast(SoundAgent):
    def forecast(self, x):
        answer = super().forecast(x)
        self._encoder_state = None
        self._step += 1
        return answer


class RemembersQuestions(SoundAgent):
    """The second answer is the same; what was asked shows only in the next step."""

    def begin(self, x_dim, target, key, lookback):
        self.asked = 0.0
        return super().begin(x_dim, target, key, lookback)

    def forecast(self, x):
        answer = super().forecast(x)
        self.asked += x.sum()
        return answer

    def learn(self, target):
        super().learn(target)
        self._present = self._present + 0.01 * self.asked


class LooksAhead(SoundAgent):
    def forecast(self, x):
        return super().forecast(x if x.base is None else x + x.base[-1])


class AdoptsAtAnyTime(SoundAgent):
    def adopt(self, sync):
        return Answer(sync.forecast.copy()) if self._pending is None else super().adopt(sync)


class AdoptsNone(SoundAgent):
    def adopt(self, sync):
        self._pending.x  # noqa: B018 the mistake: no question whether there is one
        return super().adopt(sync)


class DoesNotSitOut(SoundAgent):
    def sit_out(self):
        pass


class LearnsOnlyForecasts(SoundAgent):
    def learn(self, target):
        self._expect_pending()
        super().learn(target)


class ForgetsItsStep(SoundAgent):
    def restore(self, saved):
        super().restore(saved)
        self._step = 0


class SavesAList(SoundAgent):
    def save(self):
        return {**super().save(), "step": [self._step]}


class IgnoresTheDecoder(SoundAgent):
    def adopt(self, sync):
        return super().adopt(sync._replace(decoder=None))


class IgnoresThePresent(SoundAgent):
    def adopt(self, sync):
        return super().adopt(sync._replace(forecast=0.5 * sync.forecast))


BROKEN_AGENTS = [
    ("begin", SaysNothing, "begin gave NoneType"),
    ("begin", HasNoName, "the name is NoneType"),
    ("begin", CountsInHalves, "features is float 2.5"),
    ("answers", BareArray, "forecast at step 0 gave an array"),
    ("answers", TooManyNumbers, r"shape \(4,\)"),
    ("answers", NoReason, "no forecast, and no reason"),
    ("answers", AlwaysSitsOut, "sat out every step, the last because: too early"),
    ("answers", AdoptsToNaN, "the answer of adopt at step 0 has 3 entries that are not finite"),
    ("view", ShowsTooMuch, r"features is an array of shape \(6, 3, 2\)"),
    ("view", ShowsNoCovariance, "only one of means and covariance"),
    ("view", NoRidge, "ridge is 0.0"),
    ("view", BareView, "view gave tuple"),
    ("arguments", ScalesX, "x was changed at step 0"),
    ("arguments", ShiftsTheTarget, "learn changed the target"),
    ("arguments", ShiftsTheSync, "adopt changed what it was given"),
    ("arguments", ShiftsTheFirstTarget, "begin changed the target"),
    ("determinism", OwnNoise, "two fresh agents"),
    ("determinism", SharesBetweenAgents, "two fresh agents"),
    ("repeated forecast", LearnsInForecast, "gave two forecasts"),
    ("repeated forecast", RemembersQuestions, "asked more often"),
    ("causality", LooksAhead, "a future that changed"),
    ("order", AdoptsAtAnyTime, "adopt before any forecast was accepted"),
    ("order", AdoptsNone, "raised AttributeError, which is not a NashcastError"),
    ("sitting out", DoesNotSitOut, "told to sit step 6 out"),
    ("sitting out", LearnsOnlyForecasts, "raised InvalidInput"),
    ("saving", ForgetsItsStep, "restored after 6 steps"),
    ("saving", SavesAList, "save gave list"),
    ("adopt", IgnoresTheDecoder, "adopt gave"),
    ("adopt", IgnoresThePresent, "adopt gave"),
]


@pytest.mark.parametrize(("contract", "make", "words"), BROKEN_AGENTS, ids=lambda v: getattr(v, "__name__", None))
def test_an_agent_that_breaks_one_contract_is_caught(contract, make, words):
    with pytest.raises(ContractViolation, match=words) as caught:
        check_agent(make, x_dim=2, y_dim=3)
    assert caught.value.contract == contract
    assert str(caught.value).startswith(f"contract '{contract}' is broken: ")


def test_the_agent_broken_above_is_sound_before():
    check_agent(SoundAgent, x_dim=2, y_dim=3)


def test_every_agent_contract_is_broken_once_above():
    assert {contract for contract, _, _ in BROKEN_AGENTS} == {name for name, _ in agent_checks()}


# The page


def test_the_pages_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    (printed,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) == 8
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert capsys.readouterr().out == f"{len(encoder_checks())} contracts kept\n{printed}"
    errors = names["errors"]
    assert errors["federation"] < 0.2 * min(errors[name] for name in ("baselines", "north", "south"))


def test_the_page_describes_every_field_of_a_context():
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \|$", PAGE.read_text(), flags=re.M)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(Context._fields)


def test_the_pages_tables_list_every_contract_in_order():
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \|", PAGE.read_text(), flags=re.M)
    assert [row for row in rows if row[0] not in ("contract", "field")] == encoder_checks() + agent_checks()
