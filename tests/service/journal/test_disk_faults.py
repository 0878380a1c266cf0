"""Disks that are full or read-only under a real process, and a state that cannot be trusted."""

import contextlib
import os
import resource
import subprocess

import pytest

from nashcast import NashcastError
from nashcast.client import ServiceRefused
from nashcast.service.journal.writer import Failed
from support.service.running import Running
from support.service.served import FILE, Served, entries, recorded, series, uninterrupted

VALUES = series(20_000)


def post_until_refused(client, start: int) -> tuple[int, ServiceRefused]:
    for step in range(start, len(VALUES), 50):
        try:
            client.observe_many([(v, v) for v in VALUES[step : step + 50]], first_step=step)
        except ServiceRefused as refused:
            return step, refused
    raise AssertionError("it was never refused")


def check_refused(served, client, step: int, refused: ServiceRefused) -> None:
    """Nothing of the batch is there, what was acknowledged is, and the last forecast still stands."""
    assert (refused.status, refused.code) == (507, "journal_unwritable")
    assert "Nothing was stored. Make room, then post it again." in str(refused)
    assert [entry.step for entry in entries(served.journal)] == list(range(step))
    assert client.forecast().step == step
    with pytest.raises(ServiceRefused, match="journal cannot be written") as not_ready:
        client._client.ask("GET", "/readyz", again=False)
    assert not_ready.value.status == 503


def check_whole(served, client, step: int) -> None:
    client.observe_many([(v, v) for v in VALUES[step : step + 50]], first_step=step)
    client._client.ask("GET", "/readyz")
    with_forecasts = recorded(client)
    kept = entries(served.journal)
    assert [entry.step for entry in kept] == list(range(step + 50))
    assert with_forecasts == uninterrupted(served.folder / "federation.toml", kept)


def test_a_file_that_may_not_grow(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))  # noqa: E731
    text = FILE.replace("snapshot_every = 40", "snapshot_every = 5000")
    with Served(tmp_path, preexec_fn=limit, text=text) as served, served.client(retries=0) as client:
        step, refused = post_until_refused(client, 0)
        assert step > 0
        check_refused(served, client, step, refused)
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        check_whole(served, client, step)
    with Served(tmp_path, text=text) as again, again.client() as client:
        assert client.forecast().step == step + 50


@contextlib.contextmanager
def small_disk(folder, size: str):
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("may not mount a small disk here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_and_a_read_only_one(tmp_path):
    with small_disk(tmp_path / "disk", "6m") as disk:
        with Served(tmp_path, "--journal", str(disk / "journal")) as served, served.client(retries=0) as client:
            served.journal = disk / "journal"
            client.observe_many([(v, v) for v in VALUES[:50]], first_step=0)
            filler = disk / "filler"
            with contextlib.suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            step, refused = post_until_refused(client, 50)
            check_refused(served, client, step, refused)
            filler.unlink()
            check_whole(served, client, step)
        assert subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True).returncode == 0
        refusing = Served(tmp_path, "--journal", str(disk / "journal"), wait=False)
        assert refusing._gone() == 1
        assert '"error": "journal: got' in refusing.log()
        assert "Read-only file system" in refusing.log()


def test_a_step_that_cannot_be_computed_stops_its_stream_rather_than_its_honesty(tmp_path, monkeypatch):
    running = Running(tmp_path)
    running.observe(VALUES[:5], 0)

    def broken():
        raise NashcastError("the forecast of step 6 is not finite.")

    monkeypatch.setattr(running.live, "predict", broken)
    with pytest.raises(Failed, match="NashcastError: the forecast of step 6"):
        running.observe(VALUES[5:6], 5)
    running.close()
    # The observation was durable before it was computed; computed again, it is not lost.
    with Running(tmp_path) as again:
        assert again.live.step == 5
