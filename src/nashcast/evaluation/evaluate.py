"""Runs every method on every stream, in parallel processes, and saves each result as soon as it is computed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import nashcast
from nashcast.config.build import stream_digest
from nashcast.datasets import Stream
from nashcast.evaluation.declared import Declared
from nashcast.evaluation.federation_methods import FEDERATION
from nashcast.evaluation.method import Method
from nashcast.evaluation.methods import PERSISTENCE, all_methods, chosen_methods
from nashcast.evaluation.scoring import combined, score
from nashcast.records.keyed_runs import run_missing
from nashcast.records.results import Results, settings_key

SEEDS = (2024, 2025, 2026)
# Code on which a peer's numbers depend, and further code on which nashcast's numbers depend.
_PEERS_CODE = (
    *(f"evaluation/{name}.py" for name in ("method", "prequential", "scoring")), "evaluation/peers/", "intervals/",
)  # fmt: skip
_OWN_CODE = (
    "evaluation/federation_methods.py", "agents/", "encoders/", "federation/", "games/", "mixing/", "seeds.py",
)  # fmt: skip


class Contest(NamedTuple):
    """The methods compared on a stream, by name.

    kind: identifies the results of a contest; empty for the comparison with peers.
    methods: called with the stream and the kind, in the process that runs the task.
    code: further files on which the results depend, beside nashcast's own.
    """

    kind: str
    methods: Callable[[Stream, str], Mapping[str, Method]]
    code: tuple[Path, ...] = ()

    def on(self, stream: Stream) -> dict[str, Method]:
        return dict(self.methods(stream, self.kind))


def _beside_peers(stream: Stream, kind: str) -> dict[str, Method]:
    return all_methods()


BESIDE_PEERS = Contest("", _beside_peers)


class Task(NamedTuple):
    stream: Declared
    method: str
    seed: int
    contest: Contest = BESIDE_PEERS


class Outcome(NamedTuple):
    """result: see `combined`; None if the method was not run; `why` then says why."""

    stream: Declared
    method: Method
    result: dict[str, Any] | None
    why: str = ""


def evaluate(
    streams: Sequence[Declared],
    names: Sequence[str] | None,
    seeds: Sequence[int],
    folder: Path,
    *,
    contest: Contest = BESIDE_PEERS,
    jobs: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Outcome]:
    """names: methods or families, None for all."""
    outcomes: list[Outcome] = []
    tasks: dict[Task, str] = {}
    wanted: list[tuple[Declared, Method, list[Task]]] = []
    for stream in streams:
        digest = stream_digest(stream.open())
        for method in chosen_methods(names, contest.on(stream.open())).values():
            used = list(seeds if method.random else seeds[:1]) if method.installed else []
            wanted.append((stream, method, [Task(stream, method.name, seed, contest) for seed in used]))
            tasks |= {task: _key(task, method, digest) for task in wanted[-1][2]}
    # Seed by seed, the longest tasks of each first, so that no long task remains at the end.
    order = sorted(tasks, key=lambda task: (task.seed, -len(task.stream.open().targets), task.stream.label))
    known = run_missing(
        {tasks[task]: task for task in order}, carry_out, Results(folder / "results"), jobs=jobs,
        progress=None if progress is None else partial(progress, "runs"),
    )  # fmt: skip
    for stream, method, own in wanted:
        parts = [known[tasks[task]] for task in own]
        why = next((part["failed"] for part in parts if "failed" in part), "") if own else method.missing
        outcomes.append(Outcome(stream, method, None if why else combined(parts), why))
    return outcomes


def carry_out(task: Task) -> dict[str, Any]:
    """Run one task, in any process. A method that fails gives a result with the reason."""
    stream = task.stream.open()
    method = task.contest.on(stream)[task.method]
    rivals = task.method in (FEDERATION, PERSISTENCE) and not task.contest.kind
    try:
        found = score(method, task.stream, task.seed, rivals)
        return found if method.traffic is None else found | method.traffic(stream)._asdict()
    except Exception as error:
        if method.family == "ours":
            raise  # an error in nashcast is raised, not tabulated
        # Another package may raise anything on a stream; the other methods continue.
        return {"failed": f"{type(error).__name__}: {error}"[:300]}


def _key(task: Task, method: Method, digest: str) -> str:
    own = bool(task.contest.kind) or method.family in ("ours", "agents", "experts")
    installed = ""
    if method.package:
        with suppress(PackageNotFoundError):
            installed = version(method.package)
    what = {"stream": digest, "shift": task.stream.shift, "method": task.method, "seed": task.seed}
    if task.contest.kind:
        what |= {"agents": task.contest.kind, "owners": dict(task.stream.open().owners)}
    return settings_key({**what, "package": installed, "code": code_digest(own, task.contest.code)})


@lru_cache(maxsize=4)
def code_digest(own: bool, more: tuple[Path, ...] = ()) -> str:
    """Digest of the code a result depends on, so that results of other code are not reused. more: further files."""
    root, found = Path(nashcast.__file__).parent, hashlib.sha256()
    for path in more:
        found.update(path.name.encode() + path.read_bytes())
    for part in _PEERS_CODE + _OWN_CODE if own else _PEERS_CODE:
        files = sorted((root / part).rglob("*.py")) if part.endswith("/") else [root / part]
        if not files:
            raise FileNotFoundError(f"the digest of results names {part}, which has no modules")
        for path in files:
            found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]
