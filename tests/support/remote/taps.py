"""A tap on the broker: a proxy that writes down every byte, what was published in them, and a search for numbers."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

_CONNECT = re.compile(rb"CONNECT (\{.*?\})\r\n")


class Sent(NamedTuple):
    """One message that a party published."""

    subject: str
    headers: bytes
    data: bytes


class Line:
    """One connection: all bytes the client sent, and all it got."""

    def __init__(self):
        self.up, self.down = bytearray(), bytearray()

    @property
    def name(self) -> str:
        """As the client calls itself to the broker."""
        found = _CONNECT.search(self.up)
        return "" if found is None else json.loads(found[1])["name"]

    def published(self) -> list[Sent]:
        """Read from the bytes of NATS's text protocol."""
        data, at, found = bytes(self.up), 0, []
        while at < len(data):
            end = data.index(b"\r\n", at)
            verb, *words = data[at:end].decode().split()
            at = end + 2
            if verb in ("PUB", "HPUB"):
                heads = int(words[-2]) if verb == "HPUB" else 0
                size = int(words[-1])
                found.append(Sent(words[0], data[at : at + heads], data[at + heads : at + size]))
                at += size + 2
        return found


class Tap:
    """Listens on a port of its own and passes everything on to the broker and back."""

    def __init__(self, port: int):
        self._port, self.lines, self._ends = port, [], []
        self._door = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._welcome, daemon=True)]

    @property
    def port(self) -> int:
        return self._door.getsockname()[1]

    def line(self, name: str) -> Line:
        (found,) = [line for line in self.lines if line.name == name]
        return found

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        for end in (self._door, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(10)

    def _welcome(self):
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            broker, line = socket.create_connection(("127.0.0.1", self._port)), Line()
            self.lines.append(line)
            self._ends += [client, broker]
            for source, sink, record in ((client, broker, line.up), (broker, client, line.down)):
                thread = threading.Thread(target=_pass_on, args=(source, sink, record), daemon=True)
                self._threads.append(thread)
                thread.start()


def _pass_on(source, sink, record):
    try:
        while data := source.recv(1 << 16):
            record.extend(data)
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def doubles_in(data: bytes, values: Iterable[float]) -> set[float]:
    """Which of these numbers stand in the bytes as float64, either end first, wherever they begin."""
    wanted = np.unique(np.asarray(list(values), dtype="<f8").view("<u8"))
    found = set()
    for offset in range(8):
        words = np.frombuffer(data, dtype="<u8", offset=offset, count=max(0, (len(data) - offset) // 8))
        for order in (words, words.byteswap()):
            found |= set(wanted[np.isin(wanted, order)].view("<f8").tolist())
    return found


def singles_in(data: bytes, arrays: Iterable[np.ndarray]) -> set[float]:
    """Which arrays stand in the bytes as float32, by any two numbers in a row: four bytes alone are soon a chance."""
    pairs = {}
    for array in arrays:
        flat = np.ravel(array)
        for order in ("<f4", ">f4"):
            with np.errstate(over="ignore"):
                short = flat.astype(order)
            raw = short.tobytes()
            for i in range(len(flat) - 1):
                if flat[i] != 0.0 and flat[i + 1] != 0.0:
                    pairs[int.from_bytes(raw[4 * i : 4 * i + 8], "little")] = float(flat[i])
    wanted = np.array(sorted(pairs), dtype="<u8")
    found = set()
    for offset in range(8):
        words = np.frombuffer(data, dtype="<u8", offset=offset, count=max(0, (len(data) - offset) // 8))
        found |= {pairs[int(word)] for word in wanted[np.isin(wanted, words)]}
    return found


def settings_in(data: bytes, settings: dict[str, float | int]) -> set[str]:
    """Which settings stand in the bytes: as float64, as float32 of msgpack, as 8 bytes of a whole number, as text."""
    found = set()
    for name, value in settings.items():
        forms = [repr(value).encode(), f"{value:.6g}".encode()]
        if isinstance(value, float):
            forms += [np.array(value, dtype=order).tobytes() for order in ("<f8", ">f8")]
            forms += [b"\xca" + np.array(value, dtype=order).tobytes() for order in ("<f4", ">f4")]
        else:
            forms += [value.to_bytes(8, order) for order in ("little", "big")]
        if any(form in data for form in forms):
            found.add(name)
    return found
