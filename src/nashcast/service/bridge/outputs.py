"""Publish new forecasts: one thread per stream reads its server-sent events."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

from nashcast.client import Client, ServiceRefused
from nashcast.service.bridge.settings import Output

logger = logging.getLogger("nashcast.bridge")
# Seconds between two polls for new streams, and before a broken connection is retried.
_POLL_S, _RETRY_S = 10.0, 2.0


class Side(Protocol):
    def publish(self, address: str, body: bytes, own_id: str, retain: bool) -> None: ...


class Outputs(threading.Thread):
    """Polls for streams that match an output. sides: broker clients by name."""

    def __init__(self, make_client: Callable[[], Client], outputs: Sequence[Output], sides: dict[str, Side]):
        super().__init__(name="nashcast bridge outputs", daemon=True)
        self._make_client, self._outputs, self._sides = make_client, outputs, sides
        self._stopping = threading.Event()
        self._followed: dict[str, threading.Thread] = {}
        self.counts = {"published": 0, "unpublished": 0}

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        with self._make_client() as client:
            while not self._stopping.is_set():
                try:
                    names = [row["name"] for row in client.streams()]
                except ServiceRefused as error:
                    logger.warning("%s", error)
                    names = []
                for name in names:
                    wanted = [each for each in self._outputs if fnmatchcase(name, each.streams)]
                    known = self._followed.get(name)
                    if wanted and (known is None or not known.is_alive()):
                        thread = threading.Thread(target=self._follow, args=(name, wanted), daemon=True)
                        self._followed[name] = thread
                        thread.start()
                self._stopping.wait(_POLL_S)

    def _follow(self, name: str, outputs: list[Output]) -> None:
        last = b""
        with self._make_client() as client:
            stream = client.stream(name)
            while not self._stopping.is_set():
                try:
                    for kind, data in stream.events():
                        if self._stopping.is_set():
                            return
                        standing = data.get("standing") if kind == "steps" else None
                        if kind == "hello" and data["step"] is not None:
                            standing = client.ask("GET", f"/v1/streams/{name}/forecast")
                        if standing is None:
                            continue
                        body = json.dumps({"stream": name, **standing}).encode()
                        if body != last:
                            last = body
                            self._publish(name, standing, body, outputs)
                except ServiceRefused as error:
                    if error.status == 404:
                        return
                    logger.warning("stream %s: %s", name, error)
                    self._stopping.wait(_RETRY_S)

    def _publish(self, name: str, standing: dict[str, Any], body: bytes, outputs: list[Output]) -> None:
        # A republished forecast has the same id.
        own_id = f"{name}:{standing['step']}:{standing['at']!r}"
        for each in outputs:
            try:
                self._sides[each.broker].publish(each.address.replace("{stream}", name), body, own_id, each.retain)
                self.counts["published"] += 1
            except Exception as error:
                # The broker is unreachable: continue with the next forecast.
                self.counts["unpublished"] += 1
                logger.warning("stream %s to %s: %s: %s", name, each.address, type(error).__name__, error)
