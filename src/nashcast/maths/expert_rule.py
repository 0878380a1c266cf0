"""What every aggregation rule has in common: its arguments, who is awake, and how it is saved.

An expert that is asleep has no forecast at a step. It then counts as if it had said what the others together said: it
gains and loses nothing, weighs nothing, and its regret runs over the steps it was awake.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput


class AggregationRule(Protocol):
    """Weighs experts by how they did so far. Asking for weights changes nothing; only `learn` does."""

    name: str

    def weights(self, awake: np.ndarray | None = None, forecasts: np.ndarray | None = None) -> np.ndarray:
        """Of every expert, 0 for those asleep. forecasts: the present ones, for the rules that look at them."""
        ...

    def learn(self, forecasts: np.ndarray, target: np.ndarray, awake: np.ndarray | None = None) -> None:
        """What the experts said, (experts, y_dim), and what came, (y_dim,)."""
        ...

    def save(self) -> dict[str, np.ndarray]: ...

    def restore(self, saved: dict[str, np.ndarray]) -> None: ...


class ExpertRule:
    """The base of the rules here. `_state` names the attributes that are all they remember."""

    name = ""
    _state: tuple[str, ...] = ()

    def __init__(self, experts: int, y_dim: int = 1):
        self.experts = check.integer("experts", experts, min=1)
        self.y_dim = check.integer("y_dim", y_dim, min=1)

    def weights(self, awake: np.ndarray | None = None, forecasts: np.ndarray | None = None) -> np.ndarray:
        here = self._awake(awake)
        weights = np.zeros(self.experts)
        if here.any():
            weights[here] = self._weights(here, None if forecasts is None else self._forecasts(forecasts, here))
        return weights

    def learn(self, forecasts: np.ndarray, target: np.ndarray, awake: np.ndarray | None = None) -> None:
        y = check.array("target", target, (self.y_dim,), "(y_dim,)")
        said = check.shaped("forecasts", forecasts, (self.experts, self.y_dim), "(experts, y_dim)")
        with np.errstate(over="ignore", invalid="ignore"):
            # Whose error is no number any more teaches nothing: one expert that blows up must not silence the rest.
            here = self._awake(awake) & np.isfinite(((said - y) ** 2).sum(axis=1))
        if here.any():
            self._learn(said, y, here)

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        return {name: np.array(getattr(self, f"_{name}")) for name in self._state}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        for name in self._state:
            now = np.asarray(getattr(self, f"_{name}"))
            if name not in saved or saved[name].shape != now.shape:
                got = "nothing" if name not in saved else f"shape {check.shape_text(saved[name].shape)}"
                raise InvalidInput(f"saved {name}", got, f"Restore what a {self.name} of {self.experts} experts saved.")
            value = saved[name].copy()
            setattr(self, f"_{name}", value if now.ndim else value.item())

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        """Of those who are awake, at least one. forecasts: (experts, y_dim), rubbish for the others."""
        raise NotImplementedError

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        """At least one is awake; the others' forecasts are rubbish."""
        raise NotImplementedError

    def _awake(self, awake) -> np.ndarray:
        if awake is None:
            return np.ones(self.experts, dtype=bool)
        here = np.asarray(awake)
        if here.dtype != bool or here.shape != (self.experts,):
            remedy = f"Pass an array of bool of shape (experts,) = ({self.experts},)."
            raise InvalidInput("awake", check.describe(here), remedy)
        return here

    def _forecasts(self, forecasts, here: np.ndarray) -> np.ndarray:
        said = check.shaped("forecasts", forecasts, (self.experts, self.y_dim), "(experts, y_dim)")
        check.finite("forecasts", np.ascontiguousarray(said[here]))
        return said


class LinearisedRule(ExpertRule):
    r"""Rules of convex weights that learn from $r_k = 2(\hat y - y)^\top(\hat y - f_k)$, what expert k gained on them.

    The squared error is convex, so $\sum_t r_{k,t}$ bounds the regret against expert k, and means of them that against
    mixtures.
    bound: the largest $|r|$, if it is known. Else it is learnt, and a step that exceeds all before it is shrunk to
    them: over all steps that costs at most the largest $|r|$ once, and the weights do not depend on units.
    """

    _state: tuple[str, ...] = ("bound",)

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim)
        self._bound = 0.0 if bound is None else check.number("bound", bound, above=0.0)

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        said = forecasts[here]
        mixed = self._weights(here, None) @ said
        gains = np.zeros(self.experts)
        gains[here] = 2.0 * ((mixed - said) @ (mixed - target))
        before, self._bound = self._bound, max(self._bound, float(np.abs(gains).max()))
        if before > 0.0:
            self._gain(gains * (before / self._bound), before)

    def _gain(self, gains: np.ndarray, bound: float) -> None:
        """gains: at most `bound` in size, 0 for those asleep."""
        raise NotImplementedError
