"""An event loop with a virtual clock: time passes when nothing else is left to do, and processes can be killed.

What a process does is known by its context: callbacks of a killed one are dropped, as if the machine had lost it
between two awaits. Work for a thread runs in one, but never beside the loop: one hands over to the other.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any

PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


# How often tasks are cancelled when a simulation ends.
_ROUNDS = 5


class Crashed(BaseException):
    """The process this is raised in was killed."""


class Stuck(Exception):
    """Nothing is left to do, or far too much."""


class Process:
    """crash_in: callbacks it still runs before it is killed; None for any number.   on_end: called when it is killed.

    tear: bytes of its next write to a file that reach the disk before it is killed in it; None for all.
    """

    def __init__(self, name: str):
        self.name, self.alive = name, True
        self.crash_in: int | None = None
        self.tear: float | None = None
        self.on_end: list[Callable[[], None]] = []
        self.context = Context()
        self.context.run(PROCESS.set, self)

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            for end in self.on_end:
                end()

    def spend(self) -> None:
        """One more point at which it can be killed."""
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in < 0:
                self.kill()


class Scheduler(asyncio.AbstractEventLoop):
    MOST = 200_000  # callbacks of one simulation

    def __init__(self):
        self._now, self._number = 0.0, count()
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._dropped: list[asyncio.Handle] = []  # of killed processes
        self._workers: list[Worker] = []
        self.tasks: list[asyncio.Task] = []
        self.ran = 0

    def time(self) -> float:
        return self._now

    def drive(self, done: Callable[[], bool]) -> None:
        """Run callbacks, and let time pass where there are none, until it is done."""
        with self.entered():
            while not done():
                self._step()

    def sleep(self, seconds: float) -> None:
        """The caller, which is no coroutine, waits; all others go on."""
        over: list[None] = []
        self.call_later(seconds, over.append, None, context=Context())
        self.drive(lambda: bool(over))

    @contextmanager
    def entered(self):
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        while self._timers and (self._timers[0][0] <= self._now or not self._ready):
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if not timer._cancelled:
                self._ready.append(timer)
                break
        if not self._ready:
            raise Stuck("nothing is left to do")
        self.ran += 1
        if self.ran > self.MOST:
            raise Stuck(f"more than {self.MOST} callbacks, at {self._now:.1f} s")
        handle = self._ready.popleft()
        if handle._cancelled:
            return
        process = handle._context.get(PROCESS)
        if process is not None:
            process.spend()
            if not process.alive:
                self._dropped.append(handle)
                return
        handle._run()

    def call_soon(self, callback: Any, *args, context=None):
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay, callback: Any, *args, context=None):
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when, callback: Any, *args, context=None):
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._number), timer))
        return timer

    def _timer_handle_cancelled(self, handle) -> None: ...

    def create_future(self):
        return asyncio.Future(loop=self)

    def create_task(self, coro, *, name=None, context=None):
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def run_in_executor(self, executor, func, *args):
        worker = Worker(self, func, args)
        self._workers.append(worker)
        self.call_soon(worker.go_on)
        return worker.future

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context) -> None:
        error = context.get("exception")
        if error is not None and not isinstance(error, Crashed):
            raise error

    def close(self) -> None:
        """End what is left of all processes, the killed ones too, so that nothing of it is left to the collector."""
        for worker in self._workers:
            worker.end()
        self._ready.extend(self._dropped)
        with self.entered():
            for _ in range(_ROUNDS):  # a cancellation can be lost in `asyncio.wait_for`
                for task in self.tasks:
                    task.cancel()
                while self._ready:
                    handle = self._ready.popleft()
                    if not handle._cancelled:
                        handle._run()
        for task in self.tasks:
            assert task.done(), f"{task} cannot be ended"
            if not task.cancelled():
                task.exception()


class Worker:
    """A function in a thread of its own, which runs while the loop stands still, and waits for coroutines of it."""

    here = threading.local()

    def __init__(self, loop: Scheduler, func: Callable, args: tuple):
        self._loop, self.future, self._context = loop, loop.create_future(), copy_context()
        self._mine, self._loops, self._over, self._killed = threading.Semaphore(0), threading.Semaphore(0), False, False
        self._wanted: Coroutine | None = None
        self._thread = threading.Thread(target=self._run, args=(func, args), daemon=True)

    def go_on(self) -> None:
        """Called by the loop, which then waits until the thread does."""
        if self._thread.ident is None:
            self._thread.start()
        self._mine.release()
        self._loops.acquire()
        if self._over:
            self._thread.join()
        elif self._wanted is not None:
            task, self._wanted = self._loop.create_task(self._wanted), None
            self._task = task
            task.add_done_callback(lambda _: self.go_on())

    def end(self) -> None:
        if self._thread.ident is not None and not self._over:
            self._killed = True
            self._mine.release()
            self._thread.join()

    def _run(self, func: Callable, args: tuple) -> None:
        self._mine.acquire()
        Worker.here.worker = self
        outcome: tuple[Callable, Any]
        try:
            outcome = self.future.set_result, self._context.run(func, *args)
        except Crashed:
            outcome = (lambda _: None), None
        except BaseException as error:
            outcome = self.future.set_exception, error
        self._over = True
        if not self._killed and not self.future.cancelled():
            outcome[0](outcome[1])
        self._loops.release()

    def wait_for(self, work: Coroutine) -> Any:
        """Called in the thread."""
        self._wanted = work
        self._loops.release()
        self._mine.acquire()
        if self._killed:
            raise Crashed
        return self._task.result()


class ThreadsafeResult:
    """In place of what `asyncio.run_coroutine_threadsafe` returns to a worker."""

    def __init__(self, work: Coroutine, loop: asyncio.AbstractEventLoop):
        self._work = work

    def result(self) -> Any:
        return Worker.here.worker.wait_for(self._work)


class HubLoop:
    """In place of `event_loop.Loop`: who waits for something drives the whole simulation meanwhile."""

    scheduler: Scheduler  # of the simulation
    process: Process  # of the hub

    def __init__(self, name: str):
        self._process = self.process

    def _alive(self) -> None:
        self._process.spend()
        if not self._process.alive:
            raise Crashed

    def run(self, work: Coroutine, timeout: float | None = None) -> Any:
        from nashcast.errors import NashcastError

        try:
            self._alive()
        except Crashed:
            work.close()
            raise
        task = self._started(work)
        if timeout is not None:
            task = self._started(asyncio.wait_for(task, timeout))
        self.scheduler.drive(lambda: task.done() or not self._process.alive)
        if not self._process.alive:
            raise Crashed
        try:
            return task.result()
        except TimeoutError:
            raise NashcastError(f"the broker did not answer within {timeout:g} s.") from None

    def start(self, work: Coroutine) -> asyncio.Task:
        try:
            self._alive()
        except Crashed:
            work.close()
            raise
        return self._started(work)

    def _started(self, work: Coroutine) -> asyncio.Task:
        return self.scheduler.create_task(work, context=self._process.context.copy())

    def finish(self, started: asyncio.Task) -> Any:
        if started.done():
            return started.result()

        async def result():
            return await started

        return self.run(result())

    def close(self) -> None: ...
