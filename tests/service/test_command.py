"""`nashcast serve` and its tokens as a stranger meets them: files it reads, what it prints, what it refuses."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nashcast.cli.main import main
from nashcast.config.config import load
from nashcast.service.http.access.tokens import TokenFile
from nashcast.service.streams.settings import SERVE, load_served
from nashcast.service.workers.factory import make_federation
from support.service.served import FILE, MEMBERS, Served, federation_file

PAGES = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[serve]", "[server]"), "server: got a key that is not known. Did you mean 'serve'"),
        (("x_dim", "xdim"), "serve.xdim: got a key that is not known. Did you mean 'x_dim' or 'y_dim'? The service"),
        (("y_dim = 1\n", ""), "serve.y_dim: got nothing. Add y_dim = … here: it has no default."),
        (("y_dim = 1", "y_dim = 0"), "serve.y_dim: got int 0. Pass a whole number ≥ 1."),
        (("y_dim = 1", "y_dim = 1.5"), "serve.y_dim: got 1.5. Pass a whole number."),
        (("y_dim = 1", "y_dim = 99999"), "serve.y_dim: got 99999. Pass a whole number ≤ 10000."),
        (("y_dim = 1", "y_dim = 1\ncoverages = [0.9, 0.5]"), "serve.coverages: got [0.9, 0.5]. Pass each once"),
        (("y_dim = 1", "y_dim = 1\ncoverages = [1]"), "serve.coverages: got 1. Pass numbers between 0 and 1."),
        (("y_dim = 1", 'y_dim = 1\ncoverages = ["a"]'), "serve.coverages[0]: got 'a'. Pass a number."),
        (("y_dim = 1", "y_dim = 1\ncoverages = 0.9"), "serve.coverages: got 0.9. Pass a list of numbers."),
        (("y_dim = 1", "y_dim = 1\nretain = 5"), "serve.retain: got 5. Pass at least 1000 steps, or false for all."),
        (("y_dim = 1", "y_dim = 1\ndeadline = -1"), "serve.deadline: got -1. Pass a number > 0."),
        (("y_dim = 1", "y_dim = 1\ntime_step = 0"), "serve.time_step: got 0. Pass a number > 0."),
        (("y_dim = 1", "y_dim = 1\nmemory = 1"), "serve.memory: got int 1. Pass a whole number ≥ 64."),
        (("seed = 7", "horizon = 0"), "horizon: got int 0. Pass a whole number ≥ 1."),
        (("snapshot_every = 40", "snapshot_every = 0"), "serve.snapshot_every: got int 0"),
        (("y_dim = 1", "y_dim = 1\ncoverages = []"), "serve.coverages: got an empty list. Pass at least one"),
        ((FILE[FILE.index("[[agents]]") :], "[paper]"), "agents: got the default agents with [paper]. Add tables"),
        (("encoder", "encode"), "agents[0].encoder: got nothing, but a key 'encode'"),
        (("[serve]\nx_dim = 1\ny_dim = 1\nsnapshot_every = 40\n", ""), "serve: got nothing. Add a table [serve] with"),
    ],
)
def test_a_file_that_cannot_be_served_is_refused_with_its_key(change, words, tmp_path, capsys):
    path = federation_file(tmp_path, FILE.replace(*change))
    assert main(["serve", str(path), "--journal", str(tmp_path / "j"), "--port", "0"]) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "j").exists()


def test_the_same_file_may_be_run_and_served(tmp_path):
    path = federation_file(tmp_path, FILE + '\n[stream]\nname = "concept-y2"\n')
    assert load(path).stream.name == "concept-y2"
    config = load_served(path)
    assert config.federation.stream.name == "live"
    assert make_federation(config).names == MEMBERS


def test_tokens_are_made_listed_and_revoked(tmp_path, capsys):
    at = ["--journal", str(tmp_path / "j")]
    assert main(["serve", "token", "add", "desk 3", "--scope", "write, read", "--days", "30", *at]) == 0
    out = capsys.readouterr()
    secret = out.out.strip()
    assert re.fullmatch(r"nashcast_[A-Za-z0-9_-]{43}", secret)
    assert "Shown only now" in out.err
    assert main(["serve", "token", "add", "boss", "--scope", "admin", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["scopes"] == ["admin"]
    assert main(["serve", "token", "revoke", "boss", *at]) == 0
    assert main(["serve", "token", "list", *at]) == 0
    page = capsys.readouterr().out
    assert re.search(r"desk 3 +read,write +\S+ \S+ +\S+ \S+ +valid\n", page)
    assert re.search(r"boss +admin +\S+ \S+ +– +revoked\n", page)
    assert main(["serve", "token", "list", "--json", *at]) == 0
    listed = json.loads(capsys.readouterr().out)["tokens"]
    assert "hash" not in listed[0]
    tokens = TokenFile(tmp_path / "j" / "tokens.json")
    assert tokens.find(secret).scopes == ("read", "write")
    assert secret not in tokens.path.read_text()
    for arguments, words in (
        (["add", "desk 3"], "'desk 3', which a token has"),
        (["add", "a/b"], "Use 1 to 63 letters"),
        (["add", "x", "--scope", "all"], "scope: got all. Pass some of read, write, admin."),
        (["add", "x", "--days", "0"], "days: got 0"),
        (["revoke", "nobody"], "'nobody', which no token has"),
    ):
        assert main(["serve", "token", *arguments, *at]) == 1
        assert words in capsys.readouterr().err
    tokens.path.write_text("{}")
    assert main(["serve", "token", "list", *at]) == 1
    assert "it is no token file" in capsys.readouterr().err


def test_misuse_exits_with_2(capsys):
    for arguments in (["serve"], ["serve", "token"], ["serve", "token", "fly"], ["serve", "a.toml", "--port", "x"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
    capsys.readouterr()


def test_without_a_token_and_without_a_terminal_it_does_not_start(tmp_path, capsys):
    path = federation_file(tmp_path)
    assert main(["serve", str(path), "--journal", str(tmp_path / "j"), "--port", "0"]) == 1
    assert "which has no tokens. Make one: nashcast serve token add NAME" in capsys.readouterr().err


def test_a_port_that_is_taken_and_a_package_that_is_missing_are_told(tmp_path, capsys, monkeypatch):
    path = federation_file(tmp_path)
    with Served(tmp_path) as served:
        assert (
            main(["serve", str(path), "--journal", str(tmp_path / "k"), "--port", str(served.port), "--no-auth"]) == 1
        )
        assert "Address already in use). Choose another --host or --port." in capsys.readouterr().err
        assert served.stop() == 0
    assert "Traceback" not in served.log()
    monkeypatch.setattr("nashcast.service.extras.find_spec", lambda name: None)
    assert main(["serve", str(path)]) == 1
    assert "no package starlette. Install it: pip install 'nashcast[serve]'." in capsys.readouterr().err


def test_the_library_does_not_need_the_service(tmp_path):
    script = (
        "import sys, nashcast; nashcast.Client('http://x'); print({'starlette', 'uvicorn', 'sqlite3'} & {*sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


def test_every_key_and_option_is_documented():
    page = (PAGES / "how-to" / "serve.md").read_text() + (PAGES / "reference" / "http-api.md").read_text()
    for key in SERVE:
        assert f"`{key}`" in page
    options = "host port journal token-file tls-cert tls-key plain-http no-auth max-body rate readers accept-changes"
    for option in (*options.split(), "workers", "history", "connections", "per-address"):
        assert f"`--{option}" in page


def test_at_a_terminal_a_first_start_makes_tokens_and_shows_the_page_with_one(tmp_path):
    path, (ours, theirs) = federation_file(tmp_path), os.openpty()
    command = [sys.executable, "-m", "nashcast", "serve", str(path), "--port", "0", "--journal", str(tmp_path / "j")]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=theirs, stderr=log, stdin=subprocess.DEVNULL)
    os.close(theirs)
    said = ""
    with contextlib.suppress(OSError):  # how a terminal says that the other end is gone
        while "the page: " not in said or not said.endswith("\n"):
            said += os.read(ours, 4096).decode()
    process.terminate()
    assert process.wait(30) == 0
    os.close(ours)
    admin = re.search(r"with scope admin, shown only now: (nashcast_\S{43})", said)[1]
    url, read = re.search(r"the page: (http://127\.0\.0\.1:\d+/)#token=(nashcast_\S{43})", said).groups()
    tokens = TokenFile(tmp_path / "j" / "tokens.json")
    assert (tokens.find(admin).scopes, tokens.find(read).scopes) == (("admin",), ("read",))
    assert url[:-1] in said.splitlines()[0]
    log = (tmp_path / "log").read_text()
    assert admin not in log
    assert read not in log
