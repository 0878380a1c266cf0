"""The whole stack on one machine: twenty streams in one service, one with agents in processes of their own.

One of these agents dies on the way and comes back; one of the other streams drifts.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from demos.fleet import DRIFTING, PACE_S, SITES, Fleet, drift_told, write_files
from demos.organisations import Organisation, Party, found, members_table
from nashcast import seeds
from nashcast import validation as check
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.client import Client, StreamClient
from nashcast.errors import NashcastError
from nashcast.remote.broker.running.server import EmbeddedBroker
from nashcast.service.extras import need_server
from nashcast.service.http.access.tokens import TokenFile

MEMBERS = (
    Organisation("tide-desk", "linear", {"lags": 4}, "features", window=10),
    Organisation("river-office", "echo_state", {"features": 8, "noise": 0.0}, "moments", window=10),
    Organisation("rain-lab", "random_features", {"features": 8, "noise": 0.0}, "features", window=10),
    Organisation("harbour", "persistence", {}, "moments"),
)
KILLED, STREAM = "river-office", "tide"
FILE = """
name = "tide, four organisations"
seed = {seed}
[serve]
x_dim = 1
y_dim = 1
[federation]
mixing = "boa"
[game]
lookback = 2
[hub]
folder = {folder}
broker = {broker}
certs = {certs}
wait = {wait}
"""
# Seconds: between two observations, and for processes to come, at first and after a crash.
PACE, PATIENCE = 0.1, 120.0


class Shown(NamedTuple):
    """errors: mean squared ones, of the federation, of persistence and of each agent while it was there.

    sat_out: steps by agent.   killed: who, at which step, when it was back, and seconds in between.
    covered: share of targets inside their 90 % interval.   stopped: whether it was stopped early.
    streams: how many there are.   drift: which one drifts, from which step, and at which step the service said so.
    """

    steps: int
    members: list[dict]
    errors: dict[str, float]
    weights: dict[str, float]
    sat_out: dict[str, list[int]]
    killed: dict[str, Any]
    covered: float
    streams: int
    drift: dict[str, Any]
    stopped: bool
    seconds: float


def show(
    seconds: float, port: int, seed: int, say: Callable[[str], None], visit: Callable[[str], None],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Shown:  # fmt: skip
    """The whole show, in a folder that is gone afterwards. visit: called with the page's address, token included."""
    began, steps = time.monotonic(), max(20, round(seconds / PACE))
    with _stage(port, seed, say) as (page, client, victim, writer):
        hours = round((seconds + PATIENCE) / PACE_S)
        fleet = Fleet(client.url, writer, seed, hours, drift_after=round(seconds / 4 / PACE_S))
        fleet.begin()
        say(f"the page: {page}")
        visit(page)
        say(f"{DRIFTING} drifts after {seconds / 4:.0f} s")
        client = client.stream(STREAM)
        play = _Play(client, victim, tide(steps + round(PATIENCE / PACE), seed), say)
        stopped = False
        try:
            for t in range(steps):
                progress(t, steps)
                play.step(t, kill=t == steps // 3, revive=t == steps // 2)
            # On a slow machine the agent needs longer: the stream goes on until it is back.
            for t in range(steps, len(play.values)):
                if play.back is not None:
                    break
                play.step(t)
        except KeyboardInterrupt:
            stopped = True
        progress(steps, steps)
        fleet.end()
        rows = list(client.history(0))
        with Client(page.partition("/#")[0], writer) as asking:
            told, count = drift_told(asking), len(asking.streams())
        drift = {"stream": DRIFTING, "from_step": fleet.drifts_at, "told_at_step": told and told["step"]}
    return _summary(rows, play, stopped, time.monotonic() - began, count, drift)


def tide(steps: int, seed: int) -> np.ndarray:
    """Tides that swell and shift, on a level that drifts."""
    rng, t = seeds.generator(seed, "live show"), np.arange(steps)
    level = (1 + 0.3 * np.sin(t / 170)) * np.sin(t / 9.5) + 0.4 * np.sin(t / 4.3 + t / 300)
    drift = np.cumsum(rng.normal(size=steps)) / 25
    return np.round(level + drift + 0.05 * rng.normal(size=steps), 4)


@contextmanager
def _stage(port: int, seed: int, say: Callable[[str], None]) -> Iterator[tuple[str, Client, Party, str]]:
    """Everything that runs, each ended before what it needs: page, client, the agent that is killed, a token."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nashcast-demo-")))
        folder, certs = found(place, "demo", MEMBERS), place / "operator" / "certs"
        broker = stack.enter_context(EmbeddedBroker(folder, tls=certs))
        parties = {}
        for member in MEMBERS:
            parties[member.name] = party = Party(member, place / member.name, f"{broker.url}/demo", seed)
            stack.callback(party.stop)
            party.start()
        say(f"a broker at {broker.url}, TLS on both sides; agents: {', '.join(parties)}")
        tokens = TokenFile(place / "journal" / "tokens.json")
        secrets = tokens.add("page", ["read"]), tokens.add("stream", ["read", "write"])
        places = {"folder": folder, "broker": broker.url, "certs": certs}
        texts = {name: json.dumps(str(value)) for name, value in places.items()}
        write_files(place / "streams", seed)
        (place / "streams" / f"{STREAM}.toml").write_text(FILE.format(seed=seed, wait=PATIENCE, **texts))
        url = stack.enter_context(_service(place, port))
        client = stack.enter_context(Client(url, secrets[1]))
        until = time.monotonic() + PATIENCE
        while client.stream(STREAM).status()["state"] != "live" and time.monotonic() < until:  # agents are waited for
            time.sleep(0.1)
        say(f"{len(SITES) + 1} streams in one service; agents of {STREAM} are elsewhere")
        yield f"{url}/#token={secrets[0]}", client, parties[KILLED], secrets[1]


@contextmanager
def _service(place: Path, port: int) -> Iterator[str]:
    """`nashcast serve` in a process of its own; where it serves."""
    log = place / "service.log"
    command = [sys.executable, "-m", "nashcast", "serve", place / "streams", "--json", "--port", port]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*map(str, command), "--journal", str(place / "journal")], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            said = log.read_text(errors="replace").strip().splitlines()
            raise NashcastError(f"the service did not start: {said[-1] if said else 'it said nothing'}")
        yield json.loads(line)["url"]
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class _Play:
    """The steps, and what becomes of the one that is killed."""

    def __init__(self, client: StreamClient, victim: Party, values: np.ndarray, say: Callable[[str], None]):
        self.values, self._client, self._victim, self._say = values, client, victim, say
        self._next = time.monotonic()
        self.killed: tuple[int, float] | None = None
        self.back: tuple[int, float] | None = None

    def step(self, t: int, kill: bool = False, revive: bool = False) -> None:
        name = self._victim.member.name
        if kill:
            self._victim.kill()
            self.killed = t, time.monotonic()
            self._say(f"step {t}: {name} killed (kill -9); the others go on")
        if revive:
            self._say(f"step {t}: {name} started again")
            self._victim.start()
        value = self.values[t]
        forecast = self._client.observe(value, value, step=t)
        if self.killed is not None and self.back is None and t > self.killed[0] + 2 and name not in forecast.absent:
            self.back = t, time.monotonic()
            self._say(f"step {t}: {name} is back, {self.back[1] - self.killed[1]:.1f} s after it was killed")
        self._next = max(self._next + PACE, time.monotonic() - PACE)
        time.sleep(max(0.0, self._next - time.monotonic()))


def _summary(
    rows: list[dict], play: _Play, stopped: bool, seconds: float, streams: int, drift: dict[str, Any]
) -> Shown:  # fmt: skip
    names = [member.name for member in MEMBERS]
    scored = [row for row in rows if row["target"] is not None and row["forecast"] is not None]
    target = np.array([row["target"][0] for row in scored])
    errors = {"federation": [row["forecast"][0] for row in scored], "persistence": _column(scored, "persistence")}
    for i, name in enumerate(names):
        errors[name] = [np.nan if name in row["absent"] else row["agents"][i][0] for row in scored]
    bounded = [row for row in scored if row["bounds"][-1][0][0] is not None]
    inside = [row["bounds"][-1][0][0] <= row["target"][0] <= row["bounds"][-1][1][0] for row in bounded]
    killed, back = play.killed, play.back
    return Shown(
        steps=len(rows) - 1,
        members=[member._asdict() for member in MEMBERS],
        errors={name: float(np.nanmean((np.array(said) - target) ** 2)) for name, said in errors.items()},
        weights=dict(zip(names, scored[-1]["weights"], strict=True)),
        sat_out={name: [row["step"] for row in scored if name in row["absent"]] for name in names},
        killed={
            "agent": KILLED,
            "killed_at_step": None if killed is None else killed[0],
            "back_at_step": None if back is None else back[0],
            "seconds": None if killed is None or back is None else back[1] - killed[1],
        },
        covered=float(np.mean(inside)) if inside else float("nan"),
        streams=streams,
        drift=drift,
        stopped=stopped,
        seconds=seconds,
    )


def _column(rows: list[dict], name: str) -> list[float]:
    return [np.nan if row[name] is None else row[name][0] for row in rows]


def run(chosen: argparse.Namespace) -> None:
    need_server()
    seconds = check.number("--seconds", chosen.seconds, min=1.0)
    logging.getLogger("nashcast.remote").setLevel(logging.ERROR)  # what happens is told below
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())

    def say(line: str) -> None:
        progress.clear()
        print(line, file=sys.stderr, flush=True)

    def visit(page: str) -> None:
        if not chosen.no_browser and not webbrowser.open(page):
            say("no browser could be opened: open that address in one")

    say("Starting a broker, four agents and the service. Ctrl-C ends it.")
    try:
        shown = show(
            seconds, check.integer("--port", chosen.port, min=0), chosen.seed, say, visit,
            lambda done, total: progress("steps", done, total),
        )  # fmt: skip
    finally:
        progress.clear()
    if chosen.json:
        print_json(shown._asdict())
    else:
        print(page_of(shown))


def page_of(shown) -> str:
    killed = shown.killed
    lines = [
        f"\n{shown.streams} streams in one service{', stopped early' if shown.stopped else ''}",
        f"  {shown.steps} steps of {STREAM} through broker, hub and journal",
        *members_table(shown),
    ]
    lines.append(f"  {shown.covered:.0%} of the targets lay inside their 90 % interval")
    if killed["killed_at_step"] is not None:
        back = "did not come back" if killed["seconds"] is None else f"was back after {killed['seconds']:.1f} s"
        lines.append(f"  {killed['agent']} was killed at step {killed['killed_at_step']} and {back}")
    drift = shown.drift
    if drift["told_at_step"] is not None:
        later = drift["told_at_step"] - drift["from_step"]
        lines.append(f"  {drift['stream']} drifted from step {drift['from_step']} on, told {later} steps later")
    return "\n".join(lines)
