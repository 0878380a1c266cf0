"""`fetch` against real servers that drop, ignore, alter and refuse: no partial file ever looks whole."""

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

import nashcast as nc
from nashcast.datasets.files.download import CHUNK, download
from nashcast.datasets.files.known_files import KnownFile
from nashcast.datasets.files.library import add, fetch
from support.servers import (
    altered,
    drops,
    far_longer,
    good,
    ignores_range,
    lies_about_range,
    refuses,
    serving,
    shorter,
    silent,
    without_length,
)

CONTENT = b"date,a,b\n" + b"".join(b"%d,%d.5,%d\n" % (i, i, 7 * i % 1000) for i in range(20_000))
HALF = len(CONTENT) // 2
FILE = KnownFile(
    name="toy",
    file="toy.csv",
    url="http://127.0.0.1:9/unused",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
    date="date",
    columns=("a", "b"),
    source="this test",
    licence="none",
)


def get(server, folder, **options):
    return fetch(FILE, folder, server.url, **{"pause": 0.0, **options})


def fails(server, folder, **options):
    """The message, once it is sure that nothing looks like the file."""
    with pytest.raises(nc.NashcastError) as caught:
        get(server, folder, **options)
    assert not (folder / "toy.csv").exists()
    return str(caught.value)


def part(folder, content=None):
    path = folder / "toy.csv.part"
    if content is not None:
        path.write_bytes(content)
    return path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file_arrives_and_is_not_fetched_twice(tmp_path):
    folder, told = tmp_path / "not" / "yet", []

    def progress(done, total):
        assert not (folder / "toy.csv").exists()
        told.append((done, total))

    with serving(CONTENT) as server:
        path = get(server, folder, progress=progress)
        assert get(server, folder) == path
        assert server.seen == [None]
    assert path == folder / "toy.csv"
    assert path.read_bytes() == CONTENT
    assert files(folder) == ["toy.csv"]
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert len(told) > 2


def test_a_server_without_a_length(tmp_path):
    with serving(CONTENT, without_length) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT


def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path):
    part(tmp_path, CONTENT[:HALF])
    with serving(CONTENT) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT
        assert server.seen == [f"bytes={HALF}-"]
    assert files(tmp_path) == ["toy.csv"]


@pytest.mark.parametrize("answer", [ignores_range, without_length, lies_about_range])
def test_a_server_that_ignores_range_starts_again(answer, tmp_path):
    part(tmp_path, b"x" * HALF)
    with serving(CONTENT, answer) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT
        assert server.seen == [f"bytes={HALF}-"]


def test_a_connection_that_breaks_is_tried_again_from_there(tmp_path):
    with serving(CONTENT, drops(until=2)) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT
        assert server.seen == [None, f"bytes={HALF}-", f"bytes={HALF + (len(CONTENT) - HALF) // 2}-"]


def test_a_connection_that_breaks_for_ever_leaves_what_came_for_the_next_time(tmp_path):
    with serving(CONTENT, drops()) as server:
        message = fails(server, tmp_path)
        assert len(server.seen) == 4
    have = part(tmp_path).stat().st_size
    assert HALF < have < len(CONTENT)
    assert message == (
        f"{server.url}: the connection was cut, 4 times. {have:,} of {len(CONTENT):,} bytes are saved: "
        "run the command again to resume the download."
    )
    with serving(CONTENT) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT
        assert server.seen == [f"bytes={have}-"]


def test_altered_bytes_are_refused_and_removed(tmp_path):
    with serving(CONTENT, altered) as server:
        message = fails(server, tmp_path)
    assert f"what came from {server.url} is altered: sha256 " in message
    assert f"not {FILE.sha256}. It was removed: run the command again, or pass another --url." in message
    assert files(tmp_path) == []


def test_a_shorter_file_is_refused_and_removed(tmp_path):
    with serving(CONTENT, shorter) as server:
        assert f"is truncated (1,000 of {len(CONTENT):,} bytes): sha256" in fails(server, tmp_path)
    assert files(tmp_path) == []


def test_a_longer_file_is_cut_off_refused_and_removed(tmp_path):
    told = []
    with serving(CONTENT, far_longer) as server:
        message = fails(server, tmp_path, progress=lambda done, total: told.append(done))
    assert f"is longer than the {len(CONTENT):,} bytes of the file. It was removed" in message
    assert max(told) <= len(CONTENT)
    assert files(tmp_path) == []


def test_no_more_is_received_than_shows_that_a_file_is_longer(tmp_path):
    with serving(CONTENT, far_longer) as server, (tmp_path / "raw").open("a+b", buffering=0) as file:
        download(server.url, file, len(CONTENT), pause=0.0)
    assert len(CONTENT) < (tmp_path / "raw").stat().st_size <= len(CONTENT) + CHUNK


@pytest.mark.parametrize(
    ("content", "words"), [(CONTENT + b"1", "longer than the"), (CONTENT[:-1] + b"#", "altered: sha256")]
)
def test_a_part_that_cannot_become_the_file_is_removed_without_asking(content, words, tmp_path):
    part(tmp_path, content)
    with serving(CONTENT) as server:
        assert words in fails(server, tmp_path)
        assert server.seen == []
        assert files(tmp_path) == []
        assert get(server, tmp_path).read_bytes() == CONTENT


def test_a_part_of_another_file_is_found_out_at_the_end(tmp_path):
    part(tmp_path, b"x" * HALF)
    with serving(CONTENT) as server:
        assert "altered: sha256" in fails(server, tmp_path)
        assert get(server, tmp_path).read_bytes() == CONTENT


def test_a_whole_part_needs_no_server(tmp_path):
    part(tmp_path, CONTENT)
    assert fetch(FILE, tmp_path).read_bytes() == CONTENT


def test_a_server_that_has_less_than_we_have(tmp_path):
    part(tmp_path, CONTENT[:HALF])
    with serving(CONTENT, shorter) as server:
        assert "truncated (1,000 of" in fails(server, tmp_path)
        assert server.seen == [f"bytes={HALF}-", None]


def test_a_missing_page_is_asked_for_once(tmp_path):
    with serving(CONTENT, refuses(404)) as server:
        message = fails(server, tmp_path)
        assert server.seen == [None]
    assert message == f"{server.url}: the server answered 404 Not Found. Check the address, or pass another with --url."
    assert files(tmp_path) == []


def test_a_busy_server_is_asked_again(tmp_path):
    with serving(CONTENT, refuses(503, until=2)) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT
        assert len(server.seen) == 3
    with serving(CONTENT, refuses(503)) as server:
        message = fails(server, tmp_path / "other")
    assert message.endswith(
        "the server answered 503 Service Unavailable, 4 times. Check the network, or pass another --url."
    )


def test_a_silent_server_is_given_up(tmp_path):
    with serving(CONTENT, silent) as server:
        assert "nothing came for 0.1 s, 4 times. " in fails(server, tmp_path, timeout=0.1)


def test_no_server_at_all(tmp_path):
    with serving(CONTENT) as server:
        url = server.url
    with pytest.raises(nc.NashcastError) as caught:
        fetch(FILE, tmp_path, url, pause=0.0)
    assert str(caught.value) == f"{url}: Connection refused, 4 times. Check the network, or pass another --url."


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "file:///etc/hostname", "toy.csv"])
def test_other_addresses_are_refused(url, tmp_path):
    with pytest.raises(nc.InvalidInput) as caught:
        fetch(FILE, tmp_path, url)
    assert str(caught.value) == f"url: got {url!r}. Pass an address that begins with https:// or http://."


def test_a_damaged_file_is_replaced(tmp_path):
    (tmp_path / "toy.csv").write_bytes(CONTENT[:HALF])
    with serving(CONTENT) as server:
        assert get(server, tmp_path).read_bytes() == CONTENT


def test_another_version_that_was_accepted_is_not_replaced(tmp_path):
    other = tmp_path / "other.csv"
    other.write_bytes(CONTENT + b"20000,1,1\n")
    add(other, FILE, tmp_path / "data", any_version=True)
    with serving(CONTENT) as server:
        with pytest.raises(nc.InvalidInput) as caught:
            get(server, tmp_path / "data")
        assert server.seen == []
    words = "toy.csv: got another version, added with --any-version. Remove it to fetch the published one."
    assert str(caught.value).endswith(words)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, the disk that is always full")
def test_a_full_disk(tmp_path):
    part(tmp_path).symlink_to("/dev/full")
    with serving(CONTENT, good) as server:
        message = fails(server, tmp_path)
        assert len(server.seen) == 1
    where = tmp_path / "toy.csv.part"
    assert message == f"cannot write {where}: No space left on device. Free some room, or pass another --folder."


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(nc.NashcastError) as caught:
        fetch(FILE, tmp_path / "data")
    where = tmp_path / "data" / "toy.csv.part"
    assert str(caught.value) == f"cannot write {where}: File exists. Pass a --folder with room that you may write to."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(tmp_path):
    (tmp_path / "data").mkdir(mode=0o500)
    with pytest.raises(nc.NashcastError, match=r"cannot write .*Permission denied\. Pass a --folder"):
        fetch(FILE, tmp_path / "data")


def test_two_downloads_at_once_do_not_mix(tmp_path):
    with part(tmp_path, b"").open("ab") as held, serving(CONTENT) as server:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert fails(server, tmp_path).endswith("another download of this file is under way. Wait for it to end.")
        assert server.seen == []
