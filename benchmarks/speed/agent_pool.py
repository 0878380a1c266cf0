"""Agents in processes of their own, forked from one that has everything loaded: fifty of them start in a second.

Started by `AgentPool` as a program. It reads a JSON object a line: {"hub", "folder", "agents": [AgentSpec, …]} starts
those, {} ends them, and it answers each with a line. It ends them all when it is ended itself, in whatever way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from nashcast.agents.agent import Agent
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.run_encoders import encoder_from
from nashcast.errors import NashcastError
from nashcast.remote.owner.runner import Runner
from nashcast.remote.owner.warm_up import warm_up

# A request that begins so is answered with as many zeros as it says, by nobody but the line itself.
RAW = b"raw "


class AgentSpec(NamedTuple):
    """state: a file, or None to keep nothing.   game: joint or lookback.   trusted: the agents' keys, for masks."""

    name: str
    encoder: str
    options: dict[str, Any]
    share: str
    ridge: float = 1.0
    window: int = 5
    state: str | None = None
    game: str = "lookback"
    trusted: str | None = None

    def make(self) -> Agent | PaperAgent:
        encoder = encoder_from(self.encoder, self.options, 0, Path())
        if self.game == "joint":
            return Agent(encoder, name=self.name, share=self.share)
        return PaperAgent(encoder, name=self.name, share=self.share, ridge=self.ridge, window=self.window)


class AgentPool:
    """A context manager that starts agents elsewhere and ends them again."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(20.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def start(self, hub: str, folder: Path, agents: Sequence[AgentSpec]) -> None:
        """hub: its address.   folder: with their seeds, and their certificates in `certs`."""
        self._told({"hub": hub, "folder": str(folder), "agents": agents})

    def stop(self) -> None:
        self._told({})

    def _told(self, command: dict) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise NashcastError("the process that starts agents has ended.")


class _Echoing(Runner):
    async def _asked(self, message: Any) -> None:
        if message.data.startswith(RAW):
            await message.respond(bytes(int(message.data.split(None, 2)[1])))
        else:
            await super()._asked(message)


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    warm_up()
    parent_lives, alive = os.pipe()
    children: list[int] = []
    for line in sys.stdin:
        command = json.loads(line)
        _end(children)
        for spec in command.get("agents", []):
            pid = os.fork()
            if pid == 0:
                os.close(alive)
                _be(AgentSpec(*spec), command["hub"], Path(command["folder"]), parent_lives)
            children.append(pid)
        print("done", flush=True)
    _end(children)


def _be(spec: AgentSpec, hub: str, folder: Path, parent_lives: int) -> None:
    """What a child does, and nothing after."""
    try:
        threading.Thread(target=lambda: (os.read(parent_lives, 1), os._exit(1)), daemon=True).start()
        runner = _Echoing(
            spec.make(), hub, key=folder / f"{spec.name}.seed", certs=folder / "certs", state=spec.state,
            trusted=spec.trusted,
        )  # fmt: skip
        asyncio.run(runner.run())
    except BaseException as error:
        print(f"{spec.name}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _end(children: list[int]) -> None:
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    for pid in children:
        os.waitpid(pid, 0)
    children.clear()


if __name__ == "__main__":
    main()
