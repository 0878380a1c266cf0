"""Frozen feature maps, one family to a file. Each is a description; `build` makes it for given dimensions."""

from nashcast.encoders.base import BuiltEncoder, EchoParameters, Encoder, Noise
from nashcast.encoders.callable import Callable
from nashcast.encoders.echo_state import EchoState
from nashcast.encoders.embeddings import Embeddings
from nashcast.encoders.forecaster import Forecaster
from nashcast.encoders.lags import Linear, QuadraticLags
from nashcast.encoders.onnx import OnnxModel
from nashcast.encoders.persistence import Persistence
from nashcast.encoders.pretrain import pretrain_transformer
from nashcast.encoders.random_features import RandomFeatures
from nashcast.encoders.river import RiverModel
from nashcast.encoders.seasonal import Seasonal
from nashcast.encoders.sklearn import SklearnRegressor, SklearnTransformer
from nashcast.encoders.transformer import Transformer

__all__ = [
    "BuiltEncoder",
    "Callable",
    "EchoParameters",
    "EchoState",
    "Embeddings",
    "Encoder",
    "Forecaster",
    "Linear",
    "Noise",
    "OnnxModel",
    "Persistence",
    "QuadraticLags",
    "RandomFeatures",
    "RiverModel",
    "Seasonal",
    "SklearnRegressor",
    "SklearnTransformer",
    "Transformer",
    "pretrain_transformer",
]
