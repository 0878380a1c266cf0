"""The bridge: one client per broker, a thread that posts observations, and one that publishes forecasts."""

from __future__ import annotations

from typing import Any

from nashcast.client import Client
from nashcast.service.bridge.mqtt_side import MqttSide
from nashcast.service.bridge.nats_side import NatsSide
from nashcast.service.bridge.outputs import Outputs
from nashcast.service.bridge.poster import Poster
from nashcast.service.bridge.settings import MQTT, NATS, BridgeSettings


class Bridge:
    """Use it as a context manager, or call `begin` and `stop`."""

    def __init__(self, settings: BridgeSettings):
        self._settings = settings
        self.poster = Poster(self._client)
        self.sides: dict[str, Any] = {}
        for name, account, make in ((NATS, settings.nats, NatsSide), (MQTT, settings.mqtt, MqttSide)):
            if account is not None:
                inputs = [each for each in settings.inputs if each.broker == name]
                self.sides[name] = make(account, inputs, self.poster.put)
        self.outputs = Outputs(self._client, settings.outputs, self.sides)

    def _client(self) -> Client:
        service = self._settings.service
        return Client(service.url, service.token, retries=0, ca_file=service.ca_file)

    def begin(self) -> None:
        """Connect and subscribe; raises the first error."""
        begun = []
        try:
            for side in self.sides.values():
                side.begin()
                begun.append(side)
        except BaseException:
            for side in begun:
                side.stop()
            raise
        self.poster.start()
        if self._settings.outputs:
            self.outputs.start()

    def stop(self) -> None:
        self.outputs.stop()
        self.poster.stop()
        if self.poster.is_alive():
            self.poster.join(5.0)
        for side in self.sides.values():
            side.stop()

    def counts(self) -> dict[str, int]:
        bad = sum(side.bad for side in self.sides.values())
        return {**self.poster.counts, **self.outputs.counts, "unreadable": bad}

    def __enter__(self) -> Bridge:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
