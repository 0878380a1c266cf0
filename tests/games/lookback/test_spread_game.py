"""The look-back game spread over its agents, in T rounds of sums: the paper's dense theorem, on 200 random games."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.games.lookback.spread import AgentPart, Invitation, ServerPart
from support.games import random_game, relative
from support.reference import dense_game

GROUPS, PER_GROUP = 8, 25


def games_of(group):
    """All agents start from one target, and none has a prior."""
    for i in range(PER_GROUP):
        game = random_game(50_000 + 100 * group + i, prior=False)
        yield game._replace(start=np.repeat(game.start[:1], len(game.Z), axis=0))


def spread(game):
    """Forecasts (T + 1, agents, y_dim), decoders by agent, and how often sums were asked for."""
    T, N, noisy = *game.w.shape, game.cov is not None
    moments = [(game.mean[i], game.cov[i]) if noisy else (None, None) for i in range(N)]
    parts = [
        AgentPart(
            game.Z[i], *moments[i], game.gamma[i], game.alpha[i],
            Invitation(game.y, np.ascontiguousarray(game.w[:, i]), game.start[0], noisy),
        )
        for i in range(N)
    ]  # fmt: skip
    server, rounds = ServerPart(), 0
    for back in range(T):
        terms, rounds = [part.backward(back) for part in parts], rounds + 1
        coupling, offset, *others = [np.add.reduce(own) for own in zip(*terms, strict=True)]
        carry, shift, _ = server.solve(back, coupling, offset)
        for part in parts:
            part.receive(back, carry, shift, *others)
    for part in parts:
        part.play(game.w.sum(axis=1))
    return np.concatenate([part.forecasts for part in parts], axis=1), [part.decoders for part in parts], rounds


def test_the_games_cover_random_and_certain_features_and_every_look_back():
    games = [game for group in range(GROUPS) for game in games_of(group)]
    assert len(games) == 200
    assert {(len(game.y), game.cov is not None) for game in games} == {(T, n) for T in range(1, 7) for n in (0, 1)}


@pytest.mark.parametrize("group", range(GROUPS))
def test_spread_over_its_agents_the_game_is_the_dense_theorem(group):
    for game in games_of(group):
        forecasts, decoders, rounds = spread(game)
        dense = dense_game.solve(*game.dense_arguments())
        solved = nc.solve_game(*game.arguments(), **game.settings(), compiled=False)
        assert rounds == len(game.y)  # the forecast's turn has the first of them; the end takes one more
        for t in range(len(game.y)):
            assert relative(np.concatenate([own[t] for own in decoders]), dense.decoders[t]) <= 1e-9
            assert relative(forecasts[t + 1].ravel(), dense.forecasts[t + 1]) <= 1e-9
        assert relative(forecasts, solved.forecasts) <= 1e-10
        assert all(relative(own, other) <= 1e-10 for own, other in zip(decoders, solved.decoders, strict=True))
