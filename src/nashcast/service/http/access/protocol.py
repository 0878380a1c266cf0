"""uvicorn's httptools protocol with limits on the size and duration of headers."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_BYTES, HEADER_SECONDS = 32_768, 8.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """Without the limits, endless headers would fill the memory or hold a connection forever."""

    _reading = 0
    _timer: Any = None

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._reading == 0 and self._timer is None:
            self._await_headers()
        self._reading += len(data)
        super().data_received(data)
        if self._timer is not None and self._reading > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self._give_up()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._reading = 0
        super().on_message_complete()

    def _await_headers(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._stop_timer()
        self.transport.close()
