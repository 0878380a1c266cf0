"""A client of `nashcast serve`, with nothing but the standard library."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from nashcast.errors import InvalidInput, NashcastError

# Statuses after which the same may be tried again: too fast, busy.
_AGAIN = (429, 503)
# Seconds that a post waits for the forecast after it, and observations posted at once.
_WAIT, _CHUNK = 25.0, 1000


class ServiceRefused(NashcastError):
    """The service answered, but not with success. status: of HTTP, 0 if there was no answer.   code: for programs."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(message)
        self.status, self.code = status, code


class Bound(NamedTuple):
    """Between lower and upper lies the target with this probability; None while too little is known."""

    coverage: float
    lower: list[float | None]
    upper: list[float | None]


class Ahead(NamedTuple):
    """The forecast of one step. time: when that is, ISO 8601, if observations had timestamps.   quantiles: by level."""

    step: int
    time: str | None
    forecast: list[float]
    bounds: list[Bound]
    quantiles: dict[float, list[float | None]]


class LiveForecast(NamedTuple):
    """The forecast of the target of `step`. path: of this step and those after it, as many as the horizon.

    units: of the targets, if the stream names them.   weights: of each agent.   absent: which sat out, and why.
    """

    step: int
    time: str | None
    forecast: list[float]
    bounds: list[Bound]
    path: list[Ahead]
    units: str | None
    weights: dict[str, float]
    absent: dict[str, str]
    at: float


class Client:
    """url: where `nashcast serve` says it serves.   token: one of `nashcast serve token add`.

    timeout: seconds to wait for one answer.   retries: how often to try again if there is none; it is safe, since
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

    def make_stream(self, name: str, settings: dict[str, Any], *, replay: bool = False) -> dict[str, Any]:
        """Make a stream, or change one that was made so. settings: as a federation file has them.

        replay: compute everything again from its journal, where other settings forecast otherwise.
        """
        query = {"replay": "true"} if replay else None
        return self.ask("PUT", f"/v1/streams/{quote(name)}", settings, query=query)

    def remove_stream(self, name: str) -> dict[str, Any]:
        """Remove a stream that was made by `make_stream`, with all it has."""
        return self.ask("DELETE", f"/v1/streams/{quote(name)}", again=False)

    def follow(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and content of each server-sent event, for as long as one likes; a broken line is taken up again."""
        failures = 0
        while True:
            connection = self._open(timeout=60.0)
            try:
                connection.request("GET", self._parts.path.rstrip("/") + path, headers=self._headers())
                answer = connection.getresponse()
                if answer.status != 200:
                    raise _refused(answer.status, answer.read())
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
        """One request, tried again where that is safe. Returns what the answer's JSON says."""
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
                    raise _refused(answer.status, content)
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


class StreamClient:
    """One stream of a service: made by `Client.stream`."""

    def __init__(self, client: Client, name: str):
        self._client, self.name, self._path = client, name, f"/v1/streams/{quote(name)}"

    def __repr__(self) -> str:
        return f"Stream({self.name!r} at {self._client.url})"

    def __enter__(self) -> StreamClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def observe(
        self, x: Any, y: Any, *, step: int | None = None, key: str | None = None, time: Any = None
    ) -> LiveForecast:
        """The target of this step, None if it is not known yet, and the inputs known now. Returns the next forecast.

        time: when it was: a datetime with its offset, ISO 8601, or seconds since 1970.
        """
        times = None if time is None else [time]
        return self.observe_many([(x, y)], first_step=step, keys=None if key is None else [key], times=times)

    def observe_many(
        self,
        observations: Iterable[tuple[Any, Any]],
        *,
        first_step: int | None = None,
        keys: Sequence[str] | None = None,
        times: Sequence[Any] | None = None,
    ) -> LiveForecast:
        """Several at once, (x, y) each, at most 1000: all are taken or none. Waits for the forecast after them."""
        rows = self._rows(observations, first_step, keys, times)
        return self._forecast_after(self.post(rows, wait=_WAIT))

    def send(
        self,
        observations: Iterable[tuple[Any, Any]],
        *,
        first_step: int | None = None,
        times: Sequence[Any] | None = None,
    ) -> int:
        """Any number of observations, in chunks, without waiting for what follows. Returns how many were new."""
        rows, accepted = self._rows(observations, first_step, None, times), 0
        for start in range(0, len(rows), _CHUNK):
            accepted += self.post(rows[start : start + _CHUNK])["accepted"]
        return accepted

    def post(self, rows: list[dict[str, Any]], *, wait: float = 0.0) -> dict[str, Any]:
        """Rows as the HTTP interface takes them. Returns its receipt, once they are durable.

        wait: seconds to wait for the forecast; without, it is None unless it is there already.
        """
        return self._ask("POST", "observations", {"observations": rows}, query={"wait": wait} if wait else None)

    def _rows(self, observations, first_step, keys, times) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{"x": _plain(x), "y": _plain(y)} for x, y in observations]
        for i, row in enumerate(rows):
            if first_step is not None:
                row["step"] = first_step + i
            if keys is not None:
                row["key"] = keys[i]
            elif first_step is None:
                # So that trying again never counts twice.
                row["key"] = secrets.token_hex(16)
            if times is not None:
                row["time"] = times[i].isoformat() if hasattr(times[i], "isoformat") else times[i]
        return rows

    def _forecast_after(self, receipt: dict[str, Any]) -> LiveForecast:
        found = receipt["forecast"]
        if found is None:
            message = f"what was posted is stored, but its forecast took longer than {_WAIT:g} s. Ask for it later."
            raise ServiceRefused(202, "not_computed", message)
        return _forecast(found)

    def label(self, step: int, y: Any) -> LiveForecast:
        """A target that was missing. Returns the forecast that now stands."""
        return self.label_many([(step, y)])

    def label_many(self, labels: Iterable[tuple[int, Any]]) -> LiveForecast:
        """Targets that were missing, (step, y) each: they are learnt together."""
        rows = [{"step": step, "y": _plain(y)} for step, y in labels]
        return self._forecast_after(self._ask("POST", "labels", {"labels": rows}, query={"wait": _WAIT}))

    def forecast(self) -> LiveForecast:
        """The forecast that stands now."""
        return _forecast(self._ask("GET", "forecast"))

    def agents(self) -> list[dict[str, Any]]:
        """Name, weight, error, state and last sign of each agent."""
        return self._ask("GET", "agents")["agents"]

    def status(self) -> dict[str, Any]:
        """Errors, games, settings, and the last step."""
        return self._ask("GET", "status")

    def history(self, first: int | None = None, last: int | None = None, every: int = 1) -> Iterator[dict[str, Any]]:
        """Rows of the past, oldest first, however many; the newest 1000 if first is left out."""
        while True:
            given = {"from": first, "to": last, "every": every, "limit": 1000}
            page = self._ask("GET", "history", query={k: v for k, v in given.items() if v is not None})
            yield from page["rows"]
            if first is None or page["next"] is None:
                return
            first = page["next"]

    def log(self, after: int | None = None) -> list[dict[str, Any]]:
        """What happened: starts, agents out and back, fallbacks, restores."""
        return self._ask("GET", "log", query={} if after is None else {"after": after})["log"]

    def save_points(self) -> list[dict[str, Any]]:
        return self._ask("GET", "savepoints")["save_points"]

    def save_point(self, name: str) -> dict[str, Any]:
        """Make one at the present step."""
        return self._ask("POST", "savepoints", {"name": name}, again=False)

    def restore(self, name: str) -> dict[str, Any]:
        """Go back to a save point; observations after it are withdrawn."""
        return self._ask("POST", f"savepoints/{name}/restore", again=False)

    def drop_save_point(self, name: str) -> dict[str, Any]:
        return self._ask("DELETE", f"savepoints/{name}", again=False)

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and content of each server-sent event, for as long as one likes; a broken line is taken up again."""
        return self._client.follow(f"{self._path}/events")

    def _ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        return self._client.ask(method, f"{self._path}/{path}", body, **options)


def _plain(value: Any) -> Any:
    """Numbers as JSON knows them: arrays as lists, NaN as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value != value else value


def _forecast(found: dict[str, Any]) -> LiveForecast:
    path = [
        Ahead(
            each["step"],
            each["time"],
            each["forecast"],
            _bounds(each),
            {q["level"]: q["value"] for q in each["quantiles"]},
        )
        for each in found["path"]
    ]
    return LiveForecast(**{**found, "bounds": _bounds(found), "path": path})


def _bounds(found: dict[str, Any]) -> list[Bound]:
    return [Bound(**bound) for bound in found["bounds"]]


def _refused(status: int, content: bytes) -> ServiceRefused:
    try:
        error = json.loads(content)["error"]
        return ServiceRefused(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceRefused(status, "unknown", f"the service answered {status}: {content[:200]!r}")


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
