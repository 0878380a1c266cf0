"""Counters of games, fallbacks and their reasons, missing and late labels, and absences of agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.federation.forecast import Forecast
from nashcast.fields import Fields

COUNTS = ("games", "fallbacks", "missing labels", "late labels", "missing inputs")
_LONGEST_REASON = 500
# How many different reasons to fall back are counted; further ones are counted together.
_MOST_REASONS, _OTHERS = 20, "other reasons"


class Health:
    """counts: by COUNTS.   fell_back: steps at which a game was due but the greedy step was used, by reason.

    absences: steps that each member sat out.   reasons: why it did so last.
    """

    def __init__(self):
        self.counts: Counter[str] = Counter()
        self.fell_back: Counter[str] = Counter()
        self.absences: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def count(self, forecast: Forecast, members: Sequence[str]) -> None:
        """Count a forecast that is final."""
        self.counts["games"] += forecast.played
        if forecast.fell_back:
            self.counts["fallbacks"] += 1
            why = forecast.fell_back[:_LONGEST_REASON]
            known = why in self.fell_back or len(self.fell_back) < _MOST_REASONS
            self.fell_back[why if known else _OTHERS] += 1
        for member, reason in forecast.absent.items():
            self.absences[members[member]] += 1
            self.reasons[members[member]] = reason[:_LONGEST_REASON]

    def report(self, steps: int, suspect_labels: int) -> dict[str, Any]:
        return {
            "steps": steps,
            **{name: self.counts[name] for name in COUNTS},
            "suspect labels": suspect_labels,
            "fell back": dict(self.fell_back),
            "absences": dict(self.absences),
            "reasons": dict(self.reasons),
        }

    def save(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Numbers, and the texts they belong to, which seldom change."""
        arrays = {
            "counts": np.array([self.counts[name] for name in COUNTS]),
            "fell_back": np.array(list(self.fell_back.values()), dtype=np.int64),
            "absences": np.array(list(self.absences.values()), dtype=np.int64),
        }
        return arrays, {"fell back": list(self.fell_back), "absences": list(self.absences), "reasons": self.reasons}

    @classmethod
    def restored(cls, fields: Fields, about: Any) -> Health:
        """Restored from what `save` returned. Raises InvalidInput."""
        health = cls()
        texts = about if isinstance(about, Mapping) else {}
        fell_back, absences = _texts(texts, "fell back"), _texts(texts, "absences")
        health.counts = Counter(dict(zip(COUNTS, _counts(fields, "counts", len(COUNTS)), strict=True)))
        health.fell_back = Counter(dict(zip(fell_back, _counts(fields, "fell_back", len(fell_back)), strict=True)))
        health.absences = Counter(dict(zip(absences, _counts(fields, "absences", len(absences)), strict=True)))
        reasons = texts.get("reasons")
        if not isinstance(reasons, dict):
            raise InvalidInput("saved reasons", "nothing", "Use an earlier copy.")
        health.reasons = {str(name): str(reason)[:_LONGEST_REASON] for name, reason in reasons.items()}
        fields.done()
        return health


def _counts(fields: Fields, name: str, length: int) -> list[int]:
    return fields.take(name, (length,), dtype=np.int64, min=0, max=1 << 62).tolist()


def _texts(saved: Mapping[str, Any], name: str) -> list[str]:
    texts = saved.get(name)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(set(texts)) < len(texts):
        raise InvalidInput(f"saved {name}", "no list of different texts", "Use an earlier copy.")
    return texts
