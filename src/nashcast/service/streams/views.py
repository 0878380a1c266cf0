"""What the service answers, as plain values: null where a number is not known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.service.journal.entries import LABEL, Entry, Outcome
from nashcast.service.streams.live import Live
from nashcast.service.streams.scores import BESIDE, MIXTURE, PERSISTENCE


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


def forecast_view(outcome: Outcome, at: float, names: Sequence[str], coverages: Sequence[float]) -> dict:
    """The forecast that stands now, with everything by name."""
    bounds = [
        {"coverage": coverage, "lower": plain(lower), "upper": plain(upper)}
        for coverage, (lower, upper) in zip(coverages, outcome.bounds, strict=True)
    ]
    return {
        "step": outcome.step,
        "forecast": outcome.forecast.tolist(),
        "bounds": bounds,
        "weights": dict(zip(names, outcome.weights.tolist(), strict=True)),
        "absent": outcome.absent,
        "at": at,
    }


def forecast_row(outcome: Outcome) -> dict:
    """A forecast in a row of the history, where lists go by the order of agents and coverages."""
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
    return {"step": entry.step, "at": entry.at, "target": plain(entry.y), "late": entry.kind == LABEL}


def agents_view(live: Live) -> list[dict]:
    return [
        {
            "name": agent.name,
            "weight": agent.weight,
            "error": number(agent.error),
            "state": agent.state,
            "last_seen": agent.last_seen,
            "absences": agent.absences,
            "reason": agent.reason,
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
