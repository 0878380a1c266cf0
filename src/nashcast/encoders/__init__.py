"""Frozen feature maps, one family to a file. Each is a description; `build` makes it for given dimensions."""

from nashcast.encoders.analogs import Analogs
from nashcast.encoders.base import (
    BuiltEncoder,
    BuiltForecaster,
    BuiltLearner,
    Context,
    Encoder,
    ForecastSet,
    Noise,
    Quantiles,
    RowEncoder,
)
from nashcast.encoders.callable import Callable
from nashcast.encoders.chronos import Chronos
from nashcast.encoders.echo_state import EchoState
from nashcast.encoders.embeddings import Embeddings
from nashcast.encoders.forecast_server import ForecastServer
from nashcast.encoders.forecaster import Forecaster
from nashcast.encoders.huggingface import HuggingFace
from nashcast.encoders.lags import Lags, Linear
from nashcast.encoders.learner import Learner
from nashcast.encoders.onnx import OnnxModel
from nashcast.encoders.persistence import Persistence
from nashcast.encoders.pretrain import Training, pretrain_transformer
from nashcast.encoders.quadratic import Quadratic
from nashcast.encoders.random_features import RandomFeatures
from nashcast.encoders.random_lags import RandomLags
from nashcast.encoders.reservoir import Reservoir
from nashcast.encoders.river import RiverModel
from nashcast.encoders.seasonal import Seasonal
from nashcast.encoders.seasonal_smoothing import SeasonalSmoothing
from nashcast.encoders.sklearn import SklearnRegressor, SklearnTransformer
from nashcast.encoders.sktime import Sktime
from nashcast.encoders.statsforecast import StatsForecast
from nashcast.encoders.stochastic import Stochastic
from nashcast.encoders.transformer import Transformer
from nashcast.encoders.trend import Trend

__all__ = [
    "Analogs",
    "BuiltEncoder",
    "BuiltForecaster",
    "BuiltLearner",
    "Callable",
    "Chronos",
    "Context",
    "EchoState",
    "Embeddings",
    "Encoder",
    "ForecastServer",
    "ForecastSet",
    "Forecaster",
    "HuggingFace",
    "Lags",
    "Learner",
    "Linear",
    "Noise",
    "OnnxModel",
    "Persistence",
    "Quadratic",
    "Quantiles",
    "RandomFeatures",
    "RandomLags",
    "Reservoir",
    "RiverModel",
    "RowEncoder",
    "Seasonal",
    "SeasonalSmoothing",
    "SklearnRegressor",
    "SklearnTransformer",
    "Sktime",
    "StatsForecast",
    "Stochastic",
    "Training",
    "Transformer",
    "Trend",
    "pretrain_transformer",
]
