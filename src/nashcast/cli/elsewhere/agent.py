"""`nashcast agent ENCODER`, `nashcast agent join STRING …`: run an agent on its owner's machine for a remote hub."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from nashcast.cli.elsewhere.join import join_with, read_file
from nashcast.cli.run import change
from nashcast.cli.shared.printed import print_json

USAGE = """nashcast agent ENCODER --hub URL --name NAME --key FILE [--certs FOLDER] [OPTION …]
       nashcast agent join STRING [ENCODER | FILE.toml] [--folder FOLDER] [OPTION …]"""


def add_to(commands) -> None:
    agent = commands.add_parser(
        "agent",
        help="take part in a federation with your own model",
        usage=USAGE,
        description="Take part in a federation with a model that stays on this machine. Only what --share allows is "
        "sent; --log records every message. Ctrl-C stops it; with --state it continues where it stopped.",
    )
    agent.add_argument(
        "words", nargs="+", metavar="ENCODER",
        help="MODULE:NAME of an encoder or of a function that makes one; or a built-in name such as echo_state; or a "
        "TOML file that names it. After an invitation: join STRING ENCODER; without ENCODER the agent is enrolled and "
        "does not start",
    )  # fmt: skip
    agent.add_argument("--hub", metavar="URL", help="address of the hub: tls://HOST:PORT/FEDERATION")
    agent.add_argument("--name", metavar="NAME", help="name of the agent, as enrolled")
    agent.add_argument("--key", metavar="FILE", help="file with the seed that `nashcast enroll request` wrote")
    agent.add_argument("--folder", metavar="FOLDER", help="join: folder of the agent's files (default: NAME)")
    agent.add_argument("--certs", metavar="FOLDER", help="folder with ca.pem, NAME.pem and NAME-key.pem, for TLS")
    agent.add_argument(
        "--game", choices=("joint", "lookback"), default="joint", help="the hub's game (default: %(default)s)"
    )
    agent.add_argument(
        "--inputs",
        type=_inputs,
        metavar="A,B,…",
        help="joint game: inputs the agent may see, by position or name (default: all)",
    )
    agent.add_argument(
        "--share", choices=("joint", "forecasts", "sums", "moments", "features"),
        help="what the agent may send. Joint game: joint, its masked terms of sums; or forecasts, its forecasts and "
        "terms. Look-back game: forecasts; sums, its terms of a spread game; moments of its features, for games on "
        "the hub; or features (default: joint game: joint with --trusted, else forecasts; look-back game: sums)",
    )  # fmt: skip
    agent.add_argument(
        "--state",
        metavar="FILE",
        help="file of the agent's state, to continue after a restart (default: none; join: NAME.state in its folder)",
    )
    agent.add_argument(
        "--trusted", metavar="FILE",
        help="file with the agents' public keys (`nashcast enroll list --toml`): masked games with these agents only",
    )  # fmt: skip
    agent.add_argument(
        "--least-present", type=int, default=3, metavar="N",
        help="smallest number of agents in a masked sum. With the number of all agents, hub and all other agents but "
        "one together learn nothing of this one, and there is no joint game while one is away (default: %(default)s)",
    )  # fmt: skip
    agent.add_argument(
        "--log",
        metavar="FILE",
        help="file that records every message sent, one line each (default: none; join: sent.log in its folder)",
    )
    agent.add_argument("--ridge", type=float, metavar="γ", help="look-back game: ridge of the decoder (default: 1)")
    agent.add_argument(
        "--decay", type=float, metavar="α", help="look-back game: decay of the window's weights (default: 0)"
    )
    agent.add_argument(
        "--window", type=int, metavar="N", help="look-back game: steps the decoder is fitted to (default: 5)"
    )
    agent.add_argument(
        "--forgetting",
        type=float,
        metavar="λ",
        help="look-back game: forgetting factor up to 1, to fit all history (default: none)",
    )
    agent.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the encoder, combined with the agent's name (default: %(default)s)",
    )
    agent.add_argument(
        "--set", dest="options", action="append", default=[], type=change, metavar="KEY=VALUE",
        help="option of the encoder, for example features=8; may be repeated",
    )  # fmt: skip
    agent.add_argument(
        "--wait",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="seconds to wait for the broker and for admission (default: %(default)g)",
    )
    agent.add_argument("--json", action="store_true", help="print one JSON object at the end")
    agent.set_defaults(run=run, misuse=agent.error)


def run(chosen: argparse.Namespace) -> None:
    words, joins = chosen.words, chosen.words[0] == "join"
    if joins and len(words) in (2, 3):
        rest = words[2:]
    elif not joins and len(words) == 1 and chosen.hub and chosen.name and chosen.key and not chosen.folder:
        rest = words
    else:
        chosen.misuse("use one of the two forms above")
        return
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    chosen.encoder = rest[0] if rest else None
    if rest and rest[0].endswith(".toml"):
        read_file(chosen, Path(rest[0]))
    if joins:
        join_with(chosen, words[1])
    if chosen.encoder is not None:
        run_agent(chosen)
    elif chosen.json:
        print_json({"name": chosen.name, "hub": chosen.hub, "key": str(chosen.key), "certs": str(chosen.certs)})
    else:
        print(f"Start it with a model: nashcast agent join STRING ENCODER --folder {chosen.certs}")


def run_agent(chosen: argparse.Namespace) -> None:
    from nashcast import seeds
    from nashcast import validation as check
    from nashcast.agents.agent import Agent
    from nashcast.agents.lookback.paper_agent import PaperAgent
    from nashcast.agents.protocol import SHARE_WORDS
    from nashcast.config.run_encoders import encoder_from
    from nashcast.errors import InvalidInput
    from nashcast.remote.owner.runner import serve_agent

    check.integer("--seed", chosen.seed, min=0)
    encoder = encoder_from(
        chosen.encoder, dict(chosen.options), seeds.key(chosen.seed, "agent", chosen.name), Path.cwd()
    )
    given = {name: getattr(chosen, name) for name in ("ridge", "decay", "window", "forgetting")}
    settings = {name: value for name, value in given.items() if value is not None}
    share = chosen.share or _usual_share(chosen.game, chosen.trusted is not None)
    if chosen.game == "joint":
        if settings:
            remedy = "Leave it out, or pass --game lookback."
            raise InvalidInput(f"--{next(iter(settings))}", "a setting of the look-back game", remedy)
        agent = Agent(encoder, name=chosen.name, share=share, inputs=chosen.inputs)
    else:
        agent = PaperAgent(encoder, name=chosen.name, share=share, **settings)
        print("starting; the first start compiles for up to a minute", file=sys.stderr, flush=True)
    print(f"{chosen.name} shares {share}: {SHARE_WORDS[share]}", file=sys.stderr, flush=True)
    with _Log(chosen.log) as log:
        owner = serve_agent(
            agent, chosen.hub, key=chosen.key, certs=chosen.certs, state=chosen.state, sent=log,
            trusted=chosen.trusted, least_present=chosen.least_present, patience=chosen.wait,
        )  # fmt: skip
    if chosen.json:
        print_json({"name": chosen.name, "share": share, "sent": dict(owner.sent)})
    else:
        print(page(chosen.name, share, owner.sent))


def _usual_share(game: str, masks: bool) -> str:
    return "sums" if game == "lookback" else "joint" if masks else "forecasts"


def _inputs(text: str) -> list[int | str]:
    return [int(part) if part.isdecimal() else part for part in text.split(",")]


def page(name: str, share: str, sent: Counter[str]) -> str:
    lines = [f"{name} shares {share}. Bytes sent, by kind of message:"]
    return "\n".join(lines + [f"  {kind:20}{count:12,}" for kind, count in sorted(sent.items())])


class _Log:
    """Writes lines with their time to a file; without a path, writes nothing."""

    def __init__(self, path: str | None):
        from nashcast.errors import InvalidInput

        try:
            self._file = None if path is None else Path(path).expanduser().open("a", buffering=1, encoding="utf-8")
        except OSError as error:
            raise InvalidInput("--log", f"{path} ({error.strerror})", "Pass a file that can be written.") from None

    def __call__(self, line: str) -> None:
        if self._file is not None:
            self._file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        if self._file is not None:
            self._file.close()
