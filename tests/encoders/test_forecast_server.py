"""Forecast servers over HTTP, against a real local one: formats, faults, cache, circuit breaker."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import nashcast as nc
from nashcast.checks import check_encoder
from nashcast.encoders import ForecastServer
from nashcast.encoders.base import Noise, input_context
from nashcast.encoders.http.circuit_breaker import CircuitBreaker
from nashcast.errors import NashcastError


def said(past, horizon):
    """What the server forecasts: the last value, one more for each step; (horizon, y_dim)."""
    return past[-1] + np.arange(1.0, horizon + 1)[:, None]


def ours(body):
    values = said(np.array(body["target"]), body["horizon"])
    answer = {"forecast": values.tolist()}
    if "quantiles" in body:
        answer["quantiles"] = {f"{q:g}": (values + 10.0 * (q - 0.5)).tolist() for q in body["quantiles"]}
    return answer


def chronos(body):
    target, parameters = np.array(body["inputs"][0]["target"]), body["parameters"]
    values = said(target[:, None] if target.ndim == 1 else target.T, parameters["prediction_length"])
    rows = {"mean": values} | {f"{q:g}": values + 10.0 * (q - 0.5) for q in parameters.get("quantile_levels", ())}
    return {"predictions": [{k: (v[:, 0] if target.ndim == 1 else v.T).tolist() for k, v in rows.items()}]}


def predictions(key):
    def answer(body):
        past = np.array(body[key][0])
        return {"predictions": [said(past[:, None] if past.ndim == 1 else past, 3).squeeze().tolist()]}

    return answer


def infer(body):
    (one,) = body["inputs"]
    past = np.array(one["data"]).reshape(one["shape"])[0]
    values = said(past[:, None] if past.ndim == 1 else past, 3)
    return {
        "outputs": [
            {"name": "y", "shape": [1, *values.shape], "datatype": one["datatype"], "data": values.ravel().tolist()}
        ]
    }


ANSWERS = {
    "nashcast": ours,
    "chronos": chronos,
    "instances": predictions("instances"),
    "mlflow": predictions("inputs"),
    "open-inference": infer,
}


class Server:
    """`faults` holds what to do instead of answering well, one entry for each request."""

    def __init__(self):
        self.faults, self.bodies, self.keys, owner = [], [], [], self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.bodies.append(body)
                owner.keys.append(self.headers.get("Authorization"))
                fault = owner.faults.pop(0) if owner.faults else None
                if fault == "slow":
                    time.sleep(0.6)
                    fault = 503
                code, answer = (fault, b"") if isinstance(fault, int) else (200, fault)
                if fault is None:
                    answer = json.dumps(ANSWERS[self.path[1:]](body)).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_request(self, *args):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/"

    def stop(self):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.stop()


def ran(encoder, steps=6, horizon=3, y_dim=1):
    federation = nc.Federation([nc.Agent(encoder, name="server")], horizon=horizon, y_dim=y_dim)
    for t in range(steps):
        federation.predict_one([0.5])
        federation.learn_one([0.5], float(t) if y_dim == 1 else np.arange(y_dim) + float(t))
    federation.predict_one([0.5])
    return federation


@pytest.mark.parametrize("y_dim", [1, 2])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_format_brings_the_forecasts_of_every_horizon(server, name, y_dim):
    federation = ran(ForecastServer(server.url + name, context=4, format=name), y_dim=y_dim)
    unit = federation._loop._agents._forecasters[0]
    last = np.arange(y_dim) + 5.0
    np.testing.assert_array_equal(unit.said[0], said(last[None], 3))
    assert not federation.health["absences"]


@pytest.mark.parametrize("name", ["nashcast", "chronos"])
def test_quantiles_come_over(server, name):
    server_of = ForecastServer(server.url + name, context=4, format=name, quantiles=(0.1, 0.5, 0.9))
    unit = ran(server_of)._loop._agents._forecasters[0]
    np.testing.assert_allclose(unit.quantiles.values[:, 0], np.add.outer([6.0, 7.0, 8.0], [-4.0, 0.0, 4.0]))
    np.testing.assert_allclose(unit.said[:, 0, 0], [6.0, 2.0, 10.0])


def test_the_request_is_as_documented(server):
    ran(ForecastServer(server.url + "nashcast", context=3, model="m", quantiles=(0.5,)), steps=5)
    wanted = {"target": [[2.0], [3.0], [4.0]], "horizon": 3, "x": [0.5], "quantiles": [0.5], "model": "m"}
    assert server.bodies[-1] == wanted


def test_it_keeps_every_contract_and_asks_once_for_the_same_past(server):
    check_encoder(ForecastServer(server.url + "nashcast", context=3), x_dim=1, y_dim=2, steps=8)
    assert len({json.dumps(body) for body in server.bodies}) < len(server.bodies)
    server.bodies.clear()
    built = ForecastServer(server.url + "nashcast", context=3).build(1, 1)
    context = input_context(np.ones(1), Noise(1, 0))._replace(targets=np.ones((3, 1)))
    for _ in range(5):
        built.forecast(context, 2)
    assert len(server.bodies) == 1


FAULTS = {
    "no JSON": (b"<html>", "the answer is not JSON"),
    "another form": (b'{"result": 1}', r"the answer is not of the format 'nashcast' \(KeyError: 'forecast'\)"),
    "wrong length": (b'{"forecast": [1, 2]}', "the answer has 2 steps, not 1 or 3"),
    "not a number": (b'{"forecast": [NaN, 1, 2]}', "the forecast is not finite"),
    "words": (b'{"forecast": "soon"}', "not of the format"),
    "refused": (401, "answered HTTP 401. Put a key that the server accepts"),
    "unknown": (404, "answered HTTP 404. Check url"),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.values(), ids=FAULTS)
def test_bad_answers_bench_the_agent_for_the_step(server, fault, words):
    server.faults = [None, None, fault]
    federation = ran(ForecastServer(server.url + "nashcast", context=4, retries=0))
    assert federation.health["absences"] == {"server": 1}
    assert re.search(words, federation.health["reasons"]["server"])


def test_passing_trouble_is_retried_and_slowness_is_limited(server):
    server.faults = [503, None, "slow", None]
    federation = ran(ForecastServer(server.url + "nashcast", context=4, retries=1, timeout=0.3))
    assert not federation.health["absences"]
    server.faults = ["slow", "slow"]
    federation = ran(ForecastServer(server.url + "nashcast", context=4, retries=1, timeout=0.3), steps=3)
    assert federation.health["absences"] == {"server": 1}
    assert "did not answer within 0.3 s, asked 2 times" in federation.health["reasons"]["server"]


def test_a_server_that_keeps_failing_is_left_alone(server):
    server.faults = [500] * 50
    federation = ran(ForecastServer(server.url + "nashcast", context=9, retries=0, failures=2), steps=10)
    assert len(server.bodies) == 2
    assert federation.health["absences"] == {"server": 9}
    assert "not asked: it failed 2 times in a row" in federation.health["reasons"]["server"]


def test_the_breaker_lets_one_call_through_after_its_pause():
    now, calls = [0.0], []

    def fail():
        calls.append(now[0])
        raise OSError("down")

    breaker = CircuitBreaker(2, 30.0, lambda: now[0])
    for moment in (0.0, 1.0, 2.0, 30.0, 31.5, 40.0):
        now[0] = moment
        with pytest.raises((OSError, NashcastError)):
            breaker.call(fail)
    assert calls == [0.0, 1.0, 31.5]
    now[0] = 70.0
    assert breaker.call(lambda: 5) == 5
    with pytest.raises(OSError, match=r"down"):
        breaker.call(fail)
    assert breaker.call(lambda: 6) == 6


def test_the_key_is_sent_and_shown_nowhere(server, monkeypatch):
    monkeypatch.setenv("FORECAST_KEY", "secret-1")
    encoder = ForecastServer(server.url + "nashcast", context=2, api_key_variable="FORECAST_KEY")
    ran(encoder, steps=3)
    assert server.keys[-1] == "Bearer secret-1"
    assert "secret" not in repr(encoder)


def test_messages():
    for arguments, words in (
        ({"url": "ftp://host"}, "url: got 'ftp://host'. Pass an http or https address"),
        ({"format": "xml"}, "format: got str 'xml'. Pass one of nashcast, chronos, instances, mlflow, open-inference"),
        ({"quantiles": (0.1, 0.9), "format": "mlflow"}, "quantiles: got .* 'mlflow' gives none"),
        ({"context": 0}, "context: got int 0"),
        ({"timeout": -1}, "timeout: got -1"),
        ({"failures": 0}, "failures: got int 0"),
        ({"api_key_variable": "sk-secret"}, "never the key itself"),
    ):
        with pytest.raises(nc.InvalidInput, match=words):
            ForecastServer(**({"url": "http://host/forecast"} | arguments))
