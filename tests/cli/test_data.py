"""`nashcast data`: its four subcommands with good, bad and no input."""

import argparse
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import nashcast.cli.main
from nashcast.cli import data
from nashcast.cli.main import main
from nashcast.datasets.files.known_files import KnownFile
from support.recorded import recorded_folder

CONTENT = b"date,a\n1,2\n2,3\n3,5\n"
TOY = KnownFile(
    "toy", "toy.csv", "", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "date", ("a",), "", "free", ("toy",)
)


def parser():
    top = argparse.ArgumentParser(prog="nashcast")
    data.add_to(top.add_subparsers(dest="command", metavar="COMMAND", required=True))
    return top


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """This command alone, in a folder of its own, with nothing of the user's."""
    monkeypatch.setattr(nashcast.cli.main, "parser", parser)
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(recorded_folder()))
    return recorded_folder()


@pytest.fixture
def toy(monkeypatch):
    """The address of a file that the command knows, on a real server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/toy.csv" else 404)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    known = TOY._replace(url=f"{url}/toy.csv")
    monkeypatch.setattr("nashcast.datasets.files.known_files.KNOWN", (known,))
    monkeypatch.setattr("nashcast.datasets.files.library.KNOWN", (known,))
    yield url
    server.shutdown()
    server.server_close()
    thread.join()


def printed(capsys, *arguments):
    assert main(["data", *arguments]) == 0
    return capsys.readouterr().out


def failure(capsys, *arguments):
    assert main(["data", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nashcast: ")
    return err.removeprefix("nashcast: ").rstrip()


def test_list_names_every_stream_and_how_to_get_it(capsys, tmp_path):
    page = printed(capsys, "list")
    lines = page.splitlines()
    assert lines[0].split() == ["name", "steps", "inputs", "targets", "here", "what"]
    assert (
        "logistic                200       1        1  yes   the logistic map, its rate driven by three sines" in lines
    )
    assert "ett                   2,000      20        1  no    oil temperature of a transformer" in page
    assert "  ett, ett-validation: Zhou et al., ETDataset, ETT-small-h1; CC BY-ND 4.0" in lines
    assert "    missing; get it with: nashcast data fetch ett" in lines
    assert lines[-1] == f"Recorded files are searched for in {tmp_path / 'data'}."


def test_list_as_json(capsys, recorded):
    answer = json.loads(printed(capsys, "list", "--json"))
    assert answer["folder"] == str(recorded)
    streams = {stream["name"]: stream for stream in answer["streams"]}
    assert streams["ett"] == {
        "name": "ett",
        "summary": "oil temperature of a transformer, hourly from 2016-07-01",
        "steps": 2000,
        "inputs": 20,
        "targets": 1,
        "options": ["steps", "first", "path", "scale", "any_version"],
        "source": "Zhou et al., ETDataset, ETT-small-h1",
        "licence": "CC BY-ND 4.0",
        "needs": "ETTh1.csv",
        "available": True,
        "get": "nashcast data fetch ett",
    }
    assert streams["file"]["steps"] is None
    assert streams["periodic"]["needs"] is None


def test_show_a_recorded_stream(capsys, recorded):
    page = printed(capsys, "show", "ett")
    for words in (
        "2,000 steps, 20 inputs, 1 target, 2016-07-01 01:00:00 to 2016-09-22 08:00:00",
        "persistence MSE  6.956e-04",
        "target           0.2737 to 1; in original units 0 + 46.007 × value",
        "source           Zhou et al., ETDataset, ETT-small-h1; CC BY-ND 4.0",
        "inputs (the first 5) → targets",
        "0.126655 0.0436673 0.0347556 0.010042 0.0913557 … → 0.603973",
        "1999  2016-09-22 08:00:00",
    ):
        assert words in page
    assert "unit" not in printed(capsys, "show", "ett", "--set", "scale=none")


def test_show_as_json(capsys):
    record = json.loads(printed(capsys, "show", "concept", "--json", "--set", "steps=20"))
    assert (record["steps"], record["inputs"], record["targets"], record["dates"]) == (20, 3, 2, None)
    assert [row["step"] for row in record["rows"]] == [0, 1, 2, 17, 18, 19]
    assert len(record["input_ranges"]) == 3
    assert len(record["target_ranges"]) == len(record["unit"]) == len(record["offset"]) == len(record["start"]) == 2
    assert record["licence"]
    assert record["persistence_mse"] > 0


@pytest.mark.parametrize("steps", [1, 2, 5, 6, 7])
def test_show_a_short_stream_shows_no_row_twice(steps, capsys):
    page = printed(capsys, "show", "logistic", "--set", f"steps={steps}")
    assert page.count(" → ") == 1 + min(steps, 6)
    assert ("…" in page) == (steps > 6)


def test_show_a_file_of_ones_own(capsys, here):
    rows = [f"2024-01-{day:02};{day},5;{day % 3}" for day in range(1, 32)]
    (here / "mine.csv").write_text("\n".join(["day;price;volume", *rows]))
    options = (
        "path=mine.csv",
        "target=price",
        "inputs=price,volume",
        "lags=price:3",
        "date=day",
        "separator=;",
        "decimal=,",
    )
    given = [word for option in (*options, "warmup=10") for word in ("--set", option)]
    page = printed(capsys, "show", "file", *given)
    assert "21 steps, 4 inputs, 1 target, 2024-01-11 to 2024-01-31" in page
    assert "in original units 6 + 2.87228 × value" in page
    assert "source           your own\n" in page


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps=5", ("steps", 5)),
        ("any-version=true", ("any_version", True)),
        ('target="1"', ("target", "1")),
        ("target=a, b", ("target", ["a", "b"])),
        ('inputs=["a", "b"]', ("inputs", ["a", "b"])),
        ("lags={a = 2}", ("lags", {"a": 2})),
        ("lags=a:2, b c:1", ("lags", {"a": 2, "b c": 1})),
        ("separator=tab", ("separator", "\t")),
        ("path=a=b.csv", ("path", "a=b.csv")),
    ],
)
def test_options_are_read_as_toml_or_text(text, value):
    assert data.option(text) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "ett"], "ett: got no file "),
        (["show", "etts"], "stream: got 'etts'. Did you mean 'ett'?"),
        (["show", "logistic", "--set", "step=3"], "stream 'logistic': got the option 'step'. Did you mean 'steps'?"),
        (["show", "logistic", "--set", "steps=few"], "steps: got str 'few'. Pass a whole number ≥ 1."),
        (["show", "file"], "stream 'file': got no path and no target. Pass path and target."),
        (["show", "file", "--set", "path=no.csv", "--set", "target=a"], "path: got no.csv, which does not exist."),
        (["fetch", "etts"], "name: got 'etts'. Did you mean 'ett'"),
        (
            ["fetch", "logistic"],
            "name: got 'logistic', a stream without a file to fetch. It needs none: nashcast data show",
        ),
        (["fetch", "water-flow"], "without a file to fetch. Install it: pip install 'nashcast[river]'."),
        (["fetch", "ett", "--url", "ftp://x"], "url: got 'ftp://x'. Pass an address that begins with https://"),
        (["add", "no.csv"], "file: got no.csv, which is no file. Pass the path of a file."),
        (["add", "no.csv", "--as", "mine"], "file: got no.csv, which is no file."),
    ],
)
def test_failure_exits_with_1_and_says_why(arguments, words, capsys):
    assert words in failure(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "arguments are required: WHAT"),
        (["fly"], "invalid choice: 'fly'"),
        (["show"], "arguments are required: NAME"),
        (["fetch"], "arguments are required: NAME"),
        (["add"], "arguments are required: FILE"),
        (["show", "ett", "--set", "steps"], "got 'steps'; write OPTION=VALUE, for example steps=500"),
        (["show", "file", "--set", "lags=a:b"], "got 'lags=a:b'; write lags=3 or lags=NAME:3,NAME:1"),
        (["fetch", "all", "--url", "http://x"], "--url is the address of one file; name that file instead of all"),
    ],
)
def test_misuse_exits_with_2_and_says_why(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["data", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["toy", "toy.csv", "all"])
def test_fetch(name, toy, capsys, here):
    path = here / "data" / "toy.csv"
    assert printed(capsys, "fetch", name) == f"toy: {path} ({len(CONTENT)} bytes, checksum verified; free)\n"
    assert path.read_bytes() == CONTENT


def test_fetch_to_a_folder_from_a_mirror_as_json(toy, capsys, here):
    answer = json.loads(printed(capsys, "fetch", "toy", "--folder", "here", "--url", f"{toy}/toy.csv", "--json"))
    file = {"name": "toy", "path": "here/toy.csv", "bytes": len(CONTENT), "sha256": TOY.sha256}
    assert answer == {"files": [file]}
    assert (here / "here" / "toy.csv").read_bytes() == CONTENT


def test_fetch_from_a_wrong_address(toy, capsys, here):
    assert failure(capsys, "fetch", "toy", "--url", f"{toy}/no.csv").startswith(
        f"{toy}/no.csv: the server answered 404"
    )
    assert not list((here / "data").iterdir())


def test_fetch_draws_a_bar_on_a_terminal_only(toy, capsys, monkeypatch):
    printed(capsys, "fetch", "toy", "--folder", "one")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["data", "fetch", "toy", "--folder", "two"]) == 0
    assert "\r\x1b[K" in capsys.readouterr().err
    assert main(["data", "fetch", "toy", "--folder", "three", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_add(toy, capsys, here):
    (here / "mine.csv").write_bytes(CONTENT)
    path = here / "data" / "toy.csv"
    assert printed(capsys, "add", "mine.csv") == f"toy: {path} (checksum verified)\n"
    (here / "mine.csv").write_bytes(CONTENT + b"4,7\n")
    words = "file: got mine.csv, which is none of the recorded files. Say which it is: --as toy."
    assert failure(capsys, "add", "mine.csv").startswith(words)
    assert "Pass --any-version to accept a file" in failure(capsys, "add", "mine.csv", "--as", "toy")
    assert path.read_bytes() == CONTENT
    page = printed(capsys, "add", "mine.csv", "--as", "toy", "--any-version")
    assert page == f"toy: {path} (another version than the published one)\n"
    answer = json.loads(printed(capsys, "add", "mine.csv", "--as", "toy", "--any-version", "--json", "--folder", "new"))
    total = hashlib.sha256(CONTENT + b"4,7\n").hexdigest()
    record = {"name": "toy", "path": "new/toy.csv", "bytes": len(CONTENT) + 4, "sha256": total}
    assert answer == {"files": [record | {"published_version": False}]}
