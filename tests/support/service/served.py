"""`nashcast serve` as a real process, and the same stream computed without it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np

from nashcast import Client, default_federation
from nashcast.client import StreamClient
from nashcast.config.build import maker
from nashcast.service.http.access.tokens import TokenFile
from nashcast.service.journal.entries import ENTRY_COLUMNS, LABEL, read_entry
from nashcast.service.streams.settings import load_served

FILE = """
name = "three agents"
seed = 7
[serve]
x_dim = 1
y_dim = 1
snapshot_every = 40
[[agents]]
encoder = "trend"
[[agents]]
encoder = "linear"
[[agents]]
encoder = "random_features"
features = 3
"""
MEMBERS = ["baselines", "trend", "linear", "random features", "joint game"]
PAPERS = """
name = "three agents"
seed = 7
[serve]
x_dim = 1
y_dim = 1
snapshot_every = 40
[paper]
lookback = 2
[[agents]]
encoder = "persistence"
[[agents]]
encoder = "linear"
[[agents]]
encoder = "random_features"
features = 3
ridge = 3.0
"""
DEFAULT = """
seed = 7
[serve]
x_dim = 1
y_dim = 1
snapshot_every = 40
"""
RULE = 'mixing = "boa"\n' + FILE
HEADERS = {"Content-Type": "application/json"}


def federation_file(folder: Path, text: str = FILE) -> Path:
    path = folder / "federation.toml"
    path.write_text(text)
    return path


def series(steps: int, seed: int = 1) -> np.ndarray:
    """A walk, rounded so that JSON and bodies stay short."""
    return np.round(np.cumsum(np.random.default_rng(seed).normal(size=steps)) / 4, 4)


def drifting(steps=420, at=300):
    """A slow wave that turns into noise of twenty times its size."""
    rng = np.random.default_rng(5)
    values = np.sin(np.arange(steps) / 9) + 0.05 * rng.normal(size=steps)
    values[at:] += rng.normal(size=steps - at)
    return np.round(values, 4)


class Served:
    """A process that answers, unless told not to wait for that."""

    def __init__(
        self, folder: Path, *options: str, tokens: bool = False, wait: bool = True, text: str = FILE, path=None, **popen
    ):
        self.folder, self.journal = folder, folder / "journal"
        what = federation_file(folder, text) if path is None else path
        command = [sys.executable, "-m", "nashcast", "serve", str(what), "--json"]
        command += ["--port", "0", "--journal", str(self.journal), *([] if tokens else ["--no-auth"]), *options]
        self._log = (folder / "log").open("a")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, **popen)
        self.about: dict = {}
        if wait:
            self.wait()

    def wait(self) -> None:
        line = self.process.stdout.readline()
        assert line, f"it did not start: {self.log()}"
        self.about = json.loads(line)

    @property
    def url(self) -> str:
        return self.about["url"]

    @property
    def stream_page(self) -> str:
        return f"{self.url}/streams/federation"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, token: str | None = None, **options) -> StreamClient:
        """Of the stream that the one file describes."""
        return Client(self.url, token, **options).stream("federation")

    def token(self, name: str, scope: str = "admin", days: float | None = None) -> str:
        return TokenFile(self.journal / "tokens.json").add(name, scope.split(","), days)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._gone()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def _gone(self) -> int:
        code = self.process.wait(60)
        self.process.stdout.close()
        self._log.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def entries(journal: Path, stream: int = 1) -> list:
    """All that a stream has, in the order it was accepted, read without the code that reads it."""
    connection = sqlite3.connect(journal / "journal.db")
    rows = connection.execute(
        f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? ORDER BY seq", (stream,)
    ).fetchall()
    connection.close()
    return [read_entry(row) for row in rows]


def uninterrupted(path: Path, journal_entries: list) -> dict[int, list[float]]:
    """What a federation that never stops forecasts of each step, from the same entries in the same order."""
    config = load_served(path)
    serve = config.serve
    if config.federation.paper is not None or config.federation.agents:
        federation = maker(config.federation, serve.y_dim)()
    else:
        horizon = config.federation.horizon
        federation = default_federation(serve.x_dim, serve.y_dim, horizon, seed=config.federation.seed)
    forecasts, x, first = {}, None, journal_entries[0].step
    for entry, following in zip(journal_entries, [*journal_entries[1:], None], strict=True):
        if entry.kind == LABEL:
            federation.learn_late(entry.step - first, entry.y)
            if following is not None and (following.kind, following.at) == (LABEL, entry.at):
                continue  # labels that came together are forecast from once
        else:
            federation.learn_one(entry.x if x is None else x, entry.y)
            x, step = entry.x, entry.step
        forecasts[step + 1] = np.atleast_1d(federation.predict_one(x)).tolist()
    return forecasts


def recorded(client: StreamClient) -> dict[int, list[float]]:
    return {row["step"]: row["forecast"] for row in client.history(0) if row["forecast"] is not None}
