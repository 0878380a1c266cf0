"""The settings of the paper's federation in a file: the table [paper], and the tables of a hub's file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.run_schema import Place, options_of, read_options, refuse_unknown, table
from nashcast.encoders import Persistence
from nashcast.errors import InvalidInput
from nashcast.federation.paper import LookbackGame, paper_federation

_IN_CODE_ONLY = ("deadline", "transcript", "make_post", "settings")
FEDERATION = options_of(paper_federation, ("agents", "game", "y_dim", "seed", *_IN_CODE_ONLY))
GAME = options_of(LookbackGame, ("solve",))
# The decoder of one agent.
AGENT = options_of(PaperAgent, ("encoder", "name", "share"))
# The game's ridge has another name than the mixture's.
_GAME_RIDGE = "game_ridge"
OF_GAME = {_GAME_RIDGE if name == "ridge" else name: option for name, option in GAME.items()}
PAPER = FEDERATION | OF_GAME


@dataclass(frozen=True)
class PaperSettings:
    """ridge, budget: κ, η of the mixture weights.   anchored, mixing: see `paper_federation`.   game: None for none."""

    ridge: float
    budget: float
    anchored: bool
    mixing: str
    game: LookbackGame | None

    def table(self) -> dict[str, Any]:
        """The settings in plain values; `read_paper` reads them back unchanged."""
        own: dict[str, Any] = {name: getattr(self, name) for name in FEDERATION}
        if self.game is None:
            return own | {"lookback": False}
        game = {name: getattr(self.game, "ridge" if name == _GAME_RIDGE else name) for name in OF_GAME}
        return own | {name: value for name, value in game.items() if value is not None}


def read_paper(place: Place, value: Any, plays: bool) -> PaperSettings:
    """The table [paper]. plays: whether the file has a game; `lookback = false` also switches it off."""
    given = table(place, value)
    refuse_unknown(place, given, PAPER, "The paper's federation")
    game = None
    if plays and given.get("lookback") is not False:
        values = read_options(place, given, OF_GAME)
        own = values.pop(_GAME_RIDGE)
        game = _game(place, values)
        try:
            game = replace(game, ridge=own)
        except InvalidInput as error:
            raise place.at(_GAME_RIDGE).moved(error, below=False) from None
    values = read_options(place, given, FEDERATION)
    _check_federation(
        place, values, game, "Set game = false, or anchored = false: the game determines where agents start."
    )
    return PaperSettings(**values, game=game)


def read_game(place: Place, value: Any) -> LookbackGame | None:
    """The table [game] of a hub's file; false for none."""
    if value is False:
        return None
    given = table(place, value)
    refuse_unknown(place, given, GAME, "A game")
    return _game(place, read_options(place, given, GAME))


def read_federation(place: Place, value: Any, game: LookbackGame | None) -> dict[str, Any]:
    """The table [federation] of a hub's file."""
    given = table(place, value)
    refuse_unknown(place, given, FEDERATION, "The federation")
    values = read_options(place, given, FEDERATION)
    remedy = "Leave out the table [game], or set anchored = false: the game determines where agents start."
    _check_federation(place, values, game, remedy)
    return values


def _game(place: Place, values: dict[str, Any]) -> LookbackGame:
    try:
        return LookbackGame(**values)
    except InvalidInput as error:
        raise place.moved(error) from None


def _check_federation(place: Place, values: dict[str, Any], game: LookbackGame | None, remedy: str) -> None:
    if values["anchored"] and game is not None:
        raise place.at("anchored").refused("true with a game", remedy)
    try:
        paper_federation([PaperAgent(Persistence())], game=game, **values)
    except InvalidInput as error:
        raise place.moved(error) from None
