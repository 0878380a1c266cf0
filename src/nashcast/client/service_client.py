"""Requests to a service over one connection, with retries where they are safe."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from nashcast.client.answers import ServiceRefused, read_refusal
from nashcast.client.stream_client import StreamClient
from nashcast.errors import InvalidInput

# HTTP statuses after which a request may be retried: rate limit, busy.
_AGAIN = (429, 503)


class Client:
    """url: the address that `nashcast serve` prints.   token: made by `nashcast serve token add`.

    timeout: seconds to wait for one answer.   retries: number of retries without an answer; they are safe, since
        every observation has a step or a key.   ca_file: certificates to trust, for a service with its own.

    >>> client = Client("http://127.0.0.1:8500", token="nashcast_…")
    >>> client.stream("load")
    Stream('load' at http://127.0.0.1:8500)
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, retries: int = 5,
        ca_file: str | None = None,
    ):  # fmt: skip
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("url", repr(url), "Pass an address such as http://127.0.0.1:8500.")
        self.url, self._parts, self._token = url.rstrip("/"), parts, token
        self._timeout, self._retries, self._ca_file = timeout, retries, ca_file
        self._connection: Any = None

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def stream(self, name: str) -> StreamClient:
        """One stream, over the same connection."""
        return StreamClient(self, name)

    def streams(self) -> list[dict[str, Any]]:
        """Every stream: its state, last step, error against persistence, achieved coverage."""
        return self.ask("GET", "/v1/streams")["streams"]

    def recent_events(self, after: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Alarms of all streams (drift, coverage, agents gone and back, failures), from an id on, or the newest."""
        query = {"limit": limit} if after is None else {"after": after, "limit": limit}
        return self.ask("GET", "/v1/events", query=query)["events"]

    def make_stream(self, name: str, settings: dict[str, Any], *, replay: bool = False) -> dict[str, Any]:
        """Make a stream, or change one made by this method. settings: as in a federation file.

        replay: recompute everything from its journal, if the new settings change forecasts.
        """
        query = {"replay": "true"} if replay else None
        return self.ask("PUT", f"/v1/streams/{quote(name)}", settings, query=query)

    def remove_stream(self, name: str) -> dict[str, Any]:
        """Remove a stream that was made by `make_stream`, with all its data."""
        return self.ask("DELETE", f"/v1/streams/{quote(name)}", again=False)

    def follow(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and content of each server-sent event, without end; reconnects after a lost connection."""
        failures = 0
        while True:
            connection = self._open(timeout=60.0)
            try:
                connection.request("GET", self._parts.path.rstrip("/") + path, headers=self._headers())
                answer = connection.getresponse()
                if answer.status != 200:
                    raise read_refusal(answer.status, answer.read())
                failures = 0
                yield from _events(answer)
            except OSError as error:
                failures += 1
                if failures > self._retries:
                    raise ServiceRefused(0, "no_answer", f"{self.url} does not answer ({error}).") from error
            finally:
                connection.close()
            time.sleep(min(2.0, 0.1 * 2**failures))

    def ask(self, method: str, path: str, body: Any = None, *, query: dict | None = None, again: bool = True) -> Any:
        """Send one request, with retries where they are safe. Returns the answer's JSON."""
        from http.client import HTTPException

        data = None if body is None else json.dumps(body).encode()
        target = self._parts.path.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
        for attempt in range(self._retries + 1):
            last = attempt == self._retries or not again
            try:
                if self._connection is None:
                    self._connection = self._open(self._timeout)
                self._connection.request(method, target, data, self._headers(data is not None))
                answer = self._connection.getresponse()
                content = answer.read()
            except (OSError, HTTPException) as error:
                self.close()
                if last:
                    raise ServiceRefused(0, "no_answer", f"{self.url} does not answer ({error}).") from error
            else:
                if answer.status < 300:
                    return json.loads(content)
                if last or answer.status not in _AGAIN:
                    raise read_refusal(answer.status, content)
            time.sleep(min(2.0, 0.05 * 2**attempt))
        raise AssertionError  # the last attempt returns or raises

    def _open(self, timeout: float) -> Any:
        import ssl
        from http.client import HTTPConnection, HTTPSConnection

        host, port = self._parts.hostname, self._parts.port
        assert host is not None
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=timeout)
        context = ssl.create_default_context(cafile=self._ca_file)
        return HTTPSConnection(host, port, timeout=timeout, context=context)

    def _headers(self, body: bool = False) -> dict[str, str]:
        found = {"Content-Type": "application/json"} if body else {}
        return found if self._token is None else {**found, "Authorization": f"Bearer {self._token}"}


def _events(answer: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    kind, data = "message", ""
    for line in answer:
        text = line.decode().rstrip("\r\n")
        name, _, value = text.partition(": ")
        if not text:
            if data:
                yield kind, json.loads(data)
            kind, data = "message", ""
        elif name == "event":
            kind = value
        elif name == "data":
            data += value
