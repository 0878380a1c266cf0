"""From and to topics of Debian's mosquitto: each message once, whatever is killed."""

import json
import time

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from nashcast.cli.main import main
from support.service.bridging import Bridging, targets, until
from support.service.real_brokers import Mosquitto, free_port
from support.service.served import Served, series

FROM = '[mqtt]\nurl = "{url}"\n[[from]]\ntopic = "in/+"\nstream = "{{1}}"\n'
TO = '[[to]]\nstream = "fed*"\ntopic = "out/{stream}"\nretain = true\n'


class Talking:
    """A client of the broker. heard: topic, properties and body of what comes to `out/#`."""

    def __init__(self, broker):
        self.heard = []
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = self._hear
        self._client.on_connect = lambda client, *_: client.subscribe("out/#", qos=1)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    def _hear(self, client, data, message):
        self.heard.append((message.topic, dict(message.properties.UserProperty), json.loads(message.payload)))

    def send(self, topic, body, key=None):
        properties = Properties(PacketTypes.PUBLISH)
        if key is not None:
            properties.UserProperty = ("key", key)
        sent = self._client.publish(topic, body, qos=1, properties=properties)
        sent.wait_for_publish(20)
        assert sent.is_published()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.disconnect()
        self._client.loop_stop()


@pytest.mark.slow
def test_observations_come_in_and_forecasts_go_out_retained(tmp_path):
    values = series(20).tolist()
    with Mosquitto(tmp_path / "mqtt") as broker, Served(tmp_path) as served, served.client() as client:
        settings = FROM.format(url=broker.url) + TO
        with Bridging(tmp_path, served.url, settings) as bridge, Talking(broker) as talking:
            for step, value in enumerate(values):
                talking.send("in/federation", json.dumps(value), key=f"k{step}")
                talking.send("in/federation", json.dumps(value), key=f"k{step}")
            talking.send("in/federation", b"\xff")
            talking.send("in/federation", json.dumps({"x": [1.0, 2.0], "y": 1.0}))  # two inputs for a stream of one
            talking.send("in/federation", json.dumps({"x": 3.0, "y": None, "time": 1.7e9}))
            talking.send("in/federation", json.dumps({"x": 3.0, "y": None, "time": 1.7e9}))
            talking.send("in/federation", json.dumps({"step": 20, "y": 3.5}))
            until(lambda: client.status()["game"]["late_labels"] == 1)
            assert targets(client) == [*values, 3.5]
            until(lambda: talking.heard and talking.heard[-1][2] | {"at": 0} == standing(client) | {"at": 0})
            assert talking.heard[-1][0] == "out/federation"
            assert talking.heard[-1][1]["key"].startswith("federation:21:")
            counts = bridge.stop()
        with Talking(broker) as late:
            until(lambda: late.heard)
            assert late.heard[0][2]["step"] == 21
    assert (counts["posted"], counts["duplicates"]) == (22, 21)
    assert (counts["refused"], counts["unreadable"]) == (1, 1)


def standing(client) -> dict:
    return {"stream": "federation", **client._client.ask("GET", "/v1/streams/federation/forecast")}


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_bridge_and_service_are_killed(tmp_path):
    values = series(150).tolist()
    with Mosquitto(tmp_path / "mqtt") as broker, Talking(broker) as talking:
        settings, served = FROM.format(url=broker.url), Served(tmp_path)
        port, bridge = str(served.port), Bridging(tmp_path, served.url, settings)
        try:
            for step, value in enumerate(values):
                talking.send("in/federation", json.dumps(value), key=f"k{step}")
                if step == 40:
                    bridge.kill()
                elif step == 60:  # twenty messages wait at the broker
                    bridge = Bridging(tmp_path, served.url, settings)
                elif step == 90:
                    served.kill()
                elif step == 110:
                    time.sleep(0.5)
                    served = Served(tmp_path, "--port", port)
            with served.client() as client:
                until(lambda: client.status()["step"] == 149, 60)
                assert targets(client) == values
        finally:
            bridge.kill()
            served.stop()


def test_a_server_that_is_not_there_is_named(tmp_path, capsys):
    path = tmp_path / "bridge.toml"
    settings = FROM.format(url=f"mqtt://127.0.0.1:{free_port()}")
    path.write_text(f'[service]\nurl = "http://127.0.0.1:1"\n{settings}')
    assert main(["bridge", str(path)]) == 1
    assert "nashcast: MQTT at mqtt://127.0.0.1:" in capsys.readouterr().err
