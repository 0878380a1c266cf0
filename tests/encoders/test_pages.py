"""The how-to pages of black boxes: their Python runs, and prints what they say."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text(), flags=re.S)


def run(name, capsys):
    names: dict = {"__name__": "page"}
    for block in blocks(name):
        assert len(block.strip().splitlines()) <= 20
        exec(compile(block, name, "exec"), names)
    return capsys.readouterr().out, names


def test_bring_a_model(capsys):
    out, _ = run("bring-a-model", capsys)
    assert f"```\n{out}```" in (PAGES / "bring-a-model.md").read_text()


def test_texts_and_pictures(capsys):
    _, names = run("texts-and-pictures", capsys)
    assert not names["federation"].health["absences"]


def test_forecast_servers(capsys, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.log_request", lambda *_: None)
    _, names = run("forecast-servers", capsys)
    assert not names["federation"].health["absences"]


@pytest.mark.slow
def test_forecasting_libraries(capsys):
    _, names = run("forecasting-libraries", capsys)
    assert names["federation"].health["absences"].get("naive", 0) <= 1
