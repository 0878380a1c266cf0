"""From a description to the stream and the federation it describes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from nashcast import seeds
from nashcast.agents.paper_agent import PaperAgent
from nashcast.errors import InvalidInput
from nashcast.experiments.config import Config, StreamConfig
from nashcast.experiments.run_encoders import encoder_options, function_file, make_encoder
from nashcast.experiments.run_schema import Place
from nashcast.federation.paper import PaperFederation
from nashcast.intervals.intervals import COVERAGES
from nashcast.streams import Stream
from nashcast.streams.catalog import entry, open_stream


def build(config: Config) -> tuple[Stream, Callable[[], PaperFederation]]:
    """The stream, and a function that makes a fresh federation for it each time it is called."""
    stream = open_config_stream(config)
    check_fit(config, stream.inputs.shape[1], stream.targets.shape[1])
    return stream, federation_maker(config, stream)


def check_fit(config: Config, x_dim: int, y_dim: int) -> None:
    """Whether every encoder takes such inputs and targets; the message names the table that does not."""
    for i, agent in enumerate(config.agents):
        try:
            make_encoder(agent.encoder, agent.options, 0, config.folder).build(x_dim, y_dim)
        except InvalidInput as error:
            raise Place(config.source, "agents").item(i).moved(error) from None


class OnStream(Protocol):
    """A description, from a file in `folder`, of something that runs on a stream."""

    @property
    def source(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def stream(self) -> StreamConfig: ...
    @property
    def steps(self) -> int | None: ...


def open_config_stream(config: OnStream) -> Stream:
    """The stream, cut to the steps asked for."""
    place = Place(config.source, "stream")
    options = dict(config.stream.options)
    if isinstance(options.get("path"), str):
        options["path"] = str(config.folder / Path(options["path"]).expanduser())
    try:
        stream = open_stream(config.stream.name, **options)
    except InvalidInput as error:
        known = error.argument in entry(config.stream.name).options
        raise place.moved(error) if known else Place(config.source).moved(error) from None
    if config.steps is None:
        return stream
    if config.steps > len(stream.targets):
        remedy = f"The stream has {len(stream.targets)} steps: pass at most that many."
        raise Place(config.source, "steps").refused(str(config.steps), remedy)
    first = slice(0, config.steps)
    return stream._replace(
        inputs=stream.inputs[first], targets=stream.targets[first], dates=stream.dates[first]
    )  # fmt: skip


def stream_digest(stream: Stream) -> str:
    """The same for the same numbers."""
    digest = hashlib.sha256()
    for array in (stream.inputs, stream.targets, stream.start):
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:24]


def federation_maker(config: Config, stream: Stream) -> Callable[[], PaperFederation]:
    """As `maker`, for a recorded stream."""
    return maker(config, stream.targets.shape[1], stream.start)


def maker(
    config: Config,
    y_dim: int,
    start: np.ndarray | None = None,
    deadline: float | None = None,
    coverages: Sequence[float] = COVERAGES,
) -> Callable[[], PaperFederation]:
    """Encoders are made here, once; each call makes agents that have learnt nothing."""
    parts = []
    for agent in config.agents:
        settings = {name: getattr(agent, name) for name in ("ridge", "decay", "window", "forgetting")}
        for k in range(agent.count):
            given = agent.options.get("seed")
            seed = seeds.key(config.seed, "encoder", len(parts)) if given is None else given + k
            options = {name: value for name, value in agent.options.items() if name != "seed"}
            parts.append((make_encoder(agent.encoder, options, seed, config.folder), settings))
    names = agent_names(config)

    def make() -> PaperFederation:
        agents = [PaperAgent(encoder, name=name, **own) for name, (encoder, own) in zip(names, parts, strict=True)]
        return PaperFederation(
            agents, game=config.game, anchored=config.anchored, ridge=config.ridge, budget=config.budget,
            mixing=config.mixing, y_dim=y_dim, start=start, seed=config.seed, deadline=deadline, coverages=coverages,
        )  # fmt: skip

    return make


def files_of(config: Config) -> dict[str, Path]:
    """The files that encoders are made of, by the name the settings call them: their contents are settings too."""
    found = {}
    for agent in config.agents:
        for name, option in encoder_options(agent.encoder).items():
            value = agent.options.get(name)
            if value is None or option.kind not in ("Path", "Function"):
                continue
            path = config.folder / value if option.kind == "Path" else function_file(value, config.folder)
            if path.is_file():
                found[value] = path
    return found


def agent_names(config: Config) -> list[str]:
    """One for each agent, numbered where several have the same."""
    plain = [agent.name or agent.encoder.replace("_", " ") for agent in config.agents for _ in range(agent.count)]
    seen: dict[str, int] = {}
    names = []
    for name in plain:
        seen[name] = seen.get(name, 0) + 1
        names.append(f"{name} {seen[name]}" if plain.count(name) > 1 else name)
    return names


def without_game(config: Config, *, anchored: bool) -> Config:
    """The same agents, greedy: the federation to compare a game with."""
    return replace(config, game=None, anchored=anchored)
