"""Load on a real `nashcast serve` over loopback: many streams, many producers, forecasts asked for meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

STREAM = "seed = {seed}\n[serve]\nx_dim = 1\ny_dim = 1\n"
# Forecasts asked for a second, at fixed moments.
ASKED = 100.0


class Load(NamedTuple):
    """batch: observations in one post.   warm: observations that every stream has before the measurement."""

    streams: int
    producers: int
    workers: int
    seconds: float
    batch: int = 1
    warm: int = 20


class Server:
    """`nashcast serve` in processes of its own."""

    def __init__(self, folder: Path, load: Load):
        files = folder / "streams"
        files.mkdir()
        for i in range(load.streams):
            (files / f"stream-{i:04d}.toml").write_text(STREAM.format(seed=i))
        self._log = (folder / "log").open("a")
        command = [sys.executable, "-m", "nashcast", "serve", str(files), "--no-auth", "--json", "--port", "0"]
        command += ["--journal", str(folder / "journal"), "--rate", "1000000", "--workers", str(load.workers)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )  # fmt: skip
        assert self.process.stdout is not None
        self.about = json.loads(self.process.stdout.readline())
        self.port = int(self.about["url"].rpartition(":")[2])
        self.names = self.about["streams"]
        self._lines: list[Line] = []

    async def line(self) -> Line:
        """A connection to it, closed with the others."""
        self._lines.append(await Line().open(self.port))
        return self._lines[-1]

    async def close_lines(self) -> None:
        for line in self._lines:
            line.writer.close()
            await line.writer.wait_closed()

    def processes(self) -> list[int]:
        """It and all it started."""
        found, ahead = [], [self.process.pid]
        while ahead:
            pid = ahead.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").iterdir():
                ahead += [int(child) for child in (task / "children").read_text().split()]
        return found

    def memory(self) -> float:
        """Megabytes of all processes, what they share counted once."""
        total = 0
        for pid in self.processes():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total * 1024 / 1e6

    def cpu(self) -> float:
        """Seconds of processor time of all processes so far."""
        ticks = 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()


class Line:
    """One connection that is kept; requests one after the other."""

    async def open(self, port: int) -> Line:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self.writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        header = await self.reader.readuntil(b"\r\n\r\n")
        status, length = int(header[9:12]), int(header.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return answer


def value(step: int) -> float:
    return ((step * 7919) % 1000) / 1000 + step % 50 / 50


def body(first: int, size: int) -> bytes:
    rows = b",".join(b'{"x":%.3f,"y":%.3f,"step":%d}' % (value(t), value(t), t) for t in range(first, first + size))
    return b'{"observations":[' + rows + b"]}"


async def produce(server: Server, load: Load, number: int, until: float, posted: list[float]) -> None:
    """Posts to its share of the streams in turn, one request after the other."""
    line, own = await server.line(), server.names[number :: load.producers]
    step = load.warm
    while own:
        for name in own:
            began = time.perf_counter()
            if began >= until:
                return
            await line.ask("POST", f"/v1/streams/{name}/observations", body(step, load.batch))
            posted.append(time.perf_counter() - began)
        step += load.batch


async def watch(server: Server, until: float, times: list[float]) -> None:
    """Forecasts at fixed moments, whether or not the one before was answered: late answers count in full."""
    free: asyncio.Queue[Line] = asyncio.Queue()
    for _ in range(8):
        free.put_nowait(await server.line())
    tasks, due = [], time.perf_counter()

    async def one(moment: float, name: str) -> None:
        line = await free.get()
        await line.ask("GET", f"/v1/streams/{name}/forecast")
        times.append(time.perf_counter() - moment)
        free.put_nowait(line)

    while due < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due, server.names[len(tasks) * 7 % len(server.names)])))
        due += 1 / ASKED
    await asyncio.gather(*tasks)


async def behind(line: Line) -> int:
    rows = json.loads(await line.ask("GET", "/v1/streams"))["streams"]
    return sum(row["behind"] for row in rows)


async def run(server: Server, load: Load) -> dict[str, Any]:
    line = await server.line()
    for name in server.names:
        await line.ask("POST", f"/v1/streams/{name}/observations", body(0, load.warm))
    while await behind(line):
        await asyncio.sleep(0.2)
    times: list[float] = []
    posted: list[float] = []
    cpu, began = server.cpu(), time.perf_counter()
    until = began + load.seconds
    producing = [produce(server, load, i, until, posted) for i in range(load.producers)]
    await asyncio.gather(watch(server, until, times), *producing)
    took = time.perf_counter() - began
    line = await server.line()  # the other one has been idle for too long
    accepted, left = load.batch * len(posted), await behind(line)
    used, memory = server.cpu() - cpu, server.memory()
    while await behind(line):
        await asyncio.sleep(0.2)
    whole = time.perf_counter() - began
    await server.close_lines()
    return {
        "streams": load.streams, "producers": load.producers, "workers": load.workers, "batch": load.batch,
        "observations_per_s": round(accepted / took, 1), "computed_per_s": round((accepted - left) / took, 1),
        "forecast_p99_ms": round(1000 * quantile(times, 0.99), 2),
        "post_p99_ms": round(1000 * quantile(posted, 0.99), 2),
        "rss_mb": round(memory, 1), "behind": left, "caught_up_s": round(whole - took, 1),
        "cpu_ms_per_observation": round(1000 * used / max(accepted - left, 1), 3),
        "seconds": round(took, 1), "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def quantile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(load: Load) -> dict[str, Any]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), load)
        try:
            return asyncio.run(run(server, load))
        finally:
            server.stop()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
