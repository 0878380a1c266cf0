"""`nashcast enroll`: the agents that may take part in a federation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nashcast.cli.elsewhere import invite
from nashcast.cli.shared.printed import print_json

if TYPE_CHECKING:
    from nashcast.remote.broker.enrolling.enrolment import Invitation


def add_to(commands) -> None:
    enroll = commands.add_parser(
        "enroll",
        help="manage the agents of a federation",
        description="The hub's operator invites agents, and their owners enrol them with one string; the operator can "
        "list and revoke them. By hand: the agent's owner runs request, the operator runs create and add. A broker "
        "that runs from the folder on this machine is reloaded at once.",
    )
    kinds = enroll.add_subparsers(dest="kind", metavar="WHAT", required=True)
    create = kinds.add_parser(
        "create",
        help="make a federation's folder, with the hub's identity and the broker's configuration",
        description="Make a federation's folder: hub.seed (the hub's identity), enrolment.json and nats-server.conf.",
    )
    create.add_argument("folder", metavar="FOLDER", help="folder of the federation")
    create.add_argument(
        "--federation", required=True, metavar="NAME", help="name of the federation: letters, digits and '-'"
    )
    create.add_argument(
        "--host", default="127.0.0.1", metavar="HOST", help="address the broker listens on (default: %(default)s)"
    )
    create.add_argument("--port", type=int, default=4222, metavar="N", help="port of the broker (default: %(default)s)")
    create.add_argument(
        "--certs",
        metavar="FOLDER",
        help="folder of certificates for TLS, made by `nashcast certs FOLDER` (default: no TLS)",
    )
    create.add_argument(
        "--max-payload",
        type=int,
        default=1 << 20,
        metavar="BYTES",
        help="maximum size of a message (default: %(default)s)",
    )
    create.add_argument(
        "--max-connections",
        type=int,
        default=1024,
        metavar="N",
        help="maximum number of broker connections (default: %(default)s)",
    )
    create.add_argument(
        "--stream-bytes", type=int, default=256 << 20, metavar="BYTES",
        help="bytes of inputs stored for absent agents, the oldest dropped first (default: %(default)s)",
    )  # fmt: skip
    create.add_argument(
        "--stream-days",
        type=int,
        default=30,
        metavar="N",
        help="days for which these inputs are stored (default: %(default)s)",
    )
    create.set_defaults(run=run_create)
    request = kinds.add_parser(
        "request",
        help="make an agent's identity (run by its owner)",
        description="Make an agent's identity: a secret seed in a private file, which stays here, and the public key, "
        "printed and in a file beside it that ends in .pub, for the broker's operator.",
    )
    request.add_argument("name", metavar="NAME", help="name of the agent")
    request.add_argument("--key", required=True, metavar="FILE", help="file to write the seed to")
    request.add_argument("--overwrite", action="store_true", help="replace the seed in FILE")
    request.set_defaults(run=run_request)
    add = kinds.add_parser("add", help="let an agent take part", description="Let an agent take part.")
    add.add_argument("folder", metavar="FOLDER", help="folder of the federation")
    add.add_argument("name", metavar="NAME", help="name of the agent")
    add.add_argument(
        "public_key",
        metavar="PUBLIC_KEY",
        help="public key that `nashcast enroll request` printed, U…, or its .pub file",
    )
    add.set_defaults(run=run_add)
    listed = kinds.add_parser("list", help="enrolled agents", description="All agents that are or were enrolled.")
    listed.add_argument("folder", metavar="FOLDER", help="folder of the federation")
    listed.add_argument(
        "--toml", action="store_true", help="public keys of the enrolled agents as TOML, for agents' owners"
    )
    listed.set_defaults(run=run_list)
    revoke = kinds.add_parser(
        "revoke", help="exclude an agent", description="Exclude an agent, at once and permanently."
    )
    revoke.add_argument("folder", metavar="FOLDER", help="folder of the federation")
    revoke.add_argument("name", metavar="NAME", help="name of the agent")
    revoke.set_defaults(run=run_revoke)
    invite.add_to(kinds)
    for each in (create, request, add, listed, revoke):
        each.add_argument("--json", action="store_true", help="print one JSON object")


def run_create(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER, read_certificate
    from nashcast.remote.broker.enrolling import enrolment
    from nashcast.remote.broker.rules import CONF, Settings

    certs = None
    if chosen.certs is not None:
        certs = str(Path(chosen.certs).expanduser().resolve())
        for name in (AUTHORITY, BROKER):
            read_certificate(certs, name)
    settings = Settings(
        chosen.host, chosen.port, certs, chosen.max_payload, chosen.max_connections, chosen.stream_bytes,
        chosen.stream_days,
    )  # fmt: skip
    made, folder = enrolment.create(chosen.folder, chosen.federation, settings), Path(chosen.folder)
    if chosen.json:
        print_json({"federation": made.federation, "hub": made.hub, "folder": str(folder)})
        return
    print(f"{folder / enrolment.HUB_SEED}: the hub's identity, secret; its public key is {made.hub}")
    print(f"{folder / enrolment.FILE}: agents of {made.federation}, none yet")
    print(f"{folder / CONF}: the broker's configuration. Start it: nats-server -c {folder / CONF}")


def run_request(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.certificates.keys import make_seed
    from nashcast.remote.broker.files import write_whole
    from nashcast.remote.broker.names import agent_name

    agent_name(chosen.name)
    public_key = make_seed(chosen.key, overwrite=chosen.overwrite)
    path = write_whole(Path(f"{chosen.key}.pub").expanduser(), public_key + "\n", overwrite=True)
    if chosen.json:
        print_json({"name": chosen.name, "key": chosen.key, "public_key": public_key})
    else:
        print(f"{chosen.key}: the secret identity of {chosen.name}; it stays here")
        print(f"Send its public key ({path}) to the broker's operator, who runs:")
        print(f"  nashcast enroll add FOLDER {chosen.name} {public_key}")


def run_add(chosen: argparse.Namespace) -> None:
    from nashcast.errors import InvalidInput
    from nashcast.remote.broker.enrolling import enrolment

    public_key = chosen.public_key
    if public_key.endswith(".pub"):
        try:
            public_key = Path(public_key).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            remedy = "Pass the file that `nashcast enroll request` wrote, or the key itself."
            raise InvalidInput("public key", f"{public_key}, which cannot be read ({error})", remedy) from None
    enrolment.add(chosen.folder, chosen.name, public_key)
    _follow(chosen, "enrolled", "can connect")


def run_revoke(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.enrolling import enrolment

    enrolment.revoke(chosen.folder, chosen.name)
    _follow(chosen, "revoked", "is refused")


def _follow(chosen: argparse.Namespace, done: str, then: str) -> None:
    """Reload a running broker, and print whether one was reloaded."""
    from nashcast.remote.broker.rules import CONF
    from nashcast.remote.broker.running.process import reload_broker

    followed = reload_broker(chosen.folder)
    if chosen.json:
        print_json({"name": chosen.name, done: True, "broker_follows": followed})
    elif followed:
        print(f"{chosen.name} is {done}. The broker is reloaded: {chosen.name} {then} from now on.")
    else:
        print(f"{chosen.name} is {done}. No broker runs from {chosen.folder} on this machine; {chosen.name} {then}")
        print(f"when one starts, or when `nashcast broker` on another machine sees the new {CONF}.")


def run_list(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.enrolling import enrolment
    from nashcast.remote.broker.running.process import running_broker

    found, pid = enrolment.read(chosen.folder), running_broker(chosen.folder)
    if chosen.toml:
        print("[agents]")
        for name, public_key in found.agents.items():
            print(f'{name} = "{public_key}"')
        return
    if chosen.json:
        agents = [entry._asdict() for entry in found.history]
        invited = [_invited(each) for each in found.invitations]
        print_json(
            {"federation": found.federation, "hub": found.hub, "agents": agents, "invitations": invited, "broker": pid}
        )
        return
    width = max([len(entry.name) for entry in found.history] + [len("name")])
    print(f"federation {found.federation}; broker {'not running here' if pid is None else f'runs as process {pid}'}")
    print(f"{'name':{width}}  {'public key':56}  {'added':10}  revoked")
    print(f"{'hub':{width}}  {found.hub:56}  {'–':10}  –")
    for name, public_key, added, revoked in found.history:
        print(f"{name:{width}}  {public_key:56}  {added[:10]:10}  {(revoked or '–')[:10]}")
    for each in found.invitations:
        if each.state not in ("closed", "withdrawn"):
            print(f"{each.name:{width}}  invited until {each.expires[:16]}: {_invited(each)['state']}")


def _invited(each: Invitation) -> dict:
    state = each.state if each.valid() or each.state in ("closed", "withdrawn") else "expired"
    return {"name": each.name, "expires": each.expires, "approve": each.approve, "state": state}
