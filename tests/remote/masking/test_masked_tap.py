"""Every byte that passes a real broker in a masked run: no agent's terms are in them; in a plain run all are."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.hub.hub import Hub
from nashcast.remote.wire.fixed_point import encode
from support.remote.brokers import broker, found
from support.remote.elsewhere import make_stream
from support.remote.parties import agents_running, run, said
from support.remote.taps import Tap, doubles_in

COUNT, STEPS = 8, 12
NAMES = [f"agent-{i}" for i in range(COUNT)]


def tapped_run(folder, masked):
    """All bytes, every term the agents had, and the forecasts."""
    X, Y = make_stream(1, steps=STEPS)
    settings = {"game": nc.LookbackGame(lookback=2, placement="spread"), "start": 0.25, "seed": 3}
    found(folder, *NAMES)
    trusted = folder / "trusted.toml"
    lines = [f'{name} = "{key}"' for name, key in enrolment.read(folder).agents.items()]
    trusted.write_text("\n".join(["[agents]", *lines]))
    with broker(folder) as running, Tap(running.port) as tap:
        with (
            Hub(folder, url=f"nats://127.0.0.1:{tap.port}", deadline=60.0, masked=masked, **settings) as hub,
            agents_running(
                folder, hub.url, "support.remote.spies:make_team", [COUNT, str(folder)], dict(enumerate(NAMES)),
                trusted=trusted if masked else None,
            ),
        ):  # fmt: skip
            assert hub.wait_for_agents(60.0) == [], said(folder, NAMES)
            forecasts = run(hub, X, Y)[0]
            assert hub.federation.health["games"] == STEPS - 2, hub.federation.health["fell back"]
        data = b"|".join(bytes(part) for line in tap.lines for part in (line.up, line.down))
    terms = np.unique(np.concatenate([np.fromfile(folder / f"{name}.terms") for name in NAMES]))
    # What is near 0 or a small whole number has bytes that occur by chance.
    terms = terms[(np.abs(terms) > 1e-6) & (terms != np.round(terms))]
    assert len(terms) > 300
    return forecasts, data, terms


def fixed_points_in(data, values):
    """Which of these numbers stand in the bytes as the fixed point of masked sums, unmasked."""
    return {value for value in values if encode(np.array([value])).astype("<u8").tobytes() in data}


@pytest.mark.slow
def test_masked_nobodys_terms_pass_the_broker_and_plain_all_do(tmp_path):
    masked, data, terms = tapped_run(tmp_path / "masked", True)
    assert doubles_in(data, terms) == set()
    assert fixed_points_in(data, terms) == set()
    plain, data, terms = tapped_run(tmp_path / "plain", False)
    assert len(doubles_in(data, terms)) > 0.99 * len(terms)
    np.testing.assert_allclose(masked, plain, rtol=0, atol=1e-12)
