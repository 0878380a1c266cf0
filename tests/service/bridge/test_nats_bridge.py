"""From and to subjects of a real nats-server: each message once, whatever is killed."""

import asyncio
import json
import threading

import nats
import pytest

from nashcast.cli.main import main
from support.service.bridging import Bridging, targets, until
from support.service.real_brokers import NatsServer, free_port
from support.service.served import Served, series

FROM = '[nats]\nurl = "{url}"\n[[from]]\nsubject = "in.*"\nstream = "{{1}}"\n{more}'
TO = '[[to]]\nstream = "*"\nsubject = "out.{stream}"\n'


class Talking:
    """A client of the broker in a loop of its own. heard: subject, headers and body of what comes to `out.>`."""

    def __init__(self, url):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.heard = []
        self.client = self.do(nats.connect(url))
        self.do(self.client.subscribe("out.>", cb=self._hear))
        self.do(self.client.flush())

    async def _hear(self, message):
        self.heard.append((message.subject, dict(message.headers or {}), json.loads(message.data)))

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.do(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.mark.slow
def test_observations_come_in_and_forecasts_go_out(tmp_path):
    values = series(30).tolist()
    with NatsServer(tmp_path / "nats") as broker, Served(tmp_path) as served, served.client() as client:
        settings = FROM.format(url=broker.url, more=TO)
        with Talking(broker.url) as talking, Bridging(tmp_path, served.url, settings) as bridge:
            send = talking.client.publish
            for step, value in enumerate(values):
                row = {"x": value, "y": value, "key": f"k{step}"}
                talking.do(send("in.federation", json.dumps(row).encode()))
                talking.do(send("in.federation", json.dumps(row).encode()))  # twice
            talking.do(send("in.federation", b"{not json"))
            talking.do(send("in.nowhere", b"1.0"))
            talking.do(send("in.federation", b"2.5", headers={"Nats-Msg-Id": "last"}))
            until(lambda: client.status()["step"] == 30)
            assert targets(client) == [*values, 2.5]
            until(lambda: talking.heard and talking.heard[-1][2]["step"] == 31)
            subject, headers, last = talking.heard[-1]
            assert subject == "out.federation"
            assert last["forecast"] == client.forecast().forecast
            assert last["stream"] == "federation"
            assert headers["Nats-Msg-Id"].startswith("federation:31:")
            assert len({headers["Nats-Msg-Id"] for _, headers, _ in talking.heard}) == len(talking.heard)
            counts = bridge.stop()
    assert (counts["posted"], counts["duplicates"]) == (31, 30)
    assert (counts["refused"], counts["unreadable"]) == (1, 1)


@pytest.mark.slow
def test_with_jetstream_nothing_is_lost_or_doubled_when_bridge_service_and_broker_are_killed(tmp_path):
    values = series(240).tolist()
    with NatsServer(tmp_path / "nats") as broker, Talking(broker.url) as talking:
        js = talking.client.jetstream()
        talking.do(js.add_stream(name="OBS", subjects=["in.*"]))
        settings = FROM.format(url=broker.url, more='jetstream = "OBS"\n')
        served, port = Served(tmp_path), None
        port = str(served.port)
        bridge = Bridging(tmp_path, served.url, settings)
        try:
            for part in range(4):
                for value in values[60 * part : 60 * part + 60]:
                    # No key and no time: its place in the stream makes it count once.
                    talking.do(js.publish("in.federation", json.dumps({"x": value, "y": value}).encode()))
                if part == 0:
                    bridge.kill()
                    bridge = Bridging(tmp_path, served.url, settings)
                elif part == 1:
                    served.kill()
                    served = Served(tmp_path, "--port", port)
                elif part == 2:
                    broker.stop()
                    broker.start()
                    until(lambda: talking.client.is_connected)
            with served.client() as client:
                until(lambda: client.status()["step"] == 239, 60)
                assert targets(client) == values
        finally:
            bridge.kill()
            served.stop()


def test_a_server_that_is_not_there_is_named(tmp_path, capsys):
    path = tmp_path / "bridge.toml"
    settings = FROM.format(url=f"nats://127.0.0.1:{free_port()}", more="")
    path.write_text(f'[service]\nurl = "http://127.0.0.1:1"\n{settings}')
    assert main(["bridge", str(path)]) == 1
    assert "nashcast: NATS at nats://127.0.0.1:" in capsys.readouterr().err
