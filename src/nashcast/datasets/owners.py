"""Which inputs belong to which owner, for streams whose inputs belong to several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nashcast.datasets.base import Stream
from nashcast.errors import InvalidInput


def by_name(names: Sequence[str], groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Places of each owner's inputs. names: the inputs' names, lags under one name.   groups: columns of each owner.

    >>> by_name(["a", "b", "a", "b"], {"first": ["a"], "second": ["b"]})
    {'first': (0, 2), 'second': (1, 3)}
    """
    return {
        owner: tuple(place for place, name in enumerate(names) if name in columns) for owner, columns in groups.items()
    }


def check_owners(stream: Stream) -> Mapping[str, tuple[int, ...]]:
    """The owners of a stream, after checking that every owner has inputs of its own."""
    if not stream.owners:
        remedy = "Pass a stream whose inputs belong to several owners, such as 'owners-independent'."
        raise InvalidInput(f"stream {stream.name!r}", "inputs without owners", remedy)
    width, seen = stream.inputs.shape[1], set()
    for owner, places in stream.owners.items():
        wrong = [place for place in places if not 0 <= place < width]
        if not places or wrong or seen & set(places) or len(set(places)) < len(places):
            got = f"the inputs {list(places)} of {owner!r}"
            remedy = f"Give every owner at least one of the inputs 0 … {width - 1}, and every input to one owner."
            raise InvalidInput(f"stream {stream.name!r}", got, remedy)
        seen |= set(places)
    return stream.owners
