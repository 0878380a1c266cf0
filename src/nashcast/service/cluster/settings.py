"""Settings of a machine in a cluster: the brokers' addresses, and parameters for creating the log."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from nashcast import validation as check
from nashcast.errors import InvalidInput

MOST_PARTITIONS = 1024


class ClusterSettings(NamedTuple):
    """servers: addresses of brokers of one NATS cluster.   partitions, replicas: of a new log.

    node: this process's name in the cluster, new at each start.   credentials: a NATS credentials file.
    ca_file: PEM file of the authority that signed the brokers' certificates.
    """

    servers: tuple[str, ...]
    partitions: int = 16
    replicas: int = 3
    node: str = ""
    credentials: Path | None = None
    ca_file: Path | None = None


def read_settings(
    urls: str, *, partitions: int = 16, replicas: int = 3, credentials: Path | None = None, ca_file: Path | None = None
) -> ClusterSettings:
    """urls: addresses of brokers, separated by commas."""
    servers = tuple(part.strip() for part in urls.split(",") if part.strip())
    for url in servers:
        try:
            parts = urlsplit(url)
            right = parts.scheme in ("nats", "tls") and parts.hostname and parts.port != 0
        except ValueError:
            right = False
        if not right:
            raise InvalidInput("cluster", f"{url!r:.80}", "Pass nats://HOST:PORT or tls://HOST:PORT, commas between.")
    if not servers:
        raise InvalidInput("cluster", "no address", "Pass nats://HOST:PORT of one broker or several.")
    check.integer("partitions", partitions, min=1, max=MOST_PARTITIONS)
    check.integer("replicas", replicas, min=1, max=5)
    for name, path in (("cluster-credentials", credentials), ("cluster-ca", ca_file)):
        if path is not None and not path.is_file():
            raise InvalidInput(name, f"no file {path}", "Pass a file that is there.")
    return ClusterSettings(servers, partitions, replicas, _node_name(), credentials, ca_file)


def _node_name() -> str:
    # A restarted process has none of its predecessor's state, so it is a new member.
    host = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname()[:32]) or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"


def partition_of(stream: str, partitions: int) -> int:
    """Partition of a stream; its hash is independent of the one that assigns streams to workers."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big") % partitions
