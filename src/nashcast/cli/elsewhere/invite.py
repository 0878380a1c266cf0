"""`nashcast enroll invite`, `approve` and `withdraw`: invitations, with which owners enrol their agents."""

from __future__ import annotations

import argparse
import sys

from nashcast.cli.shared.printed import print_json


def add_to(kinds) -> None:
    """kinds: the sub-commands of `nashcast enroll`."""
    invite = kinds.add_parser(
        "invite",
        help="make an invitation: one string with which an owner enrols an agent",
        description="Print one string, with which an owner enrols the agent NAME once: `nashcast agent join STRING`. "
        "The first call creates the federation: its folder, an authority, the broker's and the hub's certificates. "
        "`nashcast hub` or `nashcast broker` answers the owner.",
    )
    invite.add_argument("name", metavar="NAME", help="name of the agent")
    invite.add_argument(
        "--hours",
        type=float,
        default=24.0,
        metavar="N",
        help="hours for which the string is valid (default: %(default)g)",
    )
    invite.add_argument("--approve", action="store_true", help="enrol only after `nashcast enroll approve NAME`")
    first = invite.add_argument_group("first call, which creates the federation")
    first.add_argument(
        "--federation", metavar="FEDERATION", help="name of the federation (default: name of the folder)"
    )
    first.add_argument(
        "--host", dest="hosts", action="append", default=[], metavar="HOST",
        help="name or address that owners connect to; may be repeated (default: localhost, this machine only)",
    )  # fmt: skip
    first.add_argument("--port", type=int, default=4222, metavar="N", help="port of the broker (default: %(default)s)")
    invite.set_defaults(run=run_invite)
    approve = kinds.add_parser("approve", help="admit a waiting agent", description="Admit a waiting agent.")
    approve.set_defaults(run=run_approve)
    withdraw = kinds.add_parser("withdraw", help="cancel an invitation", description="Cancel an unused invitation.")
    withdraw.set_defaults(run=run_withdraw)
    for each in (approve, withdraw):
        each.add_argument("name", metavar="NAME", help="name of the agent, as invited")
    for each in (invite, approve, withdraw):
        each.add_argument(
            "--folder", default=".", metavar="FOLDER", help="folder of the federation (default: current folder)"
        )
        each.add_argument("--json", action="store_true", help="print one JSON object")


def run_invite(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.enrolling.invitations import Begin, invite
    from nashcast.remote.broker.running.process import reload_broker

    begin = Begin(tuple(chosen.hosts), chosen.port, chosen.federation)
    code = invite(chosen.folder, chosen.name, hours=chosen.hours, approve=chosen.approve, begin=begin)
    followed = reload_broker(chosen.folder)
    if chosen.json:
        print_json({"name": code.name, "invitation": code.text, "hours": chosen.hours, "broker_follows": followed})
        return
    print(code.text)
    told = f"For the owner of {code.name}, once, within {chosen.hours:g} h: nashcast agent join STRING ENCODER"
    print(told, file=sys.stderr)
    if not followed:
        print("It is answered while `nashcast hub FILE` or `nashcast broker` runs.", file=sys.stderr)


def run_approve(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.enrolling.invitations import approve

    found = approve(chosen.folder, chosen.name)
    assert found.request is not None
    if chosen.json:
        print_json({"name": found.name, "approved": True, "public_key": found.request[0]})
    else:
        print(f"{found.name} is approved, with the public key {found.request[0]}")
        print("Its owner sees the same key. If the keys differ: nashcast enroll revoke")


def run_withdraw(chosen: argparse.Namespace) -> None:
    from nashcast.remote.broker.enrolling.invitations import withdraw
    from nashcast.remote.broker.running.process import reload_broker

    found = withdraw(chosen.folder, chosen.name)
    followed = reload_broker(chosen.folder)
    if chosen.json:
        print_json({"name": found.name, "withdrawn": True, "broker_follows": followed})
    else:
        print(f"The invitation of {found.name} is withdrawn.")
