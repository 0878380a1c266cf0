"""The saved state of a federation. It is restored into new parts first, so that a refused file changes nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.incoming.stream_start import FIRST, Waiting
from nashcast.federation.records import Record
from nashcast.federation.views.health import Health
from nashcast.fields import Fields
from nashcast.frames.live import LiveTable

if TYPE_CHECKING:
    from nashcast.federation.federation import Federation


def saved(federation: Federation, records: bool = True) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and their description.

    records: whether the history is saved too; forecasts do not depend on it.
    """
    loop = federation._begun()
    arrays = {f"loop.{name}": value for name, value in loop.save().items()}
    if federation._bounds is not None:
        arrays |= {f"bounds.{name}": value for name, value in federation._bounds.save().items()}
    health, texts = federation._health.save()
    arrays |= {f"health.{name}": value for name, value in health.items()}
    members, y_dim, history = len(loop.members), federation.y_dim, list(federation.history) if records else []
    unknown = np.full(y_dim, np.nan)
    arrays |= {
        "history.steps": np.array([record.step for record in history], dtype=np.int64),
        "history.forecasts": np.array([record.forecast for record in history]).reshape(-1, y_dim),
        "history.weights": np.array([record.weights for record in history]).reshape(-1, members),
        "history.targets": np.array(
            [unknown if record.target is None else record.target for record in history]
        ).reshape(-1, y_dim),
        "last_weights": np.full(members, np.nan) if federation._last_weights is None else federation._last_weights,
    }
    about = {
        "made": fingerprint(federation),
        "members": loop.members,
        "columns": federation._columns.save(),
        "health": texts,
        "table": None if federation._table is None else federation._table.save(),
    }
    return arrays, about


def fingerprint(federation: Federation) -> dict[str, Any]:
    """What two federations must have in common to exchange their states."""
    return {
        **federation._factory.fingerprint(),
        "y_dim": federation.y_dim,
        "coverages": list(federation._coverages),
        "agent_intervals": federation._agent_intervals,
    }


def restored(federation: Federation, fields: Fields, about: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a federation that continues where another left off."""
    if about.get("made") != fingerprint(federation):
        raise _foreign_state()
    columns = Columns(federation._columns.x_dim, federation.y_dim)
    columns.restore(about.get("columns"))
    loop = federation._factory.resumed(columns, federation.y_dim, fields.part("loop."))
    if about.get("members") != loop.members:
        raise _foreign_state()
    bounds = federation._new_bounds(loop.gives_quantiles)
    if bounds is not None:
        bounds.restore(fields.part("bounds.").rest())
    members, y_dim = len(loop.members), federation.y_dim
    rows = fields.length("history.steps", min=0, max=1 << 24)
    steps = fields.take("history.steps", (rows,), dtype=np.int64, min=0)
    forecasts = fields.take("history.forecasts", (rows, y_dim), finite=False)
    weights = fields.take("history.weights", (rows, members))
    targets = fields.take("history.targets", (rows, y_dim), finite=False)
    last = fields.take("last_weights", (members,), finite=False)
    health = Health.restored(fields.part("health."), about.get("health"))
    fields.done()
    records = [
        Record(int(step), forecast, weight, None if np.isnan(target).any() else target)
        for step, forecast, weight, target in zip(steps, forecasts, weights, targets, strict=True)
    ]
    return {
        "_columns": columns,
        "_loop": loop,
        "_bounds": bounds,
        "_present": None,
        "_waiting": Waiting(),
        "_last_objects": deque(maxlen=FIRST),
        "_last_game": None,
        "_last_weights": None if np.isnan(last).any() else last,
        "history": deque(records, maxlen=federation.history.maxlen),
        "_health": health,
        "_table": None if about.get("table") is None else LiveTable.restored(about["table"]),
    }


def _foreign_state() -> InvalidInput:
    remedy = "Load it into a federation made with the same agents and settings."
    return InvalidInput("path", "the state of another federation", remedy)
