"""The folder of recorded files: locating, downloading, adding and checking them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from nashcast.datasets.files.download import Progress, download
from nashcast.datasets.files.known_files import KNOWN, KnownFile, known_file
from nashcast.datasets.files.sheet import Sheet, check_gaps
from nashcast.datasets.table import read_sheet
from nashcast.errors import InvalidInput, NashcastError


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder given, else NASHCAST_DATA, else nashcast's own in the user's data folder."""
    chosen = folder or os.environ.get("NASHCAST_DATA")
    if chosen:
        return Path(chosen).expanduser()
    shared = os.environ.get("XDG_DATA_HOME", "")
    if Path(shared).is_absolute():  # the XDG standard ignores a relative one
        return Path(shared) / "nashcast"
    try:
        return Path.home() / ".local" / "share" / "nashcast"
    except RuntimeError:
        remedy = "Set NASHCAST_DATA to a folder for recorded files."
        raise InvalidInput("NASHCAST_DATA", "nothing, and this user has no home folder", remedy) from None


def locate(known: KnownFile, path: str | Path | None = None) -> Path:
    """The file at `path`, or in it if it is a folder; else in the data folder. Only its existence is checked."""
    place = data_folder() if path is None else Path(path).expanduser()
    found = place / known.file if path is None or place.is_dir() else place
    if not found.is_file():
        copy = f"Or add a copy: nashcast data add {known.file}. Or set NASHCAST_DATA to the folder it is in."
        remedy = f"{_instructions(known)}. {copy}"
        raise InvalidInput(known.name, f"no file {found}", remedy)
    return found


def is_here(known: KnownFile) -> bool:
    """Whether the data folder contains it, judged by its size alone."""
    path = data_folder() / known.file
    return path.is_file() and (path.stat().st_size == known.size or _note(path).is_file())


def read_known(known: KnownFile, path: str | Path | None = None, any_version: bool = False) -> Sheet:
    """Its columns, after its checksum (unless `any_version`), names, dates and numbers have been checked."""
    found = locate(known, path)
    if not any_version:
        total = checksum(found)
        if total not in (known.sha256, _accepted(found)):
            remedy = (
                f"{_instructions(known, ' again')}. "
                f"If you want this version: nashcast data add --any-version --as {known.name} {found}."
            )
            raise _differs(known, found, total, remedy)
    return _valid(known, found)


def fetch(
    name: str | KnownFile,
    folder: str | Path | None = None,
    url: str | None = None,
    progress: Progress | None = None,
    *,
    timeout: float = 30.0,
    pause: float = 0.5,
) -> Path:
    """Download a file unless it is present; it gets its name only after its checksum is verified.

    An incomplete download is stored in `….part`, and a later call resumes it.   url: a mirror's.
    progress: called with the bytes so far and in all.   pause: seconds before a retry, longer each time.
    """
    known = _known(name)
    if known.page and not url:
        remedy = f"{_instructions(known)}, then add it: nashcast data add {known.file}. Or pass the --url of a copy."
        raise InvalidInput("name", f"{known.name!r}, a file without an address of its own", remedy)
    target = data_folder(folder) / known.file
    if target.is_file():
        total = checksum(target)
        if total == known.sha256:
            return target
        if total == _accepted(target):
            remedy = "Remove it to fetch the published one."
            raise InvalidInput(f"{target}", "another version, added with --any-version", remedy)
    part = target.with_name(f"{known.file}.part")
    with _opened(part) as file:
        try:
            if os.fstat(file.fileno()).st_size < known.size:
                download(url or known.url, file, known.size, progress, timeout=timeout, pause=pause)
        finally:
            if os.fstat(file.fileno()).st_size == 0:
                part.unlink(missing_ok=True)
        wrong = _mismatch_of(known, file)
        if wrong:
            part.unlink(missing_ok=True)
            remedy = "It was removed: run the command again, or pass another --url."
            raise NashcastError(f"{part}: what came from {url or known.url} is {wrong}. {remedy}")
        os.fsync(file.fileno())
    try:
        part.replace(target)
        _note(target).unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(target, error) from None
    return target


def add(
    path: str | Path, name: str | KnownFile | None = None, folder: str | Path | None = None, any_version: bool = False
) -> tuple[KnownFile, Path]:
    """Copy a file into the data folder after checking it. name: which one it is, if its file name does not show it.

    any_version: accept one with another checksum if its columns, dates and numbers are valid, and record that.
    """
    source = Path(path).expanduser()
    if not source.is_file():
        raise InvalidInput("file", f"{source}, which is no file", "Pass the path of a file.")
    total = checksum(source)
    known = _recognised(source, total) if name is None else _known(name)
    if total != known.sha256 and not any_version:
        remedy = "Pass --any-version to accept a file whose columns and dates are valid."
        raise _differs(known, source, total, remedy)
    _valid(known, source)
    target = data_folder(folder) / known.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=f"{known.file}.", suffix=".part", dir=target.parent)
        os.close(handle)
        try:
            shutil.copyfile(source, scratch)
            if checksum(Path(scratch)) != total:
                raise InvalidInput("file", f"{source}, which changed while it was copied", "Run the command again.")
            # The note first: without it the file would be refused; a note without a file has no effect.
            if total == known.sha256:
                _note(target).unlink(missing_ok=True)
            else:
                _note(target).write_text(total + "\n")
            Path(scratch).chmod(0o644)
            Path(scratch).replace(target)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(target, error) from None
    return known, target


def _known(name: str | KnownFile) -> KnownFile:
    return name if isinstance(name, KnownFile) else known_file(name)


def checksum(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _checksum_of(file)
    except OSError as error:
        raise InvalidInput("file", f"{path}, which cannot be read ({error.strerror})", "Check the file.") from None


def _checksum_of(file: BinaryIO) -> str:
    total = hashlib.sha256()
    while chunk := file.read(1 << 20):
        total.update(chunk)
    return total.hexdigest()


def _instructions(known: KnownFile, again: str = "") -> str:
    """How to get a file."""
    if known.page:
        return f"Download it{again} from {known.page}"
    return f"Fetch it{again}: nashcast data fetch {known.name}"


def _valid(known: KnownFile, path: Path) -> Sheet:
    sheet = read_sheet(path, known.columns, known.date) if known.reader is None else known.reader(path)
    check_gaps(sheet, "fill them")
    return sheet


def _recognised(source: Path, total: str) -> KnownFile:
    for known in KNOWN:
        if total == known.sha256 or source.name == known.file:
            return known
    listed = " or ".join(f"--as {known.name}" for known in KNOWN)
    remedy = (
        f"Say which it is: {listed}. A file of your own needs no adding: nashcast data show file --set path={source}."
    )
    raise InvalidInput("file", f"{source}, which is none of the recorded files", remedy)


def _differs(known: KnownFile, path: Path, total: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"{path}", f"a file that is {_mismatch(known, path.stat().st_size, total)}", remedy)


def _mismatch_of(known: KnownFile, file: BinaryIO) -> str:
    size = os.fstat(file.fileno()).st_size
    if size > known.size:
        return f"longer than the {known.size:,} bytes of the file"
    file.seek(0)
    total = _checksum_of(file)
    return "" if total == known.sha256 else _mismatch(known, size, total)


def _mismatch(known: KnownFile, size: int, total: str) -> str:
    what = f"truncated ({size:,} of {known.size:,} bytes)" if size < known.size else "altered"
    return f"{what}: sha256 {total}, not {known.sha256}"


def _note(target: Path) -> Path:
    return target.with_name(f"{target.name}.accepted")


def _accepted(path: Path) -> str | None:
    """The checksum that was accepted for this file with --any-version."""
    note = _note(path)
    return note.read_text().strip() if note.is_file() else None


def _opened(part: Path) -> BinaryIO:
    """The part file, locked against a second download at the same time."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("a+b", buffering=0)
    except OSError as error:
        raise _cannot_write(part, error) from None
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise NashcastError(f"{part}: another download of this file is under way. Wait for it to end.") from None
    except (ImportError, OSError):  # no such locks on this system or disk
        pass
    return file


def _cannot_write(path: Path, error: OSError) -> NashcastError:
    return NashcastError(f"cannot write {path}: {error.strerror}. Pass a --folder with room that you may write to.")
