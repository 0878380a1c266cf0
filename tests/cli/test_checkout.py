"""Commands whose work is not installed with nashcast: they say what they need."""

import pytest

from nashcast.cli.main import main
from nashcast.cli.shared import checkout


@pytest.mark.parametrize(
    ("command", "folder"),
    [(["bench", "game"], "benchmarks"), (["demo", "--federated"], "examples"), (["demo", "--live"], "examples")],
)
def test_outside_a_checkout_the_folder_is_named(command, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert main(command) == 1
    assert f"needs a source checkout with the folder {folder}/" in capsys.readouterr().err
