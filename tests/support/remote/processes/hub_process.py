"""A hub in a process of its own, which measures its own memory on the way."""

import logging
import os
from pathlib import Path

import numpy as np

from nashcast.remote.hub.hub import Hub
from support.remote.parties import run
from support.remote.processes import agent_process  # noqa: F401 makes ready what is compiled


def resident() -> int:
    """Bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serve(folder, url, certs, names, settings, X, Y, out, errors):
    """Forecast a whole stream; results, memory at a third of it and at the end, and complaints go to `out`."""
    with Path(errors).open("wb") as file:
        os.dup2(file.fileno(), 2)
    logging.basicConfig(level="INFO", force=True)
    memory, fallbacks = [], []
    with Hub(folder, agents=names, url=url, certs=certs, deadline=60.0, history=10, **settings) as hub:
        assert hub.wait_for_agents(60.0) == []

        def watch(t):
            fallbacks.append(hub.federation.health["fallbacks"])
            if t == len(X) // 3:
                memory.append(resident())

        results = run(hub, X, Y, watch)
        fallbacks.append(hub.federation.health["fallbacks"])
        memory.append(resident())
        health, counts = hub.federation.health, hub._complaints.counts
        reconnects = hub._line.client.stats["reconnects"]
    np.savez(
        out, forecasts=results[0], weights=results[1], agents=results[2], memory=memory, reconnects=reconnects,
        refused=[counts[name] for name in names], absences=[health["absences"].get(name, 0) for name in names],
        fallbacks=fallbacks, reasons=[health["reasons"].get(name, "") for name in names],
    )  # fmt: skip
