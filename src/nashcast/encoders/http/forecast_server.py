"""A forecast server over HTTP as an encoder: called at every step, with timeout, retries, cache and circuit breaker."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltForecaster, Context, ForecastSet
from nashcast.encoders.black_box.answers import checked_levels, quantile_forecasts
from nashcast.encoders.black_box.forecaster import MOST_CONTEXT
from nashcast.encoders.http.circuit_breaker import CircuitBreaker
from nashcast.encoders.http.http_json import check_key_variable, check_url, post, send
from nashcast.encoders.http.server_formats import FORMATS, PLAIN, Question, read_answer
from nashcast.errors import InvalidInput, NashcastError

_CACHED = 1024
_PAUSE_S = 30.0
_HINTS = {400: "Check format and model.", 404: "Check url.", 422: "Check format and model."}


@dataclass(frozen=True)
class ForecastServer:
    """A server that forecasts the next targets from the last ones.

    url: address of the requests.   context: how many of the last targets it is sent.   format: that of the messages:
        "nashcast", "chronos" (Chronos endpoints on SageMaker), "instances" (TensorFlow Serving, KServe V1), "mlflow",
        or "open-inference" (KServe V2, Triton, Seldon); docs/how-to/forecast-servers.md shows each.
    model: its name, where the format has one.   quantiles: levels asked for, with "nashcast" and "chronos".
    timeout: seconds for a request.   retries: how often it is sent again.
    failures: how many failed steps in a row before it is not called for 30 seconds.
    api_key_variable: the environment variable with the key, read at every request and never stored.

    Answers are cached by request. An agent whose server fails sits the step out.
    """

    url: str
    context: int = 168
    format: str = "nashcast"
    model: str | None = None
    quantiles: Sequence[float] = ()
    timeout: float = 10.0
    retries: int = 1
    failures: int = 3
    api_key_variable: str | None = None

    def __post_init__(self):
        check_url(self.url)
        check.integer("context", self.context, min=1, max=MOST_CONTEXT)
        if self.format not in FORMATS:
            raise InvalidInput("format", check.describe(self.format), f"Pass one of {', '.join(FORMATS)}.")
        if self.model is not None and not isinstance(self.model, str):
            raise InvalidInput("model", check.describe(self.model), "Pass the model's name on the server.")
        object.__setattr__(self, "quantiles", checked_levels("quantiles", self.quantiles))
        if self.quantiles and self.format in PLAIN:
            raise InvalidInput("quantiles", f"{self.quantiles}", f"Leave them out: {self.format!r} gives none.")
        check.number("timeout", self.timeout, above=0.0)
        check.integer("retries", self.retries, min=0)
        check.integer("failures", self.failures, min=1)
        check_key_variable(self.api_key_variable)

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        return _Built(self, y_dim)


class _Built(BuiltForecaster):
    accepts_missing = True

    def __init__(self, description: ForecastServer, y_dim: int):
        self._description, self._y_dim = description, y_dim
        self.levels = tuple(description.quantiles)
        self.forecasts = 3 if len(self.levels) > 1 else 1
        self.past_targets = self.past_inputs = description.context
        self._breaker = CircuitBreaker(description.failures, _PAUSE_S)
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_set(context, horizon).forecasts

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        d = self._description
        times = context.times[-len(context.targets) :]
        question = Question(context.targets, context.x, times, horizon, self.levels, d.model)
        body = json.dumps(FORMATS[d.format].ask(question)).encode()
        # Servers without a horizon in their requests may answer with any number of steps.
        key = body + bytes(f"{horizon}", "ascii")
        if key not in self._cache:
            self._cache[key] = self._breaker.call(lambda: self._asked(body, question))
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        values = self._cache[key]
        if self.levels:
            return quantile_forecasts(self.levels, values)
        return ForecastSet(values[None, ..., 0])

    def _asked(self, body: bytes, question: Question) -> np.ndarray:
        """(horizon, y_dim, levels or 1), NaN after the end of the answer."""
        d = self._description
        answer = send(post(d.url, body, d.api_key_variable), d.timeout, d.retries, _HINTS)
        try:
            found = json.loads(answer)
        except ValueError:
            raise NashcastError(f"{d.url}: the answer is not JSON. Check url.") from None
        try:
            values = read_answer(d.format, found, question)
        except NashcastError as error:
            raise NashcastError(f"{d.url}: {error}. Check url and format.") from None
        wanted = (len(values), self._y_dim, max(1, len(self.levels)))
        if values.shape != wanted or len(values) not in (1, question.horizon):
            raise NashcastError(f"{d.url}: the answer has {len(values)} steps, not 1 or {question.horizon}.")
        if not np.isfinite(values[0]).all():
            raise NashcastError(f"{d.url}: the forecast is not finite.")
        padded = np.full((question.horizon, *values.shape[1:]), np.nan)
        padded[: len(values)] = values
        return padded
