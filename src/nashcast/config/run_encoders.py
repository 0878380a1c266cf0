"""The encoders that a settings file can describe, by their name in the file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from nashcast import encoders
from nashcast import validation as check
from nashcast.config.run_schema import Option, Place, options_of, read, read_options, refuse_unknown
from nashcast.encoders import Encoder
from nashcast.errors import InvalidInput
from nashcast.suggest import near

# A user function "my_module:my_function", in a file beside the settings file or in an installed package.
Function: TypeAlias = Callable[..., Any]
_importing = threading.RLock()


def transformer(path: Path) -> encoders.Transformer:
    about = path.stat() if path.is_file() else None
    return _loaded_transformer(path, about and about.st_mtime_ns)


def onnx(path: Path, features: int, seed: int | None = None) -> encoders.OnnxModel:
    return encoders.OnnxModel(path, features, seed)


def statsforecast(
    model: str,
    season: int = 1,
    refit_every: int = 24,
    context: int = 500,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    timeout: float | None = None,
) -> encoders.StatsForecast:
    return encoders.StatsForecast(model, season, refit_every, context, quantiles, timeout)


def chronos(
    model: str,
    context: int = 512,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    timeout: float | None = None,
    seed: int = 0,
) -> encoders.Chronos:
    return encoders.Chronos(model, context, quantiles, seed, timeout)


def huggingface(
    model: str,
    kind: str = "text",
    column: str = "",
    features: int = 16,
    pooling: str = "mean",
    max_length: int = 256,
    timeout: float | None = None,
    seed: int = 0,
) -> encoders.HuggingFace:
    return encoders.HuggingFace(model, kind, column, features, pooling, seed, timeout, max_length)


def python(make: Function, options: dict | None = None, seed: int | None = None) -> Encoder:
    """The encoder that `make(**options)` returns; `make` also gets the agent's seed if it has a parameter `seed`."""
    given = dict(options or {})
    if seed is not None and "seed" in inspect.signature(make).parameters:
        given.setdefault("seed", seed)
    try:
        encoder = make(**given)
    except Exception as error:
        # User code may raise anything.
        got = f"a function that raised {type(error).__name__}: {error}"
        raise InvalidInput("make", got, "Fix it, or the options it is called with.") from error
    if not hasattr(encoder, "build"):
        raise InvalidInput("make", f"a function that returned {check.describe(encoder)}", "Return an encoder.")
    return encoder


ENCODERS: dict[str, Callable[..., Encoder]] = {
    "persistence": encoders.Persistence,
    "linear": encoders.Linear,
    "trend": encoders.Trend,
    "lags": encoders.Lags,
    "seasonal": encoders.Seasonal,
    "quadratic": encoders.Quadratic,
    "random_lags": encoders.RandomLags,
    "reservoir": encoders.Reservoir,
    "analogs": encoders.Analogs,
    "seasonal_smoothing": encoders.SeasonalSmoothing,
    "random_features": encoders.RandomFeatures,
    "echo_state": encoders.EchoState,
    "transformer": transformer,
    "onnx": onnx,
    "embeddings": encoders.Embeddings,
    "callable": encoders.Callable,
    "forecaster": encoders.Forecaster,
    "learner": encoders.Learner,
    "stochastic": encoders.Stochastic,
    "forecast_server": encoders.ForecastServer,
    "statsforecast": statsforecast,
    "chronos": chronos,
    "huggingface": huggingface,
    "python": python,
}


def encoder_options(name: str) -> dict[str, Option]:
    """The options of an encoder in a file. A seed may be left out: every agent then has its own."""
    found = {}
    for key, option in options_of(ENCODERS[name]).items():
        if option.kind.startswith("Function["):
            option = option._replace(kind="Function")
        found[key] = Option("int", True, False) if key == "seed" else option
    return found


def make_encoder(name: str, options: Mapping[str, Any], seed: int, folder: Path) -> Encoder:
    """options: as `encoder_options` reads them.   seed: used unless options have one.   folder: base of paths."""
    known, given = encoder_options(name), dict(options)
    for key, option in known.items():
        if given.get(key) is None:
            continue
        if option.kind == "Path":
            given[key] = folder / given[key]
        elif option.kind == "Function":
            given[key] = find_function(key, given[key], folder)
    if "seed" in known and given.get("seed") is None:
        given["seed"] = seed
    return ENCODERS[name](**given)


def encoder_from(text: str, options: Mapping[str, Any], seed: int, folder: Path) -> Encoder:
    """A built-in encoder, or "module:name": a user's encoder or a function that makes one with these options."""
    place = Place("encoder")
    if ":" not in text:
        if text not in ENCODERS:
            remedy = f"{near(text, ENCODERS)}Pass module:name, or one of {', '.join(ENCODERS)}."
            raise InvalidInput("encoder", repr(text), remedy)
        known = encoder_options(text)
        refuse_unknown(place, options, known, f"The encoder {text!r}")
        missing = [name for name, option in known.items() if option.required and name not in options]
        if missing:
            remedy = f"Pass {', '.join(f'--set {name}=…' for name in missing)}."
            raise InvalidInput("encoder", f"{text!r} without {', '.join(missing)}", remedy)
        return make_encoder(text, read_options(place, options, known), seed, folder)
    found = find_named("encoder", read(place, text, "Function"), folder)
    if not isinstance(found, type) and hasattr(found, "build"):
        if options:
            raise InvalidInput("encoder", f"{text!r}, which is an encoder already", "Leave out its options.")
        return found
    return python(find_function("encoder", text, folder), dict(options), seed)


def find_function(argument: str, text: str, folder: Path) -> Any:
    """The function "module:name", from a file in the folder or else from an installed package."""
    function = find_named(argument, text, folder)
    if not callable(function):
        module_name, _, name = text.partition(":")
        remedy = f"Define {name} in {module_name}, or name another function."
        raise InvalidInput(argument, f"{text!r}, but there is no function {name}", remedy)
    return function


def find_named(argument: str, text: str, folder: Path) -> Any:
    """The object "module:name", or None."""
    module_name, _, name = text.partition(":")
    try:
        with _importing:
            module = _module(module_name, folder.resolve())
    except Exception as error:
        # User code may raise anything when it is imported.
        got = f"{text!r}, whose module cannot be imported ({type(error).__name__}: {error})"
        raise InvalidInput(argument, got, f"Put {module_name}.py beside the settings file, or install it.") from error
    return getattr(module, name, None)


def function_file(text: str, folder: Path) -> Path:
    """The path of "module:name" beside the settings file."""
    return folder.joinpath(*text.partition(":")[0].split(".")).with_suffix(".py")


@lru_cache
def _module(name: str, folder: Path) -> Any:
    path = function_file(name, folder)
    if not path.is_file():
        return importlib.import_module(name)
    # Under a unique name: another folder may have a file of the same name.
    unique = f"nashcast_settings_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    sys.path.insert(0, str(folder))  # it may import modules from its own folder
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    finally:
        sys.path.remove(str(folder))
    return module


@lru_cache
def _loaded_transformer(path: Path, _changed: int | None) -> encoders.Transformer:
    return encoders.Transformer.load(path)
