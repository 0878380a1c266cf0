"""kill -9 at random moments under load: what was acknowledged is there once, and forecasts are those of no kill at all.

NASHCAST_KILLS=200 for the long run.
"""

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from nashcast.client import ServiceRefused
from support.service.fork_server import Forked, Nursery
from support.service.served import Served, entries, recorded, uninterrupted

KILLS = int(os.environ.get("NASHCAST_KILLS", "15"))
PRODUCERS = 4


class Producer(threading.Thread):
    """Posts observations of its own, singly and in batches, some without a target that follows late.

    What is not acknowledged is posted again, with the same keys, until it is.
    """

    def __init__(self, number: int, where: dict):
        super().__init__(daemon=True)
        self.number, self.where, self.random = number, where, random.Random(number)
        self.acknowledged: dict[str, tuple[float, float | None]] = {}
        self.labels: dict[int, float] = {}
        self.stopping, self.failure = False, None
        self.count = self.tries = 0
        self.served, self.client = where["served"], where["served"].client(retries=0, timeout=10)

    def run(self):
        try:
            while not self.stopping:
                self.post()
        except BaseException as error:
            self.failure = error
        self.client.close()

    def post(self):
        rows, size = {}, self.random.choice([1, 1, 1, 3])
        for _ in range(size):
            self.count += 1
            value = self.number + self.count / 100_000
            known = self.count == 1 or self.random.random() > 0.3
            rows[f"{self.number}-{self.count}"] = (value, value if known else None)
        done = self.until_acknowledged(lambda client: client.observe_many(list(rows.values()), keys=list(rows)))
        if done is None:
            return
        self.acknowledged |= rows
        missing = [y for _, y in rows.values()].count(None)
        if missing == size == 1:
            # The journal alone knows the step: other producers post too.
            step, label = self.step_of(next(iter(rows))), self.number + 0.5
            if step is not None and self.until_acknowledged(lambda client: client.label(step, label)) is not None:
                self.labels[step] = label

    def step_of(self, key):
        x = self.acknowledged[key][0]
        rows = self.until_acknowledged(lambda client: list(client.history(max(0, client.forecast().step - 200))))
        return next((row["step"] for row in rows or () if row["x"] == [x]), None)

    def until_acknowledged(self, action):
        while not self.stopping:
            try:
                self.tries += 1
                served = self.where["served"]
                if served is not self.served:
                    self.client.close()
                    self.served, self.client = served, served.client(retries=0, timeout=10)
                return action(self.client)
            except ServiceRefused as refused:
                # While a worker replays, forecasts are late: what was posted is posted again, and is a duplicate.
                if refused.status and refused.code not in ("loading", "not_computed"):
                    raise
                time.sleep(0.02)
        return None


def wait_for(producers: list[Producer], more: int) -> None:
    count = lambda: sum(len(producer.acknowledged) for producer in producers)  # noqa: E731
    start, deadline = count(), time.monotonic() + 120
    while count() < start + more:
        assert time.monotonic() < deadline, [producer.failure for producer in producers]
        time.sleep(0.001)


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_a_worker(served, chance: random.Random) -> int:
    """Whichever of the processes that compute; the service goes on."""
    workers = [worker for spawner in children(served.pid) for worker in children(spawner)]
    if not workers:
        return 0
    os.kill(chance.choice(workers), signal.SIGKILL)
    return 1


def caught_up(client) -> None:
    deadline = time.monotonic() + 60
    while (status := client.status())["behind"] or status["state"] != "live":
        assert time.monotonic() < deadline, status
        time.sleep(0.02)


@pytest.mark.slow
def test_after_kills_everything_acknowledged_is_there_once_and_nothing_else_changed(tmp_path):
    chance = random.Random(KILLS)
    nursery = Nursery(tmp_path)
    where = {"served": Forked(tmp_path, nursery)}
    producers = [Producer(i, where) for i in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    during_start = workers = 0
    for _ in range(KILLS):
        # So many acknowledgements later, and then in the middle of whatever it does.
        wait_for(producers, chance.randint(1, 60))
        time.sleep(chance.expovariate(1 / 0.02))
        if chance.random() < 0.5:
            workers += kill_a_worker(where["served"], chance)
            continue
        where["served"].kill()
        while chance.random() < 0.3:  # some are killed before they answer
            served = Forked(tmp_path, nursery, wait=False)
            time.sleep(chance.uniform(0.0, 0.3))
            served.kill()
            during_start += 1
        where["served"] = Forked(tmp_path, nursery)
    wait_for(producers, 1)
    for producer in producers:
        producer.stopping = True
    for producer in producers:
        producer.join(30)
        assert producer.failure is None, producer.failure
    with where["served"] as served, served.client() as client:
        caught_up(client)
        forecasts, present = recorded(client), client.forecast()
    nursery.close()
    kept = entries(tmp_path / "journal")

    by_key = {}
    for entry in kept:
        if entry.key is not None:
            assert entry.key not in by_key, f"{entry.key} is there twice"
            by_key[entry.key] = entry
    for producer in producers:
        for key, (x, y) in producer.acknowledged.items():
            stored = by_key[key]
            assert (stored.x[0], None if stored.y is None else stored.y[0]) == (x, y), key
        for step, label in producer.labels.items():
            assert [entry.y.tolist() for entry in kept if entry.kind == 1 and entry.step == step] == [[label]]
    steps = [entry.step for entry in kept if entry.kind == 0]
    assert steps == list(range(len(steps)))

    expected = uninterrupted(tmp_path / "federation.toml", kept)
    assert forecasts == expected
    assert present.forecast == expected[present.step]
    acknowledged = sum(len(producer.acknowledged) for producer in producers)
    labels = sum(len(producer.labels) for producer in producers)
    assert acknowledged > 10 * KILLS
    print(
        f"\nkills: {KILLS} under load and {during_start} during start-up; {acknowledged} observations acknowledged, "
        f"{labels} late labels, {len(kept)} entries, {len(forecasts)} forecasts equal bit for bit"
    )


@pytest.mark.slow
def test_a_whole_process_killed_while_it_computes_goes_on_as_if_it_had_not(tmp_path):
    """Once without the nursery: a new interpreter from the command line."""
    where = {"served": Served(tmp_path)}
    producers = [Producer(i, where) for i in range(2)]
    for producer in producers:
        producer.start()
    for _ in range(2):
        wait_for(producers, 40)
        where["served"].kill()
        where["served"] = Served(tmp_path)
    wait_for(producers, 1)
    for producer in producers:
        producer.stopping = True
        producer.join(30)
    with where["served"] as served, served.client() as client:
        caught_up(client)
        assert recorded(client) == uninterrupted(tmp_path / "federation.toml", entries(served.journal))
    assert sum(len(producer.acknowledged) for producer in producers) > 80
