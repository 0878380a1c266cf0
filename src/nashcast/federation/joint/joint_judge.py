"""Whether agents improve the joint forecast, and errors clipped for learning."""

from __future__ import annotations

import numpy as np

# Errors beyond this many usual ones are clipped before anything is learnt from them.
_CLIP, _ERROR_MEMORY, _FIRST = 3.0, 0.98, 10
# The joint change is divided by the leverage beyond this many times its mean.
_GUARD, _LEVERAGE_MEMORY = 2.0, 0.002
# Forgetting of an agent's worth, and how many standard deviations below 0 it falls before the agent is left out.
_WORTH_FADING, _WORTH_CLIP, _WORTH_LIMIT = 0.01, 9.0, 0.1
# Harm counts up to this many times as much as good: a few rows of great harm must not hide among many good ones.
_HARM = 10.0


class Judge:
    """included: which agents improve the joint forecast, (agents,).   all_included: whether all do."""

    def __init__(self, variants: int, agents: int, y_dim: int, horizon: int):
        self._squares = np.zeros((variants, y_dim, horizon))  # fading mean of squared errors
        self._learnt = np.zeros(horizon, dtype=np.int64)
        self._targets = np.arange(y_dim)
        self._worth = np.zeros((agents, y_dim))
        self._worth_squares = np.zeros((agents, y_dim))
        self._include(np.ones(agents, dtype=bool))

    def _include(self, agents: np.ndarray) -> None:
        self.included, self.all_included = agents, np.count_nonzero(agents) == len(agents)

    def clipped(self, error: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The joint error of every variant, (variants, y_dim, horizon), clipped to a multiple of the usual error."""
        limit, rate = _CLIP * np.sqrt(self._squares), (1.0 - _ERROR_MEMORY) * known
        if np.count_nonzero(self._learnt < _FIRST):
            limit = np.where(self._learnt >= _FIRST, limit, np.inf)
            rate = np.where(self._learnt > 0, rate, known)
        clipped = np.minimum(np.maximum(error, -limit), limit)
        size = np.minimum(np.abs(clipped), 1e150)  # its square is finite
        size *= size
        size -= self._squares
        size *= rate
        self._squares += size
        self._learnt += known
        return clipped

    def judge(self, error: np.ndarray, recalled: np.ndarray, known: np.ndarray) -> None:
        """Whether each agent makes the next step's joint forecast better; by the variant with the smallest errors.

        recalled: each agent's contributions, (variants, agents, y_dim, horizon).
        """
        if not known[0] or self._learnt[0] < _FIRST:
            return
        squares = self._squares[:, :, 0]
        best, targets = squares.argmin(axis=0), self._targets
        e, c, limit = error[best, targets, 0], recalled[best, :, targets, 0].T, _WORTH_CLIP * squares[best, targets]
        with np.errstate(over="ignore", invalid="ignore"):
            if self.all_included:
                worth = c * (c + 2.0 * e)  # (e + c)² - e²
            else:  # agents left out of the sums are judged by what they would change within them
                worth = c * (np.where(self.included, 1.0, -1.0)[:, None] * c + 2.0 * e)
        if np.count_nonzero(np.isnan(worth)):
            worth = np.where(np.isnan(worth), 0.0, worth)
        worth = np.minimum(np.maximum(worth, -_HARM * limit), limit)
        mean, squares = self._worth, self._worth_squares
        mean += _WORTH_FADING * (worth - mean)
        worth *= worth
        squares += _WORTH_FADING * (worth - squares)
        spread = np.sqrt(np.maximum(squares - mean * mean, 0.0))
        self._include(np.logical_and.reduce(mean >= -_WORTH_LIMIT * spread, axis=1))

    def save(self) -> dict[str, np.ndarray]:
        own = {name: getattr(self, f"_{name}") for name in _STATE}
        return {**own, "included": self.included, "learnt": self._learnt}

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))
        self._include(fields.take("included", self.included.shape, dtype=bool))
        self._learnt = fields.take("learnt", self._learnt.shape, dtype=np.int64, min=0)


_STATE = ("squares", "worth", "worth_squares")


class LeverageGuard:
    """Reduces the change of the joint forecast at rows with a leverage far above the mean."""

    def __init__(self, speeds: int, y_dim: int):
        self._mean, self._rows = np.zeros((speeds, y_dim)), 0

    def factor(self, leverage: np.ndarray) -> np.ndarray | None:
        """The factor of the changes, shaped as the leverage (speeds, y_dim); None for 1 everywhere."""
        usual = np.maximum(1.0, _GUARD * self._mean) if self._rows else np.ones_like(self._mean)
        if not np.count_nonzero(leverage > usual):
            return None
        return usual / np.maximum(leverage, usual)

    def add(self, leverage: np.ndarray) -> None:
        self._rows += 1
        self._mean += (leverage - self._mean) * max(1.0 / self._rows, _LEVERAGE_MEMORY)

    def save(self) -> dict[str, np.ndarray]:
        return {"mean": self._mean, "rows": np.array(self._rows)}

    def restore(self, fields) -> None:
        self._mean = fields.take("mean", self._mean.shape)
        self._rows = int(fields.take("rows", (), dtype=np.int64, min=0))
