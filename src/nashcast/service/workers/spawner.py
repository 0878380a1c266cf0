"""A process with all imports done and no threads, from which all workers are forked.

The front has threads and an event loop by the time a worker has to be replaced, so it cannot fork one itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

_MARK = struct.Struct("<q")


class Born(NamedTuple):
    """line: socket to the worker.   mark: file with the stream it works on, readable after its death."""

    pid: int
    line: socket.socket
    mark: IO[bytes]
    handle: int  # a pidfd: the pid may be reused after the process ends

    def stream(self) -> int:
        """The stream it works or worked on; 0 for none."""
        data = os.pread(self.mark.fileno(), _MARK.size, 0)
        return _MARK.unpack(data)[0] if len(data) == _MARK.size else 0

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.handle)
        self.mark.close()


class Spawner:
    """Create it before threads start. folder: the journal's folder."""

    def __init__(self, folder: Path):
        self._line, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                # Only the front holds the journal's lock and the listening socket: both must be released when it ends.
                keep = theirs.fileno()
                os.closerange(3, keep)
                os.closerange(keep + 1, 65_536)
                nothing = os.open(os.devnull, os.O_RDONLY)
                os.dup2(nothing, 0)
                _serve(theirs, folder)
                status = 0
            finally:
                os._exit(status)
        theirs.close()

    def spawn(self) -> Born:
        ours, theirs = socket.socketpair()
        mark = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the worker
        try:
            socket.send_fds(self._line, [b"."], [theirs.fileno(), mark.fileno()])
            theirs.close()
            answer = self._line.recv(64)
            if not answer:
                raise ConnectionResetError("the process that makes workers is gone")
        except OSError:
            ours.close()
            mark.close()
            raise
        pid = json.loads(answer)
        return Born(pid, ours, mark, os.pidfd_open(pid))

    def close(self) -> None:
        self._line.close()
        os.waitpid(self.pid, 0)


def _serve(line: socket.socket, folder: Path) -> None:
    # A separate process group: Ctrl-C at a terminal reaches only the front, which stops the workers.
    os.setpgid(0, 0)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # dead workers are reaped at once
    while True:
        data, fds, _, _ = socket.recv_fds(line, 1, 2)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            line.close()
            _work(socket.socket(fileno=fds[0]), fds[1], folder)
        for fd in fds:
            os.close(fd)
        line.sendall(json.dumps(pid).encode())


def _work(line: socket.socket, mark: int, folder: Path) -> None:
    from nashcast.service.workers.worker import run

    def working_on(stream: int) -> None:
        os.pwrite(mark, _MARK.pack(stream), 0)

    status = 1
    try:
        run(line, folder, working_on)
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
