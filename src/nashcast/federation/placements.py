"""Where the look-back game is played: on the server, or spread over the agents. Both give the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast.agents.protocol import Answer, BackwardSums, GameView, Invitation, Participant, Sync
from nashcast.errors import SingularGame
from nashcast.maths.game import NOTHING, Equilibrium, solve_flat
from nashcast.maths.game_plan import DECODER, plan_for_each
from nashcast.maths.game_spread import ServerPart


class Window(NamedTuple):
    """The last steps as the server knows them, newest last. A step without a label has weights 0."""

    weights: np.ndarray  # (lookback, agents)
    targets: np.ndarray  # (lookback + 1, y_dim): the target before the window, then what each step was to forecast

    def of(self, agents: Sequence[int]) -> Window:
        if len(agents) == self.weights.shape[1]:
            return self
        return Window(np.ascontiguousarray(self.weights[:, list(agents)]), self.targets)

    def push(self, weights: np.ndarray, target: np.ndarray) -> Window:
        kept = self.weights
        if len(kept):
            kept = np.concatenate([kept[1:], weights[None]])
        return Window(kept, np.concatenate([self.targets[1:], target[None]]))


Players = Sequence[tuple[int, Participant]]


def play_centrally(players: Players, window: Window, post, rewrite_past: bool) -> tuple[Equilibrium, list[Answer]]:
    """Algorithm 2 on the server: agents send their features, and are told their decoder and where they stand."""
    views = [post.ask(i, "view", agent.view) for i, agent in players]
    solved = solve_views(views, window)
    last, now, answers = np.asarray(solved.decoders)[-1], solved.forecasts[-1], []
    place_of = solved.problem.plan.agents[:, DECODER].tolist()
    for place, (i, agent) in enumerate(players):
        past = solved.forecasts[:-1, place] if rewrite_past else None
        sync = Sync(now[place], last[place_of[place] : place_of[place + 1]], past)
        answers.append(post.ask(i, "adopt", agent.adopt, sync))
    return solved, answers


def solve_views(views: Sequence[GameView], window: Window) -> Equilibrium:
    """The game of these views, in flat rows: agents declared their shapes when the stream began."""
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
    gamma, alpha = np.array([view.ridge for view in views]), np.array([view.decay for view in views])
    plan = plan_for_each(sizes, p, T, noisy, False)
    targets = window.targets
    return solve_flat(plan, drawn, expected, spread, NOTHING, window.weights, targets[1:], targets[0], gamma, alpha)


def play_spread(players: Players, window: Window, post, rewrite_past: bool) -> tuple[None, list[Answer]]:
    """Algorithm 2 spread over the agents: only their terms of sums leave them, backwards and then forwards."""
    T, p = len(window.weights), window.targets.shape[1]
    targets, start = window.targets[1:], window.targets[0]
    varying = [post.ask(i, "varies", agent.varies) for i, agent in players]
    for place, (i, agent) in enumerate(players):
        weights = np.ascontiguousarray(window.weights[:, place])
        post.ask(i, "join_game", agent.join_game, Invitation(targets, weights, start, any(varying)))
    server = ServerPart(T, p)
    for back in range(T):
        terms = [post.ask(i, "backward", agent.backward, back) for i, agent in players]
        coupling, offset, tensor = (np.add.reduce(parts) for parts in zip(*terms, strict=True))
        carry, shift, condition = server.solve(back, coupling, offset)
        if not condition < np.inf:
            raise SingularGame(T - 1 - back, condition)
        for i, agent in players:
            post.ask(i, "receive", agent.receive, back, BackwardSums(carry, shift, tensor))
    for t in range(T):
        sums = [post.ask(i, "weighted_forecasts", agent.weighted_forecasts, t) for i, agent in players]
        point = server.point(t, np.add.reduce(sums))
        for i, agent in players:
            post.ask(i, "forward", agent.forward, t, point)
    return None, [post.ask(i, "finish_game", agent.finish_game) for i, agent in players]


PLACEMENTS = {"central": play_centrally, "spread": play_spread}
