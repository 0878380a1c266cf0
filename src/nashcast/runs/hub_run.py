"""A hub's whole run: sends a stream's steps to remote agents one by one; a killed run continues where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.config.build import open_config_stream, stream_digest
from nashcast.config.hub_config import HubConfig
from nashcast.datasets import Stream
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.federation import Federation
from nashcast.federation.records import Replay
from nashcast.remote.broker.enrolling.enrolment import read
from nashcast.remote.broker.enrolling.invitations import waiting
from nashcast.remote.broker.files import write_whole
from nashcast.remote.hub.desk import broker_and_desk
from nashcast.remote.hub.hub import POLL_S, Hub
from nashcast.remote.hub.lookback.step_log import StepLog
from nashcast.remote.owner.warm_up import warm_up
from nashcast.runs.single_run import Outcome, error_of, outcome_of

STATE, STEPS, SETTINGS = "hub.state", "steps.f64", "settings.json"
Say = Callable[[str], None]


def run_hub(
    config: HubConfig,
    folder: Path,
    *,
    fresh: bool = False,
    command: str = "",
    say: Say = lambda line: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """folder: the run's state, and its record in the end.   say: called with one line per event."""
    stream = open_config_stream(config)
    _same_run(folder, {**config.settings(), "digest": stream_digest(stream)}, fresh)
    options: dict[str, Any] = {"masked": True} if config.masked else {}
    if not config.joint:
        warm_up()
        options["game"] = config.game
    with broker_and_desk(config.hub, config.broker, config.certs) as address, Hub(
        config.hub, agents=_come(config, say), url=address, certs=config.certs, deadline=config.deadline,
        state=folder / STATE, fresh=fresh, y_dim=stream.targets.shape[1], start=stream.start,
        seed=config.seed, **config.federation, **options,
    ) as hub:  # fmt: skip
        names, federation = hub.members, hub.federation
        say(f"hub of {hub.name} at {hub.url}, for {', '.join(hub.names)}")
        if federation.step:
            say(f"continuing at step {federation.step} of {len(stream.targets)}")
        if federation.step < len(stream.targets):
            _wait(hub, config.wait, say)
        with closing(StepLog(folder / STEPS, len(names), federation.y_dim)) as log:
            log.cut(federation.step)
            _steps(federation, stream, log, config.pace, progress)
            rows = log.rows()
        traffic, health = hub.traffic, federation.health
    milliseconds = 1e3 * np.percentile(rows.seconds, [50, 99])
    found = {
        "seconds": round(float(rows.seconds.sum()), 3),
        "baselines": {},
        "engine": "remote",
        "absences": {name: int(count) for name, count in zip(names, (~rows.present).sum(0), strict=True)},
        "step_ms": {"p50": float(milliseconds[0]), "p99": float(milliseconds[1])},
        "traffic": traffic,
        "games": {name: health.get(name, 0) for name in ("games", "fallbacks")} | {"why": health.get("fell back", {})},
    }
    result = Replay(rows.forecasts, rows.weights, rows.agents, error_of(rows.forecasts, stream.targets))
    more = {"present": rows.present, "fell_back": rows.fell_back, "step_seconds": rows.seconds}
    return outcome_of(config, stream, names, result, found, more, command)


def _same_run(folder: Path, settings: dict, fresh: bool) -> None:
    """A folder holds one run: existing state must have the same settings, or the run starts from the beginning."""
    path, text = folder / SETTINGS, json.dumps(settings, sort_keys=True, default=str)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if fresh:
            for name in (SETTINGS, STATE, STEPS):
                (folder / name).unlink(missing_ok=True)
        if not (path.exists() and (folder / STATE).exists()):  # nothing is done yet
            write_whole(path, text, overwrite=True)
        before = path.read_text()
    except OSError as error:
        got = f"{folder}, which cannot be written ({error.strerror})"
        raise InvalidInput("--output", got, "Pass a writable folder.") from None
    if before != text:
        raise InvalidInput("--output", f"{folder}, with a run of other settings", "Pass another folder, or --fresh.")


def _come(config: HubConfig, say: Say) -> tuple[str, ...] | None:
    """The agents' names, after the invited agents have enrolled or the waiting time is over."""
    until, told = time.monotonic() + config.wait, False
    while True:
        found = read(config.hub)
        invited = {each.name for each in waiting(found)} - set(found.agents)
        missing = invited if config.agents is None else invited & set(config.agents)
        if not missing or time.monotonic() > until:
            return config.agents
        if not told:
            say(f"waiting up to {config.wait:g} s for {', '.join(sorted(missing))} (invited)")
        told = True
        time.sleep(POLL_S)


def _wait(hub: Hub, seconds: float, say: Say) -> None:
    missing = hub.wait_for_agents(0.2)
    if missing:
        say(f"waiting up to {seconds:g} s for {', '.join(missing)}")
        missing = hub.wait_for_agents(seconds)
    if len(missing) == len(hub.names):
        remedy = f"Start them: nashcast agent ENCODER --hub {hub.url} --name NAME --key FILE."
        raise NashcastError(f"no agent has connected within {seconds:g} s. {remedy}")
    if missing:
        say(f"starting without {', '.join(missing)}: they may connect later")


def _steps(federation: Federation, stream: Stream, log: StepLog, pace: float, progress) -> None:
    total = len(stream.targets)
    for t in range(federation.step, total):
        progress(t, total)
        began = time.perf_counter()
        federation.predict_one(stream.inputs[t])
        seconds = time.perf_counter() - began
        pending = federation.present
        assert pending is not None
        present = [i not in pending.absent for i in range(len(pending.own))]
        # Written before the state that marks the step as done: if killed in between, the step is repeated.
        log.append(pending.forecast[0], pending.weights, pending.own, present, bool(pending.fell_back), seconds)
        federation.learn_one(stream.inputs[t], stream.targets[t])
        if pace:
            time.sleep(max(pace - (time.perf_counter() - began), 0.0))
    progress(total, total)
