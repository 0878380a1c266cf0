"""Validity of certificates: warnings before one expires, with the command that renews it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.certs import (
    AUTHORITY,
    Certificate,
    certificate_path,
    read_certificate,
    renewal,
)

log = logging.getLogger("nashcast.remote")
WARN_DAYS = 30
# Minimum time between two log lines about one certificate.
REPEAT = timedelta(days=1)


def check_valid(folder: str | Path, name: str, *, now: datetime | None = None) -> Certificate:
    """The certificate, if it is valid now; else an error with the file, the time, and the remedy."""
    now = now or datetime.now(UTC)
    found = read_certificate(folder, name)
    if found.expires <= now:
        remedy = f"Renew it: {renewal(found.path.parent, name)}"
        if name == AUTHORITY:
            remedy = f"Its operator makes another: {renewal(found.path.parent, name)}"
        raise InvalidInput("certificate", f"{found.path}, which expired on {_at(found.expires)}", remedy)
    if found.begins > now:
        got = f"{found.path}, which is valid from {_at(found.begins)} on, while this machine's clock says {_at(now)}"
        raise InvalidInput("certificate", got, "Set the clock of this machine, or of the one that signed it.")
    return found


class ExpiryWatch:
    """Certificates in a folder, read again whenever their files change.

    names: of certificates to watch; missing ones are left out.   clock: the time, in UTC.
    """

    def __init__(
        self,
        folder: str | Path,
        names: Sequence[str],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self._folder, self._names, self._clock = Path(folder).expanduser(), tuple(names), clock
        self._read: dict[str, tuple[int, Certificate]] = {}
        self._told: dict[str, datetime] = {}

    def days_left(self) -> dict[str, float]:
        """Days until expiry by name; negative for an expired certificate."""
        now = self._clock()
        return {name: (found.expires - now).total_seconds() / 86400 for name, found in self._certificates().items()}

    def warnings(self) -> list[str]:
        """Certificates that expire soon or have expired, with the command that renews them."""
        return list(self._warnings().values())

    def tell(self) -> None:
        """Log the warnings, at most once a day for each certificate."""
        now = self._clock()
        for name, warning in self._warnings().items():
            if name not in self._told or now - self._told[name] >= REPEAT:
                self._told[name] = now
                log.warning("%s", warning)

    def _warnings(self) -> dict[str, str]:
        found = {}
        for name, days in self.days_left().items():
            if days < WARN_DAYS:
                each = self._read[name][1]
                when = f"expired on {_at(each.expires)}" if days <= 0 else f"expires on {_at(each.expires)}"
                left = "" if days <= 0 else f", in {days:.0f} days"
                found[name] = f"certificate {each.path} {when}{left}. Renew it: {renewal(each.path.parent, name)}"
        return found

    def _certificates(self) -> dict[str, Certificate]:
        for name in self._names:
            try:
                changed = certificate_path(self._folder, name).stat().st_mtime_ns
                if name not in self._read or self._read[name][0] != changed:
                    self._read[name] = changed, read_certificate(self._folder, name)
            except (OSError, NashcastError):  # missing or being written: the last content read is used
                continue
        return {name: found for name, (_, found) in self._read.items()}


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
