"""Checks the tables of a settings file against the signature of what they describe: names, types and suggestions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput
from nashcast.suggest import near


class Place(NamedTuple):
    """The position of a value in a file, for messages: `federation.toml: agents[0].ridge`."""

    source: str
    path: str = ""

    def at(self, name: str) -> Place:
        return self._replace(path=f"{self.path}.{name}" if self.path else name)

    def item(self, index: int) -> Place:
        return self._replace(path=f"{self.path}[{index}]")

    def refused(self, got: str, remedy: str) -> InvalidInput:
        return InvalidInput(f"{self.source}: {self.path}" if self.path else self.source, got, remedy)

    def moved(self, error: InvalidInput, *, below: bool = True) -> InvalidInput:
        """The same error of an argument, with the key it came from: this one, or one below it."""
        text = str(error).removeprefix(f"{error.argument}: got ")
        got, _, remedy = text.partition(". ")
        return (self.at(error.argument) if below else self).refused(got, remedy)


class Option(NamedTuple):
    """One key of a table."""

    kind: str
    optional: bool  # optional; false means none
    required: bool
    default: Any = None


@lru_cache
def options_of(target: Callable, without: tuple[str, ...] = ()) -> dict[str, Option]:
    """The valid keys of a table that describes `target`: the parameters that a file can express."""
    found = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if name in without:
            continue
        kind = str(parameter.annotation)
        required = parameter.default is inspect.Parameter.empty
        found[name] = Option(
            kind.removesuffix(" | None"), kind.endswith(" | None"), required, None if required else parameter.default
        )
    return found


def show(value: Any) -> str:
    """The value as written in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    return f"{value!r:.60}"


def _whole(place: Place, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise place.refused(show(value), "Pass a whole number.")
    return value


def _number(place: Place, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.refused(show(value), "Pass a number.")
    if not math.isfinite(value):
        raise place.refused(show(value), "Pass a finite number.")
    return float(value)


def _text(place: Place, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.refused(show(value), "Pass a text in quotes.")
    return value


def _flag(place: Place, value: Any) -> bool:
    if not isinstance(value, bool):
        raise place.refused(show(value), "Pass true or false.")
    return value


def _wholes(place: Place, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise place.refused(show(value), "Pass a list of whole numbers.")
    return tuple(_whole(place.item(i), part) for i, part in enumerate(value))


def _numbers(place: Place, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list | tuple):
        raise place.refused(show(value), "Pass a list of numbers.")
    return tuple(_number(place.item(i), part) for i, part in enumerate(value))


def _pairs(place: Place, value: Any) -> tuple[tuple[float, ...], ...]:
    if not isinstance(value, list | tuple):
        raise place.refused(show(value), "Pass a list of pairs of numbers.")
    return tuple(_numbers(place.item(i), part) for i, part in enumerate(value))


def _table(place: Place, value: Any) -> dict:
    if not isinstance(value, Mapping):
        raise place.refused(show(value), "Pass a table.")
    return dict(value)


def _function(place: Place, value: Any) -> str:
    text = _text(place, value)
    module, colon, name = text.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise place.refused(show(value), 'Pass a module and a function in it: "my_module:my_function".')
    return text


KINDS: dict[str, Callable[[Place, Any], Any]] = {
    "int": _whole,
    "float": _number,
    "str": _text,
    "str | RuleFactory": _text,  # a rule by its name; a user's own rule cannot be written in a file
    "bool": _flag,
    "Sequence[int]": _wholes,
    "Sequence[float]": _numbers,
    "tuple[tuple[float, float], ...]": _pairs,
    "Path": _text,
    "Function": _function,
    "dict": _table,
}


def read(place: Place, value: Any, kind: str) -> Any:
    return KINDS[kind](place, value)


def table(place: Place, value: Any) -> dict:
    return read(place, value, "dict")


def refuse_unknown(place: Place, given: Mapping, known: Mapping | tuple[str, ...], what: str) -> None:
    """what: the owner of the keys, as in "A linear agent"."""
    for name in given:
        if name in known:
            continue
        remedy = f"{near(name, known)}{what} takes {', '.join(sorted(known))}."
        raise place.at(str(name)).refused("a key that is not known", remedy)


def read_options(place: Place, given: Mapping, options: Mapping[str, Option]) -> dict[str, Any]:
    """Every option's value, given or default; a missing required option is refused."""
    values = {}
    for name, option in options.items():
        if name not in given:
            if option.required:
                raise place.at(name).refused("nothing", f"Add {name} = … here: it has no default.")
            values[name] = option.default
        elif given[name] is False and option.optional:
            values[name] = None
        else:
            values[name] = read(place.at(name), given[name], option.kind)
    return values
