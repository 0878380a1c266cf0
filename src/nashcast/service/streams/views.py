"""Response bodies as plain values; null where a number is not known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.federation.views.trust import Trust
from nashcast.service.journal.entries import LABEL, Entry, Outcome
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.workers.live import Live
from nashcast.service.workers.scores import BESIDE, MIXTURE, PERSISTENCE


def encoded(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def plain(values: np.ndarray | None) -> list | None:
    """An array as nested lists, null where it is not finite."""
    if values is None:
        return None
    listed = values.tolist()
    return listed if check.all_finite(values) else _nulls(listed)


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _nulls(values: list) -> list:
    return [_nulls(v) if isinstance(v, list) else v if np.isfinite(v) else None for v in values]


def iso_time(seconds: float | None) -> str | None:
    """A timestamp as ISO 8601, in UTC."""
    if seconds is None:
        return None
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds" if seconds % 1 else "seconds")
    return text.replace("+00:00", "Z")


def forecast_view(
    outcome: Outcome, at: float, names: Sequence[str], serve: ServeSettings, times: Sequence[float] | None
) -> dict:
    """The current forecast with named fields. times: timestamps of the forecast steps."""
    ahead = [(outcome.forecast, outcome.bounds)]
    if outcome.ahead is not None and outcome.ahead_bounds is not None:
        ahead += list(zip(outcome.ahead, outcome.ahead_bounds, strict=True))
    path = [
        {
            "step": outcome.step + h,
            "time": None if times is None else iso_time(times[h]),
            "forecast": forecast.tolist(),
            "bounds": _bounds(bounds, serve.coverages),
            "quantiles": _quantiles(bounds, serve.coverages),
        }
        for h, (forecast, bounds) in enumerate(ahead)
    ]
    return {
        "step": outcome.step,
        "time": path[0]["time"],
        "forecast": path[0]["forecast"],
        "bounds": path[0]["bounds"],
        "path": path,
        "units": serve.units,
        "weights": dict(zip(names, outcome.weights.tolist(), strict=True)),
        "absent": outcome.absent,
        "at": at,
    }


def _bounds(bounds: np.ndarray, coverages: Sequence[float]) -> list[dict]:
    return [
        {"coverage": coverage, "lower": plain(lower), "upper": plain(upper)}
        for coverage, (lower, upper) in zip(coverages, bounds, strict=True)
    ]


def _quantiles(bounds: np.ndarray, coverages: Sequence[float]) -> list[dict]:
    """The ends of an interval of coverage c are the quantiles (1 - c) / 2 and (1 + c) / 2."""
    low = [{"level": round((1 - c) / 2, 10), "value": plain(bounds[i, 0])} for i, c in enumerate(coverages)]
    high = [{"level": round((1 + c) / 2, 10), "value": plain(bounds[i, 1])} for i, c in enumerate(coverages)]
    return [*reversed(low), *high]


def forecast_row(outcome: Outcome) -> dict:
    """A forecast in a row of the history; lists follow the order of agents and coverages."""
    return {
        "forecast": outcome.forecast.tolist(),
        "bounds": plain(outcome.bounds),
        "weights": outcome.weights.tolist(),
        "agents": plain(outcome.agents),
        "beside": plain(outcome.beside),
        "absent": outcome.absent,
        "played": outcome.played,
        "fell_back": outcome.fell_back,
    }


def target_row(entry: Entry) -> dict:
    return {
        "step": entry.step, "at": entry.at, "time": iso_time(entry.time), "target": plain(entry.y),
        "late": entry.kind == LABEL,
    }  # fmt: skip


def summary_view(live: Live, serve: ServeSettings, trust: Sequence[Trust]) -> dict:
    """Summary of a stream, cached in the front process. trust: of the members, in order."""
    return {
        "first_step": live.first,
        "scores": scores_view(live, serve.window),
        "coverage": [
            {"nominal": nominal, "achieved": number(achieved)}
            for nominal, achieved in zip(serve.coverages, live.scores.covered(), strict=True)
        ],
        "game": game_view(live),
        "agents": agents_view(live, trust),
        "alarms": live.watch.alarms(),
    }


# Values before the first report of a worker.
_NO_ERRORS = dict.fromkeys(("mse", "persistence_mse", "no_game_mse", "against_persistence", "against_no_game"))
NO_SUMMARY: dict[str, Any] = {
    "first_step": None,
    "scores": {"count": 0, "window": 0, "recent": _NO_ERRORS, "total": _NO_ERRORS},
    "coverage": [],
    "game": {
        "games": None, "fallbacks": None, "suspect_labels": None, "missing_labels": 0, "late_labels": 0,
        "largest_gain": None, "condition": None,
    },
    "agents": [],
    "alarms": [],
}  # fmt: skip


def fleet_row(stream: Any) -> dict:
    """A stream's row in the list of streams."""
    summary = stream.summary or NO_SUMMARY
    absent = sum(agent["state"] != "in" for agent in summary["agents"])
    recent = summary["scores"]["recent"]
    first = min((agent for agent in summary["agents"] if agent["rank"]), key=lambda agent: agent["rank"], default=None)
    return {
        "name": stream.name,
        "title": stream.config.federation.name,
        "state": stream.state,
        "why": stream.why or None,
        "step": stream.step,
        "at": stream.at,
        "behind": stream.behind,
        "units": stream.config.serve.units,
        "rmse": root(recent["mse"]),
        "persistence_rmse": root(recent["persistence_mse"]),
        "against_persistence": recent["against_persistence"],
        "coverage": summary["coverage"],
        "trusted": None if first is None else first["name"],
        "agents": len(stream.names),
        "absent": absent,
        "alarms": alarms_view(summary),
        "spark": list(stream.spark),
    }


def alarms_view(summary: dict[str, Any]) -> list[str]:
    """Raised alarms: drift (of errors or intervals), coverage, and agents that are gone."""
    gone = any(agent["state"] == "gone" for agent in summary["agents"])
    return [*summary["alarms"], *(["agents"] if gone else [])]


def save_point_row(snapshot: dict) -> dict:
    """Automatic snapshots also have a name under which they can be restored."""
    name = snapshot["name"]
    shown = name or f"auto-{snapshot['step']}"
    return {"name": shown, "step": snapshot["step"], "at": snapshot["at"], "automatic": name is None}


def root(mse: float | None) -> float | None:
    return None if mse is None else mse**0.5


def agents_view(live: Live, trust: Sequence[Trust]) -> list[dict]:
    """rank: 1 for the member whose removal would increase the federation's recent error most; null if not known."""
    worth = {each.name: each.loss_without for each in trust}
    order = sorted(worth, key=lambda name: -worth[name])
    included = {each.name: each.included for each in trust}
    return [
        {
            "name": agent.name,
            "weight": agent.weight,
            "error": number(agent.error),
            "state": agent.state,
            "last_seen": agent.last_seen,
            "absences": agent.absences,
            "reason": agent.reason,
            "rank": order.index(agent.name) + 1 if agent.name in worth else None,
            "loss_without": number(worth.get(agent.name, np.nan)),
            "in_game": included.get(agent.name),
        }
        for agent in live.agents()
    ]


def scores_view(live: Live, window: int) -> dict:
    """Mean squared errors, and the federation's as a ratio to persistence and to the agents without a game."""
    recent, total = live.scores.recent(), live.scores.totals()
    return {
        "count": live.scores.count,
        "window": min(window, live.scores.count),
        "recent": _errors(recent),
        "total": _errors(total),
    }


def _errors(means: np.ndarray) -> dict:
    mse, persistence, beside = means[MIXTURE], means[PERSISTENCE], means[BESIDE]
    return {
        "mse": number(mse),
        "persistence_mse": number(persistence),
        "no_game_mse": number(beside),
        "against_persistence": number(mse / persistence) if persistence > 0 else None,
        "against_no_game": number(mse / beside) if beside > 0 else None,
    }


def game_view(live: Live) -> dict:
    counts, found = live.counts(), live.certificate()
    gain, condition = (None, None) if found is None else (number(found[0]), number(found[1]))
    return {
        "games": counts.get("games"),
        "fallbacks": counts.get("fallbacks"),
        "suspect_labels": counts.get("suspect labels"),
        "missing_labels": counts["missing labels"],
        "late_labels": counts["late labels"],
        "largest_gain": gain,
        "condition": condition,
    }
