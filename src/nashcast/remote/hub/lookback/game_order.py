"""The order of a spread game's moves."""

from __future__ import annotations


def next_move(played: int, lookback: int) -> tuple:
    """The next move in a spread game after so many moves.

    >>> [next_move(i, 1) for i in range(4)]
    [('join_game',), ('backward', 0), ('receive', 0), ('finish_game',)]
    """
    if played == 0:
        return ("join_game",)
    back, receives = divmod(played - 1, 2)
    if back == lookback:
        return ("finish_game",)
    return ("receive" if receives else "backward"), back
