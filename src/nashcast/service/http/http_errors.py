"""Errors as HTTP responses: a status, a machine-readable code and a message."""

from __future__ import annotations

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.http.bodies import BadJson
from nashcast.service.http.sse import TooManyReaders
from nashcast.service.journal.schema import JournalDamaged, JournalUnwritable
from nashcast.service.journal.writer import Busy, Failed
from nashcast.service.streams.intake import Conflict
from nashcast.service.streams.placement import LogAway
from nashcast.service.streams.views import encoded

# Conflicts that are reported as 404.
_NOT_FOUND = ("no_such_save_point",)


class Refused(NashcastError):
    """An error response. headers: additional headers."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers or {}

    def body(self) -> bytes:
        return encoded({"error": {"code": self.code, "message": str(self)}})


def refusal(error: Exception) -> Refused | None:
    """The response to an expected error; None for an internal error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Conflict):
        return Refused(404 if error.code in _NOT_FOUND else 409, error.code, str(error))
    if isinstance(error, BadJson):
        return Refused(400, "not_json", str(error))
    if isinstance(error, Busy):
        return Refused(503, "busy", str(error), {"Retry-After": "1"})
    if isinstance(error, LogAway):
        return Refused(503, "cluster_away", str(error), {"Retry-After": "1"})
    if isinstance(error, TooManyReaders):
        return Refused(503, "too_many_readers", "the event stream has too many readers. Try again later.")
    if isinstance(error, Failed):
        return Refused(503, "failed", str(error))
    if isinstance(error, JournalUnwritable):
        return Refused(507, "journal_unwritable", f"{error} Nothing was stored. Make room, then post it again.")
    if isinstance(error, JournalDamaged):
        return Refused(503, "journal_damaged", str(error))
    if isinstance(error, InvalidInput):
        return Refused(422, "invalid", str(error))
    return None
