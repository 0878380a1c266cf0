"""Shipped encoders: every file has its checksum and its note, and a damaged one is refused."""

import json

import pytest

from nashcast import NashcastError
from nashcast.encoders.network.transformer import Transformer
from nashcast.paper.pretrained import EPOCHS
from nashcast.paper.shipped import FOLDER, SUMS, checksums, digest, shipped, write_checksums

ENCODERS = [name for name in checksums() if name.endswith(".npz")]


def test_checksums_name_all_files_and_no_other():
    present = {path.name for path in FOLDER.iterdir() if path.suffix in (".npz", ".json")}
    assert present == set(checksums())
    assert {name.replace(".npz", ".json") for name in ENCODERS} <= present


@pytest.mark.parametrize("name", ENCODERS)
def test_a_shipped_encoder_is_what_its_note_says(name):
    path = shipped(name)
    assert path is not None
    encoder, note = Transformer.load(path), json.loads(path.with_suffix(".json").read_text())
    assert note["epochs"] == EPOCHS == 400
    assert encoder.look_ahead is note["look_ahead"]
    assert len(encoder.weights["positions"]) == note["length"]
    assert note["seed"] == 2026 + note["agent"]


def test_a_damaged_file_is_refused_and_an_unknown_one_is_not_there(tmp_path):
    (tmp_path / "one.npz").write_bytes(b"as trained")
    write_checksums(tmp_path)
    assert (tmp_path / SUMS).read_text() == f"{digest(tmp_path / 'one.npz')}  one.npz\n"
    assert shipped("one.npz", tmp_path) == tmp_path / "one.npz"
    assert shipped("two.npz", tmp_path) is None
    (tmp_path / "one.npz").write_bytes(b"changed")
    with pytest.raises(NashcastError, match="its checksum is not the one in SHA256SUMS"):
        shipped("one.npz", tmp_path)
