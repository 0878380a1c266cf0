"""Every printed number compared with the published form's: the number of digits that agree, or the reason if fewer."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nashcast.paper.settings import LABELS
from nashcast.records.study import Column, Table

SIX_DIGITS = 6


def digits(found: float | None, printed: float) -> int | None:
    """Leading digits that agree, at most the six printed ones."""
    if found is None or not math.isfinite(found):
        return None
    apart = abs(found / printed - 1.0)
    return SIX_DIGITS if apart <= 6e-6 else max(0, math.floor(-math.log10(apart)))


def digits_table(rows: list[dict], searched: Table) -> Table:
    """rows: of a table of errors, as published.   searched: settings that reproduce numbers the bold ones do not."""
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("game", "game"), Column("printed", "printed", "error"), Column("found", "as published", "error"),
        Column("digits", "digits that agree", "int"), Column("why", "where they are fewer than six"),
    ]  # fmt: skip
    other = {tuple(row[key] for key in ("model", "agents", "dataset", "game")): row for row in searched.rows}
    lines = []
    for each in rows:
        which = {"model": LABELS[each["model"]], "agents": each["agents"], "dataset": each["dataset"]}
        which["game"] = "yes" if each["game"] else "no"
        agreed = digits(each["as_published"], each["printed"])
        why = "" if agreed == SIX_DIGITS else _why(each, other.get(tuple(which.values())))
        found = {"printed": each["printed"], "found": each["as_published"], "digits": agreed, "why": why}
        lines.append({**which, **found})
    return Table("Every printed number: to how many digits it comes back", columns, lines)


def _why(each: dict, other: Mapping | None) -> str:
    if each["as_published"] is None:
        return "not trained here"
    if each["model"] == "transformer":
        ratio = each["as_published"] / each["printed"]
        size = "within a factor of 2" if 0.5 <= ratio <= 2.0 else f"{ratio:.3g} times the printed number"
        return f"trained weights were not published: {size}"
    if (many := each.get("as_published_many")) is not None:
        least, most = many["spread"]
        inside = "within" if least <= each["printed"] <= most else "outside"
        return f"samples drawn in another order: {inside} the spread of {len(many['seeds'])} seeds"
    if other is not None and not other["found"].startswith("none"):
        return f"another setting gives it to six digits (erratum 7): {other['found']}"
    return "no setting of the grid gives it" if other is not None else "random draws in another order"
