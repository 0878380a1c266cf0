"""Post events to a webhook, in order, from a separate thread. The journal is the queue.

The id of the last delivered event is stored beside the journal, so that a restart neither repeats nor skips events.
Posts that fail are retried with exponential back-off; events that have become too old are dropped.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import sqlite3
import ssl
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nashcast.service.events.webhooks import Webhook
from nashcast.service.journal.reader import JournalReader

logger = logging.getLogger("nashcast.service")
# Seconds: between two polls of the journal, timeout of a post, first and longest back-off, and the age at which an
# event is dropped.
POLL_S, TIMEOUT_S, BACKOFF_S, MAX_BACKOFF_S, MAX_AGE_S = 1.0, 10.0, 1.0, 300.0, 6 * 3600.0
_AT_ONCE = 100


def signature(secret: bytes, at: int, body: bytes) -> str:
    """Value of the header X-Nashcast-Signature; a receiver recomputes it from its time and the body."""
    return f"t={at},v1={hmac.new(secret, b'%d.' % at + body, hashlib.sha256).hexdigest()}"


class Delivery(threading.Thread):
    """folder: the journal's folder."""

    def __init__(self, hook: Webhook, folder: Path):
        super().__init__(name=f"nashcast webhook {hook.host}", daemon=True)
        self.hook, self._folder = hook, folder
        self._file = folder / f"webhook-{hook.id}.json"
        self._stopping = threading.Event()
        self.counts = {"delivered": 0, "retried": 0, "dropped": 0}
        self.failing = False

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        reader = JournalReader(self._folder)
        try:
            after = self._remembered()
            if after is None:
                # A new address receives events from now on.
                _, after = reader.events(0, 1)
                self._remember(after)
            while not self._stopping.wait(POLL_S):
                try:
                    after = self._turn(reader, after)
                except (OSError, sqlite3.Error) as error:
                    logger.error("webhook %s: %s", self.hook.host, error)
        finally:
            reader.close()

    def _turn(self, reader: JournalReader, after: int) -> int:
        events, last = reader.events(after, _AT_ONCE, self.hook.kinds)
        for event in events:
            if self.hook.wants(event) and not self._deliver(event):
                return after
            after = event["id"]
            self._remember(after)
        return after if len(events) == _AT_ONCE else max(after, last)

    def _deliver(self, event: dict[str, Any]) -> bool:
        """Returns False if the service stops first."""
        wait = BACKOFF_S
        while not self._stopping.is_set():
            if time.time() - event["at"] > MAX_AGE_S:
                self.counts["dropped"] += 1
                return True
            why, final = self._post(event)
            if why is None:
                self.counts["delivered"] += 1
                if self.failing:
                    logger.info("webhook %s answers again", self.hook.host)
                self.failing = False
                return True
            if not self.failing:
                logger.warning("webhook %s: event %d: %s", self.hook.host, event["id"], why)
            self.failing = True
            if final:
                self.counts["dropped"] += 1
                return True
            self.counts["retried"] += 1
            self._stopping.wait(wait)
            wait = min(2 * wait, MAX_BACKOFF_S)
        return False

    def _post(self, event: dict[str, Any]) -> tuple[str | None, bool]:
        """The error, if any, and whether it is permanent."""
        parts, body = urlsplit(self.hook.url), json.dumps(event).encode()
        headers = {"Content-Type": "application/json", "X-Nashcast-Delivery": f"{self.hook.id}-{event['id']}"}
        if self.hook.token is not None:
            headers["Authorization"] = f"Bearer {self.hook.token}"
        if self.hook.secret is not None:
            headers["X-Nashcast-Signature"] = signature(self.hook.secret, int(time.time()), body)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
            try:
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
            finally:
                connection.close()
        except (OSError, HTTPException, ValueError) as error:
            return f"no answer ({type(error).__name__}: {str(error)[:200]})", False
        if 200 <= status < 300:
            return None, False
        # A refusal is permanent; redirects are not followed.
        return f"answered {status}", 300 <= status < 500 and status not in (408, 425, 429)

    def _connection(self, scheme: str, host: str, port: int | None) -> HTTPConnection:
        if scheme == "http":
            return HTTPConnection(host, port, timeout=TIMEOUT_S)
        context = ssl.create_default_context(cafile=self.hook.ca_file)
        return HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)

    def _remembered(self) -> int | None:
        try:
            after = json.loads(self._file.read_bytes())["after"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.error("%s cannot be read (%s): events are posted from now on", self._file, error)
            return None
        return after if type(after) is int and after >= 0 else None

    def _remember(self, after: int) -> None:
        beside = self._file.with_suffix(".new")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"after": after}, file)
        beside.replace(self._file)


def start_deliveries(hooks: Sequence[Webhook], folder: Path) -> list[Delivery]:
    """Start a thread for each address. Call after the workers' parent process has been forked."""
    found = [Delivery(hook, folder) for hook in hooks]
    for each in found:
        each.start()
    return found
