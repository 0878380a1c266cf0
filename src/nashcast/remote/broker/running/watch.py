"""Watches a running broker's folder for changed rules and certificates, and for a full disk.

nats-server reads its rules and certificates only on request, and a stream whose disk was full stores nothing more
until the server is restarted. So a thread of the program that runs the broker checks both, about once a second.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from nashcast.errors import NashcastError
from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER, certificate_path, key_path
from nashcast.remote.broker.certificates.expiry import ExpiryWatch
from nashcast.remote.broker.enrolling.enrolment import FILE, read
from nashcast.remote.broker.rules import CONF

log = logging.getLogger("nashcast.remote")
POLL_S = 0.5
# Free bytes below which the disk counts as full, and from which on it counts as free again.
FULL, FREE = 1 << 18, 1 << 20
NO_SPACE = b"no space left on device"


class BrokerWatch:
    """folder: of the federation.   log_file: the broker's.   reload, restart: called for the broker.

    Runs a thread from `start` to `stop`, which calls `look` at intervals.
    """

    def __init__(
        self,
        folder: Path,
        log_file: Path,
        reload: Callable[[], None],
        restart: Callable[[], None],
        poll: float = POLL_S,
    ):
        self._folder, self._log_file, self._reload, self._restart = folder, log_file, reload, restart
        self._poll, self._ended = poll, threading.Event()
        self._thread: threading.Thread | None = None
        self._read_to = log_file.stat().st_size if log_file.exists() else 0
        self.full = False
        settings = read(folder).settings
        self._expiry = None
        self._files = [folder / FILE, folder / CONF]
        if settings.certificates is not None:
            certs, names = settings.certificates, (AUTHORITY, BROKER)
            self._expiry = ExpiryWatch(certs, names)
            self._files += [*(certificate_path(certs, name) for name in names), key_path(certs, BROKER)]
        self._seen = self._state()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="nashcast broker watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def look(self) -> None:
        if self._expiry is not None:
            self._expiry.tell()
        self._look_at_disk()
        seen = self._state()
        if seen != self._seen:
            self._seen = seen
            self._reload()
            self._seen = self._state()  # reloading writes the rules

    def _run(self) -> None:
        while not self._ended.wait(self._poll):
            try:
                self.look()
            except (NashcastError, OSError) as error:
                log.warning("broker of %s: %s", self._folder, error)

    def _look_at_disk(self) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < FULL or self._no_space_logged():
            if not self.full:
                log.warning("broker of %s: its disk is full (%d bytes free). Make space on it.", self._folder, free)
            self.full = True
        if self.full and free >= FREE:
            log.warning("broker of %s: there is space on its disk again; it is started again", self._folder)
            self._restart()
            self.full, self._read_to = False, self._log_file.stat().st_size

    def _no_space_logged(self) -> bool:
        try:
            size = self._log_file.stat().st_size
            with self._log_file.open("rb") as file:
                # A shorter log has been rotated.
                file.seek(self._read_to if size >= self._read_to else 0)
                said = file.read(1 << 20)
        except OSError:
            return False
        self._read_to = size
        return NO_SPACE in said

    def _state(self) -> list[tuple[int, int, int]]:
        found = []
        for path in self._files:
            try:
                about = path.stat()
                found.append((about.st_mtime_ns, about.st_ino, about.st_size))
            except OSError:
                found.append((0, 0, 0))
        return found
