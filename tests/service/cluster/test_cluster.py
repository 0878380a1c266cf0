"""A cluster of real machines: any of them answers for all streams; one that dies, or sleeps, is replaced."""

import asyncio
import os
import signal
import time
from urllib.request import urlopen

import pytest
from cluster_kills import measured

from nashcast.client import ServiceRefused
from support.service.clustering import Brokers, Machine, logged, stream_files, until

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("NASHCAST_CLUSTER_KILLS", "3"))
NAMES = ["load", "wind", "sun.north", "heat"]  # of partitions 7, 0, 6 and 8


@pytest.fixture
def cluster(tmp_path):
    brokers = Brokers(tmp_path)
    files = stream_files(tmp_path / "streams", NAMES)
    started = []

    def start(name, **options):
        started.append(Machine(tmp_path / name, files, brokers, **options))
        return started[-1].wait()

    try:
        brokers.wait()
        yield start, brokers
    finally:
        for machine in started:
            machine.close()
        brokers.close()


def refused(action):
    with pytest.raises(ServiceRefused) as caught:
        action()
    return caught.value


def owners(*machines):
    """Streams that each machine has itself."""
    found = []
    for machine in machines:
        with urlopen(f"{machine.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found.append({name for name in NAMES if f'nashcast_live{{stream="{name}"}}' in text})
    return found


def all_live(machine):
    def check():
        with machine.client() as client:
            rows = client.streams()
        return [row["name"] for row in rows if row["state"] == "live"] == sorted(NAMES)

    until(check, "all streams are live")


def test_any_machine_answers_for_every_stream(cluster):
    start, brokers = cluster
    a, b, front = start("a"), start("b"), start("front", workers=0)
    until(lambda: all(owners(a, b)), "both have streams")
    all_live(front)
    first, second = owners(a, b)
    assert first | second == set(NAMES)
    assert not first & second
    assert owners(front) == [set()]
    for name in NAMES:
        for step, machine in enumerate((a, b, front)):
            with machine.client() as client:
                made = client.stream(name).observe(step, step / 2, step=step)
                assert made.step == step + 1
                assert client.stream(name).forecast() == made
                assert len(list(client.stream(name).history())) == step + 2
    with front.client() as client:
        stream = client.stream("sun.north")
        assert stream.status()["journal"]["entries"] == 3
        assert stream.agents()
        kind, content = next(stream.events())
        assert (kind, content["step"]) == ("hello", 2)
        assert refused(lambda: stream.observe(9, 9, step=1)).code == "step_taken"
        assert refused(lambda: stream.save_point("now")).code == "not_in_a_cluster"
        assert refused(lambda: client.stream("none").forecast()).code == "no_such_stream"
        settings = {"seed": 3, "serve": {"x_dim": 1, "y_dim": 1}}
        assert client.make_stream("made", settings)["made"]
        assert client.stream("made").observe(1, 1, step=0).step == 1
        assert refused(lambda: client.make_stream("made", {**settings, "seed": 4})).code == "not_in_a_cluster"
        assert refused(lambda: client.remove_stream("load")).code == "of_a_file"
        assert client.remove_stream("made")["removed"]
        assert refused(lambda: client.stream("made").forecast()).code == "no_such_stream"
        assert client.make_stream("made", settings)["made"]
        assert client.stream("made").observe(2, 2, step=0).step == 1
    found = asyncio.run(logged(brokers.url))
    assert {name: found[name] for name in NAMES} == {name: [(0, 0), (0, 1), (0, 2)] for name in NAMES}


def test_a_machine_that_sleeps_is_fenced(cluster):
    """It wakes up, believes that it owns its streams, and neither answers for them nor adds to them."""
    start, brokers = cluster
    a, b = start("a"), start("b")
    until(lambda: all(owners(a, b)), "both have streams")
    all_live(b)
    name = min(owners(a)[0])
    with b.client() as client:
        client.stream(name).observe(1, 1, step=0)
        a.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        until(lambda: name in owners(b)[0], "b has taken over")
        assert time.monotonic() - began < 30
        until(lambda: _observed(client, name, 1), "b takes observations")
        expected = client.stream(name).observe(3, 3, step=2)
    a.process.send_signal(signal.SIGCONT)
    with a.client() as client:
        answers = []
        for _ in range(40):
            answers += _if_there(client.stream(name).forecast)
            time.sleep(0.02)
        until(lambda: _observed(client, name, 3), "a forwards, or owns it again")
    assert all(answer == expected for answer in answers)  # never the forecast of before
    assert asyncio.run(logged(brokers.url))[name] == [(0, step) for step in range(4)]


def _observed(client, name, step):
    found = _if_there(lambda: client.stream(name).observe(step, step, step=step))
    return [each.step for each in found] == [step + 1]


def _if_there(action):
    """The answer, none if it is refused for now."""
    try:
        return [action()]
    except ServiceRefused as error:
        if error.status not in (0, 503):
            raise
        return []


def test_without_its_broker_it_says_so_and_heals(cluster):
    start, brokers = cluster
    a = start("a")
    all_live(a)
    with a.client() as client:
        stream = client.stream("load")
        stream.observe(0, 0, step=0)
        brokers.kill(0)

        def away():
            found = refused(lambda: stream.observe(1, 1, step=1))
            return found.status == 503 and found.code in ("cluster_away", "no_owner") and "broker" in str(found)

        until(away, "it is refused with a reason")
        assert refused(stream.forecast).status == 503
        until(lambda: "no majority" in str(refused(lambda: client.ask("GET", "/readyz"))), "it is not ready")
        brokers.start(0)
        until(lambda: _observed(client, "load", 1), "it goes on")
        assert client.ask("GET", "/readyz")["status"] == "ready"
    assert asyncio.run(logged(brokers.url))["load"] == [(0, 0), (0, 1)]


def test_kills_of_machines_and_brokers(tmp_path):
    """NASHCAST_CLUSTER_KILLS=100 for the long run."""
    found = measured(tmp_path, KILLS, streams=3)
    assert (found["kills"], found["lost"], found["doubled"], found["different"]) == (KILLS, 0, 0, 0)
    assert found["acknowledged"] > 10 * KILLS
