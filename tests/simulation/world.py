"""One simulation: a federation that is disturbed as its seed says, and what must hold all the same."""

from __future__ import annotations

import logging
from contextvars import Context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from nashcast.remote.hub.hub import Hub
from nashcast.remote.owner.runner import Runner
from simulation.federation import AGENTS, GAME, NAMES, STEPS, Absences, expected, make_agent, stream
from simulation.network import Broker, Client, Weather
from simulation.patches import simulated
from simulation.scheduler import PROCESS, Crashed, HubLoop, Process, Scheduler

HUB, FEDERATION = "hub", "tide"
# The last rows are undisturbed, after so many seconds without any: all agents must be there in the very last one.
QUIET, SETTLE_S = 2, 20.0
# The chance that the hub is killed between a forecast and its label: that is where it spends its time.
BETWEEN = 0.06
# Seconds an agent may take for an answer, and a hub waits for agents when it begins.
DEADLINE_S, WAIT_S = 2.0, 20.0


class Outcome(NamedTuple):
    """What was counted: crashes, cuts, torn writes, absences, rows with none; and the scheduler's callbacks."""

    crashes: int
    cuts: int
    torn: int
    absences: int
    clear: int
    callbacks: int
    digest: bytes


class World:
    """folder: of the enrolled federation.   work: an empty one, for state files."""

    def __init__(self, seed: int, folder: Path, work: Path, trace=None):
        self.seed, self._folder, self._work, self._trace = seed, folder, work, trace
        self.rng = Random(seed)
        self.scheduler = Scheduler()
        self.broker = Broker(self.scheduler, Random(seed + 1))
        self.stream = seed % 4
        self.forecasts = np.full(STEPS, np.nan)
        self.absent: list[dict[int, str]] = [{} for _ in range(STEPS)]
        self.recalls: dict[int, frozenset[int]] = {}
        self._collected: list[tuple[str, Any]] = []
        self.processes: dict[str, Process] = {}
        self.hub: Hub | None = None
        self._forgets = self.rng.random() < 0.2  # owners without state files
        self.crashes = self.cuts = self.torn = 0
        kind = self.rng.random()
        rng = self.rng
        self._bad = Weather() if kind < 0.3 else Weather(slow=0.1 * rng.random()) if kind < 0.5 else Weather(
            rng.choice([0.0, 0.1, 0.25]), rng.choice([0.0, 0.2]), rng.choice([0.0, 0.3]), rng.choice([0.0, 0.1])
        )  # fmt: skip

    def say(self, words: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.scheduler.time():9.4f}  {words}")

    def run(self) -> Outcome:
        log = logging.getLogger("nashcast.remote")
        before = log.level
        log.setLevel(logging.DEBUG if self._trace else logging.CRITICAL)
        try:
            return self._run()
        finally:
            log.setLevel(before)

    def _run(self) -> Outcome:
        token = PROCESS.set(None)
        with simulated(self.scheduler, self.broker, Random(self.seed + 2), self._collected):
            try:
                for i in range(AGENTS):
                    self._start_owner(i)
                self._play()
                return self._outcome()
            finally:
                PROCESS.reset(token)
                for process in self.processes.values():
                    process.crash_in = process.tear = None
                self._end()

    def _end(self) -> None:
        for process in self.processes.values():
            process.kill()
        self.scheduler.close()

    def _play(self) -> None:
        """The hub's program: as `nashcast hub` drives a stream, and starts again when it was killed."""
        X = stream(self.stream).inputs
        at, due = 0, 0
        while True:
            try:
                hub = self._start_hub()
                at_now = hub.federation.step
                assert at_now in (at, due) or at_now == at == 0, f"the hub goes on at step {at_now}, not {at} or {due}"
                at = at_now
                if at:
                    self._learn_late(hub, at - 1)  # it may have been killed before
                while (at := hub.federation.step) < STEPS:
                    self._disturb(at)
                    if at == STEPS - QUIET:
                        self.scheduler.sleep(SETTLE_S)
                    self._predict(hub, at, X[at])
                    self.scheduler.sleep(self.rng.choice([0.0, 0.001, 0.01]))
                    if at < STEPS - QUIET and self.rng.random() < BETWEEN:
                        self.processes[HUB].kill()
                    if not self.processes[HUB].alive:
                        raise Crashed
                    due = at + 1
                    hub.federation.learn_one(X[at], stream(self.stream).label(at))
                    self.say(f"step {at} is learnt")
                    self._learn_late(hub, at)
                return
            except Crashed:
                self.crashes += 1
                self.say("the hub is killed")
                PROCESS.set(None)
                self.hub = None
                self.scheduler.sleep(self.rng.choice([0.001, 0.1, 3.0]))

    def _predict(self, hub: Hub, at: int, x: np.ndarray) -> None:
        self._collected.clear()
        forecast = hub.federation.predict_one(x)
        asked = [found for ask, found in self._collected if ask == "forecast"]
        assert len(asked) == 1, f"step {at} was asked for {len(asked)} times"
        self.forecasts[at], self.absent[at] = forecast, dict(asked[0].absent)
        self.say(f"step {at}: {forecast:.6f}, absent {self.absent[at]}")

    def _learn_late(self, hub: Hub, at: int) -> None:
        late = stream(self.stream).late_after(at)
        if late is None:
            return
        self._collected.clear()
        try:
            hub.federation.learn_late(late, float(stream(self.stream).targets[late]))
        finally:  # it may be killed when the label is learnt already
            for ask, found in self._collected:
                if ask == "recall":
                    self.recalls[late] = frozenset(found.absent)
                    self.say(f"late label of step {late}, absent {found.absent}")

    def _start_hub(self) -> Hub:
        process = self.processes[HUB] = HubLoop.process = Process(HUB)
        PROCESS.set(process)
        self.say("the hub starts")
        state = self._work / "hub.state"
        options: dict[str, Any] = {"deadline": DEADLINE_S, "start": 0.0, "game": GAME}
        self.hub = Hub(self._folder, url="nats://simulated:4222", state=state, **options)
        self.hub.wait_for_agents(WAIT_S)
        return self.hub

    def _start_owner(self, place: int) -> None:
        name = NAMES[place]
        process = self.processes[name] = Process(name)
        process.on_end.append(lambda: self._owner_ended(place))
        state = None if self._forgets else self._work / f"{name}.state"
        self.say(f"{name} starts")

        def start() -> None:
            runner = Runner(make_agent(place), f"nats://simulated:4222/{FEDERATION}", key="", state=state)
            self.scheduler.create_task(runner.run())

        process.context.copy().run(start)

    def _owner_ended(self, place: int) -> None:
        self.crashes += 1
        self.say(f"{NAMES[place]} is killed")
        self.scheduler.call_later(self.rng.choice([0.001, 0.05, 3.0]), self._start_owner, place, context=Context())

    def _disturb(self, at: int) -> None:
        """What happens in the next row, or soon."""
        rng, quiet = self.rng, at >= STEPS - QUIET
        self.broker.weather = Weather() if quiet else self._bad
        if quiet:
            for process in self.processes.values():
                process.crash_in = process.tear = None
            return
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            name = rng.choice([HUB, HUB, *NAMES])
            process, kind = self.processes[name], rng.random()
            if kind < 0.5:
                process.crash_in = rng.randrange(80 if name == HUB else 20)
                self.say(f"{name} is to be killed after {process.crash_in} callbacks")
            elif kind < 0.7:
                process.tear = rng.random()
                self.torn += 1
                self.say(f"{name} is to be killed in a write")
            else:
                seconds, noticed = rng.choice([0.001, 0.05, 1.0, 5.0]), rng.random() < 0.7
                who = (*NAMES, HUB) if rng.random() < 0.2 else (name,)  # all: the broker restarts
                when = rng.choice([0.0, 0.001, 0.005])
                self.scheduler.call_later(when, self._cut, who, seconds, noticed, context=Context())

    def _cut(self, names: tuple[str, ...], seconds: float, noticed: bool) -> None:
        self.cuts += 1
        self.say(f"{', '.join(names)}: {'cut off' if noticed else 'silently cut off'} for {seconds} s")
        for client in list(self.broker.clients):
            if isinstance(client, Client) and client.name in names:
                client.cut(seconds, noticed)

    def _outcome(self) -> Outcome:
        absences = Absences(tuple(frozenset(absent) for absent in self.absent), tuple(sorted(self.recalls.items())))
        wanted = expected(self.stream, absences)
        error = np.abs(self.forecasts - wanted) / np.maximum(1.0, np.abs(wanted))
        wrong = np.flatnonzero(error > 1e-12)
        assert not len(wrong), f"from step {wrong[0]} on forecasts differ, by up to {error.max():.3g}"
        assert not self.absent[-1], f"absent although nothing was disturbed: {self.absent[-1]}"
        missing = sum(map(len, self.absent))
        clear = sum(not absent for absent in self.absent)
        return Outcome(self.crashes, self.cuts, self.torn, missing, clear, self.scheduler.ran, self.forecasts.tobytes())
