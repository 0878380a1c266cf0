"""`nashcast bench serve` in small: a real service, real producers, and the fields that a row has."""

import json

import pytest

from nashcast.cli.main import main


@pytest.mark.slow
def test_a_row_has_what_was_asked_for(capsys):
    arguments = ["--streams", "3", "--producers", "2", "--workers", "1", "--seconds", "1", "--json"]
    assert main(["bench", "serve", *arguments]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["streams"], row["producers"], row["workers"]) == (3, 2, 1)
    assert row["observations_per_s"] > 0
    assert row["forecast_p99_ms"] > 0
    assert 30 < row["rss_mb"] < 1000
