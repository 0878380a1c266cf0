"""nats-server and mosquitto as real processes, without federations around them."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

from nashcast.remote.broker.running.program import server_program
from support.extras import skip_if


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """A process that can be killed and started again on the same port, with the same storage."""

    def __init__(self, folder: Path):
        folder.mkdir(exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen | None = None
        self.start()

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class NatsServer(Broker):
    def command(self) -> list[str]:
        return [str(server_program()), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"


class Mosquitto(Broker):
    def __init__(self, folder: Path):
        found = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        skip_if("" if found else "no mosquitto on this machine. Install it: apt-get install mosquitto")
        self._binary = str(found)
        super().__init__(folder)

    def command(self) -> list[str]:
        settings = self.folder / "mosquitto.conf"
        # As root it would change to a user of its own, who may not write here.
        settings.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\npersistence true\n"
            f"persistence_location {self.folder}/\nautosave_interval 1\nautosave_on_changes true\n"
        )
        return [self._binary, "-c", str(settings)]

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"
