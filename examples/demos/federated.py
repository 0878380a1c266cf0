"""Three organisations, a hub and a broker on one machine: one agent is killed on the way, and who has seen what."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from demos.organisations import Organisation, Party, found, members_table
from nashcast import validation as check
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Answer
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.datasets import Stream, concept_shift
from nashcast.errors import NashcastError
from nashcast.federation.lookback.transport import Message
from nashcast.federation.paper import LookbackGame, paper_federation
from nashcast.remote.broker.running.server import EmbeddedBroker
from nashcast.remote.hub.lookback.hub import Hub
from nashcast.remote.owner.warm_up import warm_up
from nashcast.runs.single_run import error_of, persistence_error

STEPS = 200
GAME = LookbackGame(lookback=3, placement="spread")
# All play: a spread game asks for sums only, whatever more an owner would let out.
MEMBERS = (
    Organisation("rain-lab", "random_features", {"features": 6, "noise": 0.1}, "sums"),
    Organisation("river-office", "echo_state", {"features": 6, "noise": 0.1}, "moments"),
    Organisation("tide-desk", "linear", {}, "features"),
)
# The one with a memory: it has to see what it missed before it can go on.
KILLED = "river-office"
# What is an agent's own: whatever of it no owner's log names has stayed at home.
PRIVATE = ("features", "means", "covariance", "decoder", "ridge", "decay")
# Seconds: for agents to come, at first and after a crash; and the least between two steps while one is away.
PATIENCE, PACE = 120.0, 0.02
# Seconds for a turn, more than a busy machine needs: the one that sits out here is the one that was killed.
DEADLINE = 30.0


class Shown(NamedTuple):
    """errors: mean squared ones, of the federation, of persistence and of each agent's forecasts in it.

    sat_out: steps by agent.   seen: bytes of numbers by kind, for each party and each other.   left: bytes of messages
    and what their owners' logs name, by agent.   stayed: what is in none of those logs.   killed: who, at which step,
    when it was back, and seconds in between.   difference: the greatest from one process with the same absences.
    """

    stream: str
    steps: int
    members: list[dict]
    errors: dict[str, float]
    weights: dict[str, float]
    sat_out: dict[str, list[int]]
    killed: dict[str, Any]
    seen: list[dict]
    left: dict[str, dict]
    stayed: list[str]
    difference: float
    seconds: float


def show(
    stream: Stream, seed: int = 2024, say: Callable[[str], None] = lambda line: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Shown:  # fmt: skip
    """The whole show, in a folder that is gone afterwards."""
    began, steps = time.monotonic(), len(stream.targets)
    with _stage(MEMBERS, stream, seed) as (hub, parties):
        say(f"hub of {hub.name} at {hub.url}, TLS on both sides; starting {', '.join(hub.names)}")
        _wait_for(hub, parties, hub.names)
        say("all are here")
        play = _Play(hub, parties[KILLED], stream, say)
        for t in range(steps):
            progress(t, steps)
            if t == steps // 3:
                play.kill(t)
            if t == 3 * steps // 4 and play.back_at is None:
                _wait_for(hub, parties, [KILLED])  # a slow machine: the rest is for who has come back
            play.step(t)
        progress(steps, steps)
        weights, transcript = hub.federation.weights, hub.federation.transcript
        for party in parties.values():
            party.stop()
        left = {name: party.sent() for name, party in parties.items()}
    forecasts, agents = np.array(play.forecasts), np.array(play.agents)
    names = [member.name for member in MEMBERS]
    errors = {"federation": error_of(forecasts, stream.targets), "persistence": persistence_error(stream)}
    errors |= {name: error_of(agents[:, i], stream.targets) for i, name in enumerate(names)}
    alone = _in_one_process(stream, seed, play.sat_out)
    named = set().union(*(set(found) for found, _ in left.values()))
    return Shown(
        stream.name, steps, [member._asdict() for member in MEMBERS], errors, weights, play.sat_out,
        play.recovery(), who_saw_what(transcript, names),
        {name: {"bytes": size, "named": sorted(found)} for name, (found, size) in left.items()},
        [name for name in PRIVATE if name not in named],
        float(np.abs(forecasts - alone).max()), time.monotonic() - began,
    )  # fmt: skip


@contextmanager
def _stage(members: Sequence[Organisation], stream: Stream, seed: int) -> Iterator[tuple[Hub, dict[str, Party]]]:
    """Folder, broker, hub and agents, each ended before what it needs."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nashcast-demo-")))
        folder = found(place, "demo", members)
        broker = stack.enter_context(EmbeddedBroker(folder, tls=place / "operator" / "certs"))
        warm_up()
        hub = stack.enter_context(Hub(
            folder, url=broker.url, game=GAME, y_dim=stream.targets.shape[1], start=stream.start, seed=seed,
            transcript=True, deadline=DEADLINE,
        ))  # fmt: skip
        parties = {}
        for member in members:
            parties[member.name] = party = Party(member, place / member.name, hub.url, seed)
            stack.callback(party.stop)
            party.start()
        yield hub, parties


def _wait_for(hub: Hub, parties: dict[str, Party], names: Sequence[str]) -> None:
    missing = hub.wait_for_agents(PATIENCE, names)
    if missing:
        said = "; ".join(f"{name} says: {parties[name].said_last}" for name in missing)
        raise NashcastError(f"no word of {', '.join(missing)} within {PATIENCE:g} s. {said}.")


class _Play:
    """The steps, and what becomes of the one that is killed."""

    def __init__(self, hub: Hub, victim: Party, stream: Stream, say: Callable[[str], None]):
        self._hub, self._victim, self._stream, self._say = hub, victim, stream, say
        self.forecasts, self.agents = [], []
        self.sat_out: dict[str, list[int]] = {name: [] for name in hub.names}
        self._killed_at: tuple[int, float] | None = None
        self.back_at: tuple[int, float] | None = None

    def kill(self, t: int) -> None:
        self._victim.kill()
        self._killed_at = t, time.monotonic()
        self._say(f"step {t}: {self._victim.member.name} killed (kill -9) and started again; the others go on")
        self._victim.start()

    def step(self, t: int) -> None:
        began, hub = time.monotonic(), self._hub
        hub.federation.predict_one(self._stream.inputs[t])
        step = hub.federation.present
        assert step is not None
        hub.federation.learn_one(self._stream.inputs[t], self._stream.targets[t])
        self.forecasts.append(step.forecast[0])
        self.agents.append(step.own)
        for i in step.absent:
            self.sat_out[hub.names[i]].append(t)
        if self._killed_at is None or self.back_at is not None:
            return
        if hub.names.index(self._victim.member.name) not in step.absent:
            self.back_at = t, time.monotonic()
            seconds = self.back_at[1] - self._killed_at[1]
            self._say(f"step {t}: {self._victim.member.name} is back after {seconds:.1f} s, and has caught up")
        else:
            time.sleep(max(PACE - (time.monotonic() - began), 0.0))

    def recovery(self) -> dict[str, Any]:
        killed, back = self._killed_at, self.back_at
        assert killed is not None
        return {
            "agent": self._victim.member.name, "killed_at_step": killed[0],
            "back_at_step": None if back is None else back[0],
            "seconds": None if back is None else back[1] - killed[1],
        }  # fmt: skip


def who_saw_what(transcript: Sequence[Message], names: Sequence[str]) -> list[dict]:
    """For every party and every other: bytes of numbers by kind of message, from the hub's list of all messages."""
    counted: dict[tuple[str, str], Counter[str]] = {
        (one, other): Counter() for one in ("server", *names) for other in ("server", *names) if one != other
    }
    for message in transcript:
        counted[message.receiver, message.sender][message.kind] += message.bytes
    called = {"server": "hub"}
    return [
        {"party": called.get(one, one), "of": called.get(other, other), "bytes": kinds.total(), "kinds": dict(kinds)}
        for (one, other), kinds in counted.items()
    ]


class _SitsOut:
    """An agent in this process that sits out given steps, and whose encoder sees their inputs all the same."""

    def __init__(self, agent: PaperAgent, steps: set[int], inputs: np.ndarray):
        self._agent, self._steps, self._inputs = agent, steps, inputs

    def forecast(self, x: np.ndarray) -> Answer:
        return Answer(None, "away") if self._agent.step in self._steps else self._agent.forecast(x)

    def learn(self, target: np.ndarray | None) -> None:
        if self._agent.step in self._steps:
            self._agent.sit_out()
            self._agent.see(self._inputs[self._agent.step])
        self._agent.learn(target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)


def _in_one_process(stream: Stream, seed: int, sat_out: dict[str, list[int]]) -> np.ndarray:
    agents: list[Any] = [_SitsOut(member.agent(seed), set(sat_out[member.name]), stream.inputs) for member in MEMBERS]
    whole = paper_federation(agents, game=GAME, y_dim=stream.targets.shape[1], start=stream.start, seed=seed)
    return whole.replay(stream.inputs, stream.targets).forecasts


def run(chosen: argparse.Namespace) -> None:
    steps = check.integer("--steps", STEPS if chosen.steps is None else chosen.steps, min=20)
    logging.getLogger("nashcast.remote").setLevel(logging.ERROR)  # what happens is told below
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())

    def say(line: str) -> None:
        if not chosen.json:
            progress.clear()
            print(line, file=sys.stderr, flush=True)

    try:
        shown = show(
            concept_shift(steps, target=1), chosen.seed, say, lambda done, total: progress("steps", done, total)
        )
    finally:
        progress.clear()
    if chosen.json:
        print_json(shown._asdict())
    else:
        print(page(shown))


def page(shown) -> str:
    killed = shown.killed
    lines = [
        f"\n{shown.stream}, {shown.steps} steps, a spread game at each; everybody in a process of its own",
        *members_table(shown),
    ]
    for name, steps in shown.sat_out.items():
        if steps:
            lines.append(f"  {name} sat out: {spans(steps)}")
    back = "did not come back" if killed["seconds"] is None else f"was back after {killed['seconds']:.1f} s"
    lines.append(f"  {killed['agent']} was killed at step {killed['killed_at_step']} and {back}")
    lines.append(f"  greatest difference from one process with the same absences: {shown.difference:.0e}")
    lines.append("\nWhat each has seen of the others, in bytes of numbers")
    for row in shown.seen:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in row["kinds"].items()) or "nothing"
        lines.append(f"  {row['party']:14}of {row['of']:14}{row['bytes']:9,}  {kinds}")
    lines.append("\nWhat has left each agent, by its owner's log")
    for name, left in shown.left.items():
        lines.append(f"  {name:14}{left['bytes']:9,} bytes in all: {', '.join(left['named'])}")
    lines.append(f"  nobody's: {', '.join(shown.stayed)}")
    return "\n".join(lines)


def spans(steps: list[int]) -> str:
    """Whole numbers in order, neighbours together.

    >>> spans([3, 4, 5, 9])
    '3–5, 9'
    """
    found: list[list[int]] = []
    for step in steps:
        if found and step == found[-1][1] + 1:
            found[-1][1] = step
        else:
            found.append([step, step])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in found)
