"""Random black boxes as encoders, with sampled moments for the paper's game."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context, Noise
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.errors import InvalidInput
from nashcast.games.moments.features import Moments

_REMEMBERED = 4096


@dataclass(frozen=True)
class Stochastic:
    """A function that returns different random numbers at each call, y_dim·features of them.

    function: `function(x, rng)` draws from the given numpy Generator, so that runs are reproducible. `function(x)` has
        randomness of its own: its answer at a step is stored, so that a repeated step gives the same, but another run
        draws anew.
    features: how many the agent uses.
    samples: how many draws the mean and covariance of a step's features are estimated from, for the paper's game.

    >>> import nashcast as nc
    >>> noisy = nc.encoders.Stochastic(lambda x, rng: x[0] + 0.1 * rng.standard_normal(2), features=2)
    >>> noisy.build(x_dim=1, y_dim=1).features
    2
    """

    function: Function[..., Any]
    features: int
    samples: int = 64

    def __post_init__(self):
        if not callable(self.function):
            remedy = "Pass something that can be called with x, or with x and a Generator."
            raise InvalidInput("function", check.describe(self.function), remedy)
        check.integer("features", self.features, min=1)
        check.integer("samples", self.samples, min=2)

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        return _Built(self, y_dim)


class _Built(BuiltEncoder):
    # Features of a step depend on its own input and noise alone.
    moments_by_step = True

    def __init__(self, description: Stochastic, y_dim: int):
        self._function, self._samples = description.function, description.samples
        self.features, self._shape = description.features, (y_dim, description.features)
        self._takes_rng = _takes_two(description.function)
        self._call = BlackBoxCall()
        self._drawn: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def encode(self, context: Context) -> np.ndarray:
        return self._draw(context.x, "step", context.noise.key, context.noise.step)

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments:
        """Mean and covariance of `samples` draws for each step: unbiased, and positive semi-definite."""
        p, d = self._shape
        steps = len(inputs)
        mean, covariance = np.empty((steps, p, d)), np.empty((steps, p, p, d, d))
        for t, x in enumerate(inputs):
            draws = np.stack(
                [self._draw(x, "moments", noise.key, noise.step, t, sample) for sample in range(self._samples)]
            )
            mean[t] = draws.mean(axis=0)
            deviations = (draws - mean[t]).reshape(self._samples, p * d)
            joint = deviations.T @ deviations / (self._samples - 1)
            covariance[t] = joint.reshape(p, d, p, d).transpose(0, 2, 1, 3)
        return Moments(mean, covariance)

    def _draw(self, x: np.ndarray, *name: int | str) -> np.ndarray:
        if self._takes_rng:
            # The steps of sampled moments are negative.
            words = [f"{part}" for part in name]
            return self._checked(self._call(self._function, x.copy(), _generator(words)))
        key = (*name, x.tobytes())
        if key not in self._drawn:
            self._drawn[key] = self._checked(self._call(self._function, x.copy()))
            if len(self._drawn) > _REMEMBERED:
                self._drawn.popitem(last=False)
        return self._drawn[key].copy()

    def _checked(self, answer: Any) -> np.ndarray:
        values = check.numbers("function", answer, "numbers").ravel()
        if values.size != self._shape[0] * self._shape[1]:
            remedy = f"Return y_dim·features = {self._shape[0] * self._shape[1]} numbers."
            raise InvalidInput("function", f"{values.size} numbers", remedy)
        check.finite("function", values)
        return values.reshape(self._shape).copy()


def _generator(name: list[str]) -> np.random.Generator:
    """As `seeds.generator`, but faster to construct: moments need thousands."""
    return np.random.Generator(np.random.Philox(key=seeds.key(0, *name)))


def _takes_two(function: Function[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in parameters) >= 2
