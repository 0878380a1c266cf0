"""Load on the live service over loopback: throughput, latency, readers and memory, with a real server process.

python benchmarks/serve.py                       # all parts, a minute of each; writes benchmarks/serve.json and .md
python benchmarks/serve.py --seconds 5 --part throughput
python benchmarks/serve.py --part memory --observations 1000000
python benchmarks/serve.py --part kills --kills 200
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
FEDERATION = """
name = "five families"
seed = 2024
[serve]
x_dim = 1
y_dim = 1
[[agents]]
encoder = "trend"
[[agents]]
encoder = "lags"
[[agents]]
encoder = "quadratic"
[[agents]]
encoder = "random_lags"
[[agents]]
encoder = "reservoir"
"""


class Server:
    """`nashcast serve` in a process of its own."""

    def __init__(self, folder: Path):
        (folder / "federation.toml").write_text(FEDERATION)
        self._log = (folder / "log").open("a")
        command = [sys.executable, "-m", "nashcast", "serve", str(folder / "federation.toml"), "--open", "--json"]
        command += ["--port", "0", "--journal", str(folder / "journal"), "--rate", "100000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self.process.stdout is not None
        self.about = json.loads(self.process.stdout.readline())
        self.port = int(self.about["url"].rpartition(":")[2])

    def memory(self) -> float:
        """Resident megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._log.close()


class Line:
    """One connection that is kept; requests one after the other."""

    async def open(self, port: int) -> Line:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        return self

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self.writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        header = await self.reader.readuntil(b"\r\n\r\n")
        status, length = int(header[9:12]), int(header.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return status, await self.reader.readexactly(length)


def value(step: int) -> float:
    return ((step * 7919) % 1000) / 1000 + step % 50 / 50


def body(step: int) -> bytes:
    return b'{"x":%.3f,"y":%.3f}' % (value(step), value(step))


def batch(first: int, size: int) -> bytes:
    rows = b",".join(b'{"x":%.3f,"y":%.3f,"step":%d}' % (value(t), value(t), t) for t in range(first, first + size))
    return b'{"observations":[' + rows + b"]}"


def quantiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    pick = lambda share: 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]  # noqa: E731
    return {"p50_ms": pick(0.5), "p99_ms": pick(0.99), "max_ms": 1000 * ordered[-1]}


async def produce(port: int, producers: int, until: float, times: list[float]) -> None:
    """So many producers, each posting one observation after the other."""

    async def one(number: int) -> None:
        line, step = await Line().open(port), number
        while time.perf_counter() < until:
            began = time.perf_counter()
            status, answer = await line.ask("POST", "/v1/observations", body(step))
            assert status == 200, answer
            times.append(time.perf_counter() - began)
            step += producers

    await asyncio.gather(*(one(i) for i in range(producers)))


async def watch(port: int, rate: float, until: float, times: list[float]) -> None:
    """Forecasts asked for at fixed moments, whether or not the one before was answered: late answers count in full."""
    lines = [await Line().open(port) for _ in range(8)]
    free = asyncio.Queue()
    for line in lines:
        free.put_nowait(line)
    tasks, due = [], time.perf_counter()

    async def one(moment: float) -> None:
        line = await free.get()
        status, answer = await line.ask("GET", "/v1/forecast")
        assert status == 200, answer
        times.append(time.perf_counter() - moment)
        free.put_nowait(line)

    while due < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due)))
        due += 1 / rate
    await asyncio.gather(*tasks)


async def listen(port: int, until: float, counts: list[int]) -> None:
    """One reader of the event stream; counts its messages."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    count = 0
    try:
        while (left := until - time.perf_counter()) > 0:
            line = await asyncio.wait_for(reader.readline(), left)
            count += line.startswith(b"event: steps")
    except TimeoutError:
        pass
    counts.append(count)
    writer.close()


async def first(port: int) -> None:
    status, answer = await (await Line().open(port)).ask("POST", "/v1/observations", body(0))
    assert status == 200, answer


async def throughput(server: Server, seconds: float) -> list[dict]:
    """Single observations by 32 producers; then batches by one."""
    await first(server.port)
    times: list[float] = []
    began, cpu = time.perf_counter(), server.cpu()
    await produce(server.port, 32, began + seconds, times)
    took = time.perf_counter() - began
    rows = [{"what": "32 producers, one observation a post", "per_second": len(times) / took, **quantiles(times)}]
    rows[-1]["cpu_us_each"] = 1e6 * (server.cpu() - cpu) / len(times)
    line = await Line().open(server.port)
    step = len(times) + 1
    times, began, cpu = [], time.perf_counter(), server.cpu()
    while time.perf_counter() < began + seconds:
        sent = time.perf_counter()
        status, answer = await line.ask("POST", "/v1/observations", batch(step, 20))
        assert status == 200, answer
        times.append(time.perf_counter() - sent)
        step += 20
    took = time.perf_counter() - began
    rows.append({"what": "1 producer, 20 a post", "per_second": 20 * len(times) / took, **quantiles(times)})
    rows[-1]["cpu_us_each"] = 1e6 * (server.cpu() - cpu) / (20 * len(times))
    return rows


async def latency(server: Server, seconds: float) -> list[dict]:
    """A forecast at 200 a second: alone, and while observations come in as fast as they are taken."""
    await first(server.port)
    rows = []
    for what, producers in (("200 forecasts/s, nothing else", 0), ("200 forecasts/s beside 16 producers", 16)):
        times, posted, until, cpu = [], [], time.perf_counter() + seconds, server.cpu()
        work = [watch(server.port, 200, until, times)]
        if producers:
            work.append(produce(server.port, producers, until, posted))
        await asyncio.gather(*work)
        rows.append({"what": what, "per_second": len(times) / seconds, **quantiles(times)})
        rows[-1]["observations_per_second"] = len(posted) / seconds
        rows[-1]["cpu_us_each"] = 1e6 * (server.cpu() - cpu) / len(times)
    return rows


async def readers(server: Server, seconds: float, count: int = 100) -> list[dict]:
    """100 readers of the event stream, beside 200 forecasts and as many observations a second as 8 producers post."""
    await first(server.port)
    until, counts, times, posted = time.perf_counter() + seconds, [], [], []
    listening = [listen(server.port, until, counts) for _ in range(count)]
    watching = watch(server.port, 200, until, times)
    await asyncio.gather(watching, produce(server.port, 8, until - 0.5, posted), *listening)
    row = {"what": f"{count} readers, 8 producers, 200 forecasts/s", "per_second": len(posted) / seconds}
    return [{**row, **quantiles(times), "messages_of_each": [min(counts), max(counts)]}]


async def memory(server: Server, observations: int) -> list[dict]:
    """Resident memory as observations come in, in batches of 200."""
    line, rows, step = await Line().open(server.port), [], 0
    began = time.perf_counter()
    marks = [observations * part // 10 for part in range(1, 11)]
    while step < observations:
        status, answer = await line.ask("POST", "/v1/observations", batch(step, 200))
        assert status == 200, answer
        step += 200
        if step >= marks[0]:
            marks.pop(0)
            took = time.perf_counter() - began
            rows.append({"what": f"after {step:,}", "per_second": step / took, "megabytes": server.memory()})
            print(rows[-1], flush=True)
    return rows


def with_server(part, *arguments) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            return asyncio.run(part(server, *arguments))
        finally:
            server.stop()


def kills(count: int) -> list[dict]:
    """The test of sudden ends, so many times."""
    environment = {**os.environ, "NASHCAST_KILLS": str(count)}
    test = HERE.parent / "tests" / "service" / "test_kills.py"
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", str(test), "-q", "-s", "-p", "no:cacheprovider"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=HERE.parent)
    print(done.stdout[-2000:])
    said = [line for line in done.stdout.splitlines() if line.startswith("kills:")]
    what = said[-1] if said else "kills"
    return [{"what": what, "passed": done.returncode == 0, "seconds": time.perf_counter() - began}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("throughput", "latency", "readers", "memory", "kills")
    parser.add_argument("--part", action="append", choices=parts, help="only this one; may be given again")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--observations", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--out", type=Path, default=HERE / "serve.json")
    chosen = parser.parse_args()
    results = json.loads(chosen.out.read_text()) if chosen.out.is_file() else {}
    run = {
        "throughput": lambda: with_server(throughput, chosen.seconds),
        "latency": lambda: with_server(latency, chosen.seconds),
        "readers": lambda: with_server(readers, chosen.seconds),
        "memory": lambda: with_server(memory, chosen.observations),
        "kills": lambda: kills(chosen.kills),
    }
    for part in chosen.part or parts:
        # What else the machine did: with more runnable processes than cores, times are those of waiting.
        load = os.getloadavg()[0]
        rows = run[part]()
        results[part] = {"load_before": round(load, 1), "rows": rows}
        for row in rows:
            print(part, row, flush=True)
        results["machine"] = {"cores": os.cpu_count(), "python": platform.python_version()}
        chosen.out.write_text(json.dumps(results, indent=1) + "\n")
        chosen.out.with_suffix(".md").write_text(page(results))


def page(results: dict) -> str:
    machine = results["machine"]
    cores, python = machine["cores"], machine["python"]
    lines = [
        "# The live service under load",
        "",
        "Written by `python benchmarks/serve.py`; do not edit. Five agents of five families with the joint game, and",
        "the same agents without it beside; the kills are of a federation of three.",
        f"Loopback, {cores} cores shared by server and senders, Python {python}.",
        "Load: of other work on the machine before each part. Above the number of cores, times are mostly waiting, and",
        "processor time is the figure to read.",
    ]
    for part, found in results.items():
        if part == "machine":
            continue
        keys = list(dict.fromkeys(key for row in found["rows"] for key in row))
        lines += ["", f"## {part} (load {found['load_before']})", "", "| " + " | ".join(keys) + " |"]
        lines.append("|" + "|".join("---" if key == "what" else "---:" for key in keys) + "|")
        lines += ["| " + " | ".join(_shown(row.get(key)) for key in keys) + " |" for row in found["rows"]]
    return "\n".join(lines) + "\n"


def _shown(value) -> str:
    if value is None:
        return ""
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
