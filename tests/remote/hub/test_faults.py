"""Whoever is killed, whenever: the run is completed, and is that of one process with the same absences."""

import os
import re
import signal
import time

import numpy as np
import pytest

from nashcast import LookbackGame
from support.remote import networks
from support.remote.processes.crew import Crew, members
from support.remote.processes.crew_processes import command


def kill_at_random(crew, victims, rng):
    """One after the other, each at a moment of its own, and all are back before the next."""
    for victim in victims:
        crew.wait_for(crew.done + int(rng.integers(1, 20)))
        crew.pause(rng)
        crew.kill(victim)
        crew.start(victim)
        crew.wait_for_everybody()
    crew.hurry()


CASES = {
    # kind of game, what agents share, the stream, its kills
    "central": (LookbackGame(lookback=3), "features", "concept-y2",
                ["agent-1", "hub", "agent-3", "broker", "agent-4", "hub"]),
    "spread": (LookbackGame(lookback=2, placement="spread"), "sums", "concept",
               ["broker", "agent-3", "agent-1", "hub", "agent-0", "broker", "agent-2", "hub"]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_kill_9_at_random_moments(case, tmp_path):
    game, share, stream, victims = CASES[case]
    forgetful = {"agent_3": {"remembers": False}, "agent_4": {"remembers": False, "share": "forecasts"}}
    steps = 120 * len(victims)  # more than the kills last, on a busy machine too
    options = {"steps": steps, "stream": stream, "game": game, "pace": 0.1}
    with Crew(tmp_path, command, members(share, **forgetful), **options) as crew:
        kill_at_random(crew, victims, np.random.default_rng(7))
        record = crew.finish()
        crew.assert_equal_to_one_process(record)
        assert record.about["summary"]["steps"] == steps
        assert record.arrays["present"].mean() > 0.5


@pytest.fixture
def cable(tmp_path):
    networks.needed()
    cable = networks.Cable(tmp_path)
    yield cable
    cable.close()


@pytest.mark.slow
def test_a_network_that_is_cut_for_five_seconds(cable, tmp_path):
    """One agent, with a memory, is behind the cable; the others go on without it, and then it is with them again."""
    crew = members("features", agent_1={"host": cable.here, "network": cable.pid})
    options = {"steps": 280, "stream": "concept-y2", "game": LookbackGame(lookback=3), "pace": 0.05}
    with Crew(tmp_path, command, crew, **options) as crew:
        crew.wait_for(30)
        cable.cut()
        time.sleep(5.0)
        cable.heal()
        crew.wait_for_everybody()
        record = crew.finish()
        crew.assert_equal_to_one_process(record)
        assert 1 <= record.about["summary"]["absences"]["agent-1"] < 280
        assert "agent-1 is late: no answer within" in crew.said("hub")
        assert "agent-1: missed steps" in crew.said("agent-1")


SLOW = """
import time
from pathlib import Path
from nashcast import encoders

def slow(x):
    if Path("be-slow").exists():
        time.sleep(1.0)
    return x[:2]

def make():
    return encoders.Callable(slow, features=2)
"""


@pytest.mark.slow
def test_who_is_slow_or_hangs_sits_out_as_late_and_comes_back(tmp_path):
    """A black box that becomes slow, and a process that hangs: each is late by its own learnt deadline."""
    (tmp_path / "black.py").write_text(SLOW)
    crew = members("features", agent_2={"encoder": "black:make", "options": {}})
    options = {"steps": 800, "stream": "concept-y2", "game": LookbackGame(lookback=3), "pace": 0.02}
    with Crew(tmp_path, command, crew, **options) as crew:
        crew.wait_for(20)
        (tmp_path / "be-slow").touch()
        crew.wait_until_away("agent-2")
        (tmp_path / "be-slow").unlink()
        crew.wait_for_everybody()
        os.kill(crew.pid("agent-3"), signal.SIGSTOP)
        crew.wait_until_away("agent-3")
        crew.wait_for(crew.done + 4)  # the others go on meanwhile
        os.kill(crew.pid("agent-3"), signal.SIGCONT)
        crew.wait_for_everybody()
        crew.hurry()
        record = crew.finish()
        crew.assert_equal_to_one_process(record)
    for name in ("agent-2", "agent-3"):
        assert re.search(rf"hub: step \d+, {name} is late: no answer within \S+ s\n", crew.said("hub"))
        assert re.search(rf"hub: step \d+, {name} is back\n", crew.said("hub"))
        assert re.search(rf"agent-0: step \d+, late: .*{name}", crew.said("agent-0"))
        assert record.about["summary"]["absences"][name] > 0


@pytest.mark.slow
@pytest.mark.parametrize("longer", [0.3, 1.5])
def test_a_broker_that_hangs_makes_nobody_late(longer, tmp_path):
    """For somewhat or much longer than agents may take."""
    options = {"steps": 80, "stream": "concept-y2", "game": LookbackGame(lookback=3), "pace": 0.01, "deadline": 1.0}
    with Crew(tmp_path, command, members("features"), **options) as crew:
        crew.wait_for(20)
        os.kill(crew.broker.pid, signal.SIGSTOP)
        time.sleep(1.0 + longer)
        os.kill(crew.broker.pid, signal.SIGCONT)
        record = crew.finish()
        assert record.arrays["present"].all(), crew.said("hub")
        crew.assert_equal_to_one_process(record)
