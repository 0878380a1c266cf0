"""Runs a broker from Python: nats-server with the rules of a federation's folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER
from nashcast.remote.broker.certificates.expiry import check_valid
from nashcast.remote.broker.connect import connect
from nashcast.remote.broker.enrolling.enrolment import FILE, Enrolment, read, save
from nashcast.remote.broker.files import locked, make_folder
from nashcast.remote.broker.rules import CONF, LOG, Settings
from nashcast.remote.broker.running import watchdog
from nashcast.remote.broker.running.process import (
    POLL_S,
    TIMEOUT_S,
    lasting_broker,
    reload_broker,
    running_broker,
    said_last,
)
from nashcast.remote.broker.running.program import server_program
from nashcast.remote.broker.running.watch import BrokerWatch

__all__ = [
    "EmbeddedBroker",
    "broker_url",
    "connect",
    "lasting_broker",
    "reload_broker",
    "running_broker",
    "server_program",
]


def broker_url(settings: Settings) -> str:
    """The address of a broker with these settings, for clients on the same machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    scheme = "nats" if settings.certificates is None else "tls"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


class EmbeddedBroker:
    """Runs nats-server while this context is open, at most until this program ends.

    folder: of the federation, see `enrolment.create`; the broker's store, log and configuration are in it too.
    host, port: where to listen; 0 for a free port, which stays the same over restarts.   tls: the folder that
    `nashcast certs` wrote; None for the enrolment's.   enrolment: for a folder without one.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        host: str | None = None,
        port: int = 0,
        tls: str | Path | None = None,
        enrolment: Enrolment | None = None,
    ):
        self.folder = Path(folder).expanduser().resolve()
        self._host, self._port, self._tls, self._given = host, port, tls, enrolment
        self._settings: Settings | None = None
        self._keeper: subprocess.Popen | None = None
        self._pid: int | None = None
        self._watch: BrokerWatch | None = None
        self._changing = threading.RLock()  # held while it is started or stopped

    def start(self) -> Self:
        """Start the broker, and watch its folder for changes: see `running.watch`."""
        with self._changing:
            if not self.running:
                self._start()
            if self._watch is None:
                self._watch = BrokerWatch(self.folder, self.log, self.reload, self._restart_if_running)
                self._watch.start()
        return self

    def _start(self) -> None:
        self._stop()
        program = server_program()
        if self._given is None:
            read(self.folder)
        # Locked until the first connection: of two concurrent starts, the second finds the first broker.
        with locked(make_folder(self.folder)):
            self._wait_for_an_orphan()
            if running_broker(self.folder) is not None:
                remedy = "Stop it first, or use it."
                raise InvalidInput("folder", f"{self.folder}, from which a broker runs already", remedy)
            self._settings = self._prepared().settings
            self._clear_ports()
            command = [program, "-c", self.folder / CONF, "-a", self._host or self._settings.host]
            command += ["-p", self._port or -1, "--ports_file_dir", self.folder]
            self._run(list(map(str, command)))

    def stop(self) -> None:
        """Stop the broker; does nothing if it has ended."""
        with self._changing:
            watch, self._watch = self._watch, None
            self._stop()
        if watch is not None:
            watch.stop()

    def _stop(self) -> None:
        process, self._keeper, self._pid = self._keeper, None, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(watchdog.STOP_TIMEOUT_S + 5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._clear_ports()

    def restart(self) -> Self:
        """Start again on the same port and store, whether it runs or not."""
        with self._changing:
            self._stop()
            return self.start()

    def _restart_if_running(self) -> None:
        """Called by the watch, which must not restart a broker that was stopped meanwhile."""
        with self._changing:
            if self._watch is not None and self.running:
                self._stop()
                self._start()

    def reload(self) -> None:
        """Apply changes in the folder's enrolment; connections of enrolled parties stay open."""
        if not reload_broker(self.folder):
            raise NashcastError(f"the broker of {self.folder} has ended: see {self.log}. Start it again.")

    @property
    def disk_full(self) -> bool:
        """Whether the disk is too full to store anything."""
        return self._watch is not None and self._watch.full

    @property
    def running(self) -> bool:
        return self._keeper is not None and self._keeper.poll() is None

    @property
    def pid(self) -> int:
        """The process id of nats-server itself."""
        if self._pid is None:
            raise NashcastError("the broker has not been started.")
        return self._pid

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        """The address for clients on this machine."""
        if self._settings is None:
            raise NashcastError("the broker has not been started.")
        return broker_url(self._settings._replace(host=self._host or self._settings.host, port=self._port))

    @property
    def log(self) -> Path:
        return self.folder / LOG

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()

    def _wait_for_an_orphan(self) -> None:
        """Wait for the broker of a killed program, which ends a moment after it."""
        until = time.monotonic() + watchdog.STOP_TIMEOUT_S
        while running_broker(self.folder) != lasting_broker(self.folder) and time.monotonic() < until:
            time.sleep(POLL_S)

    def _prepared(self) -> Enrolment:
        """The folder's enrolment with the given settings; writes the configuration."""
        enrolment = self._given
        if enrolment is None or (self.folder / FILE).exists():
            found = read(self.folder)
            if enrolment not in (None, found):
                remedy = "Change it with `nashcast enroll`, or choose another folder."
                raise InvalidInput("enrolment", f"another than that in {self.folder}", remedy)
            enrolment = found
        if self._tls is not None:
            certificates = str(Path(self._tls).expanduser().resolve())
            enrolment = enrolment._replace(settings=enrolment.settings._replace(certificates=certificates))
        if enrolment.settings.certificates is not None:
            for name in (AUTHORITY, BROKER):
                check_valid(enrolment.settings.certificates, name)
        self._given = None
        return save(self.folder, enrolment)

    def _run(self, command: list[str]) -> None:
        with self.log.open("ab") as log:
            begun = log.tell()
            # A separate session: Ctrl-C reaches only this program, which then stops the broker.
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            assert self._keeper.stdout is not None
            self._pid = int(self._keeper.stdout.readline() or 0)
            self._port = self._wait_until_ready(begun)
        except BaseException:
            self._stop()
            raise

    def _wait_until_ready(self, begun: int) -> int:
        """The port, once the broker accepts connections there."""
        assert self._keeper is not None
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            if self._keeper.poll() is not None:
                raise NashcastError(f"nats-server has ended at once: {said_last(self.log, begun)} (see {self.log})")
            try:
                # nats-server writes it once it accepts connections; it begins with the program's own name.
                ports = next(self.folder.glob(f"nats-server*_{self._pid}.ports"))
                return int(json.loads(ports.read_text())["nats"][0].rpartition(":")[2])
            except (OSError, ValueError, LookupError, StopIteration):
                time.sleep(POLL_S)
        raise NashcastError(f"nats-server did not accept connections within {TIMEOUT_S:g} s: see {self.log}.")

    def _clear_ports(self) -> None:
        """Remove files of ports, which a killed broker leaves behind."""
        for path in self.folder.glob("nats-server*_*.ports"):
            path.unlink(missing_ok=True)
