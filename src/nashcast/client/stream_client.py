"""Requests to one stream of a service."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nashcast.client.answers import LiveForecast, ServiceRefused, read_forecast

if TYPE_CHECKING:
    from nashcast.client.service_client import Client

# Seconds that a post waits for the next forecast, and observations per request.
_WAIT, _CHUNK = 25.0, 1000


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
        """Post the target of this step (None if not known yet) and the present inputs. Returns the next forecast.

        time: time of the observation: a datetime with its offset, ISO 8601, or seconds since 1970.
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
        """Post up to 1000 observations (x, y): all are accepted or none. Waits for the next forecast."""
        rows = self._rows(observations, first_step, keys, times)
        return self._forecast_after(self.post(rows, wait=_WAIT))

    def send(
        self,
        observations: Iterable[tuple[Any, Any]],
        *,
        first_step: int | None = None,
        times: Sequence[Any] | None = None,
    ) -> int:
        """Post any number of observations in chunks, without waiting for forecasts. Returns the number of new ones."""
        rows, accepted = self._rows(observations, first_step, None, times), 0
        for start in range(0, len(rows), _CHUNK):
            accepted += self.post(rows[start : start + _CHUNK])["accepted"]
        return accepted

    def post(self, rows: list[dict[str, Any]], *, wait: float = 0.0) -> dict[str, Any]:
        """Post rows in the form of the HTTP interface. Returns its receipt, once they are durable.

        wait: seconds to wait for the forecast; if 0, the forecast is None unless it is computed already.
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
                # So that a retry never counts twice.
                row["key"] = secrets.token_hex(16)
            if times is not None:
                row["time"] = times[i].isoformat() if hasattr(times[i], "isoformat") else times[i]
        return rows

    def _forecast_after(self, receipt: dict[str, Any]) -> LiveForecast:
        found = receipt["forecast"]
        if found is None:
            message = f"the observations are stored, but the forecast took longer than {_WAIT:g} s. Ask for it later."
            raise ServiceRefused(202, "not_computed", message)
        return read_forecast(found)

    def label(self, step: int, y: Any) -> LiveForecast:
        """Post a target that was missing. Returns the current forecast."""
        return self.label_many([(step, y)])

    def label_many(self, labels: Iterable[tuple[int, Any]]) -> LiveForecast:
        """Post targets that were missing, as (step, y); they are learnt together. Returns the current forecast."""
        rows = [{"step": step, "y": _plain(y)} for step, y in labels]
        return self._forecast_after(self.post_labels(rows, wait=_WAIT))

    def post_labels(self, rows: list[dict[str, Any]], *, wait: float = 0.0) -> dict[str, Any]:
        """Post late targets as rows of `step` and `y`. Returns the receipt, as `post` does."""
        return self._ask("POST", "labels", {"labels": rows}, query={"wait": wait} if wait else None)

    def forecast(self) -> LiveForecast:
        """The current forecast."""
        return read_forecast(self._ask("GET", "forecast"))

    def agents(self) -> list[dict[str, Any]]:
        """Name, weight, error, state and last contact of each agent."""
        return self._ask("GET", "agents")["agents"]

    def status(self) -> dict[str, Any]:
        """Errors, games, settings, and the last step."""
        return self._ask("GET", "status")

    def history(self, first: int | None = None, last: int | None = None, every: int = 1) -> Iterator[dict[str, Any]]:
        """Past rows, oldest first, without limit; the newest 1000 if first is left out."""
        while True:
            given = {"from": first, "to": last, "every": every, "limit": 1000}
            page = self._ask("GET", "history", query={k: v for k, v in given.items() if v is not None})
            yield from page["rows"]
            if first is None or page["next"] is None:
                return
            first = page["next"]

    def log(self, after: int | None = None) -> list[dict[str, Any]]:
        """The stream's log: starts, agents absent and back, fallbacks, restores."""
        return self._ask("GET", "log", query={} if after is None else {"after": after})["log"]

    def save_points(self) -> list[dict[str, Any]]:
        return self._ask("GET", "savepoints")["save_points"]

    def save_point(self, name: str) -> dict[str, Any]:
        """Make a save point at the present step."""
        return self._ask("POST", "savepoints", {"name": name}, again=False)

    def restore(self, name: str) -> dict[str, Any]:
        """Go back to a save point; observations after it are withdrawn."""
        return self._ask("POST", f"savepoints/{name}/restore", again=False)

    def drop_save_point(self, name: str) -> dict[str, Any]:
        return self._ask("DELETE", f"savepoints/{name}", again=False)

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and content of each server-sent event, without end; reconnects after a lost connection."""
        return self._client.follow(f"{self._path}/events")

    def _ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        return self._client.ask(method, f"{self._path}/{path}", body, **options)


def _plain(value: Any) -> Any:
    """Numbers in JSON types: arrays as lists, NaN as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value != value else value
