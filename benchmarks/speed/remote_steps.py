"""How long a step takes with agents in other processes, beside the bare round trip over the same connections."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np

from nashcast import seeds
from nashcast.agents.agent import Agent
from nashcast.errors import NashcastError
from nashcast.federation.federation import Federation
from nashcast.federation.paper import LookbackGame, paper_federation
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.running.server import EmbeddedBroker
from nashcast.remote.hub.hub import Hub
from nashcast.remote.owner.warm_up import warm_up
from nashcast.remote.wire.subjects import ask_subject
from speed.agent_pool import RAW, AgentPool, AgentSpec

LOOKBACK, SHARES = 3, {"joint": "forecasts", "central": "features", "spread": "sums"}
TRUSTED, FEWEST_MASKED = "trusted.toml", 3
# Steps and bare rounds are measured by turns, so many each: what else the machine does falls on both.
BLOCK, UNMEASURED = 10, 20
# How much forecasts may differ from those of one process.
EQUAL = 1e-12
# One of each family, with what is random and what is not, with memory and without.
FAMILIES = (
    ("random_features", {"features": 3, "noise": 0.3}), ("echo_state", {"features": 2, "noise": 0.2, "samples": 20}),
    ("linear", {}), ("linear", {"lags": 2}), ("echo_state", {"features": 3, "noise": 0.0, "samples": 10}),
)  # fmt: skip


class Case(NamedTuple):
    """states: whether hub and agents keep their state in files."""

    agents: int
    game: str
    states: bool = False
    features: int = 3
    steps: int = 300
    masked: bool = False

    @property
    def aim(self) -> float:
        """The most that a step should take, in bare round trips."""
        if self.game == "joint":
            return (2.0 if self.agents < 20 else 1.2) * (1.5 if self.masked else 1.0)
        return 2 if self.game == "central" else 7


def speed_cases(sizes: Sequence[int], steps: int) -> list[Case]:
    return [
        Case(agents, game, states, steps=steps, masked=masked)
        for agents in sizes
        for game in SHARES
        for states, masked in ((False, False), (True, False), (False, True))
        if not masked or (game == "joint" and agents >= FEWEST_MASKED)
    ]


def traffic_cases(steps: int = 20) -> list[Case]:
    return [Case(5, game, False, features, steps) for game in SHARES for features in (2, 20, 100)]


def random_feature_agents(case: Case, folder: Path) -> list[AgentSpec]:
    return [
        AgentSpec(
            f"agent-{i}", "random_features", {"features": case.features, "noise": 0.1, "seed": i},
            "joint" if case.masked else SHARES[case.game],
            state=str(folder / f"agent-{i}.state") if case.states else None, game=case.game,
            trusted=str(folder / TRUSTED) if case.masked else None,
        )
        for i in range(case.agents)
    ]  # fmt: skip


def agents_of_all_families(game: str) -> list[AgentSpec]:
    return [
        AgentSpec(
            f"agent-{i}", family, options | ({"seed": i} if "features" in options else {}), SHARES[game],
            ridge=0.8 + i / 7, window=3 + i % 3, game=game,
        )
        for i, (family, options) in enumerate(FAMILIES)
    ]  # fmt: skip


def stream(steps: int, x_dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = seeds.generator(2024, "remote", steps, x_dim)
    return 0.5 * rng.standard_normal((steps, x_dim)), np.cumsum(0.3 * rng.standard_normal((steps, 1)), axis=0)


class Bench:
    """A folder, a broker with TLS on both sides and a pool, for as many agents as any case has."""

    def __init__(self, folder: Path, broker: EmbeddedBroker, pool: AgentPool):
        self.folder, self._broker, self._pool = folder, broker, pool

    @contextmanager
    def hub(self, agents: list[AgentSpec], game: str, states: bool) -> Iterator[MeasuredHub]:
        """With all its agents there."""
        names, state = [agent.name for agent in agents], self.folder / "hub.state" if states else False
        settings: dict[str, Any] = {} if game == "joint" else {"game": LookbackGame(lookback=LOOKBACK, placement=game)}
        for path in self.folder.glob("*.state"):
            path.unlink()
        self._pool.start(f"{self._broker.url}/bench", self.folder, agents)
        try:
            with MeasuredHub(
                self.folder, agents=names, url=self._broker.url, state=state, deadline=30.0,
                start=0.0, seed=3, **settings,
            ) as hub:  # fmt: skip
                missing = hub.wait_for_agents(60.0)
                if missing:
                    raise NashcastError(f"no word of {', '.join(missing)} within 60 s.")
                yield hub
        finally:
            self._pool.stop()


@contextmanager
def bench(agents: int) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="nashcast-bench-") as place:
        folder = Path(place) / "bench"
        enrolment.create(folder, "bench")
        certs.make(folder / "certs")
        for i in range(agents):
            enrolment.add(folder, f"agent-{i}", make_seed(folder / f"agent-{i}.seed"))
            certs.make_agent(folder / "certs", f"agent-{i}")
        keys = "\n".join(f'{name} = "{key}"' for name, key in enrolment.read(folder).agents.items())
        (folder / TRUSTED).write_text(f"[agents]\n{keys}\n")
        with EmbeddedBroker(folder, tls=folder / "certs") as broker, AgentPool() as pool:
            warm_up()
            yield Bench(folder, broker, pool)


class MeasuredHub(Hub):
    """Also sends bare requests over its connection, and knows what has gone through it."""

    def counted(self) -> np.ndarray:
        """Messages out and in, bytes out and in."""
        stats = self._line.client.stats
        return np.array([stats[name] for name in ("out_msgs", "in_msgs", "out_bytes", "in_bytes")])

    def bare_rounds(self, rounds: int, down: int, up: int) -> list[float]:
        """Seconds of rounds in which every agent is sent `down` bytes with nats-py's request and answers `up`."""
        return self._line.run(self._bare_rounds(rounds, (RAW + b"%d " % up).ljust(down, b".")), None)

    async def _bare_rounds(self, rounds: int, request: bytes) -> list[float]:
        client, times = self._line.client, []
        subjects = [ask_subject(self.name, name) for name in self.names]
        for _ in range(rounds):
            began = perf_counter()
            await asyncio.gather(*[client.request(subject, request, timeout=30.0) for subject in subjects])
            times.append(perf_counter() - began)
        return times


def rows(
    parts: Sequence[str], sizes: Sequence[int], steps: int, equal_steps: int, game: str | None = None
) -> Iterator[tuple[str, dict]]:
    """The rows of each table, "equality", "speed" and "traffic", as they are measured. game: only of this one."""
    games = list(SHARES) if game is None else [game]
    with bench(max(5, *sizes)) as place:
        for part in parts:
            if part == "equality":
                measured = (measure_equality(place, game, equal_steps) for game in games)
            elif part == "speed":
                measured = (measure_speed(place, case) for case in speed_cases(sizes, steps) if case.game in games)
            else:
                measured = (measure_traffic(place, case) for case in traffic_cases() if case.game in games)
            for row in measured:
                yield part, row


def measure_speed(place: Bench, case: Case) -> dict:
    """Steps and bare rounds by turns."""
    X, Y = stream(UNMEASURED + case.steps)
    with place.hub(random_feature_agents(case, place.folder), case.game, case.states) as hub:
        run(hub, X[:LOOKBACK], Y[:LOOKBACK])
        before = hub.traffic
        run(hub, X[LOOKBACK:UNMEASURED], Y[LOOKBACK:UNMEASURED])
        turns, down, up = (hub.traffic[key] - before[key] for key in ("turns", "down", "up"))
        measured = UNMEASURED - LOOKBACK
        # One message to all agents of a joint game, one to each of another.
        sizes = round(down / turns / (1 if case.game == "joint" else case.agents)), round(up / turns / case.agents)
        steps, rounds = [], []
        for t in range(UNMEASURED, len(X), BLOCK):
            steps += run(hub, X[t : t + BLOCK], Y[t : t + BLOCK])[1]
            # The first may have to wait for what a step left to be done.
            rounds += hub.bare_rounds(BLOCK + 1, *sizes)[1:]
        absences = hub.federation.health["absences"]
    if absences:
        raise NashcastError(f"agents were away while they were measured: {absences}.")
    step, bare = (1e3 * np.percentile(times, [50, 99]) for times in (steps, rounds))
    return {
        "agents": case.agents, "game": case.game, "states": case.states, "steps": case.steps,
        "masked": case.masked, "rounds": turns / measured, "step_ms": step.tolist(), "bare_ms": bare.tolist(),
        "ratio": (step / bare).tolist(), "aim": case.aim, "bytes_up": up / measured / case.agents,
        "bytes_down": sizes[0] * turns / measured,
    }  # fmt: skip


def measure_traffic(place: Bench, case: Case) -> dict:
    """Messages and their bytes, counted at the hub's connection; the input's way into the durable stream is with it."""
    X, Y = stream(UNMEASURED + case.steps)
    with place.hub(random_feature_agents(case, place.folder), case.game, case.states) as hub:
        run(hub, X[:UNMEASURED], Y[:UNMEASURED])
        before, turns = hub.counted(), hub.traffic
        run(hub, X[UNMEASURED:], Y[UNMEASURED:])
        counted = (hub.counted() - before) / case.steps
        bytes_down, bytes_up = ((hub.traffic[key] - turns[key]) / case.steps for key in ("down", "up"))
    return {
        "agents": case.agents, "game": case.game, "features": case.features, "steps": case.steps,
        "messages": counted[:2].round(2).tolist(), "bytes": counted[2:].round().tolist(),
        "turn_bytes": [round(bytes_down), round(bytes_up)],
    }  # fmt: skip


def measure_equality(place: Bench, game: str, steps: int = 2000) -> dict:
    """Five agents of all families elsewhere and in one process: the greatest difference of any forecast."""
    X, Y = stream(steps)
    agents = agents_of_all_families(game)
    with place.hub(agents, game, states=True) as hub:
        forecasts, times = run(hub, X, Y)
        health = hub.federation.health
    whole = in_one_process(agents, game)
    expected = whole.replay(X, Y).forecasts[:, 0]
    difference = float(np.abs(forecasts - expected).max())
    if health["absences"] or not difference <= EQUAL:
        raise NashcastError(f"{game}: differs by {difference:.1e} from one process; absences {health['absences']}.")
    return {
        "agents": len(agents), "game": game, "steps": steps, "games": health["games"],
        "absences": sum(health["absences"].values()), "difference": difference,
        "step_ms": (1e3 * np.percentile(times, [50, 99])).tolist(),
    }  # fmt: skip


def in_one_process(agents: list[AgentSpec], game: str) -> Federation:
    made = [agent.make() for agent in agents]
    if game == "joint":
        return Federation(cast(list[Agent], made), start=0.0, seed=3)
    return paper_federation(made, game=LookbackGame(lookback=LOOKBACK, placement=game), start=0.0, seed=3)


def run(hub: Hub, X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Forecasts, and seconds of each step."""
    forecasts, times = [], []
    for x, y in zip(X, Y, strict=True):
        began = perf_counter()
        forecasts.append(hub.federation.predict_one(x))
        hub.federation.learn_one(x, y)
        times.append(perf_counter() - began)
    return np.array(forecasts), times
