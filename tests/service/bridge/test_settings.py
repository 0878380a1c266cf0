"""The bridge's file: what it says, and what is wrong in it."""

import pytest

from nashcast.cli.main import main
from nashcast.errors import InvalidInput
from nashcast.service.bridge.settings import Input, read_bridge

SERVICE = '[service]\nurl = "http://127.0.0.1:8500"\n'
SERVERS = SERVICE + '[nats]\nurl = "nats://127.0.0.1"\n[mqtt]\nurl = "mqtt://127.0.0.1"\n'


@pytest.mark.parametrize(
    ("broker", "pattern", "stream", "address", "name"),
    [
        ("nats", "sensors.*.load", "load-{1}", "sensors.north.load", "load-north"),
        ("nats", "s.*.*", "{2}-{1}", "s.a.b", "b-a"),
        ("nats", "s.>", "{1}", "s.a.b", "a.b"),
        ("mqtt", "home/+/power", "{1}", "home/kitchen/power", "kitchen"),
        ("mqtt", "home/#", "{1}", "home/a/b", "a/b"),
        ("mqtt", "power", "power", "power", "power"),
    ],
)
def test_wildcards_name_streams(broker, pattern, stream, address, name):
    assert Input(broker, pattern, stream).stream_of(address) == name


def test_everything_is_read(tmp_path):
    (tmp_path / "token").write_text("nashcast_x\n")
    path = tmp_path / "bridge.toml"
    path.write_text(
        SERVERS.replace("8500\"\n", '8500"\ntoken_file = "token"\n')
        + '[[from]]\nsubject = "a.*"\nstream = "{1}"\njetstream = "OBS"\n'
        + '[[to]]\nstream = "load-*"\ntopic = "f/{stream}"\nretain = true\n'
    )  # fmt: skip
    found = read_bridge(path)
    assert found.service.token == "nashcast_x"
    assert found.inputs == [Input("nats", "a.*", "{1}", "OBS")]
    assert found.outputs[0].retain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[nats]\nurl = 'nats://h'", "Add a table [service]"),
        (SERVERS, "neither [[from]] nor [[to]]"),
        (SERVERS + "[kafka]", "unknown table"),
        (SERVICE + "[nats]\nurl = 'http://h'", "nats://127.0.0.1:4222"),
        (SERVICE + "[nats]\nurl = 'nats://h'\npassword = 'x'", "unknown key"),
        (SERVICE + "[mqtt]\nurl = 'mqtt://h'\npassword_file = 'none'", "no file"),
        (SERVICE + "[[from]]\nsubject = 'a'\nstream = 's'", "Add a table [nats]"),
        (SERVERS + "[[from]]\nstream = 's'", "`subject` (NATS) or `topic` (MQTT)"),
        (SERVERS + "[[from]]\nsubject = 'a b'\nstream = 's'", "without spaces"),
        (SERVERS + "[[from]]\nsubject = 'a'\nstream = 's{2}'", "stream: {2}"),
        (SERVERS + "[[from]]\ntopic = 'a'\nstream = 's'\njetstream = 'J'", "MQTT has QoS 1"),
        (SERVERS + "[[to]]\nsubject = 'a.*'\nstream = 's'", "with wildcards"),
        (SERVERS + "[[to]]\ntopic = 'a'\nstream = 's'\nretain = 1", "to[0].retain"),
        (SERVERS + "[from]\ntopic = 'a'", "Write [[from]]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, capsys, text, words):
    path = tmp_path / "bridge.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_bridge(path)
    assert words in str(refused.value)
    assert main(["bridge", str(path)]) == 1
    assert words in capsys.readouterr().err
