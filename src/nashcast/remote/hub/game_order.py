"""The order of a spread game's moves."""

from __future__ import annotations


def next_move(played: int, lookback: int) -> tuple:
    """What comes next in a spread game, once so many of its moves are made.

    >>> [next_move(i, 1) for i in (1, 2, 3, 4, 5)]
    [('backward', 0), ('receive', 0), ('weighted_forecasts', 0), ('forward', 0), ('finish_game',)]
    """
    if played == 0:
        return ("join_game",)
    half, place = divmod(played - 1, 2 * lookback)
    if half == 2:
        return ("finish_game",)
    return (("backward", "receive"), ("weighted_forecasts", "forward"))[half][place % 2], place // 2
