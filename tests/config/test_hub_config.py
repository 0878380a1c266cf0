"""What `nashcast hub` reads: as it stands, and refused with the key, what it got and what to pass."""

import tomllib
from pathlib import Path

import pytest

from nashcast import InvalidInput, LookbackGame
from nashcast.config.config import StreamConfig
from nashcast.config.hub_config import HUB, HubConfig, load, parse

FILE = """
name = "three desks"
seed = 4
steps = 50
[stream]
name = "concept-y2"
[federation]
ridge = 2
[game]
lookback = 2
placement = "spread"
[hub]
folder = "tide"
agents = ["desk-1", "desk-2"]
broker = "tls://broker.example:4222"
certs = "certs"
deadline = 0.5
wait = 3
pace = 0.25
masked = true
"""


def document(**changes):
    found = tomllib.loads(FILE)
    for key, value in changes.items():
        table, _, name = key.rpartition("__")
        (found[table] if table else found)[name] = value
    return found


def test_a_file_is_read_as_it_stands(tmp_path):
    (tmp_path / "hub.toml").write_text(FILE)
    assert load(tmp_path / "hub.toml") == HubConfig(
        name="three desks", seed=4, steps=50, stream=StreamConfig("concept-y2"),
        federation={"ridge": 2.0, "budget": 1.0, "anchored": False, "mixing": "paper"},
        game=LookbackGame(lookback=2, placement="spread"),
        hub=tmp_path / "tide", agents=("desk-1", "desk-2"), broker="tls://broker.example:4222",
        certs=tmp_path / "certs", deadline=0.5, wait=3.0, pace=0.25, masked=True,
    )  # fmt: skip
    assert set(tomllib.loads(FILE)["hub"]) == set(HUB)  # the file above shows every key


def test_what_is_left_out(tmp_path):
    (tmp_path / "small.toml").write_text('[stream]\nname = "periodic"\n[hub]\nfolder = "~/tide"\n')
    config = load(tmp_path / "small.toml")
    assert (config.name, config.seed, config.steps, config.game) == ("small", 0, None, None)
    assert (config.agents, config.broker, config.certs, config.deadline) == (None, None, None, None)
    assert (config.wait, config.pace, config.masked, config.joint) == (60.0, 0.0, False, True)
    assert config.hub == Path("~/tide").expanduser()
    assert parse(document(hub__deadline="learned")).deadline is None


def test_numbers_do_not_depend_on_places_and_times():
    settings = parse(document()).settings()
    same = {"hub__folder": "x", "hub__broker": "nats://a:1", "hub__certs": "y", "hub__deadline": 9, "hub__pace": 2}
    assert parse(document(**same)).settings() == settings
    for change in ({"seed": 5}, {"steps": 51}, {"hub__agents": ["desk-1"]}, {"game__lookback": 3}, {"name": "x"}):
        assert parse(document(**change)).settings() != settings


BAD = [
    ({"hub": 3}, "hub: got 3"),
    ({"hub": {}}, "hub.folder: got nothing. Add the folder that `nashcast enroll create` made."),
    ({"hub__folder": 3}, "hub.folder: got 3"),
    ({"hub__agents": []}, 'hub.agents: got []. Pass a list of names: ["desk-1", "desk-2"].'),
    ({"hub__agents": "desk-1"}, "hub.agents: got 'desk-1'. Pass a list of names"),
    ({"hub__agents": ["a", 2]}, "hub.agents[1]: got 2"),
    ({"hub__broker": 4222}, "hub.broker: got 4222"),
    ({"hub__certs": ["x"]}, "hub.certs: got ['x']"),
    ({"hub__deadline": "soon"}, "hub.deadline: got 'soon'. Pass seconds as a number, or \"learned\"."),
    ({"hub__deadline": 0}, "hub.deadline: got 0. Pass at least 0.001 seconds."),
    ({"hub__deadline": True}, "hub.deadline: got true"),
    ({"hub__wait": -1}, "hub.wait: got -1. Pass at least 0 seconds."),
    ({"hub__wait": "long"}, "hub.wait: got 'long'. Pass seconds as a number."),
    ({"hub__pace": -0.5}, "hub.pace: got -0.5. Pass at least 0 seconds."),
    ({"hub__pace": float("nan")}, "hub.pace: got nan"),
    ({"hub__masked": 1}, "hub.masked: got 1"),
    ({"game__placement": "central"}, 'hub.masked: got true without a spread game. Set placement = "spread" in [game]'),
    ({"hub__deadlin": 1}, "hub.deadlin: got a key that is not known. Did you mean 'deadline'?"),
    ({"hubs": {}}, "hubs: got a key that is not known. Did you mean 'hub'?"),
    ({"agents": [{"encoder": "linear"}]}, "agents: got tables of agents. Name the agents in the table"),
    ({"steps": 0}, "steps: got 0"),
    ({"seed": -1}, "seed: got -1"),
    ({"stream": {"name": "nowhere"}}, "stream.name: got 'nowhere'"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_what_is_wrong_is_named_with_the_remedy(change, words):
    with pytest.raises(InvalidInput) as caught:
        parse(document(**change), source="hub.toml")
    assert words in str(caught.value)
    assert "hub.toml" in str(caught.value)


def test_a_hub_without_its_table():
    found = document()
    del found["hub"]
    with pytest.raises(InvalidInput, match=r'hub: got nothing. Add a table \[hub\] with folder = "…"'):
        parse(found)


def test_the_joint_game_is_the_default_and_has_its_own_settings():
    small = {"stream": {"name": "periodic"}, "hub": {"folder": "tide"}}
    config = parse({**small, "federation": {"horizon": 3, "season": 4}})
    assert config.joint
    assert config.federation == {"horizon": 3, "season": 4}
    assert config.settings()["game"] == "joint"
    assert not parse({**small, "game": False}).joint
    assert not parse({**small, "game": {"lookback": 2}}).joint
    with pytest.raises(InvalidInput, match=r"federation.ridge"):
        parse({**small, "federation": {"ridge": 2.0}})
