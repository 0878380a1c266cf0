"""Pre-training of the transformer encoder with PyTorch; the resulting encoder runs without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.network import attention as plain_attention
from nashcast.encoders.network.attention import Dropout
from nashcast.encoders.network.transformer import FEED_FORWARD, LAYERS, Transformer, heads_for
from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.games.lookback.fast import has_numba

# The paper, "Pre-training Details for transformer Models", and the authors' code.
DROPOUT = 0.1
RATE_FALLS_EVERY, RATE_FALLS_BY = 50, 0.1
SEQUENCE_LENGTH = 200


@dataclass(frozen=True)
class Training:
    """How an encoder is trained.

    batch: sequences in one gradient step.   rate, weight_decay: Adam's.   context: that of the resulting `Transformer`.
    sequences, sequence_length: slices that `pretrain_transformer` cuts, and steps in each; by default 200, or all there
    are if fewer. With a length equal to the context the encoder is trained on exactly what it sees online; as published
    it is trained on long slices and sees one step.
    progress: called as progress(epoch, loss) after each epoch 1, 2, …, with its mean training loss.
    """

    epochs: int = 400
    batch: int = 10
    rate: float = 1e-3
    weight_decay: float = 2e-3
    context: int = 1
    sequences: int = 100
    sequence_length: int | None = None
    progress: Callable[[int, float], object] | None = None

    def check(self) -> None:
        for name in ("epochs", "batch", "context", "sequences"):
            check.integer(name, getattr(self, name), min=1)
        check.number("rate", self.rate, above=0.0)
        check.number("weight_decay", self.weight_decay, min=0.0)
        if self.progress is not None and not callable(self.progress):
            got = check.describe(self.progress)
            raise InvalidInput("progress", got, "Pass something that can be called as (epoch, loss).")


DEFAULT_TRAINING = Training()


def pretrain_transformer(
    inputs, targets, *, features: int, seed: int, scored_from: int | None = None, see_everything: bool = False,
    training: Training = DEFAULT_TRAINING,
) -> Transformer:  # fmt: skip
    r"""Train encoder and linear head by mean squared error with Adam, then drop the head.

    The training data are slices at random places, drawn once; every epoch takes them in a new order, and the rate falls
    to a tenth every 50 epochs. Scale inputs and targets to the order of one first: this function does not.

    inputs: (steps, x_dim).   targets: (steps, y_dim); row t is what row t of the inputs is to forecast.
    features: $d_z$.   seed: for the slices, their order, the initial weights and the dropout.
    scored_from: the first row that will be scored. Rows from there on are not read, not even for validation. None
    means that all rows given lie before the scored period: pass the initial segment only.
    see_everything: train on all rows, the scored period included, as the authors did. This is look-ahead: errors on
    those rows are then not forecast errors. The result records this in `look_ahead`; excludes `scored_from`.

    Same seed and machine, same weights: it runs in float64 on one thread. No global random state is read or changed.
    """
    training.check()
    check.integer("seed", seed, min=0)
    X, Y = _before_scoring(inputs, targets, scored_from, see_everything)
    length = _slice_length(training.sequence_length, training.context, len(X))
    rng = seeds.generator(seed, "pre-training slices")
    rows = rng.integers(len(X) - length + 1, size=training.sequences)[:, None] + np.arange(length)
    return pretrain_on_sequences(
        X[rows], Y[rows], features=features, seed=seed, look_ahead=see_everything, training=training
    )


def pretrain_on_sequences(
    inputs, targets, *, features: int, seed: int, look_ahead: bool, training: Training = DEFAULT_TRAINING
) -> Transformer:
    """As `pretrain_transformer`, on sequences that are cut already, each scaled in its own way if need be.

    inputs: (sequences, length, x_dim).   targets: (sequences, length, y_dim).
    look_ahead: whether they reach into the period that will be scored, which is not checked; the result stores it.
    """
    training.check()
    check.integer("features", features, min=1)
    check.integer("seed", seed, min=0)
    X = check.of_rank("inputs", inputs, ("sequences", "length", "x_dim"))
    Y = check.of_rank("targets", targets, ("sequences", "length", "y_dim"))
    if X.shape[:2] != Y.shape[:2]:
        remedy = f"Pass as many and as long ones as inputs, {X.shape[0]} of {X.shape[1]} steps."
        raise InvalidInput("targets", f"{Y.shape[0]} sequences of {Y.shape[1]} steps", remedy)
    check.finite("inputs", X)
    check.finite("targets", Y)
    _long_enough(X.shape[1], training.context)

    rng = seeds.generator(seed, "pre-training order")
    order = (rng.permutation(len(X)) for _ in range(training.epochs))
    weights = _train(X, Y, features, seed, order, training)
    return Transformer(weights, y_dim=Y.shape[2], context=training.context, look_ahead=look_ahead)


def _before_scoring(inputs, targets, scored_from, see_everything) -> tuple[np.ndarray, np.ndarray]:
    """The rows that may be read, checked to be finite."""
    X = check.of_rank("inputs", inputs, ("steps", "x_dim"))
    Y = check.of_rank("targets", targets, ("steps", "y_dim"))
    if len(X) != len(Y):
        raise InvalidInput("targets", f"{len(Y)} rows", f"Pass one for each of the {len(X)} rows of inputs.")
    if not isinstance(see_everything, bool):
        raise InvalidInput("see_everything", check.describe(see_everything), "Pass True or False.")
    if scored_from is not None:
        if see_everything:
            remedy = "Pass see_everything=True to train on the scored period too, or scored_from not to; not both."
            raise InvalidInput("scored_from", f"{scored_from} with see_everything=True", remedy)
        check.integer("scored_from", scored_from, min=1)
        if scored_from > len(X):
            raise InvalidInput("scored_from", f"{scored_from}", f"Pass a row of the inputs, at most {len(X)}.")
        X, Y = X[:scored_from], Y[:scored_from]
    check.finite("inputs", X)
    check.finite("targets", Y)
    return X, Y


def _slice_length(sequence_length, context: int, steps: int) -> int:
    if sequence_length is None:
        length = max(min(SEQUENCE_LENGTH, steps), context)
    else:
        length = check.integer("sequence_length", sequence_length, min=1)
    _long_enough(length, context)
    if steps < length:
        remedy = f"Pass at least {length} before the scored period, or a shorter sequence_length and context."
        raise InvalidInput("inputs", f"{steps} rows to train on", remedy)
    return length


def _long_enough(length: int, context: int) -> None:
    if length < context:
        remedy = f"Pass at least the context, {context}: it would have positions that were never trained."
        raise InvalidInput("sequence_length", f"{length}", remedy)


def _train(X, Y, features, seed, order, training: Training) -> dict[str, np.ndarray]:
    """X, Y: (sequences, length, x_dim or y_dim). The trained arrays without the head's."""
    torch = _torch()
    length, y_dim = Y.shape[1:]
    # Only this generator is used on the CPU; torch.manual_seed would also seed those of other devices.
    with _one_thread(torch), torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        network = _network(torch, X.shape[2], y_dim, y_dim * features, length)
        rate, decay = training.rate, training.weight_decay
        optimiser = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=decay, foreach=True)
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, RATE_FALLS_EVERY, RATE_FALLS_BY)
        X, Y = torch.from_numpy(X).double(), torch.from_numpy(Y).double()
        for epoch, indices in enumerate(order, start=1):
            total = 0.0
            for chosen in torch.from_numpy(indices).split(training.batch):
                loss = torch.nn.functional.mse_loss(network(X[chosen]), Y[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.item() * len(chosen)
            schedule.step()
            if not isfinite(total):
                remedy = "Lower it, or scale inputs and targets to the order of one."
                raise InvalidInput("rate", f"{rate:g}, with which the loss is not finite in epoch {epoch}", remedy)
            if training.progress is not None:
                training.progress(epoch, total / len(X))
        arrays = {name: value.numpy() for name, value in network.state_dict().items()}
    return {name: value for name, value in arrays.items() if not name.startswith("head.")}


@contextmanager
def _one_thread(torch):
    """Use one thread: more would be slower at this size, and would change the last digits of sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _network(torch, x_dim: int, y_dim: int, width: int, positions: int):
    """Input projection, learned positions, causal encoder and linear head: (batch, length, x_dim) to (…, y_dim).

    The layers own and initialise the parameters; the forward pass is written out, since theirs forms the matrices of
    attention weights and takes six to twenty times as long.
    """
    nn, F = torch.nn, torch.nn.functional
    attend = _attention(torch)
    heads = heads_for(width)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.input = nn.Linear(x_dim, width, dtype=torch.float64)
            self.positions = nn.Parameter(torch.zeros(positions, width, dtype=torch.float64))
            layer = nn.TransformerEncoderLayer(
                width, heads, FEED_FORWARD, DROPOUT, batch_first=True, norm_first=False, dtype=torch.float64
            )
            self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.head = nn.Linear(width, y_dim, dtype=torch.float64)

        def forward(self, x):
            h = self.input(x) + self.positions
            for layer in self.encoder.layers:
                drop = layer.dropout.p if self.training else 0.0
                h = layer.norm1(h + F.dropout(self.attended(layer.self_attn, h, drop), drop))
                up = F.dropout(F.relu(layer.linear1(h)), drop)
                h = layer.norm2(h + F.dropout(layer.linear2(up), drop))
            return self.head(h)

        def attended(self, attention, h, drop):
            B, L, d = h.shape
            size = d // heads
            mixed = F.linear(h, attention.in_proj_weight, attention.in_proj_bias)
            Q, K, V = mixed.view(B, L, 3, heads, size).permute(2, 0, 3, 4, 1).contiguous().view(3, -1, size, L)
            joined = attend(Q / sqrt(size), K, V, drop)
            return attention.out_proj(joined.view(B, d, L).transpose(1, 2))

    return Network()


def _attention(torch):
    """`attend(Q, K, V, drop)` on tensors (heads, size, length), with its gradient; compiled if numba is installed."""
    attention = plain_attention
    if has_numba():
        from nashcast.encoders.network.compiled import attention

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, Q, K, V, drop):
            key = int(torch.randint(2**62, ()))
            ctx.dropout = Dropout(key, np.uint32(drop * 2**32), 1 / (1 - drop))
            out = torch.empty_like(Q)
            attention.attend(ctx.dropout, *(array.numpy() for array in (Q, K, V, out)))
            ctx.save_for_backward(Q, K, V, out)
            return out

        @staticmethod
        def backward(ctx, *gradients):
            *inputs, out = ctx.saved_tensors
            found = [torch.empty_like(out) for _ in range(3)]
            attention.attend_backward(
                ctx.dropout, tuple(array.numpy() for array in inputs), out.numpy(), gradients[0].contiguous().numpy(),
                tuple(array.numpy() for array in found),
            )  # fmt: skip
            return *found, None

    return Attention.apply


def _torch():
    return needed("torch", "torch", "torch", "encoder")
