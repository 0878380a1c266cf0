"""MQTT 5 with QoS 1: subscribe to topics and publish. A message is acknowledged once the service has it on disk."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.bridge.messages import BadMessage, Message, read_rows
from nashcast.service.bridge.settings import Account, Input

logger = logging.getLogger("nashcast.bridge")
# Receive maximum (unacknowledged messages in flight); session expiry in seconds; messages queued here while the
# broker is unreachable.
_RECEIVE_MOST, _SESSION_S, _QUEUED = 100, 7 * 86_400, 1000
_START_S = 20.0


class MqttSide:
    """put: called with each message; may block."""

    def __init__(self, account: Account, inputs: Sequence[Input], put: Callable[[Message], None]):
        try:
            from paho.mqtt.client import Client, MQTTv5
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            remedy = "Install it: pip install 'nashcast[mqtt]'."
            raise InvalidInput("bridge", "no package paho-mqtt", remedy) from None
        self._account, self._inputs, self._put = account, inputs, put
        self._began = threading.Event()
        self._why = "no answer"
        self.bad = 0
        client = Client(
            CallbackAPIVersion.VERSION2, client_id=account.client_id, protocol=MQTTv5, manual_ack=True
        )  # fmt: skip
        if account.user is not None:
            client.username_pw_set(account.user, account.password)
        if account.url.startswith("mqtts"):
            context = ssl.create_default_context(cafile=account.ca_file)
            if account.cert_file is not None:
                context.load_cert_chain(account.cert_file, account.key_file)
            client.tls_set_context(context)
        client.max_queued_messages_set(_QUEUED)
        client.reconnect_delay_set(1, 30)
        client.on_connect, client.on_subscribe, client.on_message = self._connected, self._subscribed, self._hear
        self._client: Any = client

    def begin(self) -> None:
        """Connect and subscribe; raises NashcastError with the reason if that fails."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        given: Any = Properties(PacketTypes.CONNECT)
        # The broker stores messages for this client while it is offline, until it acknowledges them.
        given.SessionExpiryInterval, given.ReceiveMaximum = _SESSION_S, _RECEIVE_MOST
        parts = urlsplit(self._account.url)
        port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
        try:
            self._client.connect(parts.hostname, port, keepalive=30, clean_start=False, properties=given)
        except OSError as error:
            raise NashcastError(f"MQTT at {self._account.url}: {error}.") from error
        self._client.loop_start()
        if not self._began.wait(_START_S):
            self.stop()
            raise NashcastError(f"MQTT at {self._account.url}: {self._why}.")

    def stop(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, address: str, body: bytes, own_id: str, retain: bool) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = ("key", own_id)
        self._client.publish(address, body, qos=1, retain=retain, properties=properties)

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._why = f"refused: {reason}"
            logger.error("MQTT: %s", self._why)
            return
        topics = [(each.address, 1) for each in self._inputs]
        if topics:
            client.subscribe(topics)
        else:
            self._began.set()

    def _subscribed(self, client: Any, data: Any, number: int, reasons: Any, properties: Any) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self._why = f"topics refused: {', '.join(refused)}"
            logger.error("MQTT: %s", self._why)
            return
        self._began.set()

    def _hear(self, client: Any, data: Any, message: Any) -> None:
        from paho.mqtt.client import topic_matches_sub

        def done() -> None:
            client.ack(message.mid, message.qos)

        own = dict(getattr(message.properties, "UserProperty", ()) or ())
        try:
            topic = message.topic
            source = next(each for each in self._inputs if topic_matches_sub(each.address, topic))
            rows, labels = read_rows(message.payload, topic, own.get("key"))
        except (BadMessage, StopIteration, UnicodeDecodeError) as error:
            self.bad += 1
            if self.bad & (self.bad - 1) == 0:  # the first, second, fourth, eighth …
                logger.error("MQTT: %s (%d such messages so far)", error or "a topic not subscribed to", self.bad)
            done()
            return
        # The receive maximum bounds messages in flight, so this rarely blocks.
        self._put(Message(source.stream_of(topic), rows, labels, done))
