"""Frozen feature maps, one family per file. Each is a description; `build` makes it for given dimensions."""

from nashcast.encoders.adapters.chronos import Chronos
from nashcast.encoders.adapters.huggingface import HuggingFace
from nashcast.encoders.adapters.onnx import OnnxModel
from nashcast.encoders.adapters.river import RiverModel
from nashcast.encoders.adapters.sklearn import SklearnRegressor, SklearnTransformer
from nashcast.encoders.adapters.sktime import Sktime
from nashcast.encoders.adapters.statsforecast import StatsForecast
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
from nashcast.encoders.black_box.forecaster import Forecaster
from nashcast.encoders.black_box.learner import Learner
from nashcast.encoders.callable import Callable
from nashcast.encoders.echo_state import EchoState
from nashcast.encoders.families.analogs import Analogs
from nashcast.encoders.families.lags import Lags, Linear
from nashcast.encoders.families.quadratic import Quadratic
from nashcast.encoders.families.random_lags import RandomLags
from nashcast.encoders.families.reservoir import Reservoir
from nashcast.encoders.families.seasonal import Seasonal
from nashcast.encoders.families.seasonal_smoothing import SeasonalSmoothing
from nashcast.encoders.families.trend import Trend
from nashcast.encoders.http.embeddings import Embeddings
from nashcast.encoders.http.forecast_server import ForecastServer
from nashcast.encoders.network.pretrain import Training, pretrain_transformer
from nashcast.encoders.network.transformer import Transformer
from nashcast.encoders.persistence import Persistence
from nashcast.encoders.random_features import RandomFeatures
from nashcast.encoders.stochastic import Stochastic

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
