"""Parse request bodies as strict JSON and validate observations and labels before anything is stored."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.entries import LABEL, OBSERVATION
from nashcast.service.streams.intake import Item
from nashcast.service.streams.settings import ServeSettings
from nashcast.suggest import near

# Squares of products of larger numbers may overflow in an encoder.
LARGEST = 1e15
LARGEST_STEP = 2**53 - 1
MOST_ITEMS = 1000
LONGEST_KEY = 128
_LAST_TIME = 32_503_680_000.0  # the year 3000
_KEY = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_KEY}}}")
SAVE_POINT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class BadJson(NashcastError):
    """The body is not JSON, or is ambiguous JSON."""


def parse_json(body: bytes) -> Any:
    """Strict JSON: no NaN, no duplicate names in an object."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        raise BadJson(f"body: got bytes that are no UTF-8, from byte {error.start}. Pass JSON in UTF-8.") from None
    except RecursionError:
        raise BadJson("body: got JSON nested too deeply. Pass the document that /v1/openapi.json describes.") from None
    except ValueError as error:
        raise BadJson(f"body: got text that is not JSON ({str(error)[:100]}). Pass one JSON object.") from None


def _refuse_constant(name: str):
    raise BadJson(f"body: got {name}, which is not JSON. Pass numbers, or null where one is missing.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise BadJson(f"body: got the name {twice[:60]!r} twice in one object. Pass it once.")
    return found


def read_observations(document: Any, serve: ServeSettings) -> list[Item]:
    """One observation, or {"observations": [...]}."""
    if isinstance(document, dict) and "observations" in document:
        _known(document, ("observations",), "")
        return [_observation(where, part, serve) for where, part in _items(document, "observations")]
    return [_observation("", document, serve)]


def read_labels(document: Any, serve: ServeSettings) -> list[Item]:
    """One label, or {"labels": [...]}."""
    if isinstance(document, dict) and "labels" in document:
        _known(document, ("labels",), "")
        return [_label(where, part, serve) for where, part in _items(document, "labels")]
    return [_label("", document, serve)]


def read_save_point(document: Any) -> str:
    given = _object("", document)
    _known(given, ("name",), "")
    name = save_point_name(given.get("name"))
    if name.startswith("auto-"):
        raise InvalidInput("name", _show(name), "This prefix is reserved for automatic snapshots: pass another name.")
    return name


def save_point_name(name: Any) -> str:
    if not isinstance(name, str) or SAVE_POINT.fullmatch(name) is None:
        remedy = "Pass 1 to 63 small letters, digits and dashes, a letter or digit first."
        raise InvalidInput("name", _show(name), remedy)
    return name


def _items(document: dict, name: str) -> list[tuple[str, Any]]:
    items = document[name]
    if not isinstance(items, list) or not items:
        raise InvalidInput(name, _show(items), "Pass a list of at least one.")
    if len(items) > MOST_ITEMS:
        raise InvalidInput(name, f"{len(items)} of them", f"Pass at most {MOST_ITEMS} at once.")
    return [(f"{name}[{i}]", part) for i, part in enumerate(items)]


def _observation(where: str, value: Any, serve: ServeSettings) -> Item:
    given = _object(where, value)
    _known(given, ("x", "y", "step", "key", "time"), where)
    x = _numbers(_at(where, "x"), given, "x", serve.x_dim, missing=True)
    y = None
    if "y" not in given:
        raise InvalidInput(_at(where, "y"), "nothing", "Pass the target of this step, or null if it is not known.")
    if given["y"] is not None:
        y = _numbers(_at(where, "y"), given, "y", serve.y_dim, missing=False)
    step = None if given.get("step") is None else _step(_at(where, "step"), given["step"])
    key = given.get("key")
    if key is not None and (not isinstance(key, str) or _KEY.fullmatch(key) is None):
        remedy = f"Pass 1 to {LONGEST_KEY} visible ASCII characters."
        raise InvalidInput(_at(where, "key"), _show(key), remedy)
    time = None if given.get("time") is None else _time(_at(where, "time"), given["time"])
    return Item(where or "observation", OBSERVATION, step, key, x, y, time)


def _label(where: str, value: Any, serve: ServeSettings) -> Item:
    given = _object(where, value)
    _known(given, ("step", "y"), where)
    if "step" not in given:
        raise InvalidInput(_at(where, "step"), "nothing", "Pass the step whose target this is.")
    step = _step(_at(where, "step"), given["step"])
    return Item(
        where or "label", LABEL, step, None, None, _numbers(_at(where, "y"), given, "y", serve.y_dim, missing=False)
    )


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _object(where: str, value: Any) -> dict:
    if not isinstance(value, dict):
        raise InvalidInput(where or "body", _show(value), "Pass an object.")
    return value


def _known(given: dict, names: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in names:
            remedy = f"{near(name[:60], names)}Pass {', '.join(names)}."
            raise InvalidInput(_at(where, name[:60]), "a name that is not known", remedy)


def _numbers(where: str, given: dict, name: str, size: int, *, missing: bool) -> np.ndarray:
    if name not in given:
        raise InvalidInput(where, "nothing", f"Pass a list of {size} numbers.")
    values = given[name]
    if size == 1 and not isinstance(values, list):
        values = [values]
    if not isinstance(values, list):
        raise InvalidInput(where, _show(values), f"Pass a list of {size} numbers.")
    if len(values) != size:
        raise InvalidInput(where, f"{len(values)} numbers", f"Pass a list of {size}.")
    for i, value in enumerate(values):
        if type(value) is float or type(value) is int:
            if not abs(value) <= LARGEST:
                raise InvalidInput(f"{where}[{i}]", _show(value), f"Pass numbers between {-LARGEST:g} and {LARGEST:g}.")
        elif value is not None or not missing:
            null = ", or null where one is missing" if missing else ""
            raise InvalidInput(f"{where}[{i}]", _show(value), f"Pass a number{null}.")
    return np.array([math.nan if value is None else float(value) for value in values])


def _step(where: str, value: Any) -> int:
    if type(value) is float and value.is_integer() and abs(value) <= LARGEST_STEP:
        value = int(value)  # JSON has one number type
    if type(value) is not int or not 0 <= value <= LARGEST_STEP:
        raise InvalidInput(where, _show(value), "Pass a whole number ≥ 0.")
    return value


def _time(where: str, value: Any) -> float:
    """Seconds since 1970, or ISO 8601 with its offset from UTC."""
    if type(value) in (int, float) and 0 <= value <= _LAST_TIME:
        return float(value)
    if isinstance(value, str) and len(value) <= 40:
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            found = None
        if found is not None and found.tzinfo is not None and 1970 <= found.year < 3000:
            return max(0.0, found.timestamp())
    remedy = 'Pass seconds since 1970, or ISO 8601 with an offset, such as "2024-05-03T10:00:00Z".'
    raise InvalidInput(where, _show(value), remedy)


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if type(value) is int and abs(value) > 1e30:
        return "a number of many digits"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"
