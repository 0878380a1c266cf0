"""An event loop for synchronous code: run by the thread that waits for a result, else by a background thread.

Handing work to another thread and its result back takes a good part of the network's own time. So the calling thread
runs the loop until its work is done; when no caller has done so for a while, the background thread runs it and keeps
the connection alive.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from nashcast.errors import NashcastError

T = TypeVar("T")
# Idle time after which the background thread runs the loop.
IDLE_S = 0.02
# How often tasks are cancelled when the loop is closed, and how long each time.
CANCEL_ROUNDS, CANCEL_TIMEOUT_S = 20, 0.25


class Loop:
    def __init__(self, name: str):
        self._loop = asyncio.new_event_loop()
        self._running = threading.Lock()  # held by the thread that runs the loop
        self._waiting: deque[None] = deque()  # one entry for each thread that waits to run the loop
        self._in_background = False  # the background thread runs the loop
        self._closed = False
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine and wait for its result."""
        with self._held():
            task = self._loop.create_task(work)
            try:
                with _interruptible(self._loop, task):
                    return self._loop.run_until_complete(task if timeout is None else asyncio.wait_for(task, timeout))
            except TimeoutError:
                raise NashcastError(f"the broker did not answer within {timeout:g} s.") from None

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine without waiting for it. It runs while another call waits, or soon after."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def finish(self, started: Future[T]) -> T:
        """Wait for a started coroutine."""
        return started.result() if started.done() else self.run(_result(started))

    def close(self) -> None:
        if self._closed:
            return
        self.run(_cancel_the_rest())
        self._closed = True
        with self._held():
            self._loop.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    @contextmanager
    def _held(self) -> Iterator[None]:
        self._waiting.append(None)  # first: the background thread does not take the loop while it is set
        try:
            if not self._running.acquire(blocking=False):
                self._loop.call_soon_threadsafe(self._let_go)
                self._running.acquire()
        finally:
            self._waiting.pop()
        try:
            yield
        finally:
            self._last = time.monotonic()
            self._running.release()

    def _let_go(self) -> None:
        if self._in_background:
            self._loop.stop()

    def _keep(self) -> None:
        while not self._closed:
            rest = self._last + IDLE_S - time.monotonic()
            if rest > 0 or self._waiting:
                time.sleep(max(rest, IDLE_S / 4))
            elif self._running.acquire(timeout=IDLE_S):
                try:
                    if not self._closed and not self._waiting:
                        self._in_background = True
                        self._loop.run_forever()
                finally:
                    self._in_background, self._last = False, time.monotonic()
                    self._running.release()


@contextmanager
def _interruptible(loop: asyncio.AbstractEventLoop, task: asyncio.Task) -> Iterator[None]:
    """Ctrl-C cancels this task, not other work of the loop."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupted = False

    def interrupt(*_) -> None:
        nonlocal interrupted
        interrupted = True
        loop.call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


async def _result(started: Future[T]) -> T:
    return await asyncio.wrap_future(started)


async def _cancel_the_rest() -> None:
    # More than once: a dial of nats-py can swallow a cancellation, and its task would go on.
    for _ in range(CANCEL_ROUNDS):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
