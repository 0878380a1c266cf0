"""`nashcast enroll invite`, `approve`, `withdraw` and `nashcast agent join`, as they are typed."""

import json
from types import SimpleNamespace

import pytest

from nashcast.cli.elsewhere.join import read_file
from nashcast.cli.main import main
from nashcast.errors import InvalidInput
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.hub.desk import broker_and_desk
from support.remote.brokers import free_port


def invite(capsys, folder, *words):
    assert main(["enroll", "invite", *words, "--folder", str(folder)]) == 0
    return capsys.readouterr().out.splitlines()[0]


def test_one_command_on_each_side(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "tide"
    text = invite(capsys, folder, "desk-1", "--port", str(free_port()))
    assert text.startswith("tls://localhost:")
    monkeypatch.chdir(tmp_path)
    with broker_and_desk(folder):
        assert main(["agent", "join", text, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["name"] == "desk-1"
        assert (said["hub"].rpartition("/")[2], said["key"], said["certs"]) == ("tide", "desk-1/desk-1.seed", "desk-1")
        assert main(["agent", "join", text]) == 0
        assert "Start it with a model: nashcast agent join STRING ENCODER --folder desk-1" in capsys.readouterr().out
        assert main(["agent", "join", text, "--folder", "thief", "--wait", "1"]) == 1
        assert "does not take the invitation" in capsys.readouterr().err
    assert main(["agent", "join", text[:-1]]) == 1
    assert "whose checksum is wrong" in capsys.readouterr().err


def test_invitations_are_listed_approved_and_withdrawn(tmp_path, capsys):
    folder = tmp_path / "tide"
    invite(capsys, folder, "desk-1", "--approve", "--hours", "2")
    invite(capsys, folder, "desk-2")
    assert main(["enroll", "list", str(folder), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["invitations"]
    assert [(each["name"], each["approve"], each["state"]) for each in listed] == [
        ("desk-1", True, "open"), ("desk-2", False, "open"),
    ]  # fmt: skip
    assert main(["enroll", "withdraw", "desk-2", "--folder", str(folder)]) == 0
    assert "The invitation of desk-2 is withdrawn." in capsys.readouterr().out
    assert main(["enroll", "list", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "desk-1  invited until 20" in shown
    assert "desk-2" not in shown
    for words, said in (
        (["approve", "desk-1"], "whose invitation is open. Pending are: none."),
        (["approve", "desk-9"], "which is not invited"),
        (["invite", "hub"], "That is the hub's name"),
        (["invite", "desk-3", "--hours", "0"], "hours: got 0. Pass more than 0"),
        (["invite", "desk-3", "--port", "1"], "which has a federation already"),
    ):
        assert main(["enroll", *words, "--folder", str(folder)]) == 1
        assert said in capsys.readouterr().err
    found = enrolment.read(folder)
    pending = found.invitations[0]._replace(state="pending", request=("UKEY", "csr"))
    enrolment.save(folder, found._replace(invitations=(pending,)))
    assert main(["enroll", "approve", "desk-1", "--folder", str(folder)]) == 0
    assert "desk-1 is approved, with the public key UKEY" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["join"], ["join", "a", "b", "c"], ["linear"], ["linear", "more", "--hub", "h", "--name", "n", "--key", "k"],
        ["linear", "--hub", "h", "--name", "n"],
        ["linear", "--hub", "h", "--name", "n", "--key", "k", "--folder", "f"],
    ],
)  # fmt: skip
def test_misuse(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["agent", *words])
    assert caught.value.code == 2
    assert "use one of the two forms above" in capsys.readouterr().err


def test_an_agents_file(tmp_path):
    path = tmp_path / "ada.toml"
    path.write_text('encoder = "linear"\nshare = "sums"\nforgetting = 1\n[options]\nlags = 2\n')
    chosen = SimpleNamespace(words=[], hub=None, name=None, options=[("lags", 3)], share=None, forgetting=None)
    read_file(chosen, path)
    assert (chosen.encoder, chosen.share, chosen.forgetting) == ("linear", "sums", 1)
    assert dict(chosen.options) == {"lags": 3}  # the command line comes last
    for text, words in (
        ('share = "sums"', 'encoder: got nothing. Add encoder = "…"'),
        ('encoder = "linear"\nhub = "tls://x"', "hub"),
        ('encoder = "linear"\nshare = ["sums"]', "share: got"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=words):
            read_file(chosen, path)
