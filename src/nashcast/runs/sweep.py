"""Sweeps: many settings of one federation, each on several seeds, saved as they finish and ranked on a tuning part."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.config.build import federation_maker, files_of, open_config_stream, stream_digest
from nashcast.config.config import OF_SERVICE, OF_SWEEPS, Config, parse
from nashcast.config.config_changes import changed, read_toml
from nashcast.datasets import Stream
from nashcast.errors import InvalidInput, NashcastError
from nashcast.games.lookback.fast import has_numba
from nashcast.records.folder import versions
from nashcast.records.keyed_runs import Progress, run_missing
from nashcast.records.results import Results, settings_key
from nashcast.runs.single_run import error_of, run_stream
from nashcast.runs.sweep_grid import SweepConfig, choices, parse_sweep, split_at


class Scored(NamedTuple):
    """A stream, the number of its first steps used for tuning, and its digest."""

    stream: Stream
    split: int | None
    digest: str


class Run(NamedTuple):
    """One run of a sweep."""

    key: str
    config: Config


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep. choices[i]: the settings in which configs[i] differs."""

    sweep: SweepConfig
    base: Config
    choices: tuple[dict[str, Any], ...]
    configs: tuple[Config, ...]
    streams: Mapping[str, Scored]

    def scored(self, config: Config) -> Scored:
        return self.streams[_stream_key(config)]

    def runs(self, config: Config) -> list[Run]:
        """One run for each seed."""
        return [run_of(replace(config, seed=seed)) for seed in self.sweep.seeds]

    def identity(self) -> dict[str, Any]:
        """The settings that the results depend on; a sweep with other settings may not continue them."""
        files: dict[str, Path] = {}
        for config in self.configs:
            files |= files_of(config)
        return {
            "what": "nashcast sweep",
            "federation": _unnamed(self.base),
            "sweep": self.sweep.settings(),
            "streams": {key: scored.digest for key, scored in self.streams.items()},
            "files": {name: hashlib.sha256(path.read_bytes()).hexdigest()[:24] for name, path in files.items()},
            "nashcast": versions().get("nashcast"),
        }


def load_plan(path: str | Path, changes: Mapping[str, Any] | None = None, *, post_hoc: bool = False) -> Plan:
    """The sweep a TOML file describes. post_hoc: rank on the same steps that are reported."""
    source, folder = str(path), Path(path).parent
    document = changed(read_toml(path), changes or {}, source)
    federation = {name: value for name, value in document.items() if name not in (*OF_SWEEPS, *OF_SERVICE)}
    base = parse(federation, source=source, folder=folder)
    sweep = parse_sweep(document, source, base.seed)
    if sweep.tune_until is None and not post_hoc:
        remedy = (
            "Say which part of the stream is for tuning, such as tune_until = 0.5; or pass --post-hoc to rank on the "
        )
        remedy += "steps that are reported, which flatters the winner."
        raise InvalidInput(f"{source}: sweep.tune_until", "nothing", remedy)
    if sweep.tune_until is not None and post_hoc:
        raise InvalidInput("--post-hoc", "sweep.tune_until with it", "Leave out one of them.")
    found: dict[str, tuple[dict, Config]] = {}
    for choice in choices(sweep, base.seed):
        config = parse(changed(federation, choice, source), source=source, folder=folder)
        # Equivalent settings, such as two intervals of no game, are run once.
        found.setdefault(run_of(config).key, (choice, config))
    streams: dict[str, Scored] = {}
    for _, config in found.values():
        if _stream_key(config) not in streams:
            streams[_stream_key(config)] = open_scored(config, sweep.tune_until)
    chosen, configs = zip(*found.values(), strict=True)
    return Plan(sweep, base, chosen, configs, streams)


def open_scored(config: Config, tune_until: float | None) -> Scored:
    stream = open_config_stream(config)
    return Scored(stream, split_at(tune_until, len(stream.targets), config.source), stream_digest(stream))


def run_of(config: Config) -> Run:
    return Run(settings_key(_unnamed(config)), config)


def parts_of(split: int | None) -> dict[str, slice]:
    """The reported parts of a stream; the first is the one used for ranking."""
    if split is None:
        return {"all": slice(None)}
    return {"tuning": slice(0, split), "rest": slice(split, None)}


def score(config: Config, scored: Scored) -> dict[str, Any]:
    """One run's errors on the parts of the stream. Forecasts of the tuning part do not depend on the rest."""
    began = time.perf_counter()
    stream, split, _ = scored
    result = run_stream(federation_maker(config, stream), stream).replay
    errors = {name: error_of(result.forecasts[part], stream.targets[part]) for name, part in parts_of(split).items()}
    return {**errors, "seconds": round(time.perf_counter() - began, 4)}


def persistence(scored: Scored) -> dict[str, float]:
    stream, split, _ = scored
    last = stream.persistence
    return {name: error_of(last[part], stream.targets[part]) for name, part in parts_of(split).items()}


def run_here(
    plan: Plan, runs: Sequence[Run], results: Results, *, jobs: int | None = None, progress: Progress | None = None
) -> None:
    """Do all pending runs, in threads if they are compiled (the paper's), else in processes."""
    compiled = all(config.paper is not None for config in plan.configs) and has_numba()
    tasks = {run.key: (run.config, plan.scored(run.config)) for run in runs}
    run_missing(tasks, _score, results, jobs=jobs, threads=compiled, progress=progress)


def _score(task: tuple[Config, Scored]) -> dict[str, Any]:
    try:
        return score(*task)
    except NashcastError as error:
        raise NashcastError(f"{error} The run that failed: {task[0].settings()}") from error


def _unnamed(config: Config) -> dict[str, Any]:
    settings = config.settings()
    del settings["name"]
    return settings


def _stream_key(config: Config) -> str:
    return settings_key([config.stream.name, dict(config.stream.options), config.steps])
