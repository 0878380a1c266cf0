"""Where the look-back game is played: on the server, or spread over the agents. Both give the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.agents.protocol import Answer, BackwardSums, GameView, Invitation, Sync
from nashcast.federation.lookback.transport import NoGame, Players
from nashcast.games.lookback.coupling import check_existence
from nashcast.games.lookback.game import Equilibrium, solve_problem
from nashcast.games.lookback.problem import NOTHING, Problem, layout_each
from nashcast.games.lookback.spread import ServerPart, tensor_numbers

# Every agent sends its noise as a tensor of some k⁴/4 numbers, k = (look-back - 1) · y_dim: 8 MB at most.
LARGEST_TENSOR = 2**20


class Window(NamedTuple):
    """The last steps as the server knows them, newest last. A step without a label has weights 0."""

    weights: np.ndarray  # (lookback, agents)
    targets: np.ndarray  # (lookback + 1, y_dim): the target before the window, then the target of each step

    def of(self, agents: Sequence[int]) -> Window:
        if len(agents) == self.weights.shape[1]:
            return self
        return Window(np.ascontiguousarray(self.weights[:, list(agents)]), self.targets)

    def push(self, weights: np.ndarray, target: np.ndarray) -> Window:
        kept = self.weights
        if len(kept):
            kept = np.concatenate([kept[1:], weights[None]])
        return Window(kept, np.concatenate([self.targets[1:], target[None]]))


def play_centrally(players: Players, window: Window, post, game) -> tuple[Equilibrium, list[Answer]]:
    """Algorithm 2 on the server: agents send their features, and receive their decoder and their last forecast."""
    memories = post.ask_all("recall", players) if game.memory else None
    solved = solve_views(post.ask_all("view", players), window, memories, game)
    last, now = np.asarray(solved.decoders)[-1], solved.forecasts[-1]
    if game.memory:  # the decoders contain the game's result; the last target is the better start
        now = np.broadcast_to(window.targets[-1], now.shape)
    place_of, syncs = solved.problem.layout.decoders.tolist(), []
    for place in range(len(players)):
        past = solved.forecasts[:-1, place] if game.rewrite_past else None
        syncs.append((Sync(now[place], last[place_of[place] : place_of[place + 1]], past),))
    return solved, post.ask_each("adopt", players, syncs)


def solve_views(
    views: Sequence[GameView],
    window: Window,
    memories: Sequence[np.ndarray] | None = None,
    game=None,
) -> Equilibrium:
    """The game of these views, in flat rows: agents declared their shapes when the stream began.

    memories: the decoder each agent's ridge is centred on at every step of the window, if not 0.
    game: the `LookbackGame`, for γ of all agents if it has one, and for a `solve` of its own.
    """
    T, p = len(window.weights), window.targets.shape[1]
    sizes = tuple(view.features.shape[2] for view in views)
    noisy = tuple(view.covariance is not None for view in views)

    def flat(blocks):
        return np.concatenate([block.reshape(T, -1) for block in blocks], axis=1)

    drawn = expected = flat([view.features for view in views])
    spread = NOTHING
    if any(noisy):
        expected = flat([view.features if view.means is None else view.means for view in views])
        spread = flat([view.covariance for view in views if view.covariance is not None])
    ridge, solve = (None, None) if game is None else (game.ridge, game.solve)
    gamma = np.array([view.ridge if ridge is None else ridge for view in views], dtype=float)
    alpha = np.array([view.decay for view in views])
    centre = NOTHING if memories is None else np.repeat(np.concatenate(memories)[None], T, axis=0)
    start = np.broadcast_to(window.targets[0], (len(views), p))
    layout, targets = layout_each(sizes, p, noisy), window.targets[1:]
    problem = Problem(layout, drawn, expected, spread, centre, window.weights, targets, start, gamma, alpha)
    return solve_problem(problem) if solve is None else _solved_by(solve, problem)


def _solved_by(solve, problem: Problem) -> Equilibrium:
    """The solution of the caller's own game, checked."""
    T, N, p = len(problem.targets), problem.layout.agents, problem.layout.y_dim
    decoders, forecasts = solve(problem)
    decoders = check.array("decoders of solve", decoders, (T, problem.layout.decoders[-1]), "(lookback, all features)")
    forecasts = check.array("forecasts of solve", forecasts, (T + 1, N, p), "(lookback + 1, agents, y_dim)")
    return Equilibrium(decoders, forecasts, np.ones(T), None, problem)


def play_spread(players: Players, window: Window, post, game) -> tuple[None, list[Answer]]:
    """Algorithm 2 spread over the agents: each sends only its terms of sums."""
    T, p = len(window.weights), window.targets.shape[1]
    targets, start = window.targets[1:], window.targets[0]
    noisy = any(post.ask_all("varies", players))
    if noisy and tensor_numbers((T - 1) * p) > LARGEST_TENSOR:
        raise NoGame(f"its noise tensor has {tensor_numbers((T - 1) * p):,} numbers: shorten the look-back")
    columns = [np.ascontiguousarray(window.weights[:, place]) for place in range(len(players))]
    post.ask_each("join_game", players, [(Invitation(targets, weights, start, noisy),) for weights in columns])
    server = ServerPart()
    for back in range(T):
        coupling, offset, tensor, surprise = post.ask_sums("backward", players, back)
        carry, shift, condition = server.solve(back, coupling, offset)
        check_existence(T - 1 - back, condition)
        post.ask_all("receive", players, back, BackwardSums(carry, shift, tensor, surprise))
    return None, post.ask_all("finish_game", players, window.weights.sum(axis=1))


PLACEMENTS = {"central": play_centrally, "spread": play_spread}
# What an agent must share to play there; one that does not is mixed with the others, but plays no game.
NEEDED = {"central": "moments", "spread": "sums"}
