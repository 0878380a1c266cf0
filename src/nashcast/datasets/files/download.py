"""Download of a file over HTTP, resumed where it was interrupted."""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import BinaryIO

from nashcast.errors import InvalidInput, NashcastError

Progress = Callable[[int, int], None]
CHUNK = 1 << 16


def download(
    url: str,
    file: BinaryIO,
    size: int,
    progress: Progress | None = None,
    *,
    timeout: float = 30.0,
    attempts: int = 4,
    pause: float = 0.5,
) -> None:
    """Append to `file` (unbuffered, opened "a+b") what it lacks of the `size` bytes at `url`.

    A connection that breaks or times out is retried, from where it broke. The result may still be the wrong bytes, too
    few, or more than `size`: the caller must check it.
    """
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("url", repr(url), "Pass an address that begins with https:// or http://.")
    reason = ""
    for attempt in range(attempts):
        time.sleep(pause * attempt)
        try:
            if _receive(url, file, size, progress, timeout):
                return
            reason = "the connection was cut"
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"the server answered {error.code} {error.reason}"
            if error.code == 416:  # the server's file is shorter than the part file
                os.truncate(file.fileno(), 0)
            elif error.code < 500 and error.code != 429:
                raise NashcastError(f"{url}: {reason}. Check the address, or pass another with --url.") from None
        except urllib.error.URLError as error:
            reason = str(getattr(error.reason, "strerror", None) or error.reason)
        except TimeoutError:
            reason = f"nothing came for {timeout:g} s"
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "strerror", None) or error or type(error).__name__)
    have = os.fstat(file.fileno()).st_size
    saved = f"{have:,} of {size:,} bytes are saved: run the command again to resume the download" if have else ""
    raise NashcastError(f"{url}: {reason}, {attempts} times. {saved or 'Check the network, or pass another --url'}.")


def _receive(url: str, file: BinaryIO, size: int, progress: Progress | None, timeout: float) -> bool:
    """Use one connection. Returns whether it gave all announced bytes."""
    have = os.fstat(file.fileno()).st_size
    headers = {"User-Agent": "nashcast", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
        if have and not (response.status == 206 and _first_byte(response) == have):
            os.truncate(file.fileno(), 0)  # the server ignores Range and sends the whole file
            have = 0
        length = response.headers.get("Content-Length", "")
        promised = have + int(length) if length.isdigit() else size
        while chunk := response.read(CHUNK):
            have += len(chunk)
            _write(file, chunk)
            if have > size:  # a wrong file, perhaps endless
                return True
            if progress is not None:
                progress(have, size)
    return have >= promised


def _first_byte(response) -> int | None:
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def _write(file: BinaryIO, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        try:
            left = left[file.write(left) :]
        except OSError as error:
            # Not an OSError, which would count as a broken connection and be retried.
            remedy = "Free some room, or pass another --folder."
            raise NashcastError(f"cannot write {file.name}: {error.strerror}. {remedy}") from None
