"""The values allowed in each field of a message, from the types that its NamedTuple declares."""

from __future__ import annotations

import re
import types
from functools import lru_cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

WORDS = {
    type(None): "nothing", bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    bytes: "bytes", np.ndarray: "an array",
}  # fmt: skip


class Form(NamedTuple):
    """The values allowed in one field of a message."""

    plain: frozenset[type]
    records: dict[str, type]
    array: bool
    items: Any  # the form of a list's entries; None if no list is allowed
    words: str


@lru_cache
def type_name(kind: type) -> str:
    """The name of a type on the wire.

    >>> class StepRecord(NamedTuple): ...
    >>> type_name(StepRecord)
    'step_record'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


@lru_cache
def form_of(hint) -> Form:
    options = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain, records, array, items, words = set(), {}, False, None, []
    for option in options:
        if get_origin(option) is tuple:
            items = form_of(get_args(option)[0])
            words.append("a list")
        elif hasattr(option, "_fields"):
            records[type_name(option)] = option
            words.append(type_name(option))
        elif option is np.ndarray:
            array = True
            words.append(WORDS[option])
        else:
            plain.add(option)
            words.append(WORDS[option])
    return Form(frozenset(plain), records, array, items, " or ".join(words))


@lru_cache
def forms_of(kind: type) -> dict[str, Form]:
    """The form of each field of a NamedTuple."""
    return {field: form_of(hint) for field, hint in get_type_hints(kind).items()}
