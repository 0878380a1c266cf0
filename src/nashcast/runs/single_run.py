"""One federation on its stream, compared with persistence and with itself without the game."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from nashcast.config.build import Maker, build, federation_maker, member_names, stream_digest, without_game
from nashcast.config.config import Config
from nashcast.datasets import Stream
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.compiled.replay import replay
from nashcast.federation.federation import Federation
from nashcast.federation.lookback.paper_loop import PaperLoopFactory
from nashcast.federation.records import Replay
from nashcast.records.runs import may_overwrite, write_run

# Steps of an online run between two progress reports.
_CHUNK = 50
COMPILED, ONLINE = "compiled", "online"
Progress = Callable[[int, int], None]


class Outcome(NamedTuple):
    """A run, ready to be recorded."""

    about: dict
    arrays: dict[str, np.ndarray]


class Ran(NamedTuple):
    """A federation's run over a stream. The replay's agents are the members of the federation.

    engine: compiled, or online (step by step).   reason: why a compiled run was not possible.
    absences: steps each agent sat out.   ahead: forecasts (steps, horizon, y_dim) if the horizon is above 1.
    """

    replay: Replay
    engine: str
    reason: str = ""
    absences: dict[str, int] | None = None
    ahead: np.ndarray | None = None


def run(config: Config, *, command: str = "", progress: Progress | None = None) -> Outcome:
    """progress: called with steps done and steps to do, in online runs."""
    began = time.perf_counter()
    stream, make = build(config)
    ran = run_stream(make, stream, progress)
    result, seconds = ran.replay, time.perf_counter() - began
    baselines = {
        name: run_stream(federation_maker(other, stream), stream, progress).replay.mse
        for name, other in beside(config).items()
    }
    found: dict[str, Any] = {"seconds": round(seconds, 3), "baselines": baselines, "engine": ran.engine}
    if ran.reason:
        found["online_because"] = ran.reason
    if ran.absences is not None:
        found["absences"] = ran.absences
    if ran.ahead is not None:
        found["horizon_mse"] = horizon_errors(ran.ahead, stream.targets)
        found["horizon_persistence_mse"] = horizon_errors(persistence_ahead(stream, config.horizon), stream.targets)
    more = {} if ran.ahead is None else {"ahead": ran.ahead}
    return outcome_of(config, stream, member_names(config), result, found, more, command)


class Described(Protocol):
    """The description of a run."""

    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    def settings(self) -> dict[str, Any]: ...


def outcome_of(
    config: Described, stream: Stream, names: list[str], result: Replay, found: dict[str, Any],
    more: dict[str, np.ndarray], command: str,
) -> Outcome:  # fmt: skip
    """names: members whose forecasts the result holds.   found: more of the summary.   more: further arrays."""
    base = persistence_error(stream)
    summary = {
        "mse": result.mse,
        "persistence_mse": base,
        "skill": skill(result.mse, base),
        "steps": len(stream.targets),
        "agents_mse": dict(zip(names, agent_errors(result, stream), strict=True)),
        "last_weights": dict(zip(names, result.weights[-1].tolist(), strict=True)),
        **found,
    }
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
    arrays |= {"weights": result.weights, "agents": result.agents, **more}
    if stream.dates:
        arrays["dates"] = np.array(stream.dates)
    return Outcome(about, arrays)


def beside(config: Config) -> dict[str, Config]:
    """The same agents without the game, by a label of the difference."""
    found = {}
    if config.game:
        found["no game"] = without_game(config)
    if config.paper is not None and not config.paper.anchored:
        found["anchored, no game"] = without_game(config, anchored=True)
    return found


def notes(summary: dict) -> list[str]:
    """Notes on the numbers, for a reader of the record."""
    base = summary["persistence_mse"]
    beside = [
        f"{name}: {'diverges' if diverged(error, base) else f'MSE {error:.3g}'}"
        for name, error in summary["baselines"].items()
    ]
    found = [f"The same agents, {'; '.join(beside)}."] if beside else []
    if "online_because" in summary:
        found.append(f"Run online, step by step ({summary['online_because']})")
    found += [f"{name} sat out {steps} steps." for name, steps in summary.get("absences", {}).items() if steps]
    return found


def save(outcome: Outcome, folder: str | Path) -> Path:
    return write_run(folder, outcome.about, outcome.arrays)


def check_folder(folder: str | Path, config: Config, *, overwrite: bool) -> None:
    """Check before a long run that its record can be written here and replaces no other record."""
    folder = Path(folder)
    if not overwrite and not may_overwrite(folder, config.settings()):
        got = f"{folder}, which holds a record of other settings or a damaged one"
        raise InvalidInput("--output", got, "Pass another folder, or --overwrite.")
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        got = f"{folder}, which cannot be written ({error.strerror})"
        raise InvalidInput("--output", got, "Pass a writable folder, or --no-record.") from None
    finally:
        # Removes the folders made here: a failed run leaves no empty folders.
        with suppress(OSError):
            for place in made:
                place.rmdir()


def run_stream(make: Maker, stream: Stream, progress: Progress | None = None) -> Ran:
    """Run a fresh federation over the whole stream: in compiled code where possible, else step by step."""
    # A run may diverge: that is a result, not a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        federation, reason = make(), ""
        if isinstance(federation.for_replay()[0], PaperLoopFactory):
            try:
                result = replay(federation, stream.inputs, stream.targets)
                return Ran(_scored(result, stream), COMPILED)
            except Exception as error:
                # Causes: rewriting the past, window-dependent moments, missing inputs, a black box that raises.
                # In the online run the agents concerned sit out, or the same error is raised.
                reason = str(error) if isinstance(error, NashcastError) else f"{type(error).__name__}: {error}"
            federation = make()
        result, ahead = _online(federation, stream, progress)
    return Ran(_scored(result, stream), ONLINE, reason, federation.health["absences"], ahead)


def _online(federation: Federation, stream: Stream, progress: Progress | None) -> tuple[Replay, np.ndarray | None]:
    steps = len(stream.targets)
    forecasts, weights, own, ahead = [], [], [], []
    for t, (x, y) in enumerate(zip(stream.inputs, stream.targets, strict=True)):
        if progress is not None and t % _CHUNK == 0:
            progress(t, steps)
        federation.predict_one(x)
        pending = federation.present
        assert pending is not None
        now = pending.forecast[0], pending.weights, pending.own
        ahead.append(pending.forecast)
        federation.learn_one(x, y)
        for rows, value in zip((forecasts, weights, own), now, strict=True):
            rows.append(value)
    if progress is not None:
        progress(steps, steps)
    several = np.array(ahead) if federation.horizon > 1 else None
    return Replay(np.array(forecasts), np.array(weights), np.array(own), np.nan), several


def _scored(result, stream: Stream) -> Replay:
    return Replay(result.forecasts, result.weights, result.agents, error_of(result.forecasts, stream.targets))


def horizon_errors(ahead: np.ndarray, targets: np.ndarray) -> list[float]:
    """Mean squared error of the forecasts h + 1 steps ahead; ahead: (steps, horizon, y_dim)."""
    steps = len(targets)
    return [error_of(ahead[: steps - h, h], targets[h:]) for h in range(ahead.shape[1]) if h < steps]


def persistence_ahead(stream: Stream, horizon: int) -> np.ndarray:
    """The last target as forecast of all next steps."""
    return np.repeat(stream.persistence[:, None], horizon, axis=1)


def error_of(forecasts: np.ndarray, targets: np.ndarray) -> float:
    """Mean over steps and targets; infinite for non-finite forecasts."""
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean((forecasts - targets) ** 2))
    return error if np.isfinite(error) else float("inf")


def agent_errors(result: Replay, stream: Stream) -> list[float]:
    """Mean squared error of each agent's own forecasts within the federation."""
    return [error_of(result.agents[:, i], stream.targets) for i in range(result.agents.shape[1])]


def persistence_error(stream: Stream) -> float:
    return error_of(stream.persistence, stream.targets)


def diverged(error: float, persistence: float) -> bool:
    """Whether an error is a million times that of persistence, or not finite."""
    return not error < 1e6 * (persistence or 1.0)


def skill(error: float, persistence: float) -> float | None:
    """1 - error / persistence; None if persistence makes no error."""
    return 1.0 - error / persistence if persistence > 0.0 else None
