"""All evaluated methods, by name."""

from __future__ import annotations

from collections.abc import Sequence

from nashcast.errors import InvalidInput
from nashcast.evaluation import federation_methods
from nashcast.evaluation.method import Method
from nashcast.evaluation.peers import experts, reservoir_peers, river_peers, sktime_peers, statsforecast_peers
from nashcast.evaluation.peers.baselines import BASELINES
from nashcast.evaluation.prequential import timed
from nashcast.suggest import near

PERSISTENCE = "persistence"


def all_methods() -> dict[str, Method]:
    """All methods, in the order of the tables."""
    simple = [Method(name, "baselines", whole=timed(rule)) for name, rule in BASELINES.items()]
    found = [
        *federation_methods.methods(),
        *federation_methods.agent_methods(),
        *simple,
        *experts.methods(),
        *river_peers.methods(),
        *reservoir_peers.methods(),
        *statsforecast_peers.methods(),
        *sktime_peers.methods(),
    ]
    return {method.name: method for method in found}


def chosen_methods(names: Sequence[str] | None, known: dict[str, Method]) -> dict[str, Method]:
    """names: methods or families, None for all. The federation and persistence are always included."""
    if names is None:
        return known
    families = list(dict.fromkeys(method.family for method in known.values()))
    for name in names:
        if name not in known and name not in families:
            valid = f"The families are {', '.join(families)}; a method is chosen by its name."
            raise InvalidInput("--methods", repr(name), near(name, [*families, *known]) + valid)
    wanted = {*names, federation_methods.FEDERATION, PERSISTENCE}
    return {name: method for name, method in known.items() if name in wanted or method.family in wanted}
