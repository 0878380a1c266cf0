"""Adapters of other libraries, against the real ones: statsforecast, sktime, Chronos, Hugging Face."""

import io
import json
import logging
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import nashcast as nc
from nashcast.checks import check_encoder
from nashcast.encoders import Chronos, HuggingFace, Sktime, StatsForecast

pytestmark = pytest.mark.slow

SERIES = 10.0 + np.sin(np.arange(120) * np.pi / 6.0) + 0.05 * np.random.default_rng(0).standard_normal(120)


def ran(encoder, steps=48, horizon=4, y_dim=1):
    """A federation of one agent after some steps, with a forecast outstanding; nothing was printed or warned of."""
    printed = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(printed):
        warnings.simplefilter("error")
        federation = nc.Federation([nc.Agent(encoder, name="box")], horizon=horizon, y_dim=y_dim)
        for y in SERIES[:steps]:
            federation.predict_one(None)
            federation.learn_one(None, y if y_dim == 1 else np.arange(y_dim) + y)
        federation.predict_one(None)
    assert printed.getvalue() == ""
    return federation


def unit_of(federation):
    return federation._loop._agents._forecasters[0]


def goes_on_bit_for_bit(make, tmp_path, steps=30):
    one, other = (nc.Federation([nc.Agent(make())], horizon=3) for _ in range(2))
    for y in SERIES[:steps]:
        one.predict_one(None)
        one.learn_one(None, y)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for y in SERIES[steps : steps + 8]:
        np.testing.assert_array_equal(one.predict_one(None), other.predict_one(None))
        one.learn_one(None, y)
        other.learn_one(None, y)


# statsforecast


def test_statsforecast_says_what_the_library_says():
    from statsforecast.models import AutoETS, SeasonalNaive

    unit = unit_of(ran(StatsForecast("SeasonalNaive", season=12, refit_every=1)))
    np.testing.assert_array_equal(unit.said[0, :, 0], SERIES[36:40])
    expected = SeasonalNaive(season_length=12).fit(SERIES[:48]).predict(h=4, level=[80])
    np.testing.assert_allclose(unit.quantiles.values[:, 0, 0], expected["lo-80"])
    np.testing.assert_allclose(unit.quantiles.values[:, 0, 2], expected["hi-80"])
    # Carried on with the parameters of the last fit: at 48 targets, 6 steps before.
    unit = unit_of(ran(StatsForecast(AutoETS(season_length=12, model="ANA"), refit_every=6, context=500), steps=53))
    fits = [1, 2, 4, 8, 14, 16, 22, 28, 32, 38, 44, 50]
    expected = AutoETS(season_length=12, model="ANA").fit(SERIES[: fits[-1]]).forward(y=SERIES[:53], h=4)
    np.testing.assert_allclose(unit.said[0, :, 0], expected["mean"])


def test_statsforecast_several_targets_contracts_and_states(tmp_path):
    unit = unit_of(ran(StatsForecast("Naive"), y_dim=2))
    np.testing.assert_array_equal(unit.said[0], np.tile(SERIES[47] + [0.0, 1.0], (4, 1)))
    check_encoder(StatsForecast("Naive", refit_every=3, quantiles=()), x_dim=1, y_dim=2, steps=8)
    goes_on_bit_for_bit(lambda: StatsForecast("AutoTheta", season=12, refit_every=7, context=40), tmp_path)


def test_statsforecast_messages():
    number = 3
    with pytest.raises(nc.InvalidInput, match=r"model: got 'AutoMagic'. Pass a class of statsforecast.models"):
        StatsForecast("AutoMagic")
    with pytest.raises(nc.InvalidInput, match=r"model: got int 3. Pass a model of statsforecast.models, or its name"):
        StatsForecast(number)
    with pytest.raises(nc.InvalidInput, match=r"quantiles: got .* Pass pairs round the median"):
        StatsForecast("Naive", quantiles=(0.1, 0.5, 0.8))
    with pytest.raises(nc.InvalidInput, match=r"refit_every: got int 0"):
        StatsForecast("Naive", refit_every=0)


# sktime


def naive(**settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sktime.forecasting.naive import NaiveForecaster

        return NaiveForecaster(**settings)


def test_sktime_says_what_the_library_says(tmp_path):
    unit = unit_of(ran(Sktime(naive(sp=12), refit_every=5), steps=50))
    np.testing.assert_array_equal(unit.said[0, :, 0], SERIES[38:42])
    unit = unit_of(ran(Sktime(naive(strategy="mean"), refit_every=16), steps=40))
    # Fitted to 32 targets, and told eight more without being fitted again.
    model = naive(strategy="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pd.Series(SERIES[:32]), fh=[1, 2, 3, 4])
        model.update(pd.Series(SERIES[32:40], index=pd.RangeIndex(32, 40)), update_params=False)
    np.testing.assert_allclose(unit.said[0, :, 0], model.predict())
    check_encoder(Sktime(naive(), refit_every=3), x_dim=1, y_dim=2, steps=8)
    goes_on_bit_for_bit(lambda: Sktime(naive(sp=4), refit_every=5, context=40), tmp_path, steps=12)


def test_sktime_quantiles_and_messages():
    federation = ran(Sktime(naive(), quantiles=(0.1, 0.5, 0.9)), steps=12, horizon=2)
    assert unit_of(federation).quantiles.values.shape == (2, 1, 3)
    word = "naive"
    with pytest.raises(nc.InvalidInput, match=r"forecaster: got an object of type str. Pass a forecaster of sktime"):
        Sktime(word)


# Chronos


@pytest.fixture(scope="module")
def bolt(tmp_path_factory):
    """A Chronos-Bolt model of a few random weights."""
    torch = pytest.importorskip("torch")
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    folder = tmp_path_factory.mktemp("bolt")
    config = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_decoder_layers=1, num_heads=2, vocab_size=2)
    config.chronos_config = {
        "context_length": 64, "input_patch_size": 8, "input_patch_stride": 8, "prediction_length": 8,
        "quantiles": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "use_reg_token": True,
    }  # fmt: skip
    config.architectures = ["ChronosBoltModelForForecasting"]
    config.chronos_pipeline_class = "ChronosBoltPipeline"
    config.reg_token_id, config.decoder_start_token_id = 1, 0
    torch.manual_seed(0)
    ChronosBoltModelForForecasting(config).save_pretrained(folder)
    return folder


def test_chronos_says_what_the_library_says(bolt, tmp_path):
    import torch
    from chronos import BaseChronosPipeline

    unit = unit_of(ran(Chronos(bolt, context=32), steps=40))
    pipeline = BaseChronosPipeline.from_pretrained(str(bolt), device_map="cpu", dtype=torch.float32)
    past = torch.tensor(SERIES[8:40], dtype=torch.float32)
    expected, _ = pipeline.predict_quantiles([past], prediction_length=4, quantile_levels=[0.1, 0.5, 0.9])
    np.testing.assert_allclose(unit.quantiles.values[:, 0], np.sort(np.asarray(expected[0])), rtol=1e-4)
    np.testing.assert_array_equal(unit.said[0, :, 0], unit.quantiles.values[:, 0, 1])
    goes_on_bit_for_bit(lambda: Chronos(bolt, context=32), tmp_path, steps=12)


def test_chronos_contracts_and_messages(bolt, tmp_path):
    check_encoder(Chronos(bolt, context=16), x_dim=1, y_dim=2, steps=8)
    with pytest.raises(nc.InvalidInput, match=r"model: got .* Pass the folder of a Chronos model"):
        Chronos(tmp_path).build(0, 1)
    with pytest.raises(nc.InvalidInput, match=r"quantiles: got \(\). Pass at least the median"):
        Chronos(bolt, quantiles=())


# Hugging Face


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A BERT of a few random weights that knows ten words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "rates", "rise", "fall", "sharply", "hold", "again"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def vision(tmp_path_factory):
    """A ViT and a CLIP of a few random weights, by name."""
    import torch
    from transformers import CLIPConfig, CLIPModel, ViTConfig, ViTModel

    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    sizes = tiny | {"image_size": 16, "patch_size": 8}
    torch.manual_seed(0)
    text = tiny | {"vocab_size": 16, "bos_token_id": 0, "eos_token_id": 1}
    clip = CLIPConfig(text_config=text, vision_config=sizes, projection_dim=6)
    made = {"vit": ViTModel(ViTConfig(**sizes)), "clip": CLIPModel(clip)}
    for name, model in made.items():
        made[name] = tmp_path_factory.mktemp(name)
        model.save_pretrained(made[name])
        settings = {"size": {"height": 16, "width": 16}, "image_processor_type": "ViTImageProcessor"}
        (made[name] / "preprocessor_config.json").write_text(json.dumps(settings))
    return made


HEADLINES = ["rates rise", "rates fall sharply", "rates hold again"]


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_a_federation_of_texts_works_end_to_end(bert, pooling):
    rng, printed = np.random.default_rng(1), io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(printed):
        warnings.simplefilter("error")
        reader = HuggingFace(bert, column="headline", features=3, pooling=pooling)
        federation, misses = nc.Federation([nc.Agent(reader, name="reader")]), []
        for _ in range(150):
            which = int(rng.integers(3))
            x = {"headline": HEADLINES[which], "noise": rng.standard_normal()}
            misses.append(federation.predict_one(x) - (1.0, -2.0, 0.5)[which])
            federation.learn_one(x, (1.0, -2.0, 0.5)[which])
    assert printed.getvalue() == ""
    assert not federation.health["absences"]
    assert np.abs(misses[100:]).max() < 0.1


def test_text_embeddings_are_those_of_the_library(bert):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    with torch.no_grad():
        hidden = model(**tokenizer(["rates rise"], return_tensors="pt")).last_hidden_state
    built = HuggingFace(bert, column="h", features=8, projection=np.eye(8)).build(0, 2)
    from nashcast.encoders.base import Noise, input_context

    context = input_context(np.zeros(0), Noise(1, 0))._replace(objects={"h": "rates rise"})
    np.testing.assert_allclose(built.encode(context), np.tile(hidden[0].mean(dim=0).numpy(), (2, 1)), rtol=1e-5)
    objects = [{"h": HEADLINES[t % 3]} for t in range(8)]
    check_encoder(HuggingFace(bert, column="h", features=2), x_dim=1, y_dim=2, steps=8, objects=objects)


@pytest.mark.parametrize("name", ["vit", "clip"])
def test_a_federation_of_pictures_works_end_to_end(vision, name):
    pil = pytest.importorskip("PIL.Image")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    rng = np.random.default_rng(2)
    federation, misses = (
        nc.Federation([nc.Agent(HuggingFace(vision[name], "image", "photo", features=4), name="eye")]),
        [],
    )
    for t in range(120):
        bright = float(rng.uniform(0.2, 1.0))
        picture = np.full((20, 20, 3), int(255 * bright), dtype=np.uint8)
        x = {"photo": pil.fromarray(picture) if t % 2 else picture}
        misses.append(federation.predict_one(x) - bright)
        federation.learn_one(x, bright)
    assert not federation.health["absences"]
    assert np.sqrt(np.mean(np.square(misses[60:]))) < 0.1


def test_huggingface_benches_what_it_cannot_read(bert):
    federation = nc.Federation([nc.Agent(HuggingFace(bert, column="h", features=2), name="reader")])
    for t in range(6):
        x = {"h": ["rates", None, 3.5][t % 3]}
        federation.predict_one(x)
        federation.learn_one(x, float(t))
    assert federation.health["absences"] == {"reader": 4}  # the first row begins the stream
    assert "it takes text, and got float 3.5" in federation.health["reasons"]["reader"]


def test_huggingface_messages(bert, tmp_path):
    for arguments, words in (
        ({"kind": "sound"}, "kind: got str 'sound'. Pass one of text, image"),
        ({"pooling": "max"}, "pooling: got str 'max'. Pass one of mean, cls, pooler"),
        ({"features": 0}, "features: got int 0"),
        ({"projection": np.eye(3)}, r"projection: got shape \(3, 3\). It must have features = 16 rows"),
    ):
        with pytest.raises(nc.InvalidInput, match=words):
            HuggingFace(bert, **arguments)
    with pytest.raises(nc.InvalidInput, match=r"model: got .* Pass the folder or name of a model of text"):
        HuggingFace(tmp_path).build(0, 1)
