"""`python benchmarks/remote_faults.py`: kill -9 at random moments, cut networks, and runs without faults, measured.

Broker, hub and five agents are real commands in processes of their own, over mutual TLS. Every run must be equal to the
bit to one in this process with the same absences; then its times go into remote_faults.json and the docs' table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "explanation" / "remote-faults.md"
BEGIN, END = "<!-- written by benchmarks/remote_faults.py -->", "<!-- until here -->"
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from run import processor  # noqa: E402

from nashcast import Game, __version__  # noqa: E402
from support.remote.networks import Cable  # noqa: E402
from support.remote.processes.crew import Crew, members  # noqa: E402
from support.remote.processes.crew_processes import die_with_parent, enter_network  # noqa: E402

GAMES = {"central": (Game(lookback=3), "features"), "spread": (Game(lookback=3, placement="spread"), "sums")}
# Steps between two kills, steps for which one may be away on a busy machine, and least seconds of a step.
SPACE, AWAY, PACE = 40, 150, 0.05
FORGETFUL = {"agent_3": {"remembers": False}, "agent_4": {"remembers": False}}
KINDS = {**dict.fromkeys(("agent-0", "agent-1", "agent-2"), "agent with a state"),
         **dict.fromkeys(("agent-3", "agent-4"), "agent without one"), "hub": "hub", "broker": "broker"}  # fmt: skip


class Command:
    """`nashcast WORDS…`, started as a shell would."""

    def __init__(self, *words, log: Path, folder: Path, network: int | None = None):
        def enter() -> None:
            die_with_parent()
            if network is not None:
                enter_network(network)

        environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nashcast", *map(str, words)], cwd=folder, env=environment, stdout=file,
                stderr=file, preexec_fn=enter,
            )  # fmt: skip
        self.pid = self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def join(self, seconds: float | None = None) -> None:
        self._process.wait(seconds)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()


def without_faults(placement: str, steps: int, folder: Path) -> dict:
    game, share = GAMES[placement]
    with Crew(
        folder, Command, members(share), steps=steps, stream="concept-y2", game=game, deadline=60, wait=300
    ) as crew:
        record = crew.finish()
        crew.assert_equal_to_one_process(record)
    assert record.arrays["present"].all()
    return {"placement": placement, "steps": steps, "largest difference": 0.0, **record.about["summary"]["step_ms"]}


def with_kills(placement: str, moments: int, rng: np.random.Generator, folder: Path, say) -> list[dict]:
    game, share = GAMES[placement]
    steps, kills = (moments + 1) * AWAY, []
    with Crew(
        folder, Command, members(share, **FORGETFUL), steps=steps, stream="concept-y2", game=game, pace=PACE, wait=300
    ) as crew:
        # Hub and broker as often as all agents together.
        victims = [*crew.members] * 2 + ["hub", "broker"] * 5
        for k in range(moments):
            victim = str(rng.choice(victims))
            crew.wait_for(crew.done + int(rng.integers(SPACE)))
            crew.pause(rng)
            began, heard = time.monotonic(), crew.said(victim).count("connected to")
            crew.kill(victim)
            first = crew.done
            crew.start(victim)
            if victim == "broker":
                started = time.monotonic() - began
            else:
                while crew.said(victim).count("connected to") == heard:
                    time.sleep(0.002)
                started = time.monotonic() - began
            last = crew.wait_for_everybody()
            seconds = time.monotonic() - began
            away = sum(not crew.present(step).all() for step in range(first, last))
            kills.append({"party": KINDS[victim], "placement": placement, "step": first, "seconds": seconds,
                          "until connected": started, "steps without somebody": away})  # fmt: skip
            say(f"{placement}, {k + 1} of {moments}: {victim} at step {first}, everybody back after {seconds:.2f} s")
        crew.hurry()
        record = crew.finish()
        crew.assert_equal_to_one_process(record)
    assert len(record.arrays["forecasts"]) == steps
    return kills


def with_cuts(cuts: int, seconds: float, rng: np.random.Generator, folder: Path, say) -> list[dict]:
    found, cable = [], Cable(folder)
    try:
        crew = members("features", agent_1={"host": cable.here, "network": cable.pid})
        steps = 600 * (cuts + 1)
        with Crew(
            folder, Command, crew, steps=steps, stream="concept-y2", game=Game(lookback=3), pace=0.05, wait=300
        ) as crew:
            for k in range(cuts):
                crew.wait_for(30 + crew.done)
                crew.pause(rng)
                first = crew.done
                cable.cut()
                time.sleep(seconds)
                healed = time.monotonic()
                cable.heal()
                last = crew.wait_for_everybody()
                back = time.monotonic() - healed
                away = sum(not crew.present(step).all() for step in range(first, last))
                found.append({"party": f"network, cut for {seconds:g} s", "placement": "central", "step": first,
                              "seconds": back, "until connected": None, "steps without somebody": away})  # fmt: skip
                say(f"cut {k + 1} of {cuts}: back {back:.2f} s after it was healed")
            crew.hurry()
            record = crew.finish()
            crew.assert_equal_to_one_process(record)
    finally:
        cable.close()
    return found


def table(faults: list[dict], plain: list[dict], machine: str) -> list[str]:
    cuts = sum("network" in fault["party"] for fault in faults)
    lines = [
        f"{len(faults) - cuts} kills and {cuts} cuts of the network, at random moments. {machine}.",
        "",
        "| killed | times | everybody back after, median | longest | of it until connected | steps without somebody |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for party in dict.fromkeys([*KINDS.values(), *(fault["party"] for fault in faults)]):
        own = [fault for fault in faults if fault["party"] == party]
        if own:
            seconds = [fault["seconds"] for fault in own]
            starts = [fault["until connected"] for fault in own if fault["until connected"] is not None]
            start = f"{np.median(starts):.2f} s" if starts else "–"
            away = np.median([fault["steps without somebody"] for fault in own])
            lines.append(
                f"| {party} | {len(own)} | {np.median(seconds):.2f} s | {max(seconds):.2f} s | {start} | {away:.0f} |"
            )
    lines += ["", "| without faults | steps | largest difference from one process | step, median | 99 % |",
              "|---|---:|---:|---:|---:|"]  # fmt: skip
    for run in plain:
        cells = f"{run['placement']} | {run['steps']} | {run['largest difference']:g}"
        lines.append(f"| {cells} | {run['p50']:.1f} ms | {run['p99']:.1f} ms |")
    return lines


def main() -> None:
    command = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    command.add_argument("--moments", type=int, default=100, help="kills in all")
    command.add_argument("--cuts", type=int, default=4, help="of the network, 5 seconds each; needs root")
    command.add_argument("--steps", type=int, default=2000, help="of the runs without faults")
    command.add_argument("--seed", type=int, default=0)
    chosen = command.parse_args()
    rng = np.random.default_rng(chosen.seed)

    loads = []

    def say(line: str) -> None:
        loads.append(os.getloadavg()[0])
        print(line, file=sys.stderr, flush=True)

    plain, faults, began = [], [], time.monotonic()
    for placement in GAMES:
        with tempfile.TemporaryDirectory() as folder:
            plain.append(without_faults(placement, chosen.steps, Path(folder)))
            say(f"{placement}: {chosen.steps} steps, equal")
        with tempfile.TemporaryDirectory() as folder:
            faults += with_kills(placement, chosen.moments // len(GAMES), rng, Path(folder), say)
    if chosen.cuts:
        with tempfile.TemporaryDirectory() as folder:
            faults += with_cuts(chosen.cuts, 5.0, rng, Path(folder), say)
    load = np.mean(loads)
    machine = f"{processor()}, {os.cpu_count()} threads, Python {platform.python_version()}, nashcast {__version__}"
    machine += f", load {load:.1f} on average"
    record = {"machine": machine, "seed": chosen.seed, "seconds": time.monotonic() - began, "faults": faults,
              "without_faults": plain}  # fmt: skip
    (HERE / "results" / "remote_faults.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record))
    rows = table(faults, plain, machine)
    say("\n".join(rows))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n{END}{after}")


if __name__ == "__main__":
    main()
