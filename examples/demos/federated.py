"""Five desks with one private sensor each, in processes of their own: their gain, and what each party sees."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable as Function
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from demos.organisations import Party, SensorOwner, found
from nashcast import validation as check
from nashcast.agents.agent import Agent
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.datasets import Stream, ecb_desks
from nashcast.encoders import Callable
from nashcast.errors import NashcastError
from nashcast.evaluation.showcase import MIXTURE, PERSISTENCE, POOLED, TOGETHER
from nashcast.federation.federation import Federation
from nashcast.remote.broker.running.server import EmbeddedBroker
from nashcast.remote.hub.hub import Hub
from nashcast.runs.single_run import error_of

STEPS = 300
# Seconds for all agents to connect, and for one answer: more than a busy machine needs.
START_TIMEOUT_S, DEADLINE_S = 120.0, 30.0
MASKED = "masked terms"


class Seen(NamedTuple):
    """What the other parties see of one owner. numbers: kinds of numbers that left it, by its own log.

    bytes: sent in all.   by_hub, by_owners: in words.
    """

    numbers: list[str]
    bytes: int
    by_hub: str
    by_owners: str


class Federated(NamedTuple):
    """errors: mean squared errors of persistence, each owner alone, the masked federation, and three references.

    absences: steps in which an owner gave no answer.   traffic: rounds, and bytes down from and up to the hub.
    """

    stream: str
    steps: int
    owners: list[str]
    errors: dict[str, float]
    seen: dict[str, Seen]
    absences: dict[str, int]
    traffic: dict[str, int]
    seconds: float


ELSEWHERE = "together, masked"


def federate(
    stream: Stream,
    seed: int = 2024,
    say: Function[[str], None] = lambda line: None,
    progress: Function[[int, int], None] = lambda done, total: None,
) -> Federated:
    """Run the federation in a temporary folder, then the references in this process."""
    began, steps = time.monotonic(), len(stream.targets)
    owners = [
        SensorOwner(name.lower(), stream.inputs[:, place].tolist()) for place, name in enumerate(stream.input_names)
    ]
    clock = np.arange(steps, dtype=float)[:, None]  # the only input that the hub has and sends
    with _running(owners, stream, seed) as (hub, parties):
        say(f"hub of {hub.name} at {hub.url}, TLS on both sides; starting {', '.join(hub.names)}")
        while missing := hub.wait_for_agents(1.0):
            late = time.monotonic() - began > START_TIMEOUT_S
            failed = missing if late else [name for name in missing if parties[name].has_ended]
            if failed:
                raise NashcastError("; ".join(f"{name} did not connect: {parties[name].said_last}" for name in failed))
        say("all agents are connected")
        forecasts = []
        for t, (x, y) in enumerate(zip(clock, stream.targets, strict=True)):
            progress(t, steps)
            hub.federation.predict_one(x)
            assert hub.federation.present is not None
            forecasts.append(hub.federation.present.forecast[0])
            hub.federation.learn_one(x, y)
        absences, traffic = dict(hub.federation.health["absences"]), dict(hub.traffic)
        for party in parties.values():
            party.stop()
        seen = {name: _seen(party, len(owners)) for name, party in parties.items()}
    say("and for comparison, in one process: each owner alone, their mixture, together without masks, inputs pooled")
    errors = {PERSISTENCE: stream.persistence_mse, ELSEWHERE: error_of(np.array(forecasts), stream.targets)}
    cases = list(_references(stream, owners))
    for done, (name, federation) in enumerate(cases):
        progress(done, len(cases))
        errors[name] = error_of(federation.replay(clock, stream.targets).forecasts, stream.targets)
    return Federated(
        stream.name, steps, [owner.name for owner in owners], errors, seen, absences, traffic, time.monotonic() - began
    )


def _references(stream: Stream, owners: list[SensorOwner]) -> Iterator[tuple[str, Federation]]:
    def agent(name: str, values: np.ndarray) -> Agent:
        return Agent(Callable(lambda x: values[int(x[0])], features=values.shape[1]), name=name)

    agents = [agent(owner.name, np.array(owner.readings)[:, None]) for owner in owners]
    for each in agents:
        yield f"{each.name} alone", Federation([each], start=stream.start, coverages=())
    yield MIXTURE, Federation(agents, game=None, start=stream.start, coverages=())
    yield TOGETHER, Federation(agents, start=stream.start, coverages=())
    yield POOLED, Federation([agent("pooled", stream.inputs)], start=stream.start, coverages=())


@contextmanager
def _running(owners: list[SensorOwner], stream: Stream, seed: int) -> Iterator[tuple[Hub, dict[str, Party]]]:
    """Folder, broker, hub and agents; each stops before the parts it depends on."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nashcast-demo-")))
        folder = found(place, "desks", owners)
        broker = stack.enter_context(EmbeddedBroker(folder, tls=place / "operator" / "certs"))
        hub = stack.enter_context(
            Hub(folder, url=broker.url, y_dim=1, start=stream.start, seed=seed, deadline=DEADLINE_S, state=False)
        )
        parties = {}
        for owner in owners:
            parties[owner.name] = party = Party(owner, place / owner.name, hub.url, seed)
            stack.callback(party.stop)
            party.start()
        yield hub, parties


def _seen(party: Party, agents: int) -> Seen:
    lines = party.log.read_text().splitlines()
    numbers = {
        MASKED if line.split("; ")[0].endswith("masked)") else line.split(": ", 1)[1].split("; ")[0]
        for line in lines
        if "(" in line
    }
    by_hub = f"sums over {agents} agents" if numbers == {MASKED} else "see its log"
    return Seen(sorted(numbers), sum(int(line.split()[-2]) for line in lines), by_hub, "nothing")


def run(chosen: argparse.Namespace) -> None:
    steps = check.integer("--steps", STEPS if chosen.steps is None else chosen.steps, min=100)
    logging.getLogger("nashcast.remote").setLevel(logging.ERROR)  # the demo prints its own lines
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())

    def say(line: str) -> None:
        if not chosen.json:
            progress.clear()
            print(line, file=sys.stderr, flush=True)

    try:
        shown = federate(ecb_desks(steps=steps), chosen.seed, say, lambda done, total: progress("steps", done, total))
    finally:
        progress.clear()
    if chosen.json:
        print_json({**shown._asdict(), "seen": {name: seen._asdict() for name, seen in shown.seen.items()}})
    else:
        print(page(shown))


def page(shown: Federated) -> str:
    base, together = shown.errors[PERSISTENCE], shown.errors[ELSEWHERE]
    lines = [
        f"\n{shown.stream}, {shown.steps} days: five desks, each an agent in a process of its own.",
        "Each has one currency in a file that no other party reads. Errors are divided by that of persistence.\n",
    ]
    lines.append(
        f"  {'owner':8}{'alone':>7}{'together':>10}{'gain':>8}{'bytes sent':>12}"
        f"  {'the hub sees of it':22}{'other owners see of it'}"
    )
    for name in shown.owners:
        alone, seen = shown.errors[f"{name} alone"], shown.seen[name]
        lines.append(
            f"  {name:8}{alone / base:7.3f}{together / base:10.3f}{1 - together / alone:8.1%}{seen.bytes:12,}"
            f"  {seen.by_hub:22}{seen.by_owners}"
        )
    lines.append("")
    for name, note in (
        (ELSEWHERE, "five processes; the hub sees sums only"),
        (TOGETHER, "one process; forecasts and terms of the agents are seen"),
        (MIXTURE, "forecasts are mixed, nothing is learnt together"),
        (POOLED, "one agent that sees all inputs"),
        (PERSISTENCE, ""),
    ):
        lines.append(f"  {name:24}{shown.errors[name] / base:8.3f}  {note}".rstrip())
    rounds, down, up = (shown.traffic[name] for name in ("turns", "down", "up"))
    lines.append(f"\n{rounds} rounds, {down:,} bytes down in all and {up:,} up; {shown.seconds:.0f} s.")
    best = min(shown.errors[f"{name} alone"] for name in shown.owners)
    lines.append(
        f"Together their error is {1 - together / best:.0%} below that of the best desk alone, "
        "and no party saw another's sensor or forecast."
    )
    return "\n".join(lines)
