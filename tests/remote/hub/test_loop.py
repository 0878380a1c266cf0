"""An event loop for ordinary code: run by whoever waits, kept by its thread meanwhile, undisturbed by Ctrl-C."""

import asyncio
import os
import signal
import threading
import time

import pytest

from nashcast.errors import NashcastError
from nashcast.remote.hub.event_loop import Loop


@pytest.fixture
def loop():
    made = Loop("test")
    yield made
    made.close()
    made.close()
    assert not any(thread.name == "test" for thread in threading.enumerate())


async def thread_after(seconds):
    await asyncio.sleep(seconds)
    return threading.current_thread().name


async def fails():
    raise ValueError("so")


def until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_waits_runs_it_himself(loop):
    assert loop.run(thread_after(0)) == threading.current_thread().name
    time.sleep(0.1)  # by now the thread runs it
    assert loop.run(thread_after(0)) == threading.current_thread().name
    with pytest.raises(ValueError, match="so"):
        loop.run(fails())
    with pytest.raises(NashcastError, match=r"did not answer within 0\.05 s"):
        loop.run(thread_after(60), 0.05)


def test_what_is_started_is_done_whether_anybody_waits_or_not(loop):
    started = loop.start(thread_after(0.01))
    assert started.result(10.0) == "test"
    later = loop.start(thread_after(0.05))
    assert loop.finish(later) is not None
    assert loop.finish(later) == later.result()
    with pytest.raises(ValueError, match="so"):
        loop.finish(loop.start(fails()))


def test_the_loop_goes_on_while_nobody_waits_and_while_somebody_does(loop):
    beats = []

    async def beat():
        while True:
            beats.append(threading.current_thread().name)
            await asyncio.sleep(0.005)

    loop.start(beat())
    until(lambda: beats.count("test") > 3)
    loop.run(asyncio.sleep(0.05))
    assert beats.count(threading.current_thread().name) > 3
    seen = len(beats)
    until(lambda: len(beats) > seen + 3)


def test_several_threads_at_once(loop):
    found = []

    def many():
        for _ in range(100):
            found.append(loop.run(thread_after(0)) == threading.current_thread().name)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 400


def test_who_is_slow_to_take_the_loop_still_gets_it(loop, monkeypatch):
    """The thread has let go and waits no longer: it does not take the loop again from who asked for it."""
    lock, slow = loop._running, threading.Event()

    class Slow:
        def acquire(self, blocking=True, timeout=-1.0):
            if threading.current_thread() is threading.main_thread() and blocking:
                slow.set()
                time.sleep(0.2)
            return lock.acquire(blocking, timeout)

        def release(self):
            lock.release()

    until(lambda: lock.locked())  # the thread runs it
    monkeypatch.setattr(loop, "_running", Slow())
    watch = threading.Timer(20.0, lambda: os.kill(os.getpid(), signal.SIGINT))  # rather than for ever
    watch.start()
    try:
        assert loop.run(thread_after(0)) == threading.current_thread().name
    finally:
        watch.cancel()
    assert slow.is_set()


@pytest.fixture
def default_interrupt():
    """Python's own handler of Ctrl-C: other libraries of the test run may have set another."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_interrupt")
def test_ctrl_c_ends_what_is_waited_for_and_nothing_else(loop):
    ended = []

    async def work(name):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(name)
            raise

    other = loop.start(work("other"))
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loop.run(work("mine"))
    timer.join()
    assert ended == ["mine"]
    assert not other.done()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert loop.run(thread_after(0)) == threading.current_thread().name


def test_a_task_that_swallows_a_cancellation_does_not_keep_the_loop_open():
    loop, swallowed = Loop("stubborn"), []

    async def stubborn():
        while True:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(True)

    started = loop.start(stubborn())
    loop.run(asyncio.sleep(0.01))
    loop.close()
    assert swallowed
    assert started.cancelled()
