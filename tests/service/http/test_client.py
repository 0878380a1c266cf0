"""`nashcast.Client` against a real service: a stream from end to end, and lines that break."""

import socket
import threading
import time

import numpy as np
import pytest

from nashcast import Client, InvalidInput
from nashcast.client import ServiceRefused
from support.service.served import FILE, Served, entries, recorded, series, uninterrupted

VALUES = series(120)


def test_a_stream_from_end_to_end(tmp_path):
    text = FILE.replace("y_dim = 1", "y_dim = 1\ncompare = true")
    with Served(tmp_path, text=text) as served, served.client() as client:
        first = client.observe(VALUES[0], VALUES[0])
        assert (first.step, first.forecast, first.bounds[0].lower) == (1, [VALUES[0]], [None])
        for step in range(1, 50):
            answer = client.observe(np.array([VALUES[step]]), np.array([VALUES[step]]), step=step)
            assert answer.step == step + 1
        again = client.observe(VALUES[49], VALUES[49], step=49)  # as after an answer that got lost
        assert again == answer
        client.observe_many([(v, v) for v in VALUES[50:100]])
        away = client.observe(None, None, step=100)  # an input that is missing: two of these do not do without
        assert away.absent.keys() == {"linear", "random features"}
        assert "its encoder does not accept missing inputs" in away.absent["linear"]
        assert [agent["state"] for agent in client.agents()] == ["in", "in", "benched", "benched", "in"]
        for step in (101, 102):
            client.observe(None, VALUES[step], step=step)
        assert [agent["state"] for agent in client.agents()] == ["in", "in", "gone", "gone", "in"]
        before = client.forecast()
        after = client.label(100, VALUES[100])
        assert after.step == before.step
        now = client.observe(VALUES[103], VALUES[103], step=103, key="my-key")
        assert now.absent == {}
        assert client.observe(VALUES[103], VALUES[103], key="my-key") == now
        assert sum(now.weights.values()) == pytest.approx(1.0, abs=1e-12)
        narrow, wide = now.bounds
        assert wide.lower[0] <= narrow.lower[0] < now.forecast[0] < narrow.upper[0] <= wide.upper[0]

        kinds = [event["kind"] for event in client.log()]
        assert kinds == ["start", *["agent out"] * 2, *["agent gone"] * 2, *["agent back"] * 2]
        agents = {agent["name"]: agent for agent in client.agents()}
        assert [(each["absences"], each["state"]) for each in agents.values()] == [
            (absences, "in") for absences in (0, 0, 3, 3, 0)
        ]
        status = client.status()
        assert (status["step"], status["first_step"], status["ready"]) == (103, 0, True)
        assert status["game"]["missing_labels"] == status["game"]["late_labels"] == 1
        assert (status["game"]["suspect_labels"], status["game"]["games"]) == (0, None)
        check_scores(client, status)
        assert [row["step"] for row in client.history(90, 100, every=5)] == [90, 95, 100]
        assert recorded(client) == uninterrupted(tmp_path / "federation.toml", entries(served.journal))


def check_scores(client, status) -> None:
    """Errors as the history has them, computed from their definition."""
    rows = [row for row in client.history(1) if row["target"] is not None]
    missed = np.array([np.array(row["forecast"]) - row["target"] for row in rows])
    beside = np.array([np.array(row["beside"]) - row["target"] for row in rows])
    targets = [VALUES[0], *[row["target"][0] for row in rows]]
    total = status["scores"]["total"]
    assert status["scores"]["count"] == len(rows)
    assert total["mse"] == pytest.approx(np.mean(missed**2), rel=1e-9)
    assert total["no_game_mse"] == pytest.approx(np.mean(beside**2), rel=1e-9)
    # One label came late, so persistence did without it for one step.
    assert total["persistence_mse"] == pytest.approx(np.mean(np.diff(targets) ** 2), rel=0.2)
    agents = {agent["name"]: agent["error"] for agent in client.agents()}
    own = np.mean([(row["agents"][2][0] - row["target"][0]) ** 2 for row in rows if not row["absent"]])
    assert agents["linear"] == pytest.approx(own, rel=1e-9)


def test_save_points_over_http(tmp_path):
    with Served(tmp_path) as served, served.client() as client:
        client.observe_many([(v, v) for v in VALUES[:30]], first_step=0)
        assert client.save_point("noon") == {"name": "noon", "step": 29}
        there = client.forecast()
        client.observe_many([(9.0, 9.0)] * 5, first_step=30)
        named = [(point["name"], point["step"]) for point in client.save_points() if not point["automatic"]]
        assert named == [("noon", 29)]
        assert client.restore("noon") == {"name": "noon", "step": 29, "withdrawn": 5}
        assert client.forecast().forecast == there.forecast
        client.observe_many([(v, v) for v in VALUES[30:40]], first_step=30)
        assert client.drop_save_point("noon")["name"] == "noon"
        with pytest.raises(ServiceRefused, match="'noon', which is no save point") as refused:
            client.restore("noon")
        assert (refused.value.status, refused.value.code) == (404, "no_such_save_point")
        assert recorded(client) == uninterrupted(tmp_path / "federation.toml", entries(served.journal))


class Breaking(threading.Thread):
    """A server that answers as it is told: a status, or nothing but an end of the line."""

    def __init__(self, answers):
        super().__init__(daemon=True)
        self.answers, self.bodies = answers, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self):
        for status, content in self.answers:
            line, _ = self.listener.accept()
            with line:
                line.settimeout(10)
                head, _, body = line.recv(65536).partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                while len(body) < length:
                    body += line.recv(65536)
                self.bodies.append(body)
                if status:
                    answer = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
                    line.sendall(answer.encode() + content)
        self.listener.close()


FORECAST = (
    b'{"forecast":{"step":1,"time":null,"forecast":[1.0],"bounds":[],"path":[],"units":null,"weights":{},"absent":{},'
    b'"at":0}}'
)
REFUSAL = b'{"error":{"code":"busy","message":"later."}}'


def test_what_got_no_answer_is_posted_again_with_the_same_key():
    server = Breaking([(0, b""), (503, REFUSAL), (429, REFUSAL), (200, FORECAST)])
    server.start()
    with Client(server.url).stream("load") as client:
        assert client.observe(1.0, float("nan")).step == 1
    server.join(10)
    assert len(server.bodies) == 4
    assert len(set(server.bodies)) == 1
    assert b'"y": null' in server.bodies[0]
    assert b'"key": "' in server.bodies[0]


def test_what_is_refused_is_not_tried_again():
    server = Breaking([(409, REFUSAL), (500, b"<html>")])
    server.start()
    with Client(server.url).stream("load") as client:
        with pytest.raises(ServiceRefused, match=r"later\.") as refused:
            client.observe(1.0, 1.0)
        assert (refused.value.status, refused.value.code) == (409, "busy")
        with pytest.raises(ServiceRefused, match="the service answered 500"):
            client.forecast()
    server.join(10)
    with (
        Client(server.url, retries=1).stream("load") as client,
        pytest.raises(ServiceRefused, match="does not answer") as silent,
    ):
        client.forecast()
    assert silent.value.status == 0


@pytest.mark.parametrize("url", ["localhost:8500", "ftp://x", "http://", ""])
def test_addresses_that_are_none(url):
    with pytest.raises(InvalidInput, match=r"url: got .* Pass an address such as http://127.0.0.1:8500"):
        Client(url)


def test_agents_of_somebody_else_and_deadlines_are_saved_at_every_step(tmp_path):
    (tmp_path / "vendor.py").write_text("import numpy as np\ndef ahead(x):\n    return 1.5 * np.asarray(x)\n")
    text = (
        FILE.replace("snapshot_every = 40\n", "") + '\n[[agents]]\nencoder = "forecaster"\nfunction = "vendor:ahead"\n'
    )
    served = Served(tmp_path, text=text)
    with served.client() as client:
        for step in range(8):
            last = client.observe(VALUES[step], VALUES[step], step=step)
    served.kill()
    with Served(tmp_path, text=text) as again, again.client() as client:
        assert client.forecast() == last
        while not (starts := [row["text"] for row in client.log() if row["kind"] == "start"])[1:]:
            time.sleep(0.01)
        assert starts[-1] == "from the snapshot of step 7, 0 entries replayed"
