"""A federation described in a file: read as it stands, and refused with the key, what it got and what to pass."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast import encoders
from nashcast.experiments import config as schema
from nashcast.experiments.build import agent_names, build
from nashcast.experiments.config import assign, changed, load, parse
from nashcast.experiments.run_encoders import ENCODERS, encoder_options, make_encoder
from nashcast.experiments.sweep_grid import RANGE, SWEEP

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "federation-toml.md"

FILE = """
name = "two kinds"
seed = 7
[stream]
name = "concept-y2"
[federation]
ridge = 2
budget = 0.9
[game]
lookback = 2
every = 3
[[agents]]
count = 2
encoder = "random_features"
features = 4
noise = 0.5
ridge = 3
decay = 0.01
window = 6
[[agents]]
name = "line"
encoder = "linear"
forgetting = 0.99
"""


def document(text=FILE):
    return tomllib.loads(text)


def test_a_file_is_read_as_it_stands(tmp_path):
    (tmp_path / "f.toml").write_text(FILE)
    config = load(tmp_path / "f.toml")
    assert (config.name, config.seed, config.steps) == ("two kinds", 7, None)
    assert (config.ridge, config.budget, config.anchored) == (2.0, 0.9, False)
    assert config.game == nc.LookbackGame(lookback=2, every=3)
    assert config.stream == schema.StreamConfig("concept-y2")
    random, line = config.agents
    assert (random.count, random.encoder, random.ridge, random.window) == (2, "random_features", 3.0, 6)
    assert dict(random.options) == {"features": 4, "seed": None, "noise": 0.5}
    assert (line.name, line.decay, line.forgetting, dict(line.options)) == ("line", 0.0, 0.99, {"lags": 1})
    assert agent_names(config) == ["random features 1", "random features 2", "line"]


def test_what_is_left_out_has_the_library_s_own_defaults(tmp_path):
    (tmp_path / "small.toml").write_text('[stream]\nname = "periodic"\n[[agents]]\nencoder = "persistence"\n')
    config = load(tmp_path / "small.toml")
    assert (config.name, config.seed, config.game) == ("small", 0, None)
    assert (config.ridge, config.budget, config.anchored) == (1.0, 1.0, False)
    assert parse({**document(), "game": {}}).game == nc.LookbackGame()
    assert parse({**document(), "game": False}).game is None


def test_settings_read_back_are_the_same_description():
    for text in (
        FILE,
        FILE.replace('"linear"', '"seasonal"\ncolumns = [0]'),
        FILE.split("[game]")[0] + FILE[FILE.index("[[") :],
    ):
        config = parse(document(text))
        assert parse(config.settings()) == config
        assert parse(config.settings()).settings() == config.settings()


def test_agents_have_seeds_by_their_place_and_not_by_how_many_there_are():
    def drawn(config):
        return [agent._encoder.seed for agent in build(config)[1]()._agents if hasattr(agent._encoder, "seed")]

    two, three = (drawn(parse(changed(document(), {"agents[0].count": n}))) for n in (2, 3))
    assert two == three[:2]
    assert len(set(three)) == 3
    assert two == [nc_key(7, i) for i in range(2)]
    assert drawn(parse(changed(document(), {"agents[0].seed": 40}))) == [40, 41]
    assert drawn(parse({**document(), "seed": 8})) != two


def nc_key(seed, i):
    from nashcast import seeds

    return seeds.key(seed, "encoder", i)


BAD = [
    ("features = 4", "featurs = 4", "agents[0].featurs: got a key that is not known. Did you mean 'features'?"),
    ("[game]", "[gmae]", "gmae: got a key that is not known. Did you mean 'game'? A federation file takes"),
    ("lookback = 2", "lookbak = 2", "game.lookbak: got a key that is not known. Did you mean 'lookback'? A game takes"),
    ("budget = 0.9", "eta = 0.9", "federation.eta: got a key that is not known. The federation takes anchored, budget"),
    ("seed = 7", "seed = -7", "seed: got -7. Pass a whole number ≥ 0."),
    ("seed = 7", "seed = 7.0", "seed: got 7.0. Pass a whole number."),
    ("seed = 7", "steps = 0", "steps: got 0. Pass a whole number ≥ 1."),
    ('"two kinds"', '" "', "name: got ' '. Pass a text in quotes."),
    ('"two kinds"', "2", "name: got 2. Pass a text in quotes."),
    ('[stream]\nname = "concept-y2"', "", "stream: got nothing. Add a table [stream]"),
    ('name = "concept-y2"', "", "stream.name: got nothing. Add name = "),
    ('"concept-y2"', '"concpt-y2"', "stream.name: got 'concpt-y2'. Did you mean 'concept-y2'"),
    ('"concept-y2"', '"concept-y2"\nstep = 3', "stream.step: got a key that is not known. Did you mean 'steps'?"),
    ('"concept-y2"', '"file"\npath = "a.csv"', "stream.target: got nothing. Add target = … here: the stream"),
    ("ridge = 2", "ridge = 0", "federation.ridge: got 0. Pass a number > 0."),
    ("ridge = 2", 'ridge = "2"', "federation.ridge: got '2'. Pass a number."),
    ("ridge = 2", "ridge = inf", "federation.ridge: got inf. Pass a finite number."),
    ("ridge = 2", "anchored = true", "federation.anchored: got true with a game. Leave out the table [game]"),
    ("ridge = 2", "anchored = 1", "federation.anchored: got 1. Pass true or false."),
    ("lookback = 2", "lookback = 0", "game.lookback: got int 0. Pass a whole number ≥ 1."),
    ("lookback = 2", "lookback = 2.5", "game.lookback: got 2.5. Pass a whole number."),
    ("lookback = 2", "lookback = [2]", "game.lookback: got [2]. Pass a whole number."),
    ("lookback = 2", 'placement = "here"', "game.placement: got 'here'. Pass one of central, spread."),
    ("count = 2", "count = 0", "agents[0].count: got 0. Pass a whole number ≥ 1."),
    ("count = 2", "count = true", "agents[0].count: got true. Pass a whole number."),
    ('"random_features"', '"random_feature"', "agents[0].encoder: got 'random_feature'. Did you mean"),
    ('encoder = "linear"', "", "agents[1].encoder: got nothing. Pass one of persistence"),
    ('encoder = "linear"', 'encodr = "linear"', "agents[1].encoder: got nothing, but a key 'encodr'. Pass one of"),
    ("features = 4", "", "agents[0].features: got nothing. Add features = … here: it has no default."),
    ("features = 4", "features = 0", "agents[0].features: got int 0. Pass a whole number ≥ 1."),
    ("noise = 0.5", "noise = -1", "agents[0].noise: got -1. Pass a number ≥ 0."),
    ("noise = 0.5", "noise = true", "agents[0].noise: got true. Pass a number."),
    ("noise = 0.5", "seed = -1", "agents[0].seed: got -1. Pass a whole number ≥ 0."),
    ("ridge = 3", "ridge = -3", "agents[0].ridge: got -3. Pass a number > 0."),
    ("decay = 0.01", "decay = -1", "agents[0].decay: got -1. Pass a number ≥ 0."),
    ("window = 6", "window = 0", "agents[0].window: got int 0. Pass a whole number ≥ 1."),
    ("forgetting = 0.99", "forgetting = 1.5", "agents[1].forgetting: got 1.5. Pass a number ≤ 1."),
    ("forgetting = 0.99", "features = 3", "agents[1].features: got a key that is not known. An agent with"),
    ("forgetting = 0.99", 'name = ""', "got text that is not TOML. Cannot overwrite a value (at line "),
    ('"linear"', '"seasonal"\ncolumns = 3', "agents[1].columns: got 3. Pass a list of whole numbers."),
    ('"linear"', '"seasonal"\ncolumns = [0.5]', "agents[1].columns[0]: got 0.5. Pass a whole number."),
    ('"linear"', '"transformer"\npath = "w.npz"', "(No such file or directory). Pass a file that"),
    ('"linear"', '"onnx"\nfeatures = 2\npath = "w.onnx"', "which is no file. Pass the path of an ONNX file."),
    ('"linear"', '"forecaster"\nfunction = "no"', "agents[1].function: got 'no'. Pass a module and a function in it"),
    ('"linear"', '"forecaster"\nfunction = "no_such:f"', "agents[1].function: got 'no_such:f', whose module cannot"),
    ('"linear"', '"forecaster"\nfunction = "math:no"', "agents[1].function: got 'math:no', but there is no"),
    ('"linear"', '"python"\nmake = "math:sqrt"', "agents[1].make: got a function that raised TypeError"),
    ('"linear"', '"python"\nmake = "os:getpid"', "Return an encoder."),
    ("[[agents]]", "[[other]]", "other: got a key that is not known."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), BAD)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, old, new, words):
    assert old in FILE
    path = tmp_path / "fed.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(nc.InvalidInput) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        (None, "agents: got nothing. Add at least one table [[agents]]"),
        ([], "agents: got nothing."),
        ({"encoder": "linear"}, "agents: got one table. Write [[agents]], twice [ and ]."),
        ([3], "agents[0]: got 3. Pass a table."),
    ],
)
def test_agents_are_tables(agents, words):
    with pytest.raises(nc.InvalidInput, match=re.escape(words)):
        parse({**document(), "agents": agents})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = [1,\nb", "got text that is not TOML. Invalid value (at line 2, column 1)."),
        (b"\xff\xfe", "got bytes that are no UTF-8, from byte 0. Save it as UTF-8."),
        (b"", "stream: got nothing."),
    ],
)
def test_files_that_are_no_toml_are_refused_with_the_line(tmp_path, content, words):
    (tmp_path / "f.toml").write_bytes(content)
    with pytest.raises(nc.InvalidInput, match=re.escape(words)):
        load(tmp_path / "f.toml")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(nc.InvalidInput, match=r"file: got .*no.toml \(No such file or directory\). Pass a TOML file"):
        load(tmp_path / "no.toml")
    with pytest.raises(nc.InvalidInput, match=r"\(Is a directory\)"):
        load(tmp_path)


def test_what_does_not_fit_the_stream_is_refused_by_its_table():
    config = parse(changed(document(), {"agents[1].encoder": "seasonal", "agents[1].columns": [9]}), source="f.toml")
    with pytest.raises(
        nc.InvalidInput, match=re.escape("f.toml: agents[1].columns: got place 9. Inputs have x_dim = 3")
    ):
        build(config)
    with pytest.raises(nc.InvalidInput, match=r"f.toml: steps: got 999. The stream has 200 steps: pass at most"):
        build(parse({**document(), "steps": 999}, source="f.toml"))
    with pytest.raises(nc.InvalidInput, match=re.escape("f.toml: stream.steps: got str 'x'. Pass a whole number")):
        build(parse(changed(document(), {"stream.steps": "x"}), source="f.toml"))


def test_values_are_replaced_by_dotted_name():
    old = document()
    new = changed(
        old, {"agents.ridge": 9, "agents[1].lags": 2, "game.every": 1, "stream.name": "periodic", "steps": 30}
    )
    assert old == document()
    config = parse(new)
    assert [agent.ridge for agent in config.agents] == [9.0, 9.0]
    assert (config.agents[1].options["lags"], config.game.every, config.stream.name, config.steps) == (
        2,
        1,
        "periodic",
        30,
    )
    stream, _ = build(config)
    assert len(stream.targets) == len(stream.inputs) == 30


@pytest.mark.parametrize("order", [["game.lookback", "game.every"], ["game.every", "game.lookback"]])
def test_false_for_a_key_of_the_game_is_no_game(order):
    values = {"game.lookback": False, "game.every": 2}
    assert parse(changed(document(), {path: values[path] for path in order})).game is None
    assert parse(changed(document(), {"game.rewrite_past": False})).game is not None
    without = {**document(), "game": False}
    assert parse(changed(without, {"game.lookback": 4})).game == nc.LookbackGame(lookback=4)
    assert parse(changed(document(), {"game": False, "game.every": 2})).game is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("agents[7].ridge", "f.toml: agents[7].ridge: got agents[7]. Name a key of one of the 2 tables [[agents]]."),
        ("agents[0]", "f.toml: agents[0]: got agents[0]. Name a key"),
        ("stream[0].name", "f.toml: stream[0].name: got stream[0]. Name a key of one of the 0 tables"),
        ("name.length", "f.toml: name.length: got a key below name, which is no table."),
        ("agents..ridge", "f.toml: agents..ridge: got a name that cannot be read. Write it as agents.ridge"),
        ("", "a name that cannot be read"),
    ],
)
def test_names_that_lead_nowhere_are_refused(path, words):
    with pytest.raises(nc.InvalidInput, match=re.escape(words)):
        assign(document(), path, 1, "f.toml")


MODULE = """
from dataclasses import dataclass
from beside import SCALE

calls = []

def forecast(x):
    return x[:1] * SCALE

@dataclass
class Doubled:
    factor: float

def make(factor, seed=None):
    from nashcast.encoders import Callable
    calls.append(seed)
    return Callable(lambda x: x[:1] * factor * SCALE, features=1)
"""


def test_functions_come_from_files_beside_the_settings(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    for name, scale in (("one", 2.0), ("two", 3.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(MODULE.replace("from beside import SCALE", f"SCALE = {scale}"))
    for name, scale in (("one", 2.0), ("two", 3.0)):
        black_box = make_encoder("forecaster", {"function": "mine:forecast"}, 0, tmp_path / name)
        np.testing.assert_array_equal(black_box.function(np.array([5.0])), [5 * scale])
        made = make_encoder("python", {"make": "mine:make", "options": {"factor": 2}}, 11, tmp_path / name)
        np.testing.assert_array_equal(made.function(np.array([5.0])), [10 * scale])
        assert made.function.__globals__["calls"] == [11]


def test_a_function_s_own_imports_may_stand_beside_it(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "beside.py").write_text("SCALE = 7.0\n")
    black_box = make_encoder("callable", {"function": "mine:forecast", "features": 1}, 5, tmp_path)
    np.testing.assert_array_equal(black_box.function(np.array([2.0])), [14.0])
    assert black_box.seed == 5


def test_a_saved_transformer_is_found_from_the_file_s_folder(tmp_path):
    shapes = encoders.transformer.weight_shapes(3, 2, 4)
    rng = np.random.default_rng(0)
    encoders.Transformer({name: rng.standard_normal(shape) for name, shape in shapes.items()}, y_dim=1).save(
        tmp_path / "w.npz"
    )
    (tmp_path / "f.toml").write_text(FILE.replace('"linear"', '"transformer"\npath = "w.npz"'))
    _, make = build(load(tmp_path / "f.toml"))
    assert make()._agents[2]._encoder.features == 2


def test_every_encoder_of_the_library_can_be_described_or_made():
    named = {"OnnxModel", "Transformer", "Callable", "Forecaster", "Embeddings", "Linear", "QuadraticLags", "Seasonal"}
    named |= {"Persistence", "RandomFeatures", "EchoState"}
    by_function = {"SklearnTransformer", "SklearnRegressor", "RiverModel"}
    about = {"BuiltEncoder", "EchoParameters", "Encoder", "Noise", "pretrain_transformer"}
    assert set(encoders.__all__) == named | by_function | about
    assert len(ENCODERS) == len(named) + 1


def test_every_key_is_documented():
    page = PAGE.read_text()
    keys = {*schema.TOP, *schema.OF_SWEEPS, *schema.FEDERATION, *schema.GAME, *schema.AGENT, *SWEEP, *RANGE}
    for key in keys | {"count", "encoder"}:
        assert f"`{key}`" in page, f"{key} is missing"
    for name in ENCODERS:
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}`")), None)
        assert row is not None, f"encoder {name} is missing"
        for key in encoder_options(name):
            assert f"`{key}`" in row, f"{name}.{key} is missing"


def test_the_page_s_own_example_is_read():
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert blocks
    assert len(parse(tomllib.loads(blocks[0])).agents) >= 1
