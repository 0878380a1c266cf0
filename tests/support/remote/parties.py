"""The parties of a federation in processes of their own, over a real broker, and what they leave behind."""

from __future__ import annotations

import multiprocessing
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nashcast.remote.hub.hub import Hub

# Forked from one that has all the code: an agent is there at once. The one it is forked from ends with the tests.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["support.remote.processes.agent_process"])


@contextmanager
def agents_running(
    folder: Path,
    hub_url: str,
    function: str,
    arguments: list,
    names: dict[int, str],
    tls: bool = False,
    trusted: Path | None = None,
):
    """Agents by their place in what the function gives, each in its own process with its own state and log.

    trusted: a file of their public keys, for masked games. Each ends with this block.
    Their states and logs are in the folder: NAME.npz, NAME.log (sent), NAME.err.
    """
    from support.remote.processes import agent_process

    started = {}
    try:
        for index, name in names.items():
            files = [folder / f"{name}.{kind}" for kind in ("npz", "log", "err")]
            own = (folder / f"{name}.seed", folder / "certs" if tls else None, *files)
            started[name] = _FORKS.Process(
                target=agent_process.serve, args=(function, arguments, index, hub_url, *own, trusted), name=name
            )
            started[name].start()
        yield started
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.join(20)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()


def said(folder: Path, names) -> str:
    """What agents wrote to stderr, for a failure's message."""
    return "\n".join((folder / f"{name}.err").read_text()[-2000:] for name in names)


def run(hub: Hub, X, Y, each=lambda t: None):
    """Every step of a stream; what `Federation.replay` gives, without the error."""
    rows = []
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        each(t)
        hub.federation.predict_one(x)
        said = hub.federation.present
        rows.append((said.forecast[0], said.weights, said.own))
        hub.federation.learn_one(x, y)
    return tuple(np.array(part) for part in zip(*rows, strict=True))


@contextmanager
def hub_running(folder: Path, *arguments):
    """A hub in its own process, see `hub_process.serve`. It leaves hub.npz and hub.err in the folder."""
    from support.remote.processes import hub_process

    process = _FORKS.Process(target=hub_process.serve, args=(*arguments, folder / "hub.npz", folder / "hub.err"))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
