"""The transformer encoder against PyTorch's own modules, its file, and a pre-training that does not look ahead."""

import json
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from nashcast import InvalidInput
from nashcast.encoders.base import Noise
from nashcast.encoders.network.attention import Dropout, attend, attend_backward
from nashcast.encoders.network.pretrain import Training, _network, pretrain_on_sequences, pretrain_transformer
from nashcast.encoders.network.transformer import Transformer, weight_shapes
from support.encoding import encode_step

# x_dim, y_dim, features, context: widths 1, 2, 4, 6 and an odd one above 1, so one head and two.
CASES = [
    (1, 1, 1, 1),
    (1, 1, 1, 4),
    (3, 1, 2, 1),
    (3, 1, 2, 4),
    (2, 2, 2, 1),
    (5, 4, 1, 4),
    (4, 2, 3, 1),
    (4, 3, 2, 4),
    (2, 1, 5, 4),
]


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    threads = module.get_num_threads()
    module.set_num_threads(1)
    yield module
    module.set_num_threads(threads)


def untrained(x_dim, y_dim, features, context, positions=6, seed=0):
    rng = np.random.default_rng([seed, x_dim, y_dim, features])
    shapes = weight_shapes(x_dim, y_dim * features, positions)
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return Transformer(weights, y_dim=y_dim, context=context)


def series(x_dim, steps=11, seed=1):
    return np.random.default_rng(seed).standard_normal((steps, x_dim))


def one_by_one(built, inputs, state=None):
    state = built.start() if state is None else state
    features = []
    for t, x in enumerate(inputs):
        Z, state = encode_step(built, x, state, Noise(0, t))
        features.append(Z)
    return np.array(features), state


def by_torch(torch, transformer, window):
    """The features of one window (length, x_dim), from PyTorch's modules put together here a second time."""
    nn = torch.nn
    tensors = {name: torch.from_numpy(value.copy()) for name, value in transformer.weights.items()}
    width, x_dim = transformer.weights["input.weight"].shape
    projection = nn.Linear(x_dim, width, dtype=torch.float64)
    projection.load_state_dict({"weight": tensors["input.weight"], "bias": tensors["input.bias"]})
    layer = nn.TransformerEncoderLayer(width, 2 if width % 2 == 0 else 1, 16, 0.1, dtype=torch.float64)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    prefix = "encoder."
    encoder.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
    encoder.eval()
    length = len(window)
    with torch.no_grad():
        embedded = projection(torch.from_numpy(window.copy())) + tensors["positions"][:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
        out = encoder(embedded[:, None], mask=mask)
    return out[-1, 0].numpy().reshape(transformer.y_dim, transformer.features)


@pytest.mark.parametrize("case", CASES)
def test_the_numpy_pass_is_pytorchs(torch, case):
    x_dim, y_dim, features, context = case
    transformer = untrained(*case)
    inputs = series(x_dim)
    Z, _ = one_by_one(transformer.build(x_dim, y_dim), inputs)
    assert Z.shape == (len(inputs), y_dim, features)
    for t in range(len(inputs)):
        expected = by_torch(torch, transformer, inputs[max(0, t - context + 1) : t + 1])
        np.testing.assert_allclose(Z[t], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 11])
def test_a_series_at_once_is_one_by_one_to_the_bit(monkeypatch, case, steps):
    built = untrained(*case).build(case[0], case[1])
    inputs = series(case[0], 2 + steps)
    _, before = one_by_one(built, inputs[:2])
    for state, part in ((built.start(), inputs[2:]), (before, inputs[2:])):
        expected, last = one_by_one(built, part, state)
        for batch in (2**20, 1, 100):
            monkeypatch.setattr("nashcast.encoders.network.transformer._BATCH", batch)
            Z, after = built.encode_series(part, state, 0, 0)
            assert Z.shape == (steps, case[1], case[2])
            np.testing.assert_array_equal(Z, expected.reshape(Z.shape))
            np.testing.assert_array_equal(after, last)
            assert len(after) == min(case[3], len(state) + steps)


@pytest.mark.parametrize("context", [1, 4])
def test_encoding_is_pure(context):
    built = untrained(3, 1, 2, context).build(3, 1)
    inputs = series(3)
    _, state = one_by_one(built, inputs)
    x, state_before = inputs[0].copy(), state.copy()
    first, next_state = encode_step(built, x, state, Noise(0, 0))
    again, _ = encode_step(built, x, state, Noise(9, 9))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(state, state_before)
    np.testing.assert_array_equal(x, inputs[0])
    kept = next_state.copy()
    x[:] = 7.0
    state[:] = 7.0
    np.testing.assert_array_equal(next_state, kept)
    assert built.moments(inputs, np.zeros((len(inputs), 1, 2)), Noise(0, 0)) is None


@pytest.mark.parametrize("context", [1, 4])
def test_features_depend_on_the_context_and_on_nothing_later(context):
    built = untrained(3, 2, 2, context).build(3, 2)
    inputs = series(3)
    Z, _ = built.encode_series(inputs, built.start(), 0, 0)
    for changed in range(len(inputs)):
        other = inputs.copy()
        other[changed] += 1.0
        different = (built.encode_series(other, built.start(), 0, 0)[0] != Z).any(axis=(1, 2))
        seen_at = np.arange(changed, min(changed + context, len(inputs)))
        np.testing.assert_array_equal(np.flatnonzero(different), seen_at)


def test_inputs_of_any_size_give_finite_features():
    built = untrained(3, 1, 4, 4).build(3, 1)
    for size in (0.0, 1e-200, 1e6, 1e100):
        Z, _ = built.encode_series(size * series(3), built.start(), 0, 0)
        assert np.isfinite(Z).all()


def test_a_description_is_frozen_hashable_and_printable():
    transformer = untrained(3, 2, 2, 4)
    assert repr(transformer) == "Transformer(y_dim=2, context=4, look_ahead=False, x_dim=3, features=2)"
    assert len({transformer, transformer, untrained(3, 2, 2, 4)}) == 2
    with pytest.raises(ValueError, match="read-only"):
        transformer.weights["positions"][0, 0] = 1.0


def test_weights_are_copied():
    weights = dict(untrained(3, 1, 2, 1).weights)
    weights["positions"] = positions = weights["positions"].copy()
    transformer = Transformer(weights, y_dim=1)
    positions[:] = 5.0
    weights.clear()
    assert not (transformer.weights["positions"] == 5.0).any()


def with_weight(name, value):
    return {**untrained(3, 1, 2, 1).weights, name: value}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, r"^weights: got list \[1.0\]. Pass a dict"),
        ({"weights": {}}, r"^weights: got no array 'input.weight'"),
        ({"weights": with_weight("strange", np.ones(2))}, r"^weights: .*not known: 'strange'"),
        ({"weights": with_weight("positions", np.ones(2))}, r"^weights\['positions'\]: got shape \(2,\)"),
        ({"weights": with_weight("input.bias", np.ones(3))}, r"^weights\['input.bias'\]: got shape \(3,\)"),
        ({"weights": with_weight("input.bias", np.array([1, np.nan]))}, r"^weights\['input.bias'\]: got nan"),
        ({"y_dim": 0}, r"^y_dim: got int 0"),
        ({"y_dim": 3}, r"^y_dim: got 3. Pass a y_dim that divides the width of the weights, 2\."),
        ({"context": 0}, r"^context: got int 0"),
        ({"context": 7}, r"^context: got 7. Pass at most the 6 positions"),
        ({"look_ahead": 1}, r"^look_ahead: got int 1"),
    ],
)
def test_bad_descriptions_are_refused(change, message):
    arguments = {"weights": untrained(3, 1, 2, 1).weights, "y_dim": 1} | change
    with pytest.raises(InvalidInput, match=message):
        Transformer(**arguments)


@pytest.mark.parametrize(("dims", "name"), [((4, 2), "x_dim"), ((3, 1), "y_dim")])
def test_it_is_built_only_for_what_it_was_trained_for(dims, name):
    with pytest.raises(InvalidInput, match=rf"^{name}: got \d. This transformer was trained for {name} = \d"):
        untrained(3, 2, 2, 1).build(*dims)


@pytest.mark.parametrize("name", ["agent.npz", "agent"])
def test_a_saved_transformer_comes_back_to_the_bit(tmp_path, name):
    original = untrained(3, 2, 2, 4)
    original = Transformer(original.weights, y_dim=2, context=4, look_ahead=True)
    path = tmp_path / name
    original.save(path)
    assert list(tmp_path.iterdir()) == [path]
    copy = Transformer.load(str(path))
    assert repr(copy) == repr(original)
    assert list(copy.weights) == list(original.weights)
    for key, value in original.weights.items():
        assert copy.weights[key].tobytes() == value.tobytes()
    copy.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_truncated_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "agent.npz"
    untrained(3, 1, 2, 1).save(path)
    content = path.read_bytes()
    for length in [*range(4), *range(4, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInput, match=r"^path: got .*agent.npz, (an archive that cannot|not a saved)"):
            Transformer.load(path)
    refused = []
    for place in range(0, len(content), 53):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            loaded = Transformer.load(path)
        except InvalidInput as error:
            refused.append(error.argument)
        else:  # the byte was in a part of the archive that carries no data
            for name, value in untrained(3, 1, 2, 1).weights.items():
                np.testing.assert_array_equal(loaded.weights[name], value)
    assert len(refused) > 10
    assert set(refused) == {"path"}


def foreign_files():
    arrays = dict(untrained(3, 1, 2, 1).weights)
    fine = {"format": "nashcast transformer", "version": 1, "y_dim": 1, "context": 1, "look_ahead": False}
    yield "settings missing", arrays, r"not a saved transformer"
    yield "settings no text", {**arrays, "settings": np.ones(3)}, r"not a saved transformer"
    yield "settings no object", {**arrays, "settings": np.array("3")}, r"not a saved transformer"
    for name, settings, message in (
        ("another format", fine | {"format": "other"}, r"not a saved transformer"),
        ("a newer version", fine | {"version": 2}, r"of version 2. This nashcast reads version 1"),
        ("a context too long", fine | {"context": 7}, r"do not fit together \(context: got 7"),
        ("a strange setting", fine | {"colour": 1}, r"do not fit together"),
        ("a setting missing", {k: v for k, v in fine.items() if k != "y_dim"}, r"do not fit together"),
    ):
        yield name, {**arrays, "settings": np.array(json.dumps(settings))}, message
    arrays.pop("positions")
    yield "an array missing", {**arrays, "settings": np.array(json.dumps(fine))}, r"no array 'positions'"


@pytest.mark.parametrize(("arrays", "message"), [pytest.param(*rest, id=name) for name, *rest in foreign_files()])
def test_a_foreign_archive_is_refused(tmp_path, arrays, message):
    path = tmp_path / "agent.npz"
    np.savez(path, **arrays)
    with pytest.raises(InvalidInput, match=rf"^path: got .*{message}"):
        Transformer.load(path)


def test_other_files_and_paths_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"^path: got .*nowhere.npz \(No such file"):
        Transformer.load(tmp_path / "nowhere.npz")
    with pytest.raises(InvalidInput, match=r"^path: got .*\(Is a directory\)"):
        Transformer.load(tmp_path)
    np.save(tmp_path / "array.npy", np.ones(3))
    (tmp_path / "text.npz").write_text("hello")
    for name in ("array.npy", "text.npz"):
        with pytest.raises(InvalidInput, match=r"^path: got .*, not a saved transformer"):
            Transformer.load(tmp_path / name)
    with pytest.raises(InvalidInput, match=r"^path: got .*\(No such file"):
        untrained(3, 1, 2, 1).save(tmp_path / "no" / "such" / "directory.npz")


def test_nothing_is_unpickled(tmp_path):
    path = tmp_path / "agent.npz"
    np.savez(path, settings=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInput, match=r"^path: .*an archive that cannot be read"):
        Transformer.load(path)


def kept_weights(key, drop, heads, length):
    """0 where an attention weight is dropped, 1 / (1 - drop) elsewhere: read off equal scores, row i's times i + 1."""
    zeros = np.zeros((heads, 1, length))
    columns, unit, out = [], np.eye(length), np.empty_like(zeros)
    for j in range(length):
        attend(dropping(key, drop), zeros, zeros, np.tile(unit[j], (heads, 1, 1)), out)
        columns.append(out[:, 0] * np.arange(1, length + 1))
    return np.stack(columns, axis=-1)


def dropping(key, drop):
    return Dropout(key, np.uint32(drop * 2**32), 1 / (1 - drop))


@pytest.mark.parametrize("drop", [0.0, 0.3])
@pytest.mark.parametrize(("size", "length", "spread"), [(1, 1, 1.0), (1, 33, 1.0), (2, 40, 1.0), (3, 17, 8.0)])
def test_attention_and_its_gradient_are_those_of_the_dense_matrices(torch, drop, size, length, spread):
    Q, K, V, d_out = np.random.default_rng(length).standard_normal((4, 4, size, length))
    Q *= spread
    out, *found = (np.full_like(Q, np.nan) for _ in range(4))
    attend(dropping(7, drop), Q, K, V, out)
    attend_backward(dropping(7, drop), (Q, K, V), out, d_out, found)

    q, k, v = (torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (Q, K, V))
    scores = q.transpose(1, 2) @ k + torch.full((length, length), -torch.inf).triu(1)
    weights = torch.softmax(scores, dim=-1) * torch.from_numpy(kept_weights(7, drop, 4, length))
    expected = v @ weights.transpose(1, 2)
    expected.backward(torch.from_numpy(d_out).double())
    np.testing.assert_allclose(out, expected.detach().numpy(), rtol=0, atol=1e-12)
    for gradient, tensor in zip(found, (q, k, v), strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("drop", [0.0, 0.3])
@pytest.mark.parametrize(("size", "length"), [(1, 1), (2, 40), (3, 65)])
def test_the_compiled_twin_of_attention_gives_the_same(drop, size, length):
    twin = pytest.importorskip("nashcast.encoders.network.compiled.attention")
    Q, K, V, d_out = np.random.default_rng(length).standard_normal((4, 6, size, length))
    plain, fast = ([np.full_like(Q, np.nan) for _ in range(4)] for _ in range(2))
    for (out, *found), forward, backward in (
        (plain, attend, attend_backward),
        (fast, twin.attend, twin.attend_backward),
    ):
        forward(dropping(2**61 + 7, drop), Q, K, V, out)
        backward(dropping(2**61 + 7, drop), (Q, K, V), out, d_out, tuple(found))
    for one, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_attention_to_scores_of_any_size_is_finite():
    Q = np.full((1, 1, 5), 1e6)
    K = np.array([[[-1e9, 0.0, 3.0, 1e9, -5.0]]])
    V = np.arange(5.0)[None, None]
    out = np.empty_like(V)
    attend(dropping(1, 0.0), Q, K, V, out)
    np.testing.assert_allclose(out[0, 0], [0, 1, 2, 3, 3], atol=1e-6)


def test_weights_are_dropped_at_the_given_rate_and_independently():
    kept = np.stack([kept_weights(key, 0.1, 8, 64) for key in (1, 2)])
    lower = np.tri(64, dtype=bool)
    values = kept[..., lower]
    dropped = values == 0.0
    np.testing.assert_allclose(values[~dropped], 1 / 0.9, rtol=1e-5)
    error = np.sqrt(0.1 * 0.9 / dropped.size)
    assert abs(dropped.mean() - 0.1) < 4 * error
    # Two keys, two heads, neighbouring rows, neighbouring columns: all meet as often as chance has it.
    gone = (kept == 0.0) & lower
    both = [
        (gone[0] & gone[1])[..., lower],
        (gone[:, 0] & gone[:, 1])[..., lower],
        (gone[..., 1:, :] & gone[..., :-1, :])[..., lower[:-1]],
        (gone[..., :, 1:] & gone[..., :, :-1])[..., lower[:, 1:]],
    ]
    for together in both:
        assert abs(together.mean() - 0.01) < 4 * np.sqrt(0.01 * 0.99 / together.size)


@pytest.mark.parametrize(("x_dim", "y_dim", "width"), [(1, 1, 1), (2, 1, 2), (3, 2, 4), (3, 3, 9)])
def test_the_network_that_is_trained_is_pytorchs(torch, x_dim, y_dim, width):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = _network(torch, x_dim, y_dim, width, 12).eval()
        torch.nn.init.normal_(network.positions)
        x, y = torch.randn(5, 12, x_dim).double(), torch.randn(5, 12, y_dim).double()
    later = torch.ones(12, 12, dtype=torch.bool).triu(1)
    results = []
    for forecast in (
        lambda: network(x),
        lambda: network.head(network.encoder(network.input(x) + network.positions, mask=later, is_causal=True)),
    ):
        network.zero_grad()
        out = forecast()
        ((out - y) ** 2).mean().backward()
        results.append((out.detach(), {name: p.grad.clone() for name, p in network.named_parameters()}))
    (ours, our_gradients), (theirs, their_gradients) = results
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    for name, gradient in their_gradients.items():
        np.testing.assert_allclose(our_gradients[name], gradient, rtol=1e-9, atol=1e-12, err_msg=name)


def sine(steps=120):
    wave = np.sin(np.arange(steps + 1) / 4.0)
    return wave[:-1, None], wave[1:, None]


QUICK: dict[str, Any] = {"features": 4, "seed": 3, "epochs": 3, "sequence_length": 12, "sequences": 20}


TRAINING = {field.name for field in fields(Training)}


def grouped(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same arguments with those of `Training` in one."""
    own = {name: value for name, value in arguments.items() if name in TRAINING}
    return {name: value for name, value in arguments.items() if name not in own} | {"training": Training(**own)}


def train(**changes: Any):
    return pretrain_transformer(*sine(), **grouped(QUICK | changes))


def same_weights(one, other):
    return all(one.weights[name].tobytes() == other.weights[name].tobytes() for name in one.weights)


def test_pretraining_learns_a_sine_and_its_features_carry_it(torch):
    losses = []
    transformer = pretrain_transformer(
        *sine(), features=4, seed=3,
        training=Training(
            epochs=30, sequence_length=12, sequences=50, rate=1e-2, context=4,
            progress=lambda epoch, loss: losses.append((epoch, loss)),
        ),
    )  # fmt: skip
    assert [epoch for epoch, _ in losses] == list(range(1, 31))
    assert losses[-1][1] < 0.3 * losses[0][1]
    assert (transformer.x_dim, transformer.y_dim, transformer.features) == (1, 1, 4)
    assert (transformer.context, transformer.look_ahead) == (4, False)
    inputs, targets = sine()
    built = transformer.build(1, 1)
    Z = built.encode_series(inputs, built.start(), 0, 0)[0][:, 0]
    design = np.column_stack([Z, np.ones(len(Z))])
    residual = targets - design @ np.linalg.lstsq(design, targets, rcond=None)[0]
    assert np.mean(residual**2) < 0.1 * np.var(targets)


def test_the_trained_encoder_is_the_network_that_was_trained(torch):
    transformer = train(context=5)
    inputs, _ = sine()
    Z, _ = one_by_one(transformer.build(1, 1), inputs[:9])
    for t in range(9):
        expected = by_torch(torch, transformer, inputs[max(0, t - 4) : t + 1])
        np.testing.assert_allclose(Z[t], expected, rtol=0, atol=1e-10)


def test_pretraining_depends_on_its_seed_and_leaves_global_randomness_alone(torch):
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    one = train()
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert repr(np.random.get_state()) == repr(numpy_before)  # noqa: NPY002
    assert torch.get_default_dtype() == torch.float32
    torch.rand(5)
    torch.set_num_threads(2)
    assert same_weights(train(), one)
    assert torch.get_num_threads() == 2
    assert not same_weights(train(seed=4), one)


@pytest.mark.parametrize("sequence_length", [12, None])
def test_pretraining_never_looks_at_the_scored_period(torch, sequence_length):
    settings = grouped(QUICK | {"sequence_length": sequence_length})
    inputs, targets = sine()
    one = pretrain_transformer(inputs, targets, **settings, scored_from=50)
    changed_inputs, changed_targets = inputs.copy(), targets.copy()
    changed_inputs[50:] = np.nan
    changed_targets[50:] = 1e9
    assert same_weights(pretrain_transformer(changed_inputs, changed_targets, **settings, scored_from=50), one)
    assert same_weights(pretrain_transformer(inputs[:50], targets[:50], **settings), one)
    # What comes before is looked at: otherwise the above would say nothing.
    changed_inputs[30:50] = 3.0
    assert not same_weights(pretrain_transformer(changed_inputs, targets, **settings, scored_from=50), one)


def test_seeing_everything_is_asked_for_and_recorded(torch):
    inputs, targets = sine()
    transformer = pretrain_transformer(inputs, targets, **grouped(QUICK), see_everything=True)
    assert transformer.look_ahead
    targets[50:] += 1.0
    assert not same_weights(pretrain_transformer(inputs, targets, **grouped(QUICK), see_everything=True), transformer)
    with pytest.raises(InvalidInput, match=r"^scored_from: got 50 with see_everything=True"):
        pretrain_transformer(inputs, targets, **grouped(QUICK), see_everything=True, scored_from=50)


SHORT: dict[str, Any] = {"features": 2, "seed": 5, "epochs": 2, "look_ahead": True}


def test_sequences_may_be_cut_by_the_caller(torch):
    inputs, targets = (np.tile(part, (20, 1, 1)) for part in sine(12))
    transformer = pretrain_on_sequences(inputs, targets, **grouped(SHORT))
    assert transformer.look_ahead
    # There is one place for a slice of 12 steps out of 12.
    settings = {name: SHORT[name] for name in ("features", "seed", "epochs")} | {"sequences": 20}
    assert same_weights(pretrain_transformer(*sine(12), **grouped(settings)), transformer)
    targets[3] *= 2.0
    assert not same_weights(pretrain_on_sequences(inputs, targets, **grouped(SHORT)), transformer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": np.ones((4, 1))},
            r"^inputs: got shape \(4, 1\). Pass an array of shape \(sequences, length, x_dim\)",
        ),
        ({"targets": np.ones((4, 5, 1))}, r"^targets: got 4 sequences of 5 steps. .* as inputs, 4 of 6 steps"),
        ({"targets": np.full((4, 6, 1), np.inf)}, r"^targets: got inf at index \(0, 0, 0\)"),
        ({"context": 7}, r"^sequence_length: got 6. Pass at least the context, 7"),
        ({"look_ahead": None}, r"^look_ahead: got NoneType"),
    ],
)
def test_bad_sequences_are_refused(torch, change, message):
    arguments = {"inputs": np.ones((4, 6, 1)), "targets": np.ones((4, 6, 1)), **SHORT} | change
    with pytest.raises(InvalidInput, match=message):
        pretrain_on_sequences(**grouped(arguments))


def test_the_rate_falls_to_a_tenth_after_50_epochs(torch):
    # Seven sequences in batches of three: the last batch is not full.
    weights = [train(sequences=7, batch=3, sequence_length=3, epochs=epochs).weights for epochs in (49, 50, 51)]
    flat = [np.concatenate([value.ravel() for value in w.values()]) for w in weights]
    before, after = np.linalg.norm(flat[1] - flat[0]), np.linalg.norm(flat[2] - flat[1])
    assert 0.05 * before < after < 0.2 * before


def nan_at(row):
    inputs, _ = sine()
    inputs[row] = np.nan
    return inputs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": "words"}, r"^inputs: got str"),
        ({"inputs": np.ones(120)}, r"^inputs: got shape \(120,\). Pass an array of shape \(steps, x_dim\)"),
        ({"inputs": np.ones((120, 0))}, r"^inputs: got shape \(120, 0\)"),
        ({"targets": np.ones(120)}, r"^targets: got shape \(120,\)"),
        ({"targets": np.ones((119, 1))}, r"^targets: got 119 rows. Pass one for each of the 120"),
        ({"inputs": nan_at(7)}, r"^inputs: got nan at index \(7, 0\)"),
        ({"targets": nan_at(9), "scored_from": 20}, r"^targets: got nan at index \(9, 0\)"),
        ({"scored_from": 0}, r"^scored_from: got int 0"),
        ({"scored_from": 121}, r"^scored_from: got 121. Pass a row of the inputs, at most 120"),
        ({"scored_from": 11}, r"^inputs: got 11 rows to train on. Pass at least 12"),
        ({"sequence_length": 121}, r"^inputs: got 120 rows to train on. Pass at least 121"),
        (
            {"sequence_length": None, "context": 6, "scored_from": 5},
            r"^inputs: got 5 rows to train on. Pass at least 6",
        ),
        ({"sequence_length": 0}, r"^sequence_length: got int 0"),
        ({"context": 13}, r"^sequence_length: got 12. Pass at least the context, 13"),
        ({"context": 0}, r"^context: got int 0"),
        ({"features": 0}, r"^features: got int 0"),
        ({"seed": -1}, r"^seed: got int -1"),
        ({"epochs": 0}, r"^epochs: got int 0"),
        ({"sequences": 0}, r"^sequences: got int 0"),
        ({"batch": 2.5}, r"^batch: got float 2.5"),
        ({"rate": 0.0}, r"^rate: got 0. Pass a number > 0"),
        ({"weight_decay": -1.0}, r"^weight_decay: got -1"),
        ({"see_everything": 1}, r"^see_everything: got int 1"),
        ({"progress": 3}, r"^progress: got int 3"),
    ],
)
def test_bad_pretraining_arguments_are_refused(change, message):
    inputs, targets = sine()
    arguments = {"inputs": inputs, "targets": targets, **QUICK} | change
    with pytest.raises(InvalidInput, match=message):
        pretrain_transformer(**grouped(arguments))


def test_a_loss_that_overflows_is_reported(torch):
    inputs, targets = sine()
    with pytest.raises(InvalidInput, match=r"^rate: got 0.001, with which the loss is not finite in epoch 1"):
        pretrain_transformer(inputs, 1e200 * targets, **grouped(QUICK))


def test_without_torch_pretraining_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        InvalidInput, match=r"^encoder: got no package torch. Install it: pip install 'nashcast\[torch\]'"
    ):
        train()
    built = untrained(3, 1, 2, 1).build(3, 1)
    assert one_by_one(built, series(3))[0].shape == (11, 1, 2)
