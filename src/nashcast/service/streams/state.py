"""The running service: what it was told, what it knows now, and what it answers from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.service.http.http_errors import Refused
from nashcast.service.http.metrics import Answers
from nashcast.service.http.sse import Feed
from nashcast.service.http.tokens import TokenFile
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.reader import JournalReader
from nashcast.service.streams.factory import make_federation
from nashcast.service.streams.jobs import Answers as JobAnswers
from nashcast.service.streams.jobs import Failed, Published, deliver_here
from nashcast.service.streams.recovery import recover
from nashcast.service.streams.settings import ServedConfig
from nashcast.service.streams.views import encoded, forecast_view
from nashcast.service.streams.worker import Worker

logger = logging.getLogger("nashcast.service")


class Limits(NamedTuple):
    """body: bytes of a request.   rate: requests a second of one token.   readers: of the event stream.

    body_seconds: for a body to arrive.
    """

    body: int = 1_000_000
    rate: float = 5000.0
    readers: int = 200
    body_seconds: float = 10.0


_LIMITS = Limits()


class Service:
    """`open` it before there is an event loop, `start` it in one, `stop` it there, `close` it after."""

    def __init__(
        self, config: ServedConfig, folder: str | Path, *, tokens: TokenFile | None,
        limits: Limits = _LIMITS, accept_changes: bool = False,
    ):  # fmt: skip
        self.config, self.folder, self.tokens, self.limits = config, Path(folder), tokens, limits
        self._accept_changes = accept_changes
        self.made = make_federation(config)
        self.answers = Answers()
        self.began = time.time()
        self.present: bytes | None = None
        self.step: int | None = None

    def open(self) -> None:
        """Everything that may take long or be refused: the journal, the snapshot, the replay."""
        self.journal = Journal(self.folder, self.config.identity(), self.config.shape(self.made.names))
        try:
            self.recovered = recover(
                self.journal, self.made, self.config.serve, accept_changes=self._accept_changes
            )  # fmt: skip
            self.reader = JournalReader(self.folder)
            live = self.recovered.live
            if self.made.elsewhere is not None and self.made.elsewhere.settle():
                self.journal.record([live.predict()])
                self.journal.log("agents", "were past the last observation, and begin anew", live.step)
            if live.outcome is not None:
                assert live.step is not None
                self._stands(live.outcome, self._last_time())
            start = self.recovered.snapshot_step
            origin = "the beginning" if start is None else f"the snapshot of step {start}"
            self.journal.log("start", f"from {origin}, {self.recovered.replayed} entries replayed", live.step)
        except BaseException:
            self._close_hub()
            self.journal.close()
            raise
        logger.info("journal %s: %s, %d entries replayed", self.folder, origin, self.recovered.replayed)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.feed = Feed(self.greeting, self.limits.readers)
        self.worker = Worker(
            self.journal, self.recovered.live, self.made, self.config.serve, self._publish, self._deliver,
            self._loop.create_future,
        )  # fmt: skip
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="nashcast reading")
        self._feeding = asyncio.create_task(self.feed.run())
        self.worker.start()

    async def stop(self) -> None:
        self._feeding.cancel()
        await self._loop.run_in_executor(None, self.worker.stop)
        self._reading.shutdown()

    def close(self) -> None:
        if self.worker.failed is None:
            self.journal.log("stop", "in order", self.step)
        self._close_hub()
        self.reader.close()
        self.journal.close()

    def _close_hub(self) -> None:
        if self.made.elsewhere is not None:
            self.made.elsewhere.close()

    async def ask(self, call: Callable[[], Any]) -> Any:
        """What a function returns when called by the thread that computes."""
        return await self.worker.ask(call)

    async def read(self, call: Callable[[], Any]) -> Any:
        """What a function returns that reads the journal."""
        return await self._loop.run_in_executor(self._reading, call)

    def greeting(self) -> dict[str, Any]:
        serve = self.config.serve
        return {"step": self.step, "agents": self.made.names, "coverages": list(serve.coverages)}

    def standing(self) -> bytes:
        """The forecast that stands now, as JSON."""
        if self.worker.failed is not None:
            raise Failed(self.worker.failed)
        if self.present is None:
            raise Refused(404, "no_forecast", "there is no observation yet, so nothing to forecast from. Post one.")
        return self.present

    def not_ready(self) -> str | None:
        """Why observations cannot be taken now."""
        return self.worker.failed or self.worker.unwritable

    def _stands(self, outcome, at: float) -> None:
        self.step = outcome.step - 1
        self.present = encoded(forecast_view(outcome, at, self.made.names, self.config.serve.coverages))

    def _last_time(self) -> float:
        step = self.recovered.live.step
        assert step is not None
        return next(self.reader.entries(step, step)).at

    def _publish(self, published: Published) -> None:
        # In the thread that computes: JSON is made here, once, so that the loop only hands it out.
        view = encoded(forecast_view(published.outcome, published.at, self.made.names, self.config.serve.coverages))
        self._loop.call_soon_threadsafe(self._published, published, view)

    def _published(self, published: Published, view: bytes) -> None:
        self.step, self.present = published.outcome.step - 1, view
        self.feed.add(published.steps, published.events)

    def _deliver(self, answers: JobAnswers) -> None:
        self._loop.call_soon_threadsafe(deliver_here, answers)
