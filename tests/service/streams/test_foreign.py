"""Foreign encoders that hang, crash, exit, take memory or shout: their agent loses its step, and nothing else does."""

import signal
import time

import pytest
from test_many_streams import folder_of, pairs, until

from nashcast import Client
from support.service.served import FILE, Served, series

VENDOR = """
import ctypes, os, sys, time
from pathlib import Path

def ahead(x):
    mode = Path(__file__).with_name("mode")
    kind = mode.read_text() if mode.exists() else ""
    if kind == "hang":
        time.sleep(3600)
    if kind == "exit":
        sys.exit(0)
    if kind == "crash":
        os._exit(3)
    if kind == "segfault":
        ctypes.string_at(0)
    if kind == "memory":
        bytearray(40 * 2**30)
    if kind == "shout":
        raise ValueError("x" * 2_000_000)
    if kind == "print":
        print("y" * 100_000)
    return 0.9 * x
"""
TEXT = (
    FILE.replace("y_dim = 1", "y_dim = 1\ndeadline = 0.5")
    + """
[[agents]]
name = "vendor"
encoder = "forecaster"
function = "vendor:ahead"
"""
)


@pytest.fixture
def staged(tmp_path):
    streams = folder_of(tmp_path, {"plain": FILE, "vendor": TEXT})
    (streams / "vendor.py").write_text(VENDOR)
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        served.mode = streams / "mode"
        yield served, client


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("hang", "no answer within 0.5 s"),
        ("exit", "its process died"),
        ("crash", "its process died"),
        ("segfault", "its process died"),
        ("memory", "MemoryError"),
        ("shout", "ValueError: xxx"),
    ],
)
@pytest.mark.slow
def test_a_foreign_encoder_that_fails_costs_its_agent_the_step(mode, words, staged):
    served, client = staged
    vendor, plain, values = client.stream("vendor"), client.stream("plain"), series(40)
    vendor.observe_many(pairs(values[:10]), first_step=0)
    assert vendor.forecast().absent == {}
    served.mode.write_text(mode)
    found = vendor.observe(values[10], values[10], step=10)
    assert words in found.absent["vendor"]
    assert len(found.absent["vendor"]) < 400
    for step in range(3):
        plain.observe(values[step], values[step], step=step)
    served.mode.unlink()
    back = vendor.observe(values[11], values[11], step=11)
    assert back.absent == {}
    kinds = [row["kind"] for row in vendor.log()]
    assert kinds.index("agent out") < kinds.index("agent in")
    assert client.ask("GET", "/readyz")["failed"] == 0


def test_while_an_encoder_hangs_everything_else_answers_and_the_service_stops_in_time(staged):
    served, client = staged
    vendor, plain, values = client.stream("vendor"), client.stream("plain"), series(40)
    vendor.observe_many(pairs(values[:5]), first_step=0)
    served.mode.write_text("hang")
    vendor.post([{"x": float(v), "y": float(v), "step": 5 + i} for i, v in enumerate(values[5:35])])
    # The others do not wait for it, and what is asked of it is answered from what is known.
    assert plain.observe_many(pairs(values[:20]), first_step=0).step == 20
    assert vendor.forecast().step >= 5
    assert client.ask("GET", "/readyz")["status"] == "ready"
    until(lambda: "paused for" in str(vendor.forecast().absent) or vendor.status()["behind"] == 0)
    began = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(20) == 0
    assert time.monotonic() - began < 15


def test_what_an_encoder_prints_is_no_answer_and_its_numbers_are_those_of_this_process(staged):
    served, client = staged
    served.mode.write_text("print")
    vendor, values = client.stream("vendor"), series(30)
    found = vendor.observe_many(pairs(values), first_step=0)
    assert found.absent == {}
    rows = list(vendor.history(1))
    own = [agent["name"] for agent in vendor.agents()].index("vendor")
    for row, before in zip(rows[1:], values[1:], strict=True):
        assert row["agents"][own] == pytest.approx([0.9 * before], abs=0.5)
