"""A black box that learns by itself, inside an agent: it gets every label once, and is saved as arrays or replayed."""

from __future__ import annotations

from collections import deque

import numpy as np

from nashcast.agents.history import KEPT, History
from nashcast.agents.units.encoder_units import ForecasterUnit
from nashcast.encoders.base import BuiltLearner, Context, ForecastSet
from nashcast.errors import NashcastError

# Labelled rows that are stored, so that a model whose state cannot be saved can learn them again.
REPLAYED = 20_000


class LearnerUnit(ForecasterUnit):
    """Rows are stored until their label comes, KEPT steps at most; labelled rows in the order they were learnt."""

    def __init__(self, built: BuiltLearner, columns: np.ndarray | None, key: int, y_dim: int, horizon: int):
        super().__init__(built, columns, key, y_dim, horizon)
        self._learner = built
        self._rows = np.zeros((KEPT, built.row_size))
        self._row_steps = np.full(KEPT, -1)  # the step of each row that waits for its label
        self._lessons: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=REPLAYED)
        self._taught = 0
        self._failure = ""

    def forecast_set(self, history: History, context: Context) -> ForecastSet:
        row, place = np.asarray(self._learner.row(context), dtype=float), history.step % KEPT
        self._row_steps[place] = -1
        if row.shape != self._rows[place].shape:
            raise NashcastError(f"its row has shape {row.shape}, but it declared {self._rows[place].shape}")
        # Before the forecast: an untrained model may fail there, and still learn from this row.
        self._rows[place], self._row_steps[place] = row, history.step
        if self._failure:
            raise NashcastError(f"it failed to learn: {self._failure}")
        return ForecastSet(self._learner.forecast_row(row, self._horizon))

    def teach(self, step: int, target: np.ndarray) -> None:
        """Learn the label of a step. A row is learnt once; a label without a stored row is ignored."""
        place = step % KEPT
        if self._row_steps[place] != step:
            return
        self._row_steps[place] = -1
        self._learn(self._rows[place].copy(), target.copy())

    def _learn(self, row: np.ndarray, target: np.ndarray) -> None:
        self._lessons.append((row, target))
        self._taught += 1
        try:
            self._learner.learn_row(row.copy(), target.copy())
            self._failure = ""
        except Exception as error:
            # A black box may raise any exception. The agent sits the next step out, and goes on with the next label.
            self._failure = f"{type(error).__name__}: {error}"[:300]

    def save(self) -> dict[str, np.ndarray]:
        found = {**super().save(), "rows": self._rows, "row_steps": self._row_steps, "taught": np.array(self._taught)}
        found["failure"] = np.frombuffer(self._failure.encode(), dtype=np.uint8)
        state = self._learner.save_state() if self._taught else None
        if state is not None:
            return found | {f"learnt.{name}": value for name, value in state.items()}
        if len(self._lessons) < min(self._taught, REPLAYED):
            raise NashcastError("a learner was restored from a saved state, and its present state cannot be saved.")
        rows, targets = zip(*self._lessons, strict=True) if self._lessons else ((), ())
        found["lessons.rows"] = np.array(rows).reshape(-1, self._rows.shape[1])
        found["lessons.targets"] = np.array(targets).reshape(-1, self.said.shape[2])
        return found

    def restore(self, fields) -> None:
        """Continue as saved. An untrained model learns the labelled rows again, in their order."""
        learnt, lessons = fields.part("learnt.").rest(), fields.part("lessons.")
        self._rows = fields.take("rows", self._rows.shape, finite=False)
        self._row_steps = fields.take("row_steps", self._row_steps.shape, dtype=np.int64, min=-1)
        failure = fields.take("failure", (None,), dtype=np.uint8).tobytes().decode(errors="replace")[:400]
        taught = int(fields.take("taught", (), dtype=np.int64, min=0))
        super().restore(fields)
        if learnt:
            self._learner.restore_state(learnt)
        else:
            count = lessons.length("rows", min=0, max=REPLAYED)
            rows = lessons.take("rows", (count, self._rows.shape[1]), finite=False)
            targets = lessons.take("targets", (count, self.said.shape[2]))
            for row, target in zip(rows, targets, strict=True):
                self._learn(row, target)
        self._taught, self._failure = taught, failure
