"""`nashcast bridge` as a real process between a real service and real brokers."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path


class Bridging:
    """text: the tables after [service]."""

    def __init__(self, folder: Path, url: str, text: str):
        path = folder / "bridge.toml"
        path.write_text(f'[service]\nurl = "{url}"\n{text}')
        self._log = (folder / "bridge.log").open("a")
        command = [sys.executable, "-m", "nashcast", "bridge", str(path), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        line = self.process.stdout.readline()
        assert line, (folder / "bridge.log").read_text()
        self.about = json.loads(line)

    def kill(self) -> None:
        self.process.kill()
        self._gone()

    def stop(self) -> dict:
        """What it counted."""
        self.process.send_signal(signal.SIGTERM)
        return json.loads(self._gone())

    def _gone(self) -> str:
        said, _ = self.process.communicate(timeout=30)
        self._log.close()
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


def until(condition, seconds: float = 25.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def targets(client) -> list[float]:
    return [row["target"][0] for row in client.history(0) if row["target"] is not None]
