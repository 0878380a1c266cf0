"""The transformers of Table 1: trained once and saved in a folder, each with a note of its training data."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.datasets import Stream, open_stream
from nashcast.datasets.files.known_files import known_file
from nashcast.datasets.files.library import read_known
from nashcast.encoders.network.pretrain import Training, pretrain_on_sequences
from nashcast.encoders.network.transformer import Transformer
from nashcast.errors import InvalidInput, NashcastError
from nashcast.paper.shipped import shipped
from nashcast.records.folder import versions

EPOCHS = 400
# Agent i is trained with seed 2026 + i. The authors used 2026; how their code seeds the following agents is not
# published.
SEQUENCES, FEATURES, SEED = 100, 2, 2026
SYNTHETIC, RECORDED = ("periodic", "logistic", "concept"), ("boc", "ett")
# The published code has 500 positions, too few for its own sequences of 1001 steps; here there is one per step.
_LENGTH, _CAUSAL_LENGTH = {"boc": 1001, "ett": 500}, 200

# Called as progress(agent, epoch, loss).
Progress = Callable[[int, int, float], object]


def encoders_for(
    dataset: str,
    agents: int,
    *,
    causal: bool,
    folder: str | Path | None = None,
    epochs: int = EPOCHS,
    progress: Progress | None = None,
) -> list[Transformer]:
    """One encoder for each agent, from the folder or as shipped; missing ones are trained and added one by one.

    causal: trained on the first quarter of the series only, and to be scored on the rest (`scored_from`). Otherwise as
    published: on the scored series itself, or on slices of the whole file that starts with it.
    folder: see `encoder_folder`.   An agent's encoder is the same in a federation of two and of five.
    """
    _known(dataset)
    check.integer("epochs", epochs, min=1)
    place, found = encoder_folder(folder), []
    for i in range(check.integer("agents", agents, min=1)):
        name = _name(dataset, i, causal, epochs)
        path = _there(place, name)
        if path is None:
            path = place / name
            _train(path, dataset, i, causal, epochs, progress)
        found.append(_loaded(path))
    return found


def available(
    dataset: str, agents: int, *, causal: bool, folder: str | Path | None = None, epochs: int = EPOCHS
) -> bool:
    """Whether `encoders_for` has nothing to train."""
    _known(dataset)
    place = encoder_folder(folder)
    return all(_there(place, _name(dataset, i, causal, epochs)) is not None for i in range(agents))


def provenance(
    dataset: str, agent: int, *, causal: bool, folder: str | Path | None = None, epochs: int = EPOCHS
) -> dict:
    """The note of an encoder in the folder: rows, sequences, length, epochs, seed, look_ahead, final_loss, …"""
    _known(dataset)
    place, name = encoder_folder(folder), _name(dataset, agent, causal, epochs)
    note = _note(_there(place, name) or place / name)
    try:
        return json.loads(note.read_text())
    except (OSError, ValueError):
        raise InvalidInput("encoder", f"no readable {note}", "Train it: encoders_for does.") from None


def encoder_folder(folder: str | Path | None = None) -> Path:
    """The folder given, else NASHCAST_ENCODERS, else a folder of the user, since recorded data may be read-only."""
    chosen = folder or os.environ.get("NASHCAST_ENCODERS")
    if chosen:
        return Path(chosen).expanduser()
    shared = os.environ.get("XDG_DATA_HOME", "")
    try:
        base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:
        remedy = "Set NASHCAST_ENCODERS to a folder for trained encoders."
        raise InvalidInput("NASHCAST_ENCODERS", "nothing, and this user has no home folder", remedy) from None
    return base / "nashcast" / "encoders"


def _there(folder: Path, name: str) -> Path | None:
    """The user's own encoder of this name, else the shipped one."""
    path = folder / name
    return path if path.is_file() else shipped(name)


def stream_for(dataset: str, *, causal: bool) -> Stream:
    """The series of these encoders. If causal, ETT is divided by the largest entries of its first quarter."""
    _known(dataset)
    if not (causal and dataset == "ett"):
        return open_stream(dataset)
    raw = open_stream("ett", scale="none")
    seen = len(raw.inputs) // 4
    x_unit, y_unit = raw.inputs[:seen].max(), raw.targets[:seen].max()
    inputs, targets, start = raw.inputs / x_unit, raw.targets / y_unit, raw.start / y_unit
    return raw._replace(inputs=inputs, targets=targets, start=start, unit=float(y_unit))


def scored_from(dataset: str, *, causal: bool) -> int:
    """The first scored step: if causal, the first step after the encoders' training data."""
    return len(stream_for(dataset, causal=causal).inputs) // 4 if causal else 0


class _Lesson(NamedTuple):
    inputs: np.ndarray  # (sequences, length, x_dim)
    targets: np.ndarray  # (sequences, length, y_dim)
    rows: int  # rows of the series, from its beginning, that the sequences were cut from


def _lesson(dataset: str, causal: bool, seed: int) -> _Lesson:
    if causal:
        stream = stream_for(dataset, causal=True)
        rows = scored_from(dataset, causal=True)
        length = min(rows, _CAUSAL_LENGTH)
    elif dataset in RECORDED:
        stream = _whole_file(dataset)
        rows, length = len(stream.inputs), _LENGTH[dataset]
    else:
        # Only one position fits a sequence: all are copies of the series.
        stream = open_stream(dataset)
        rows = length = len(stream.inputs)
    starts = seeds.generator(seed, "pre-training slices").integers(rows - length + 1, size=SEQUENCES)
    places = starts[:, None] + np.arange(length)
    X, Y = stream.inputs[places], stream.targets[places]
    if dataset == "ett" and not causal:
        X, Y = (array / array.max(axis=(1, 2), keepdims=True) for array in (X, Y))
    return _Lesson(X, Y, rows)


def _whole_file(dataset: str) -> Stream:
    steps = len(read_known(known_file(dataset)).numbers) - 1
    return open_stream(dataset, steps=steps, **({"scale": "none"} if dataset == "ett" else {}))


def _train(path: Path, dataset: str, agent: int, causal: bool, epochs: int, progress: Progress | None) -> None:
    """Train one encoder, and write it and its note atomically."""
    seed = SEED + agent
    X, Y, rows = _lesson(dataset, causal, seed)
    losses = []

    def report(epoch: int, loss: float) -> None:
        losses.append(loss)
        if progress is not None:
            progress(agent, epoch, loss)

    try:
        # Before training, so that an unwritable folder is reported at once.
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".training-", dir=path.parent))
    except OSError as error:
        remedy = "Set NASHCAST_ENCODERS to a folder with room that you may write to."
        raise NashcastError(f"cannot save trained encoders in {path.parent}: {error.strerror}. {remedy}") from None
    try:
        began = time.perf_counter()
        training = Training(epochs=epochs, progress=report)
        transformer = pretrain_on_sequences(
            X, Y, features=FEATURES, seed=seed, look_ahead=not causal, training=training
        )  # fmt: skip
        about = {
            "dataset": dataset, "way": _way(causal), "look_ahead": not causal, "agent": agent, "seed": seed,
            "rows": rows, "sequences": len(X), "length": X.shape[1], "epochs": epochs, "final_loss": losses[-1],
            "seconds": round(time.perf_counter() - began, 1), "versions": versions(),
        }  # fmt: skip
        transformer.save(scratch / path.name)
        _note(scratch / path.name).write_text(json.dumps(about, indent=1) + "\n")
        # The encoder last, so that every encoder has its note.
        for part in (_note(path), path):
            (scratch / part.name).replace(part)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _loaded(path: Path) -> Transformer:
    try:
        return Transformer.load(path)
    except InvalidInput:
        raise InvalidInput("encoder", f"{path}, which cannot be read", "Remove it, and it is trained again.") from None


def _known(dataset: str) -> None:
    if dataset not in (*SYNTHETIC, *RECORDED):
        remedy = f"Transformers are trained for {', '.join((*SYNTHETIC, *RECORDED))}."
        raise InvalidInput("dataset", repr(dataset), remedy)


def _way(causal: bool) -> str:
    return "causal" if causal else "published"


def _name(dataset: str, agent: int, causal: bool, epochs: int) -> str:
    return f"{dataset}-{_way(causal)}-{epochs}-epochs-agent-{agent}.npz"


def _note(path: Path) -> Path:
    return path.with_suffix(".json")
