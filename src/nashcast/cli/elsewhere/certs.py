"""`nashcast certs`: development certificates for a broker, its hub and its agents."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nashcast.cli.shared.printed import print_json

if TYPE_CHECKING:
    from nashcast.remote.broker.certificates.certs import Certificate

USAGE = """nashcast certs FOLDER [--host HOST …] [--agent NAME] [--days N] [--overwrite] [--json]
       nashcast certs request NAME [--folder FOLDER] [--overwrite] [--json]
       nashcast certs sign FOLDER FILE.csr [--days N] [--overwrite] [--json]
       nashcast certs rotate FOLDER [--days N] [--json]
       nashcast certs retire FOLDER [--json]
       nashcast certs show FOLDER [--json]"""


def add_to(commands) -> None:
    certs = commands.add_parser(
        "certs",
        help="make development certificates for a broker, its hub and its agents",
        usage=USAGE,
        description="FOLDER: make a certificate authority and the certificates of broker and hub; with --agent, an "
        "agent's certificate and key. request: run by an agent's owner, make a key, which stays there, and a request "
        "to send to the operator. sign: run by the operator, make the certificate for a request. rotate: add a new "
        "authority; the old one stays trusted until retire drops it. show: list certificates and expiry dates.",
    )
    certs.add_argument(
        "words", nargs="+", metavar="FOLDER", help="folder of the certificates; or one of the commands above"
    )
    certs.add_argument(
        "--host", dest="hosts", action="append", metavar="HOST",
        help="name or address of the broker; may be repeated (default: unchanged, or localhost, 127.0.0.1, ::1)",
    )  # fmt: skip
    certs.add_argument("--agent", metavar="NAME", help="agent to make a certificate for, from the authority in FOLDER")
    certs.add_argument("--folder", metavar="FOLDER", help="request: folder to write to (default: current folder)")
    certs.add_argument(
        "--days", type=int, metavar="N", help="validity of certificates in days (default: 365; rotate: 3650)"
    )
    certs.add_argument(
        "--overwrite", action="store_true", help="replace existing certificates, except the authority's: see rotate"
    )
    certs.add_argument("--json", action="store_true", help="print one JSON object")
    certs.set_defaults(run=run, misuse=certs.error)


def run(chosen: argparse.Namespace) -> None:
    kinds = {"request": run_request, "sign": run_sign, "rotate": run_rotate, "retire": run_retire, "show": run_show}
    kind = chosen.words[0] if chosen.words[0] in kinds else "make"
    words = chosen.words if kind == "make" else chosen.words[1:]
    wanted = 2 if kind == "sign" else 1
    options = {"make": ["hosts", "agent", "days", "overwrite"], "request": ["folder", "overwrite"]}
    options |= {"sign": ["days", "overwrite"], "rotate": ["days"], "retire": [], "show": []}
    given = [name for name in ("hosts", "agent", "folder", "days", "overwrite") if getattr(chosen, name)]
    wrong = [name for name in given if name not in options[kind]]
    if len(words) != wanted or wrong or (chosen.agent and chosen.hosts):
        chosen.misuse("use one of the six forms above")
    ({"make": run_make} | kinds)[kind](chosen, *words)


def run_make(chosen: argparse.Namespace, folder: str) -> None:
    from nashcast.remote.broker.certificates import certs

    days = certs.DAYS if chosen.days is None else chosen.days
    if chosen.agent is not None:
        print_certificates([certs.make_agent(folder, chosen.agent, days=days, overwrite=chosen.overwrite)], chosen.json)
    else:
        print_certificates(certs.make(folder, chosen.hosts, days=days, overwrite=chosen.overwrite), chosen.json)


def run_request(chosen: argparse.Namespace, name: str) -> None:
    from nashcast.remote.broker.certificates import certs

    key, wanted = certs.request(name, chosen.folder or ".", overwrite=chosen.overwrite)
    if chosen.json:
        print_json({"name": name, "key": str(key), "request": str(wanted)})
    else:
        print(f"{key}: the key, which stays here\n{wanted}: send this to the broker's operator")


def run_sign(chosen: argparse.Namespace, folder: str, wanted: str) -> None:
    from nashcast.remote.broker.certificates import certs

    days = certs.DAYS if chosen.days is None else chosen.days
    made = certs.sign(folder, wanted, days=days, overwrite=chosen.overwrite)
    print_certificates([made], chosen.json)
    if not chosen.json:
        print(f"Send {made.path} and {certs.certificate_path(folder, certs.AUTHORITY)} back.")


def run_rotate(chosen: argparse.Namespace, folder: str) -> None:
    from nashcast.remote.broker.certificates import certs

    days = certs.AUTHORITY_DAYS if chosen.days is None else chosen.days
    print_certificates(certs.rotate(folder, days=days), chosen.json)
    if not chosen.json:
        print(f"Send {certs.certificate_path(folder, certs.AUTHORITY)} to all owners. When all have it:")
        print(f"  nashcast certs {folder} --overwrite    # the broker's and the hub's, from the new authority")
        print("Renew the owners' certificates, then drop the old authority:")
        print(f"  nashcast certs retire {folder}")


def run_retire(chosen: argparse.Namespace, folder: str) -> None:
    from nashcast.remote.broker.certificates import certs

    dropped = certs.retire(folder)
    if chosen.json:
        print_json({"dropped": [record(each) for each in dropped]})
    for each in dropped if not chosen.json else ():
        print(f"dropped the authority {each.fingerprint[:16]}…, valid until {each.expires:%Y-%m-%d}")
    if not dropped and not chosen.json:
        print(f"{folder} trusts one authority; no old authority to drop.")


def run_show(chosen: argparse.Namespace, folder: str) -> None:
    from nashcast.remote.broker.certificates import certs

    print_certificates(certs.read_all(folder), chosen.json)


def print_certificates(found: list[Certificate], as_json: bool) -> None:
    if as_json:
        print_json({"certificates": [record(each) for each in found]})
        return
    width = max(len(str(each.path)) for each in found)
    for each in found:
        until = "EXPIRED" if each.expired else "valid until"
        hosts = f"  for {', '.join(each.hosts)}" if each.hosts else ""
        print(f"{each.path!s:{width}}  {until} {each.expires:%Y-%m-%d}{hosts}")


def record(each: Certificate) -> dict:
    return {
        "name": each.name,
        "path": str(each.path),
        "hosts": list(each.hosts),
        "expires": each.expires.isoformat(),
        "expired": each.expired,
        "sha256": each.fingerprint,
    }
