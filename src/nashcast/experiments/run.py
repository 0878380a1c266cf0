"""One federation on its stream, beside persistence and beside itself without the game."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.errors import InvalidInput, NashcastError
from nashcast.experiments.build import agent_names, build, federation_maker, stream_digest, without_game
from nashcast.experiments.config import Config
from nashcast.experiments.paper.replay import replay
from nashcast.federation.paper import PaperFederation, Replay
from nashcast.records.runs import may_overwrite, write_run
from nashcast.streams import Stream

# Steps of an online run between two reports of how far it is.
_CHUNK = 50
Progress = Callable[[int, int], None]


class Outcome(NamedTuple):
    """A run, ready to be recorded."""

    about: dict
    arrays: dict[str, np.ndarray]


class Engine(NamedTuple):
    """How a run was made: compiled, or online and why, with the steps each agent sat out."""

    name: str
    reason: str = ""
    absences: dict[str, int] | None = None


def run(config: Config, *, command: str = "", progress: Progress | None = None) -> Outcome:
    """progress: called with steps done and steps to do, in online runs."""
    began = time.perf_counter()
    stream, make = build(config)
    result, engine = run_stream(make, stream, progress)
    seconds = time.perf_counter() - began
    beside = {}
    if config.game is not None:
        beside["no game"] = without_game(config, anchored=False)
    if not config.anchored:
        beside["anchored, no game"] = without_game(config, anchored=True)
    baselines = {
        name: run_stream(federation_maker(other, stream), stream, progress)[0].mse for name, other in beside.items()
    }
    names = agent_names(config)
    base = persistence_error(stream)
    summary = {
        "mse": result.mse,
        "persistence_mse": base,
        "skill": skill(result.mse, base),
        "steps": len(stream.targets),
        "seconds": round(seconds, 3),
        "baselines": baselines,
        "agents_mse": dict(zip(names, agent_errors(result, stream), strict=True)),
        "last_weights": dict(zip(names, result.weights[-1].tolist(), strict=True)),
        "engine": engine.name,
    }
    if engine.reason:
        summary |= {"online_because": engine.reason, "absences": engine.absences}
    about = {
        "name": config.name,
        "command": command,
        "seed": config.seed,
        "stream": {
            "name": stream.name,
            "digest": stream_digest(stream),
            "offset": np.asarray(stream.offset).tolist(),
            "unit": np.asarray(stream.unit).tolist(),
        },
        "settings": config.settings(),
        "summary": summary,
        "notes": notes(summary),
        "agents": names,
    }
    arrays = {"start": stream.start, "targets": stream.targets, "forecasts": result.forecasts}
    arrays |= {"weights": result.weights, "agents": result.agents}
    if stream.dates:
        arrays["dates"] = np.array(stream.dates)
    return Outcome(about, arrays)


def notes(summary: dict) -> list[str]:
    """What a reader of the record should know beside its numbers."""
    base = summary["persistence_mse"]
    beside = [
        f"{name}: {'diverges' if diverged(error, base) else f'MSE {error:.3g}'}"
        for name, error in summary["baselines"].items()
    ]
    found = [f"The same agents, {'; '.join(beside)}."] if beside else []
    if summary["engine"] == "online":
        found.append(f"Run online, step by step ({summary['online_because']})")
        found += [f"{name} sat out {steps} steps." for name, steps in summary["absences"].items()]
    return found


def save(outcome: Outcome, folder: str | Path) -> Path:
    return write_run(folder, outcome.about, outcome.arrays)


def check_folder(folder: str | Path, config: Config, *, overwrite: bool) -> None:
    """Before a long run: that its record can be written here, and is not in place of another's."""
    folder = Path(folder)
    if not overwrite and not may_overwrite(folder, config.settings()):
        got = f"{folder}, which holds a record of other settings or a damaged one"
        raise InvalidInput("--out", got, "Pass another folder, or --overwrite.")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        got = f"{folder}, which cannot be written ({error.strerror})"
        raise InvalidInput("--out", got, "Pass a folder that can, or --no-record.") from None
    finally:
        # As it was: a run that fails leaves no empty folders.
        with suppress(OSError):
            for place in made:
                place.rmdir()


def run_stream(
    make: Callable[[], PaperFederation], stream: Stream, progress: Progress | None = None
) -> tuple[Replay, Engine]:
    """The whole stream through a fresh federation: in compiled code where that is possible, else step by step."""
    # A run may diverge: that is a result, not a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            result = replay(make(), stream.inputs, stream.targets)
            return result._replace(mse=error_of(result.forecasts, stream.targets)), Engine("compiled")
        except Exception as error:
            # Rewriting the past, moments that depend on the window, missing inputs, a black box that raises: whatever
            # stops the compiled run, online the agents concerned sit out, or the same error comes up again.
            reason = str(error) if isinstance(error, NashcastError) else f"{type(error).__name__}: {error}"
        federation = make()
        result = _online(federation, stream, progress)
    return result, Engine("online", reason, federation.health["absences"])


def _online(federation: PaperFederation, stream: Stream, progress: Progress | None) -> Replay:
    parts, steps = [], len(stream.targets)
    for first in range(0, steps, _CHUNK):
        if progress is not None:
            progress(first, steps)
        some = slice(first, first + _CHUNK)
        parts.append(federation.replay(stream.inputs[some], stream.targets[some]))
    if progress is not None:
        progress(steps, steps)
    forecasts, weights, agents = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("forecasts", "weights", "agents")
    )
    return Replay(forecasts, weights, agents, error_of(forecasts, stream.targets))


def error_of(forecasts: np.ndarray, targets: np.ndarray) -> float:
    """Mean over steps and targets; infinite where the forecasts are not numbers any more."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean((forecasts - targets) ** 2))
    return error if np.isfinite(error) else float("inf")


def agent_errors(result: Replay, stream: Stream) -> list[float]:
    """Of each agent's own forecasts as it made them within the federation."""
    return [error_of(result.agents[:, i], stream.targets) for i in range(result.agents.shape[1])]


def persistence_forecasts(stream: Stream) -> np.ndarray:
    """The last target again, at every step."""
    return np.concatenate([stream.start[None], stream.targets[:-1]])


def persistence_error(stream: Stream) -> float:
    return error_of(persistence_forecasts(stream), stream.targets)


def diverged(error: float, persistence: float) -> bool:
    """A million times worse than persistence, or no number at all."""
    return not error < 1e6 * (persistence or 1.0)


def skill(error: float, persistence: float) -> float | None:
    """1 - error / persistence: what part of persistence's error is gone; None where there was none."""
    return 1.0 - error / persistence if persistence > 0.0 else None
