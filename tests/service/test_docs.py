"""The tour with curl, walked; the examples, read."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nashcast.cli.main import parser
from nashcast.service.http.access.tokens import TokenFile
from nashcast.service.streams.settings import load_served
from support.service.served import Served

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "serve.md").read_text()


def test_the_tour_with_curl_does_what_it_says(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    tour = PAGE.partition("<!-- tour")[2]
    blocks = re.findall(r"```sh\n(.*?)```", tour, flags=re.S)
    assert len(blocks) == 10
    text = re.search(r"```toml\n(.*?)```", PAGE, flags=re.S)[1]
    secret = TokenFile(tmp_path / "journal" / "tokens.json").add("walker", ["admin"])
    with Served(tmp_path, tokens=True, text=text) as served:
        walk = "".join(blocks).replace("http://127.0.0.1:8500", served.url)
        walk = walk.replace("nashcast journal", f"{sys.executable} -m nashcast journal")
        command = ["bash", "-euo", "pipefail", "-c", f"TOKEN={secret}\n{walk}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith('{"status":"ready","streams":1,')
    assert lines[1].startswith('{"version":')
    posted = [line for line in lines if line.startswith('{"first"')]
    receipt = re.compile(r'\{"first":(\d),"last":(\d),"accepted":(\d),"duplicates":(\d)')
    assert [receipt.match(line).groups() for line in posted] == [
        ("0", "0", "1", "0"),
        ("1", "1", "1", "0"),
        ("1", "1", "0", "1"),
        ("2", "2", "1", "0"),
        ("3", "4", "2", "0"),
        ("4", "4", "1", "0"),
        ("5", "5", "1", "0"),
    ]  # fmt: skip
    assert '{"name":"before-lunch","step":4,"withdrawn":1}' in lines
    assert "event: hello" in lines
    assert lines[-1] == "steps.csv: 6 steps"


def test_the_example_can_be_served_and_what_runs_it_names_options_that_exist(capsys):
    assert load_served(ROOT / "examples" / "service" / "federation.toml").serve.x_dim == 1
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for name in ("nashcast.service", "Containerfile"):
        lines = [
            line for line in (ROOT / "deploy" / name).read_text().splitlines() if re.match(r"(ExecStart|CMD) ?", line)
        ]
        assert lines
        assert set(re.findall(r"--[a-z-]+", " ".join(lines))) <= known
