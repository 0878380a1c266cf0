"""The common base of expert rules: arguments, sleeping experts, bounded errors, saved state.

An expert that is asleep has no forecast at a step. It then counts as if it had forecast the mixture of the others:
it gains and loses nothing, has no weight, and its regret is counted over the steps at which it was awake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.mixing.errors import error_scale, linearised
from nashcast.mixing.errors.error_scale import Errors


class AggregationRule(Protocol):
    """Weighs experts by their errors so far. Asking for weights changes nothing; only `learn` does."""

    name: str

    def weights(self, awake: np.ndarray | None = None, forecasts: np.ndarray | None = None) -> np.ndarray:
        """(experts,), 0 for sleeping experts.   forecasts: the present ones, for the rules that use them."""
        ...

    def learn(self, forecasts: np.ndarray, target: np.ndarray, awake: np.ndarray | None = None) -> None:
        """One step: forecasts (experts, y_dim) and the target (y_dim,) they were made for."""
        ...

    def save(self) -> dict[str, np.ndarray]: ...

    def restore(self, saved: dict[str, np.ndarray]) -> None: ...


# Makes a rule for given numbers of experts and targets: a class, or a function.
RuleFactory = Callable[[int, int], AggregationRule]


def rule_name(mixing: str | RuleFactory) -> str:
    """The name of a rule in files and messages."""
    return mixing if isinstance(mixing, str) else str(getattr(mixing, "name", getattr(mixing, "__name__", "rule")))


def made_rule(factory: RuleFactory, experts: int, y_dim: int) -> AggregationRule:
    """A rule of the caller's own, checked for all methods of a rule."""
    if not callable(factory):
        raise InvalidInput("mixing", check.describe(factory), "Pass the name of a rule, or a function that makes one.")
    rule = factory(experts, y_dim)
    missing = [name for name in ("weights", "learn", "save", "restore") if not callable(getattr(rule, name, None))]
    if missing:
        remedy = "Give it weights, learn, save and restore: see docs/how-to/write-a-weight-rule.md."
        raise InvalidInput("mixing", f"{check.describe(rule)} without {', '.join(missing)}", remedy)
    return rule


class Field(NamedTuple):
    """One array of a rule's state, updated in place, and the numbers it may contain."""

    array: np.ndarray
    signed: bool = False  # else numbers ≥ 0
    matrix: bool = False  # the last two axes are symmetric and positive semi-definite


class ExpertRule:
    """The base of the rules that give all targets the same weights."""

    name = ""

    def __init__(self, experts: int, y_dim: int = 1):
        self.experts = check.integer("experts", experts, min=1)
        self.y_dim = check.integer("y_dim", y_dim, min=1)
        self._scale = error_scale.init(self.y_dim)

    def weights(self, awake: np.ndarray | None = None, forecasts: np.ndarray | None = None) -> np.ndarray:
        """(experts,), 0 for sleeping experts and for those whose present forecast is not finite."""
        here = self._awake(awake)
        if forecasts is not None:
            forecasts = check.shaped("forecasts", forecasts, (self.experts, self.y_dim), "(experts, y_dim)")
            here = here & np.isfinite(forecasts).all(axis=1)
        return self._weights(here, forecasts) if here.any() else np.zeros(self.experts)

    def learn(self, forecasts: np.ndarray, target: np.ndarray, awake: np.ndarray | None = None) -> None:
        """One step. Experts whose error is not finite, or too large to be squared, count as asleep."""
        y = check.array("target", target, (self.y_dim,), "(y_dim,)")
        f = check.shaped("forecasts", forecasts, (self.experts, self.y_dim), "(experts, y_dim)")
        with np.errstate(over="ignore", invalid="ignore"):
            here = self._awake(awake) & (np.abs(f - y) < error_scale.HUGE).all(axis=1)
        if here.any():
            errors = error_scale.observe(self._scale, f.T, y, here)
            self._learn(errors, here, f, y)

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        return {name: field.array.copy() for name, field in self._fields().items()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Restores what `save` of an equal rule returned; changes nothing if a field is invalid."""
        fields = self._fields()
        checked = {name: self._checked(name, field, saved.get(name)) for name, field in fields.items()}
        for name, value in checked.items():
            fields[name].array[...] = value

    def _fields(self) -> dict[str, Field]:
        squares, steps, recent = self._scale
        return {"scale.squares": Field(squares), "scale.steps": Field(steps), "scale.recent": Field(recent)}

    def _checked(self, name: str, field: Field, value) -> np.ndarray:
        what, remedy = f"saved {name}", f"Restore what a {self.name} of {self.experts} experts saved."
        now = field.array
        if value is None:
            raise InvalidInput(what, "nothing", remedy)
        value = np.asarray(value)
        if value.shape != now.shape:
            raise InvalidInput(what, f"shape {check.shape_text(value.shape)}", remedy)
        if not np.can_cast(value.dtype, now.dtype, "same_kind"):
            raise InvalidInput(what, f"type {value.dtype}", remedy)
        if now.dtype != bool:
            check.finite(what, np.ascontiguousarray(value, dtype=np.float64))
            if not field.signed and value.min() < 0:
                raise InvalidInput(what, f"{value.min():g}", "Pass numbers ≥ 0.")
        if field.matrix and not _is_gram(value):
            raise InvalidInput(what, "a matrix that is not symmetric and positive semi-definite", remedy)
        return value

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        """(experts,); at least one is awake, and the forecasts of those are finite."""
        raise NotImplementedError

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        """errors: those of each target, (y_dim, experts).   awake: (experts,), at least one."""
        raise NotImplementedError

    def _awake(self, awake) -> np.ndarray:
        if awake is None:
            return np.ones(self.experts, dtype=bool)
        here = np.asarray(awake)
        if here.dtype != bool or here.shape != (self.experts,):
            remedy = f"Pass an array of bool of shape (experts,) = ({self.experts},)."
            raise InvalidInput("awake", check.describe(here), remedy)
        return here


def _is_gram(value: np.ndarray) -> bool:
    size = np.abs(value).max(initial=0.0)
    if size == 0.0:
        return True
    if np.abs(value - value.swapaxes(-1, -2)).max() > 1e-9 * size:
        return False
    return bool(np.linalg.eigvalsh(value / size).min() > -1e-9)


class LinearisedRule(ExpertRule):
    r"""Rules of convex weights that learn from $r_k = 2(\hat y - y)^\top(\hat y - f_k)$, see `linearised`.

    bound: the largest $|r|$, if it is known; else it is learnt.
    """

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim)
        self._given_bound = 0.0 if bound is None else check.number("bound", bound, above=0.0)

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        e = errors.values
        mean = (e @ self._weights(awake, None))[:, None]
        gains = np.where(awake, 2.0 * (mean * (mean - e)).sum(axis=0), 0.0)
        self._learn_gains(gains[None], linearised.step_scale(errors, self._given_bound, jointly=True))

    def _learn_gains(self, gains: np.ndarray, scale: linearised.StepScale) -> None:
        """gains: (1, experts), 0 for sleeping experts."""
        raise NotImplementedError
