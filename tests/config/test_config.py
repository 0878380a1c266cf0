"""A federation described in a file: read as it stands, and refused with the key, what it got and what to pass."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast import encoders
from nashcast.config import config as schema
from nashcast.config.build import agent_names, build, member_names
from nashcast.config.config import load, parse
from nashcast.config.config_changes import assign, changed
from nashcast.config.paper_settings import AGENT, PAPER
from nashcast.config.run_encoders import ENCODERS, encoder_options, make_encoder
from nashcast.runs.sweep_grid import RANGE, SWEEP

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "federation-toml.md"

FILE = """
name = "two kinds"
seed = 7
horizon = 3
[stream]
name = "concept-y2"
[[agents]]
count = 2
encoder = "random_lags"
hidden = 4
[[agents]]
name = "line"
encoder = "lags"
inputs = [0, 2]
"""

PAPERS = """
name = "two kinds"
seed = 7
[stream]
name = "concept-y2"
[paper]
ridge = 2
budget = 0.9
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
    assert (config.name, config.seed, config.steps, config.horizon) == ("two kinds", 7, None, 3)
    assert (config.season, config.mixing, config.game, config.paper) == (None, "adaptive", True, None)
    assert config.stream == schema.StreamConfig("concept-y2")
    random, line = config.agents
    assert (random.count, random.encoder, dict(random.options)) == (2, "random_lags", {"hidden": 4, "seed": None})
    assert (random.inputs, random.decoder) == (None, {})
    assert (line.name, line.inputs, dict(line.options)) == ("line", (0, 2), {"lags": 4, "changes": False})
    assert member_names(config) == ["baselines", "random lags 1", "random lags 2", "line", "joint game"]
    federation = build(config)[1]()
    federation.predict_one(np.zeros(3))
    assert federation.members == member_names(config)
    assert federation.horizon == 3


def test_the_paper_s_file_is_read_as_it_stands():
    config = parse(document(PAPERS))
    paper = config.paper
    assert paper is not None
    assert (paper.ridge, paper.budget, paper.anchored, paper.mixing) == (2.0, 0.9, False, "paper")
    assert paper.game == nc.LookbackGame(lookback=2, every=3)
    random, line = config.agents
    assert random.decoder == {"ridge": 3.0, "decay": 0.01, "window": 6, "forgetting": None}
    assert dict(random.options) == {"features": 4, "seed": None, "noise": 0.5}
    assert (line.name, line.decoder["decay"], line.decoder["forgetting"]) == ("line", 0.0, 0.99)
    assert member_names(config) == agent_names(config) == ["random features 1", "random features 2", "line"]
    own = parse(changed(document(PAPERS), {"paper.game_ridge": 4})).paper
    assert own is not None
    assert own.game == nc.LookbackGame(lookback=2, every=3, ridge=4.0)


def test_what_is_left_out_has_the_library_s_own_defaults(tmp_path):
    (tmp_path / "small.toml").write_text('[stream]\nname = "periodic"\n[[agents]]\nencoder = "trend"\n')
    config = load(tmp_path / "small.toml")
    assert (config.name, config.seed, config.game) == ("small", 0, True)
    assert (config.horizon, config.season, config.mixing) == (1, None, "adaptive")
    paper = parse({"stream": {"name": "periodic"}, "paper": {}, "agents": [{"encoder": "linear"}]}).paper
    assert paper is not None
    assert paper.game == nc.LookbackGame()
    assert (paper.ridge, paper.budget, paper.anchored) == (1.0, 1.0, False)


def test_the_default_agents_have_a_name():
    config = parse({**document(), "agents": "default"})
    assert agent_names(config) == [agent.name for agent in nc.default_agents()]
    federation = build(config)[1]()
    federation.predict_one(np.zeros(3))
    assert federation.members == member_names(config)


def test_an_agent_named_as_a_member_of_every_federation_is_told_apart():
    config = parse({**document(), "agents": [{"encoder": "persistence"}, {"encoder": "trend", "name": "joint game"}]})
    assert agent_names(config) == ["persistence", "joint game 1"]


def test_settings_read_back_are_the_same_description():
    smoothing = FILE.replace('"lags"', '"seasonal_smoothing"\nrates = [[0.1, 0.2], [0.5, 0.5]]')
    texts = [FILE, smoothing, f"game = false\nseason = 24\n{FILE}", PAPERS, f"game = false\n{PAPERS}"]
    for given in [*map(document, texts), {**document(), "agents": "default"}]:
        config = parse(given)
        assert parse(config.settings()) == config
        assert parse(config.settings()).settings() == config.settings()
    assert parse(document(smoothing)).agents[1].options["rates"] == ((0.1, 0.2), (0.5, 0.5))


def test_agents_have_seeds_by_their_place_and_not_by_how_many_there_are():
    def drawn(config):
        encoders = [agent.encoders[0] for agent in build(config)[1]()._factory.agents]
        return [encoder.seed for encoder in encoders if hasattr(encoder, "seed")]

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
    ("hidden = 4", "hiden = 4", "agents[0].hiden: got a key that is not known. Did you mean 'hidden'?"),
    ("seed = 7", "gmae = true", "gmae: got a key that is not known. Did you mean 'game'? A federation file takes"),
    ("seed = 7", "seed = -7", "seed: got -7. Pass a whole number ≥ 0."),
    ("seed = 7", "seed = 7.0", "seed: got 7.0. Pass a whole number."),
    ("seed = 7", "steps = 0", "steps: got 0. Pass a whole number ≥ 1."),
    ("horizon = 3", "horizon = 0", "horizon: got int 0. Pass a whole number ≥ 1."),
    ("horizon = 3", "season = 1", "season: got int 1. Pass a whole number ≥ 2."),
    ("horizon = 3", 'mixing = "here"', "mixing: got 'here'. Pass one of adaptive, "),
    ("horizon = 3", 'game = "no"', "game: got 'no'. Pass true or false."),
    ("horizon = 3", "game = {lookback = 3}", "game: got a table. Pass true or false. The paper's look-back game"),
    ('"two kinds"', '" "', "name: got ' '. Pass a text in quotes."),
    ('"two kinds"', "2", "name: got 2. Pass a text in quotes."),
    ('[stream]\nname = "concept-y2"', "", "stream: got nothing. Add a table [stream]"),
    ('name = "concept-y2"', "", "stream.name: got nothing. Add name = "),
    ('"concept-y2"', '"concpt-y2"', "stream.name: got 'concpt-y2'. Did you mean 'concept-y2'"),
    ('"concept-y2"', '"concept-y2"\nstep = 3', "stream.step: got a key that is not known. Did you mean 'steps'?"),
    ('"concept-y2"', '"file"\npath = "a.csv"', "stream.target: got nothing. Add target = … here: the stream"),
    ("count = 2", "count = 0", "agents[0].count: got 0. Pass a whole number ≥ 1."),
    ("count = 2", "count = true", "agents[0].count: got true. Pass a whole number."),
    ("count = 2", "ridge = 3.0", "agents[0].ridge: got a key of the paper's agents. Leave it out: decoders find"),
    ('"random_lags"', '"random_lag"', "agents[0].encoder: got 'random_lag'. Did you mean 'random_lags'"),
    ('encoder = "lags"', "", "agents[1].encoder: got nothing. Pass one of persistence"),
    ('encoder = "lags"', 'encodr = "lags"', "agents[1].encoder: got nothing, but a key 'encodr'. Pass one of"),
    ("hidden = 4", "hidden = 0", "agents[0].hidden: got int 0. Pass a whole number ≥ 1."),
    ("hidden = 4", "seed = -1", "agents[0].seed: got -1. Pass a whole number ≥ 0."),
    ("inputs = [0, 2]", "inputs = 3", "agents[1].inputs: got 3. Pass a list of places or names of inputs."),
    ("inputs = [0, 2]", "inputs = [0.5]", "agents[1].inputs[0]: got 0.5. Pass the place or the name of an input."),
    ("inputs = [0, 2]", "inputs = [1, 1]", "agents[1].inputs: got tuple (1, 1). Name every input once."),
    ("inputs = [0, 2]", "inputs = [-1]", "agents[1].inputs: got int -1. Pass a whole number ≥ 0."),
    ("inputs = [0, 2]", "hidden = 3", "agents[1].hidden: got a key that is not known. An agent with"),
    ("inputs = [0, 2]", 'name = ""', "got text that is not TOML. Cannot overwrite a value (at line "),
    ('"lags"', '"seasonal_smoothing"\nrates = 3', "agents[1].rates: got 3. Pass a list of pairs of numbers."),
    ('"lags"', '"seasonal_smoothing"\nrates = [["a"]]', "agents[1].rates[0][0]: got 'a'. Pass a number."),
    ('"lags"', '"seasonal_smoothing"\nrates = [[2, 1]]', "Pass pairs of numbers above 0 and at most 1."),
    ('"lags"', '"random_features"', "agents[1].features: got nothing. Add features = … here: it has no default."),
    ('"lags"', '"random_features"\nfeatures = 2\nnoise = -1', "agents[1].noise: got -1. Pass a number ≥ 0."),
    ('"lags"', '"random_features"\nfeatures = 2\nnoise = true', "agents[1].noise: got true. Pass a number."),
    ('"lags"', '"transformer"\npath = "w.npz"', "(No such file or directory). Pass a file that"),
    ('"lags"', '"onnx"\nfeatures = 2\npath = "w.onnx"', "which is no file. Pass the path of an ONNX file."),
    ('"lags"', '"forecaster"\nfunction = "no"', "agents[1].function: got 'no'. Pass a module and a function in it"),
    ('"lags"', '"forecaster"\nfunction = "no_such:f"', "agents[1].function: got 'no_such:f', whose module cannot"),
    ('"lags"', '"forecaster"\nfunction = "math:no"', "agents[1].function: got 'math:no', but there is no"),
    ('"lags"', '"python"\nmake = "math:sqrt"', "agents[1].make: got a function that raised TypeError"),
    ('"lags"', '"python"\nmake = "os:getpid"', "Return an encoder."),
    ("[[agents]]", "[[other]]", "other: got a key that is not known."),
]  # fmt: skip

BAD_PAPERS = [
    ("lookback = 2", "lookbak = 2", "paper.lookbak: got a key that is not known. Did you mean 'lookback'? The paper's"),
    ("budget = 0.9", "eta = 0.9", "paper.eta: got a key that is not known. The paper's federation takes anchored, "),
    ("ridge = 2", "ridge = 0", "paper.ridge: got 0. Pass a number > 0."),
    ("ridge = 2", 'ridge = "2"', "paper.ridge: got '2'. Pass a number."),
    ("ridge = 2", "ridge = inf", "paper.ridge: got inf. Pass a finite number."),
    ("ridge = 2", "anchored = true", "paper.anchored: got true with a game. Set game = false, or anchored = false"),
    ("ridge = 2", "anchored = 1", "paper.anchored: got 1. Pass true or false."),
    ("lookback = 2", "lookback = 0", "paper.lookback: got int 0. Pass a whole number ≥ 1."),
    ("lookback = 2", "lookback = 2.5", "paper.lookback: got 2.5. Pass a whole number."),
    ("lookback = 2", "lookback = [2]", "paper.lookback: got [2]. Pass a whole number."),
    ("lookback = 2", 'placement = "here"', "paper.placement: got 'here'. Pass one of central, spread."),
    ("lookback = 2", "game_ridge = 0", "paper.game_ridge: got 0. Pass a number > 0."),
    ("seed = 7", "horizon = 2", "horizon: got a key that is not valid with [paper]. Leave it out, or leave out"),
    ("seed = 7", 'mixing = "boa"', "mixing: got a key that is not valid with [paper]. Write it in the table"),
    ("ridge = 3", "ridge = -3", "agents[0].ridge: got -3. Pass a number > 0."),
    ("decay = 0.01", "decay = -1", "agents[0].decay: got -1. Pass a number ≥ 0."),
    ("window = 6", "window = 0", "agents[0].window: got int 0. Pass a whole number ≥ 1."),
    ("window = 6", "inputs = [0]", "agents[0].inputs: got a key of the joint federation. Leave it out, or leave out"),
    ("forgetting = 0.99", "forgetting = 1.5", "agents[1].forgetting: got 1.5. Pass a number ≤ 1."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "old", "new", "words"), [(FILE, *case) for case in BAD] + [(PAPERS, *case) for case in BAD_PAPERS]
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, text, old, new, words):
    assert old in text
    path = tmp_path / "fed.toml"
    path.write_text(text.replace(old, new, 1))
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
        ("all", "agents: got 'all'. Write [[agents]], twice [ and ]."),
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
    for inputs, words in (([9], "place 9. Inputs have 3 numbers"), (["x"], "Inputs have no names here: pass places")):
        config = parse(changed(document(), {"agents[1].inputs": inputs}), source="f.toml")
        with pytest.raises(nc.InvalidInput, match=rf"f.toml: agents\[1\].inputs.*{words}"):
            build(config)
    with pytest.raises(nc.InvalidInput, match=r"f.toml: steps: got 999. The stream has 200 steps: pass at most"):
        build(parse({**document(), "steps": 999}, source="f.toml"))
    with pytest.raises(nc.InvalidInput, match=re.escape("f.toml: stream.steps: got str 'x'. Pass a whole number")):
        build(parse(changed(document(), {"stream.steps": "x"}), source="f.toml"))


def test_inputs_by_name_are_all_lags_of_a_column(tmp_path):
    rows = "\n".join(f"{i},{i % 7},{i % 5}" for i in range(30))
    (tmp_path / "a.csv").write_text(f"load,wind,sun\n{rows}\n")
    stream = {"name": "file", "path": "a.csv", "target": "load", "inputs": ["wind", "sun"], "scale": "none"}
    given = {"stream": {**stream, "lags": {"wind": 3, "sun": 2}}, "agents": [{"encoder": "lags", "inputs": ["sun"]}]}
    opened, make = build(parse(given, folder=tmp_path))
    assert opened.input_names == ("wind", "sun", "wind", "sun", "wind")
    (agent,) = make()._factory.agents
    assert agent.inputs == (1, 3)
    np.testing.assert_array_equal(opened.inputs[0, [1, 3]], [2, 1])
    given["agents"][0]["inputs"] = ["sin"]
    with pytest.raises(nc.InvalidInput, match=r"agents\[0\].inputs\[0\]: got 'sin'. Did you mean 'sun'\? .* wind, sun"):
        build(parse(given, folder=tmp_path))


def test_values_are_replaced_by_dotted_name():
    old = document(PAPERS)
    new = changed(
        old, {"agents.ridge": 9, "agents[1].lags": 2, "paper.every": 1, "stream.name": "periodic", "steps": 30}
    )
    assert old == document(PAPERS)
    config = parse(new)
    assert [agent.decoder["ridge"] for agent in config.agents] == [9.0, 9.0]
    assert (config.agents[1].options["lags"], config.paper.game.every, config.stream.name) == (2, 1, "periodic")
    stream, _ = build(config)
    assert len(stream.targets) == len(stream.inputs) == config.steps == 30


def test_there_is_no_game_if_game_or_the_look_back_is_false():
    without = [{"game": False}, {"paper.lookback": False}, {"paper.lookback": False, "paper.every": 2}]
    configs = [parse(changed(document(PAPERS), changes)) for changes in without]
    assert all(config.paper.game is None and config.game is False for config in configs)
    assert configs[0] == configs[1] == configs[2]
    assert parse(changed(document(PAPERS), {"paper.rewrite_past": False})).game
    assert parse(changed(document(), {"game": False})).game is False


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("agents[7].ridge", "f.toml: agents[7].ridge: got agents[7]. Name a key of one of the 2 tables [[agents]]."),
        ("agents[0]", "f.toml: agents[0]: got agents[0]. Name a key"),
        ("stream[0].name", "f.toml: stream[0].name: got stream[0]. Name a key of one of the 0 tables"),
        ("name.length", "f.toml: name.length: got a key below name, which is not a table."),
        ("agents..ridge", "f.toml: agents..ridge: got a name that cannot be read. Write it as agents.features"),
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
    shapes = encoders.network.transformer.weight_shapes(3, 2, 4)
    rng = np.random.default_rng(0)
    encoders.Transformer({name: rng.standard_normal(shape) for name, shape in shapes.items()}, y_dim=1).save(
        tmp_path / "w.npz"
    )
    for text, name in ((PAPERS, "linear"), (FILE, "lags")):
        given = text.replace(f'"{name}"', '"transformer"\npath = "w.npz"').replace("inputs = [0, 2]", "")
        (tmp_path / "f.toml").write_text(given)
        agent = build(load(tmp_path / "f.toml"))[1]()._factory.agents[2]
        encoder = agent.encoders[0] if text is FILE else agent._encoder
        assert encoder.features == 2


def test_every_encoder_of_the_library_can_be_described_or_made():
    named = {"OnnxModel", "Transformer", "Callable", "Forecaster", "Embeddings", "Linear", "Persistence"}
    named |= {"RandomFeatures", "EchoState", "Trend", "Lags", "Seasonal", "Quadratic", "RandomLags", "Reservoir"}
    named |= {"Analogs", "SeasonalSmoothing", "Learner", "Stochastic", "ForecastServer", "StatsForecast", "Chronos"}
    named |= {"HuggingFace"}
    by_function = {"SklearnTransformer", "SklearnRegressor", "RiverModel", "Sktime"}
    about = {"BuiltEncoder", "BuiltForecaster", "Context", "Encoder", "Noise", "RowEncoder", "pretrain_transformer"}
    about |= {"BuiltLearner", "ForecastSet", "Quantiles", "Training"}
    assert set(encoders.__all__) == named | by_function | about
    assert len(ENCODERS) == len(named) + 1


def test_every_key_is_documented():
    page = PAGE.read_text()
    keys = {*schema.TOP, *schema.OF_SWEEPS, *PAPER, *AGENT, *SWEEP, *RANGE}
    for key in keys | {"count", "encoder", "inputs"}:
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
