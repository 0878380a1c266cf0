"""Every byte that passes the broker, searched for every number an owner would not let out, level by level."""

import re
import stat
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote.hub.hub import Hub
from nashcast.remote.wire.subjects import tell_subject
from support.remote import spies
from support.remote.brokers import FEDERATION, broker, found
from support.remote.elsewhere import make_stream
from support.remote.parties import agents_running, run, said
from support.remote.taps import Tap, doubles_in, settings_in, singles_in

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "threat-model.md"
STEPS = 25
RUNS = {
    "spread": (nc.LookbackGame(lookback=3, placement="spread"), ("sums", "forecasts", "sums", "forecasts")),
    "spread, others": (nc.LookbackGame(lookback=2, placement="spread"), ("forecasts", "sums", "forecasts", "sums")),
    "central": (nc.LookbackGame(lookback=3), ("features", "moments", "features", "moments")),
    "central, others": (nc.LookbackGame(lookback=2), ("moments", "features", "moments", "features")),
}


class Tapped:
    """One run through a tap: all bytes, who sent what, and the secrets of every agent."""

    def __init__(self, folder, game, shares):
        self.folder, self.shares = folder, dict(zip(spies.NAMES, shares, strict=True))
        X, Y = make_stream(1, steps=STEPS)
        settings = {"game": game, "start": 0.25, "seed": 3}
        found(folder, *spies.NAMES)
        places = dict(enumerate(spies.NAMES))
        with broker(folder) as running, Tap(running.port) as tap:
            url = f"nats://127.0.0.1:{tap.port}"
            with (
                Hub(folder, url=url, deadline=60.0, **settings) as hub,
                agents_running(folder, hub.url, "support.remote.spies:make_agents", [shares, str(folder)], places),
            ):
                assert hub.wait_for_agents(60.0) == [], said(folder, spies.NAMES)
                self.results = run(hub, X, Y)
                self.health, self.traffic = hub.federation.health, hub.traffic
            self.lines = {name: tap.line(name) for name in (*spies.NAMES, "hub")}
            self.bytes = b"|".join(bytes(part) for line in tap.lines for part in (line.up, line.down))
        agents = [spies.Spy(agent) for agent in spies.make_agents(shares)]
        twin = nc.paper_federation(agents, **settings)
        self.expected = twin.replay(X, Y)[:3]
        self.twin_health = twin.health
        self.secrets = {agent.name: agent.secrets for agent in agents}
        self.confessed = {name: _numbers_in(folder / f"{name}.terms") for name in spies.NAMES}
        # Not secrets: what everybody is told or what the hub makes itself, and numbers that stand in any message.
        weights = np.unique(self.expected[1])
        self._seen = {}
        self.public = {0.0, 1.0, -1.0, 0.5, *X.ravel(), *Y.ravel(), 0.25, *weights, *self.expected[0].ravel()}
        for own in self.secrets.values():
            self.public |= {value for array in own["forecasts"] for value in array.ravel()}

    def seen(self, name, kind):
        """Which part of an agent's numbers of a kind was seen; None if it has no such numbers."""
        if (name, kind) not in self._seen:
            self._seen[name, kind] = self._look_for(name, kind)
        return self._seen[name, kind]

    def _look_for(self, name, kind):
        arrays = self.secrets[name][kind]
        values = {value for array in arrays for value in array.ravel()}
        if kind != "forecasts":
            values -= self.public
        if not values:
            return None
        if singles_in(self.bytes, [] if kind == "forecasts" else arrays):
            return 1.0
        return len(doubles_in(self.bytes, values)) / len(values)


def _numbers_in(path):
    return np.fromfile(path) if path.exists() else np.zeros(0)


def test_the_search_finds_what_is_there():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(50)
    for order in ("<f8", ">f8"):
        for offset in range(9):
            data = rng.bytes(offset) + numbers.astype(order).tobytes() + rng.bytes(5)
            assert doubles_in(data, numbers) == set(numbers)
            assert doubles_in(data[:-6], numbers) == set(numbers[:-1])
            assert doubles_in(data, rng.standard_normal(50)) == set()
    for order in ("<f4", ">f4"):
        assert len(singles_in(b"xyz" + numbers.astype(order).tobytes(), [numbers])) == 49
    assert singles_in(numbers.tobytes(), [numbers]) == set()
    own = {"ridge": 0.8271828459, "seed": spies.SEEDS[0]}
    short = b"\xca" + np.array(own["ridge"], dtype=">f4").tobytes()
    for told in (b"ridge 0.8271828459,", b"0.827183", np.float64(own["ridge"]).tobytes(), short):
        assert settings_in(b"?" + told, own) == {"ridge"}
    for told in (b"%d" % own["seed"], own["seed"].to_bytes(8, "big")):
        assert settings_in(told, own) == {"seed"}


def assert_it_is_the_run(tapped):
    for got, expected in zip(tapped.results, tapped.expected, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert tapped.health == tapped.twin_health
    for name, own in tapped.secrets.items():  # what is searched for is what the agents in their processes had
        told = np.concatenate([np.ravel(array) for array in own["terms"]] or [np.zeros(0)])
        np.testing.assert_array_equal(tapped.confessed[name], told)
    assert tapped.health["games"] >= STEPS - 3


KINDS = ("forecasts", "features", "means", "covariances", "decoders", "encoder", "terms")
LETS_OUT = {
    "forecasts": {"forecasts"},
    "sums": {"forecasts", "terms"},
    "moments": {"forecasts", "means", "covariances", "ridge", "decay"},
    "features": {"forecasts", "means", "covariances", "ridge", "decay", "features"},
}


def assert_nothing_else_passes(tapped, name):
    share = tapped.shares[name]
    out = set(LETS_OUT[share])
    if name != "ada" and share == "moments":
        out.add("features")  # certain ones are their own mean; an echo state's are where its window begins
    for kind in KINDS:
        seen = tapped.seen(name, kind)
        if seen is not None:
            # Where a kind leaves, much of it must be found; of features taken relative to something, one form leaves.
            assert seen > 0.3 if kind in out else seen == 0.0, (name, share, kind, seen)
    own = spies.settings_of(name)
    assert settings_in(tapped.bytes, own) == out & own.keys()


def observed(tapped, name):
    """Rows of the page's table that are seen of an agent."""
    rows = {kind for kind in KINDS if tapped.seen(name, kind)}
    return rows | settings_in(tapped.bytes, spies.settings_of(name))


ROWS = {
    "forecasts": "its forecasts",
    "terms": "its terms of a spread game's sums",
    "means": "means and covariances of its features",
    "ridge": "its ridge and decay",
    "features": "its features as drawn",
    "decoders": "the decoders it fits",
    "encoder": "its encoder's weights",
    "seed": "its seeds and other settings",
}


def assert_the_log_has_every_byte(tapped):
    up = 0
    for name in spies.NAMES:
        sent = tapped.lines[name].published()
        tell = tell_subject(FEDERATION, name)
        assert {message.subject for message in sent if not message.subject.startswith("_R_.")} == {tell}
        # A reply has the headers of its question, with which the broker says to whom it was passed on.
        heads = re.compile(rb'|NATS/1.0\r\nNats-Request-Info: \{"acc":"hub","rtt":\d+\}\r\n\r\n')
        assert all(heads.fullmatch(message.headers) for message in sent)
        log = (tapped.folder / f"{name}.log").read_text().splitlines()
        sizes = [int(re.search(r"; (\d+) bytes$", line)[1]) for line in log]
        assert sizes == [len(message.data) for message in sent]
        up += sum(len(message.data) for message in sent if message.subject != tell)
        # Turns that are asked again, on a busy machine: the hub takes one of the replies.
        up -= sum(size for size, line in zip(sizes, log, strict=True) if "the same again" in line)
        state = tapped.folder / f"{name}.npz"
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert up == tapped.traffic["up"]


@pytest.mark.slow
def test_only_what_its_level_lets_out_leaves_an_agent_and_the_page_says_so(tmp_path):
    """Spread and central runs, in which every agent has every level once."""
    levels = {}
    for which, (game, shares) in RUNS.items():
        tapped = Tapped(tmp_path / which, game, shares)
        assert_it_is_the_run(tapped)
        assert_the_log_has_every_byte(tapped)
        for name in spies.NAMES:
            assert_nothing_else_passes(tapped, name)
        levels[tapped.shares["ada"]] = observed(tapped, "ada")
    # The page's table is what was seen of the agent with random features.
    lines = ["| seen of an agent that shares | " + " | ".join(f"`{share}`" for share in LETS_OUT) + " |"]
    lines.append("|---|---|---|---|---|")
    for kind, words in ROWS.items():
        lines.append(
            f"| {words} | " + " | ".join("yes" if kind in levels[share] else "no" for share in LETS_OUT) + " |"
        )
    assert "\n".join(lines) in PAGE.read_text()
