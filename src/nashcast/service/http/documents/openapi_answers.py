"""Schemas of responses."""

from __future__ import annotations

from typing import Any


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _closed(optional: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these names, all required unless optional."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number"}
_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_MAYBE: dict[str, Any] = {"type": ["number", "null"]}
_MAYBE_WHOLE: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_MAYBE_FLAG: dict[str, Any] = {"type": ["boolean", "null"]}
_BY_NAME: dict[str, Any] = {"type": "object", "additionalProperties": _NUMBER}
_REASONS: dict[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_ERRORS = _closed(
    mse=_MAYBE, persistence_mse=_MAYBE, no_game_mse=_MAYBE, against_persistence=_MAYBE, against_no_game=_MAYBE
)  # fmt: skip
_STATE: dict[str, Any] = {"enum": ["loading", "live", "failed"]}
_BOUNDS = _list(_closed(coverage=_NUMBER, lower=_list(_MAYBE), upper=_list(_MAYBE)))
_COVERAGE = _list(_closed(nominal=_NUMBER, achieved=_MAYBE))
_ALARMS = _list({"enum": ["errors", "intervals", "coverage", "agents"]})
_FLEET_ROW: dict[str, Any] = {
    "name": _TEXT, "title": _TEXT, "state": _STATE, "why": _MAYBE_TEXT, "step": _MAYBE_WHOLE, "at": _MAYBE,
    "behind": _WHOLE, "units": _MAYBE_TEXT, "rmse": _MAYBE, "persistence_rmse": _MAYBE, "against_persistence": _MAYBE,
    "coverage": _COVERAGE, "trusted": _MAYBE_TEXT, "agents": _WHOLE, "absent": _WHOLE, "alarms": _ALARMS,
    "spark": _list(_MAYBE),
}  # fmt: skip

ANSWERS: dict[str, Any] = {
    "Error": _closed(error=_closed(code=_TEXT, message=_TEXT)),
    "Alive": _closed(status={"const": "alive"}),
    "Ready": _closed(status={"const": "ready"}, streams=_WHOLE, loading=_WHOLE, failed=_WHOLE, stuck_workers=_WHOLE),
    "Streams": _closed(version=_TEXT, streams=_list(_closed(**_FLEET_ROW))),
    "Stream": _closed(**_FLEET_ROW, settings={"type": "object"}),
    "StreamMade": _closed(name=_TEXT, made=_FLAG, changed=_list(_TEXT)),
    "StreamRemoved": _closed(name=_TEXT, removed={"const": True}),
    "Forecast": _closed(
        step=_WHOLE,
        time=_MAYBE_TEXT,
        forecast=_list(_NUMBER),
        bounds=_BOUNDS,
        path=_list(
            _closed(
                step=_WHOLE,
                time=_MAYBE_TEXT,
                forecast=_list(_NUMBER),
                bounds=_BOUNDS,
                quantiles=_list(_closed(level=_NUMBER, value=_list(_MAYBE))),
            )
        ),
        units=_MAYBE_TEXT,
        weights=_BY_NAME,
        absent=_REASONS,
        at=_NUMBER,
    ),
    "Receipt": _closed(
        first=_WHOLE, last=_WHOLE, accepted=_WHOLE, duplicates=_WHOLE, forecast=_or_null(ref("Forecast"))
    ),
    "Agents": _closed(
        agents=_list(
            _closed(
                name=_TEXT,
                weight=_NUMBER,
                error=_MAYBE,
                state={"enum": ["in", "benched", "late", "gone"]},
                last_seen=_MAYBE,
                absences=_WHOLE,
                reason=_MAYBE_TEXT,
                rank=_MAYBE_WHOLE,
                loss_without=_MAYBE,
                in_game=_MAYBE_FLAG,
            )
        )
    ),
    "Status": _closed(
        name=_TEXT,
        title=_TEXT,
        version=_TEXT,
        step=_MAYBE_WHOLE,
        state=_STATE,
        why=_MAYBE_TEXT,
        behind=_WHOLE,
        horizon=_WHOLE,
        units=_MAYBE_TEXT,
        coverage=_COVERAGE,
        alarms=_ALARMS,
        first_step=_MAYBE_WHOLE,
        ready=_FLAG,
        agents=_list(_TEXT),
        coverages=_list(_NUMBER),
        settings={"type": "object"},
        journal=_closed(entries=_WHOLE, retain=_MAYBE_WHOLE),
        uptime=_NUMBER,
        scores=_closed(count=_WHOLE, window=_WHOLE, recent=_ERRORS, total=_ERRORS),
        game=_closed(
            games=_MAYBE_WHOLE,
            fallbacks=_MAYBE_WHOLE,
            suspect_labels=_MAYBE_WHOLE,
            missing_labels=_WHOLE,
            late_labels=_WHOLE,
            largest_gain=_MAYBE,
            condition=_MAYBE,
        ),
    ),
    "Row": _closed(
        step=_WHOLE,
        at=_MAYBE,
        time=_MAYBE_TEXT,
        x=_or_null(_list(_MAYBE)),
        target=_or_null(_list(_NUMBER)),
        late=_FLAG,
        persistence=_or_null(_list(_NUMBER)),
        forecast=_or_null(_list(_NUMBER)),
        bounds=_or_null(_list(_list(_list(_MAYBE)))),
        weights=_or_null(_list(_NUMBER)),
        agents=_or_null(_list(_list(_MAYBE))),
        beside=_or_null(_list(_MAYBE)),
        absent=_REASONS,
        played=_FLAG,
        fell_back=_FLAG,
    ),
    "History": _closed(agents=_list(_TEXT), coverages=_list(_NUMBER), rows=_list(ref("Row")), next=_MAYBE_WHOLE),
    "Log": _closed(log=_list(_closed(id=_WHOLE, at=_NUMBER, step=_MAYBE_WHOLE, kind=_TEXT, text=_TEXT))),
    "Events": _closed(
        events=_list(_closed(id=_WHOLE, at=_NUMBER, stream=_TEXT, step=_MAYBE_WHOLE, kind=_TEXT, text=_TEXT)),
        last=_WHOLE,
    ),
    "SavePoints": _closed(save_points=_list(_closed(name=_TEXT, step=_WHOLE, at=_NUMBER, automatic=_FLAG))),
    "SavePointMade": _closed(name=_TEXT, step=_WHOLE),
    "Restored": _closed(name=_TEXT, step=_WHOLE, withdrawn=_WHOLE),
}
