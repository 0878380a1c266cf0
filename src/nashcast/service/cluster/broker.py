"""Client of the cluster's brokers: one log, one table of members, one store of snapshots."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.cluster.settings import ClusterSettings
from nashcast.service.streams.placement import LogAway

logger = logging.getLogger("nashcast.service")
LOG, MEMBERS, SNAPSHOTS = "nashcast-log", "nashcast-members", "nashcast-snapshots"
PARTITIONS = "nashcast-partitions"
OLDEST = (2, 11)
# Timeouts in seconds of a broker's reply and of storing a message, and the pause between two tries.
ANSWER_S, STORE_S, RETRY_S = 1.5, 5.0, 0.1
# Seconds to find a broker at the start.
START_S = 15.0
# Messages of the log read at once.
FETCH = 500
# JetStream error codes: the subject's last message is not the expected one; the name is taken.
_MOVED, _EXISTS = (10071, 10164), (10058,)


class Moved(NashcastError):
    """The log has messages that this machine has not read; it must read them before it appends."""


def subject_of(partition: int) -> str:
    return f"nashcast.log.{partition}"


class Broker:
    """Call `open` in an event loop. Every method raises LogAway if the brokers do not answer."""

    def __init__(self, settings: ClusterSettings):
        self._settings = settings
        self.partitions = settings.partitions
        self._logged: dict[str, float] = {}

    async def open(self) -> None:
        nats = _nats()
        options = _options(self._settings)
        try:
            async with asyncio.timeout(START_S):
                self.client = await nats.connect(**options, error_cb=self._note)
        except Exception as error:
            text = f"no broker at {', '.join(map(_shown, self._settings.servers))} ({type(error).__name__}: {error})"
            remedy = "Start nats-server with JetStream there, or pass the address of one that runs."
            raise InvalidInput("cluster", text[:300], remedy) from None
        self.js = self.client.jetstream(timeout=ANSWER_S)

    async def close(self) -> None:
        await self.client.close()

    async def set_up(self) -> None:
        """Create the log, the table and the store if missing; read the number of partitions."""
        self._check_version()
        until = time.monotonic() + START_S
        while True:
            try:
                await self._set_up()
                return
            except InvalidInput:
                raise
            except Exception as error:
                # Brokers elect a leader after their start.
                if time.monotonic() > until:
                    raise InvalidInput("cluster", _short(error), _SET_UP) from None
                await asyncio.sleep(0.5)

    async def _set_up(self) -> None:
        from nats.js.api import KeyValueConfig, ObjectStoreConfig, StorageType, StreamConfig
        from nats.js.errors import APIError, NotFoundError

        replicas = self._settings.replicas
        try:
            await self._find_log()
        except NotFoundError:
            config = StreamConfig(
                name=LOG, subjects=["nashcast.log.*"], storage=StorageType.FILE, num_replicas=replicas,
                duplicate_window=120, deny_delete=True, deny_purge=True, allow_direct=False,
                metadata={PARTITIONS: str(self._settings.partitions)},
            )  # fmt: skip
            try:
                await self.js.add_stream(config)
            except APIError as error:
                if error.err_code == 10074:  # replicas > 1 without a cluster of brokers
                    got = f"a single broker, and {replicas} replicas"
                    remedy = "Pass the addresses of a cluster of three brokers, or --replicas 1 for a trial."
                    raise InvalidInput("cluster", got, remedy) from None
                if error.err_code not in _EXISTS:
                    raise
            await self._find_log()
        try:
            self.members = await self.js.key_value(MEMBERS)
        except NotFoundError:
            config = KeyValueConfig(MEMBERS, history=1, replicas=replicas, storage=StorageType.FILE)
            self.members = await self.js.create_key_value(config)
        try:
            self.snapshots = await self.js.object_store(SNAPSHOTS)
        except NotFoundError:
            store = ObjectStoreConfig(replicas=replicas, storage=StorageType.FILE)
            self.snapshots = await self.js.create_object_store(SNAPSHOTS, store)

    async def _find_log(self) -> None:
        found = (await self.js.stream_info(LOG)).config.metadata or {}
        text = found.get(PARTITIONS, "")
        if not text.isdecimal() or not 1 <= int(text) <= 1024:
            remedy = f"Remove that stream, or use brokers that have none of the name {LOG}."
            raise InvalidInput("cluster", f"a JetStream stream {LOG} that is no log of nashcast", remedy)
        self.partitions = int(text)

    def _check_version(self) -> None:
        version = self.client.connected_server_version
        if (version.major, version.minor) < OLDEST:
            got = f"nats-server {version.major}.{version.minor}"
            raise InvalidInput("cluster", got, f"It takes {OLDEST[0]}.{OLDEST[1]} or newer.")
        if not self.client._server_info.get("jetstream"):
            raise InvalidInput("cluster", "a broker without JetStream", "Start nats-server with --jetstream.")

    @property
    def connected(self) -> bool:
        return self.client.is_connected

    @property
    def max_payload(self) -> int:
        """Largest message in bytes, with room for its headers."""
        return self.client.max_payload - 4096

    async def store(self, partition: int, data: bytes, *, after: int, own_id: str) -> int:
        """Append a message behind position `after`; returns its position. own_id: message id for deduplication."""
        from nats.js.api import Header
        from nats.js.errors import APIError

        headers = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE: str(after), Header.MSG_ID: own_id}
        until, why = time.monotonic() + STORE_S, ""
        while time.monotonic() < until:
            try:
                ack = await self.js.publish(subject_of(partition), data, ANSWER_S, LOG, headers)
                if ack.seq > after:
                    return ack.seq
                why = "the place of the message is not known"
            except APIError as error:
                if error.err_code in _MOVED:
                    # An earlier try may have been stored although its confirmation was lost.
                    if (place := await self._place_of(partition, own_id)) is not None:
                        return place
                    raise Moved(f"partition {partition} goes further than message {after}") from None
                why = _short(error)
            except Exception as error:
                why = _short(error)
            await asyncio.sleep(RETRY_S)
        raise LogAway(f"the cluster's log did not confirm in {STORE_S:g} s ({why}). Post it again.")

    async def end(self, partition: int) -> int:
        """Position of a partition's last message, 0 for none."""
        last = await self._last(partition)
        return 0 if last is None else last.seq

    async def _place_of(self, partition: int, own_id: str) -> int | None:
        """Position of the partition's last message if it has this id, else None."""
        from nats.js.api import Header

        last = await self._last(partition)
        return last.seq if last is not None and (last.headers or {}).get(Header.MSG_ID) == own_id else None

    async def _last(self, partition: int) -> Any:
        from nats.js.errors import NotFoundError

        try:
            return await self.js.get_last_msg(LOG, subject_of(partition))
        except NotFoundError:
            return None
        except Exception as error:
            raise LogAway(f"the cluster's log cannot be read ({_short(error)}).") from None

    async def read(self, partition: int, after: int, to: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """Messages of a partition from behind `after` up to `to`, with their positions, in order."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=after + 1, ack_policy=AckPolicy.NONE,
            mem_storage=True, num_replicas=1, inactive_threshold=30.0,
        )  # fmt: skip
        subscription = None
        try:
            subscription = await self.js.pull_subscribe(subject_of(partition), stream=LOG, config=config)
            while after < to:
                found = await subscription.fetch(FETCH, timeout=ANSWER_S)
                batch = [(message.metadata.sequence.stream, message.data) for message in found]
                after = batch[-1][0]
                yield batch
        except Exception as error:
            raise LogAway(f"the cluster's log cannot be read ({_short(error)}).") from None
        finally:
            if subscription is not None:
                await subscription.unsubscribe()

    async def _note(self, error: Exception) -> None:
        # Rate-limited: while the brokers are unreachable the client reports several errors a second.
        text, now = type(error).__name__, time.monotonic()
        if now - self._logged.get(text, -60.0) > 30.0:
            self._logged[text] = now
            logger.warning("cluster: %s", _short(error))


_SET_UP = "Look at the brokers' logs: JetStream needs a majority of them, and room on their disks."


def _nats() -> Any:
    try:
        import nats
    except ImportError:
        raise InvalidInput("cluster", "no package nats-py", "Install it: pip install 'nashcast[nats]'.") from None
    return nats


def _options(settings: ClusterSettings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "servers": list(settings.servers), "name": settings.node, "max_reconnect_attempts": -1,
        "reconnect_time_wait": 0.2, "connect_timeout": 2, "ping_interval": 2, "max_outstanding_pings": 2,
        "allow_reconnect": True,
    }  # fmt: skip
    if settings.credentials is not None:
        options["user_credentials"] = str(settings.credentials)
    if settings.ca_file is not None or any(url.startswith("tls") for url in settings.servers):
        cafile = None if settings.ca_file is None else str(settings.ca_file)
        options["tls"] = ssl.create_default_context(cafile=cafile)
    return options


def _shown(url: str) -> str:
    """The address without its password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}".removesuffix(": ")
