"""The golden messages for agents in other languages: what is packed and read here is what the files say."""

import json
import math
import shutil
import struct
import subprocess
from pathlib import Path
from typing import get_args

import msgpack
import pytest

from nashcast.remote.wire import messages as m
from nashcast.remote.wire.format import pack, type_name, unpack
from nashcast.remote.wire.joint import joint_messages as j
from support.extras import skip_if
from support.remote.golden_messages import FOLDER, MESSAGES, SAFE, meaning, text, vectors

KINDS = {type_name(kind): kind for kind in MESSAGES}
CHECK = Path(__file__).parents[3] / "examples" / "javascript" / "check_vectors.mjs"


def read(kind):
    return json.loads((FOLDER / f"{kind}.json").read_text())


def plain(value):
    """What bytes mean, from this page alone: msgpack, and three places for an array."""
    if isinstance(value, list):
        if len(value) == 3 and value[0] == "<f8":
            numbers = struct.unpack(f"<{math.prod(value[1])}d", value[2])
            return {"shape": value[1], "values": [plain(number) for number in numbers]}
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, int) and abs(value) >= SAFE:
        return {"int": str(value)}
    return value


def test_there_is_a_file_for_every_kind_of_message_call_result_and_event():
    assert {path.stem for path in FOLDER.iterdir()} == set(KINDS)
    assert set(KINDS.values()) == {
        m.Hello,
        m.Turn,
        m.Reply,
        m.Notice,
        m.StepRecord,
        j.Told,
        j.Said,
        j.LogPart,
        *j.EVENTS,
    }
    calls = {type(call) for turn in MESSAGES[m.Turn].values() for call in turn.calls}
    results = {type(result) for reply in MESSAGES[m.Reply].values() for result in reply.results}
    assert calls == set(get_args(m.Call))
    assert results == set(get_args(m.Result))
    assert {told.ask for told in MESSAGES[j.Told].values()} == set(j.ASKS)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_packed_to_these_bytes_and_these_bytes_read_as_these_messages(kind):
    messages = list(MESSAGES[KINDS[kind]].values())
    golden = read(kind)
    assert len(golden) == len(messages)
    for message, vector in zip(messages, golden, strict=True):
        data = bytes.fromhex(vector["hex"])
        assert pack(message) == data, vector["what"]
        assert meaning(unpack(data, (KINDS[kind],))) == vector["meaning"], vector["what"]
        assert plain(msgpack.unpackb(data)) == {"v": 1, **vector["meaning"]}, vector["what"]


def test_the_command_writes_these_files():
    assert {kind: text(found) for kind, found in vectors().items()} == {
        path.stem: path.read_text() for path in FOLDER.iterdir()
    }


def test_node_reads_and_writes_them():
    node = shutil.which("node")
    skip_if("" if node else "node is not installed: apt install nodejs")
    assert node is not None
    done = subprocess.run([node, CHECK, FOLDER], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{sum(map(len, MESSAGES.values()))} messages\n"
