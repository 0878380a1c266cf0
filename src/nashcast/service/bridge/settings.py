"""The bridge's settings file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nashcast import validation as check
from nashcast.config.config_changes import read_toml
from nashcast.errors import InvalidInput

NATS, MQTT = "nats", "mqtt"
_PORTS = {"http": 8500, "nats": 4222, "mqtt": 1883}


class Account(NamedTuple):
    """Address and credentials of a server. Files hold one secret each; credentials: a NATS credentials file."""

    url: str
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    client_id: str = "nashcast-bridge"
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class Input(NamedTuple):
    """address: a subject or topic, with wildcards.   stream: a name; {1} is the first wildcard's match.

    jetstream: name of the JetStream stream that stores the subject, if any.
    """

    broker: str
    address: str
    stream: str
    jetstream: str | None = None

    def stream_of(self, address: str) -> str:
        """Name of the stream for messages to this address."""
        parts = wildcards(self.broker, self.address, address)

        def part(found: re.Match[str]) -> str:
            place = int(found[1]) - 1
            return parts[place] if place < len(parts) else found[0]

        return re.sub(r"\{(\d+)\}", part, self.stream)


class Output(NamedTuple):
    """streams: a name or a pattern such as load-*.   address: {stream} is its name.   retain: MQTT retain flag."""

    broker: str
    streams: str
    address: str
    retain: bool = False


class BridgeSettings(NamedTuple):
    service: Account
    nats: Account | None
    mqtt: Account | None
    inputs: list[Input]
    outputs: list[Output]


def wildcards(broker: str, pattern: str, address: str) -> list[str]:
    """Parts of an address that match the wildcards of a subject or topic."""
    between, one, rest = (".", "*", ">") if broker == NATS else ("/", "+", "#")
    given, parts, found = pattern.split(between), address.split(between), []
    for i, each in enumerate(given):
        if each == rest:
            return [*found, between.join(parts[i:])]
        if each == one and i < len(parts):
            found.append(parts[i])
    return found


def read_bridge(path: Path) -> BridgeSettings:
    document, folder = read_toml(path), path.parent
    known = ("service", NATS, MQTT, "from", "to")
    for key in document:
        if key not in known:
            raise InvalidInput(f"{path}: {key}", "an unknown table", f"Valid tables are {', '.join(known)}.")
    place = str(path)
    service = _account(document, "service", place, folder, ("http", "https"))
    if service is None:
        raise InvalidInput(f"{place}: service", "nothing", "Add a table [service] with its url.")
    nats = _account(document, NATS, place, folder, ("nats", "tls"))
    mqtt = _account(document, MQTT, place, folder, ("mqtt", "mqtts"))
    there = [name for name, account in ((NATS, nats), (MQTT, mqtt)) if account is not None]
    inputs = [_input(row, f"{place}: from[{i}]", there) for i, row in enumerate(_rows(document, "from", place))]
    outputs = [_output(row, f"{place}: to[{i}]", there) for i, row in enumerate(_rows(document, "to", place))]
    if not inputs and not outputs:
        raise InvalidInput(place, "neither [[from]] nor [[to]]", "Add a table for each subject or topic.")
    return BridgeSettings(service, nats, mqtt, inputs, outputs)


def _rows(document: dict[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{place}: {name}", "no list of tables", f"Write [[{name}]].")
    return rows


def _account(
    document: dict[str, Any], name: str, place: str, folder: Path, schemes: tuple[str, ...]
) -> Account | None:  # fmt: skip
    if name not in document:
        return None
    row, where = document[name], f"{place}: {name}"
    keys = (
        "url",
        "user",
        "password_file",
        "token_file",
        "credentials",
        "client_id",
        "ca_file",
        "cert_file",
        "key_file",
    )
    if not isinstance(row, dict):
        raise InvalidInput(where, repr(row)[:80], f"Write a table [{name}].")
    for key, value in row.items():
        if key not in keys:
            raise InvalidInput(f"{where}.{key}", "an unknown key", f"Valid keys are {', '.join(keys)}.")
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"{where}.{key}", repr(value)[:80], "Pass a text.")
    parts = urlsplit(row.get("url", ""))
    if parts.scheme not in schemes or not parts.hostname:
        remedy = f"Pass an address such as {schemes[0]}://127.0.0.1:{_PORTS[schemes[0]]}."
        raise InvalidInput(f"{where}.url", repr(row.get("url"))[:120], remedy)
    given: dict[str, Any] = {key: row[key] for key in ("url", "user", "client_id") if key in row}
    for key in ("credentials", "ca_file", "cert_file", "key_file"):
        if key in row:
            given[key] = str(check_file(f"{where}.{key}", folder / row[key]))
    for key, secret in (("password_file", "password"), ("token_file", "token")):
        if key in row:
            given[secret] = check_file(f"{where}.{key}", folder / row[key]).read_text().strip()
    return Account(**given)


def check_file(argument: str, path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(argument, f"no file {path}", "Pass a file.")
    return path


def _row(row: dict[str, Any], where: str, there: list[str], keys: dict[str, type]) -> dict[str, Any]:
    for key, value in row.items():
        if key not in keys:
            raise InvalidInput(f"{where}.{key}", "an unknown key", f"Valid keys are {', '.join(keys)}.")
        if not isinstance(value, keys[key]) or value == "":
            raise InvalidInput(f"{where}.{key}", repr(value)[:80], f"Pass a {keys[key].__name__}.")
    given = [name for name in ("subject", "topic") if name in row]
    if len(given) != 1 or "stream" not in row:
        raise InvalidInput(where, f"keys {', '.join(row)}", "Pass `stream`, and `subject` (NATS) or `topic` (MQTT).")
    broker = NATS if given == ["subject"] else MQTT
    if broker not in there:
        raise InvalidInput(f"{where}.{given[0]}", "no server", f"Add a table [{broker}] with its url.")
    check_address(f"{where}.{given[0]}", broker, row[given[0]])
    return {"broker": broker, "address": row[given[0]]}


def check_address(argument: str, broker: str, address: str) -> None:
    between = "." if broker == NATS else "/"
    bad = any(c.isspace() or ord(c) < 32 for c in address) if broker == NATS else "\0" in address
    if bad or (broker == NATS and not all(address.split(between))):
        raise InvalidInput(argument, repr(address)[:80], "Pass a subject such as sensors.*.load, without spaces.")


def _input(row: dict[str, Any], where: str, there: list[str]) -> Input:
    found = _row(row, where, there, {"subject": str, "topic": str, "stream": str, "jetstream": str})
    if "jetstream" in row and found["broker"] == MQTT:
        raise InvalidInput(f"{where}.jetstream", "with a topic", "Leave it out: MQTT has QoS 1 instead.")
    stands = len(wildcards(found["broker"], found["address"], found["address"]))
    for place in re.findall(r"\{(\d+)\}", row["stream"]):
        check.integer(f"{where}.stream: {{{place}}}", int(place), min=1, max=max(stands, 1))
    return Input(**found, stream=row["stream"], jetstream=row.get("jetstream"))


def _output(row: dict[str, Any], where: str, there: list[str]) -> Output:
    found = _row(row, where, there, {"subject": str, "topic": str, "stream": str, "retain": bool})
    wild = "*>" if found["broker"] == NATS else "+#"
    if any(c in found["address"] for c in wild):
        raise InvalidInput(where, f"{found['address']!r} with wildcards", "Use {stream} for the stream's name.")
    return Output(found["broker"], row["stream"], found["address"], row.get("retain", False))
