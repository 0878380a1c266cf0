"""The streams of the private-information benchmark: their inputs belong to several owners."""

from __future__ import annotations

from nashcast.datasets.catalog import entry
from nashcast.evaluation.declared import Declared, declarations


def private_streams() -> list[Declared]:
    """Those whose inputs belong to several owners."""
    found = []
    for each in declarations()["private"]:
        options = tuple(each.get("options", {}).items())
        names = {key: each.get(key, "") for key in ("title", "group", "beside")}
        found.append(Declared(each["name"], options=options, **names))
    return found


def private_named(text: str) -> Declared:
    """By its label or its name in the catalogue."""
    for each in private_streams():
        if text in (each.label, each.name):
            return each
    entry(text)  # says what there is, if it is not there
    return Declared(text)
