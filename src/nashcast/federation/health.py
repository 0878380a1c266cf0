"""What went wrong so far: missing and late labels, and agents that sat steps out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from nashcast.errors import InvalidInput

LABELS = ("missing labels", "late labels", "missing inputs")
_LONGEST_REASON = 500


class Health:
    """counts: by LABELS.   absences: steps that each member sat out.   reasons: why it did so last."""

    def __init__(self):
        self.counts: Counter[str] = Counter()
        self.absences: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def absent(self, name: str, reason: str) -> None:
        self.absences[name] += 1
        self.reasons[name] = reason[:_LONGEST_REASON]

    def report(self, steps: int, suspect_labels: int) -> dict[str, Any]:
        counts = {name: self.counts[name] for name in LABELS}
        absences = {"absences": dict(self.absences), "reasons": dict(self.reasons)}
        return {"steps": steps, **counts, "suspect labels": suspect_labels, **absences}

    def save(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "absences": dict(self.absences), "reasons": self.reasons}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Health:
        """What `save` gave. Raises InvalidInput."""
        health = cls()
        health.counts, health.absences = _counts(saved, "counts"), _counts(saved, "absences")
        reasons = _table(saved, "reasons").items()
        health.reasons = {str(name): str(reason)[:_LONGEST_REASON] for name, reason in reasons}
        return health


def _table(saved: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = saved.get(name)
    if not isinstance(value, dict):
        raise InvalidInput(f"saved {name}", "nothing", "Use an earlier copy.")
    return value


def _counts(saved: Mapping[str, Any], name: str) -> Counter[str]:
    table = _table(saved, name)
    if not all(isinstance(count, int) and 0 <= count < 1 << 62 for count in table.values()):
        raise InvalidInput(f"saved {name}", "a count that is no whole number ≥ 0", "Use an earlier copy.")
    return Counter(table)
