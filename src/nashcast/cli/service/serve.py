"""`nashcast serve FOLDER`: serve federations over HTTP, one per stream; `nashcast serve token …`: access tokens."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from nashcast.cli.shared.parsing import Parser
from nashcast.cli.shared.printed import print_json

TOKENS = "tokens.json"
# Beneath the journal's folder: the copy of the cluster's log that a machine works from.
CACHE = "cache"


def add_to(commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve federations over HTTP",
        description="Serve the federations that TOML files describe, one for each stream: observations in, forecasts "
        "with bounds out, all stored in one journal that survives restarts. `nashcast serve token --help`: tokens.",
    )
    serve.add_argument(
        "file", metavar="FOLDER", type=Path,
        help="folder of TOML files with a table [serve], one stream each; or one such file; or: token …",
    )  # fmt: skip
    serve.add_argument(
        "--workers", type=int, metavar="N", help="number of worker processes (default: one for each core)"
    )  # fmt: skip
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="HOST",
        help="address to listen on (default: %(default)s, this machine only)",
    )
    serve.add_argument("--port", type=int, default=8500, metavar="N", help="port to listen on (default: %(default)s)")
    add_journal(serve)
    serve.add_argument("--tls-cert", type=Path, metavar="PEM", help="file of the certificate chain (default: no TLS)")
    serve.add_argument("--tls-key", type=Path, metavar="PEM", help="file of the certificate's private key")
    serve.add_argument("--plain-http", action="store_true", help="no TLS beyond this machine: a reverse proxy adds it")
    serve.add_argument("--no-auth", action="store_true", help="no tokens: every local process has full access")
    serve.add_argument(
        "--max-body",
        type=int,
        default=1_000_000,
        metavar="BYTES",
        help="maximum size of a request (default: %(default)s)",
    )
    serve.add_argument(
        "--rate",
        type=float,
        default=5000,
        metavar="N",
        help="maximum requests per second and token (default: %(default)s)",
    )
    serve.add_argument(
        "--readers",
        type=int,
        default=200,
        metavar="N",
        help="maximum readers of the event stream (default: %(default)s)",
    )
    serve.add_argument(
        "--history", type=Path, metavar="PATH",
        help="CSV or Parquet history of streams without observations: a folder of files named as streams, or one file",
    )  # fmt: skip
    serve.add_argument(
        "--connections",
        type=int,
        default=1000,
        metavar="N",
        help="maximum number of connections (default: %(default)s)",
    )
    serve.add_argument(
        "--per-address",
        type=int,
        default=250,
        metavar="N",
        help="maximum number of connections from one address (default: %(default)s)",
    )
    serve.add_argument(
        "--accept-changes", action="store_true",
        help="start even if replay differs from the recorded numbers, as it may on another processor",
    )  # fmt: skip
    serve.add_argument(
        "--webhooks", type=Path, metavar="FILE", help="TOML file of addresses that events are posted to"
    )  # fmt: skip
    serve.add_argument(
        "--log-format", choices=("text", "json"), default="text",
        help="format of the log on standard error (default: %(default)s)",
    )  # fmt: skip
    _add_cluster(serve)
    serve.add_argument("--json", action="store_true", help="print one JSON object when the service is ready")
    serve.set_defaults(run=main)
    # A federation file named `token` is passed as ./token.
    serve.nested["token"] = _token_parser()


def _add_cluster(serve) -> None:
    serve.add_argument(
        "--cluster", metavar="URLS",
        help="nats://HOST:PORT of brokers with JetStream, commas between: machines that name the same ones share the "
        "streams (default: this machine)",
    )  # fmt: skip
    serve.add_argument(
        "--partitions", type=int, default=16, metavar="N",
        help="partitions of a cluster's log, when it is made (default: %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--replicas", type=int, default=3, metavar="N",
        help="brokers that hold a cluster's log, when it is made (default: %(default)s)",
    )  # fmt: skip
    serve.add_argument("--cluster-credentials", type=Path, metavar="FILE", help="NATS credentials file (default: none)")
    serve.add_argument("--cluster-ca", type=Path, metavar="PEM", help="authority of the brokers' certificates")


def add_journal(command) -> None:
    command.add_argument(
        "--journal",
        type=Path,
        default=Path("journal"),
        metavar="FOLDER",
        help="folder of the journal (default: %(default)s)",
    )
    command.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file of token hashes (default: {TOKENS} in the journal's folder)",
    )


def _token_parser() -> Parser:
    token = Parser(
        prog="nashcast serve token", description="Tokens of the service: read, write, admin. Only hashes are stored."
    )
    kinds = token.add_subparsers(dest="kind", metavar="WHAT", required=True)
    add = kinds.add_parser("add", help="make a token and print it once", description="Make a token and print it once.")
    add.add_argument("name", metavar="NAME", help="name of the token")
    add.add_argument(
        "--scope", default="read", metavar="LIST",
        help="some of read,write,admin; admin includes the others (default: %(default)s)",
    )  # fmt: skip
    add.add_argument("--days", type=float, metavar="N", help="days until it expires (default: never)")
    add.set_defaults(run=token_add)
    listed = kinds.add_parser("list", help="list all tokens", description="List all tokens, without their secrets.")
    listed.set_defaults(run=token_list)
    revoke = kinds.add_parser(
        "revoke", help="revoke a token", description="Revoke a token; it takes effect within a second."
    )
    revoke.add_argument("name", metavar="NAME", help="name of the token")
    revoke.set_defaults(run=token_revoke)
    for each in (add, listed, revoke):
        add_journal(each)
        each.add_argument("--json", action="store_true", help="print one JSON object")
    return token


def _token_file(chosen: argparse.Namespace):
    from nashcast.service.http.access.tokens import TokenFile

    return TokenFile(chosen.token_file or chosen.journal / TOKENS)


def main(chosen: argparse.Namespace) -> None:
    from nashcast.service.extras import need_server

    need_server()
    from nashcast import validation as check
    from nashcast.service.events.delivery import start_deliveries
    from nashcast.service.events.json_log import set_up_log
    from nashcast.service.events.webhooks import read_webhooks
    from nashcast.service.http.server import Address, bind, check_address, serve
    from nashcast.service.snapshots.warm_start import history_files, warm_start
    from nashcast.service.streams.limits import Limits
    from nashcast.service.streams.placement import OneMachine
    from nashcast.service.streams.registry import read_files
    from nashcast.service.streams.service import Service

    set_up_log(chosen.log_format)
    hooks = [] if chosen.webhooks is None else read_webhooks(chosen.webhooks)
    declared = read_files(chosen.file)
    names = [each.name for each in declared]
    history = {} if chosen.history is None else history_files(chosen.history, names)
    workers = len(os.sched_getaffinity(0)) if chosen.workers is None else chosen.workers
    check.integer("workers", workers, min=1 if chosen.cluster is None else 0, max=1000)
    limits = Limits(
        check.integer("max-body", chosen.max_body, min=1000), check.number("rate", chosen.rate, min=1.0),
        check.integer("readers", chosen.readers, min=0),
        connections=check.integer("connections", chosen.connections, min=16),
        per_address=check.integer("per-address", chosen.per_address, min=1),
    )  # fmt: skip
    address = Address(chosen.host, chosen.port, chosen.tls_cert, chosen.tls_key, chosen.plain_http)
    check_address(address, tokens=not chosen.no_auth)
    tokens = None if chosen.no_auth else _token_file(chosen)

    async def after_start(service: Service) -> None:
        service.deliveries = start_deliveries(hooks, service.folder)
        await warm_start(service, history)

    placement, folder = OneMachine(declared), chosen.journal
    if chosen.cluster is not None:
        placement, folder = _in_cluster(chosen, declared, works=workers > 0), chosen.journal / CACHE
    listener = bind(address)
    address = address._replace(port=listener.getsockname()[1])
    try:
        first = None if tokens is None or tokens.all() else _first_tokens(tokens)
        service = Service(
            placement, folder, tokens=tokens, limits=limits, workers=workers,
            accept_changes=chosen.accept_changes, after_start=after_start,
        )  # fmt: skip
        service.open()
        serve(service, address, listener, lambda: _say(chosen, address, service, first))
    finally:
        listener.close()


def _in_cluster(chosen: argparse.Namespace, declared, *, works: bool):
    from nashcast.errors import InvalidInput
    from nashcast.service.cluster.node import ClusterNode
    from nashcast.service.cluster.settings import read_settings

    if chosen.history is not None:
        remedy = "Post it to the running cluster: Client.stream(NAME).send(rows)."
        raise InvalidInput("history", "a history with a cluster", remedy)
    settings = read_settings(
        chosen.cluster, partitions=chosen.partitions, replicas=chosen.replicas,
        credentials=chosen.cluster_credentials, ca_file=chosen.cluster_ca,
    )  # fmt: skip
    return ClusterNode(settings, declared, works=works)


def _first_tokens(tokens) -> tuple[str, str]:
    """The first tokens: one for full access, one for the page. Made only at a terminal: elsewhere they end in a log."""
    from nashcast.errors import InvalidInput

    if not sys.stdout.isatty():
        remedy = "Make one: nashcast serve token add NAME --scope read,write. Or pass --no-auth, for this machine only."
        raise InvalidInput("token file", f"{tokens.path}, which has no tokens", remedy)
    return tokens.add("first", ["admin"]), tokens.add("page", ["read"])


def _say(chosen: argparse.Namespace, address, service, first: tuple[str, str] | None) -> None:
    # The part after # stays in the browser: no request, log or proxy sees it.
    page = address.url + ("/" if first is None else f"/#token={first[1]}")
    if chosen.json:
        made = {} if first is None else {"token": first[0]}
        print_json({"url": address.url, "page": page, "streams": sorted(service.streams), **made})
        sys.stdout.flush()
        return
    count = len(service.streams)
    what = next(iter(service.streams)) if count == 1 else f"{count} streams"
    if chosen.cluster is not None:
        what = f"as a machine of the cluster at {chosen.cluster.rpartition('@')[2]}"
    print(f"serving {what} at {address.url}; journal: {service.folder}; stop with Ctrl-C")
    if first is not None:
        print(f"a first token, with scope admin, shown only now: {first[0]}")
    asks = "" if first is not None or chosen.no_auth else "; it asks for a token with scope read"
    print(f"the page: {page}{asks}")
    sys.stdout.flush()


def token_add(chosen: argparse.Namespace) -> None:
    scopes = [part.strip() for part in chosen.scope.split(",") if part.strip()]
    secret = _token_file(chosen).add(chosen.name, scopes, chosen.days)
    if chosen.json:
        print_json({"name": chosen.name, "scopes": scopes, "token": secret})
    else:
        print(secret)
        print("Shown only now; the file stores its hash.", file=sys.stderr)


def token_list(chosen: argparse.Namespace) -> None:
    import time

    from nashcast.service.http.access.tokens import shown_time

    tokens, now = _token_file(chosen).all(), time.time()
    if chosen.json:
        rows = [{**token._asdict(), "state": token.state(now)} for token in tokens]
        for row in rows:
            del row["hash"]
        print_json({"tokens": rows})
        return
    width = max([len(token.name) for token in tokens] + [4])
    print(f"{'name':{width}}  {'scopes':17}  {'created':16}  {'expires':16}  state")
    for token in tokens:
        times = f"{shown_time(token.created):16}  {shown_time(token.expires):16}"
        print(f"{token.name:{width}}  {','.join(token.scopes):17}  {times}  {token.state(now)}")


def token_revoke(chosen: argparse.Namespace) -> None:
    _token_file(chosen).revoke(chosen.name)
    if chosen.json:
        print_json({"name": chosen.name, "revoked": True})
    else:
        print(f"{chosen.name} is revoked; a running service applies this within a second.")
