"""Rules and games of the caller's own: the pages that say how, executed, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def executed(page, capsys):
    """Run a page's Python in order; its names and what it prints. No block is longer than sixty lines."""
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), flags=re.S)
    assert all(block.count("\n") <= 60 for block in blocks)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names, capsys.readouterr().out.split()


def agents(count=2):
    return [nc.Agent(nc.encoders.RandomFeatures(features=3, seed=s), decoders=nc.Window(4)) for s in range(count)]


def test_the_page_on_weight_rules(capsys, tmp_path):
    names, printed = executed("write-a-weight-rule.md", capsys)
    assert all(np.isfinite(float(number)) for number in printed)
    rule = names["InverseError"](3)
    for target in (1.0, 2.0, 0.5):
        rule.learn([[target + 1.0], [target + 0.1], [target - 2.0]], [target])
    weights = rule.weights()
    assert weights.argmax() == 1
    assert weights.sum() == pytest.approx(1.0)
    again = names["InverseError"](3)
    again.restore(rule.save())
    np.testing.assert_array_equal(again.weights(), weights)
    # A federation with it is saved and resumed.
    x, y = np.arange(60.0)[:, None], np.sin(np.arange(60.0))[:, None]
    one, other = (nc.Federation([nc.Agent(nc.encoders.Trend())], mixing=names["InverseError"]) for _ in range(2))
    one.replay(x, y)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    assert other.predict_one([60.0]) == one.predict_one([60.0])


def test_the_page_on_games(capsys):
    names, printed = executed("write-a-game.md", capsys)
    assert printed[0] == "Planner"
    assert printed[3] == "0"
    # With one agent there is nobody to play against: planner and equilibrium are the same at look-back 1.
    x, y = np.random.default_rng(1).standard_normal((2, 50, 1))
    games = (names["Planner"](lookback=1), nc.LookbackGame(lookback=1))
    planned, played = (
        nc.paper_federation([nc.Agent(nc.encoders.RandomFeatures(features=3, seed=0, noise=0.0))], game=game).replay(
            x, y
        )
        for game in games
    )
    np.testing.assert_allclose(planned.forecasts, played.forecasts, rtol=1e-10)


def test_what_is_no_rule_and_no_game_is_refused():
    with pytest.raises(nc.InvalidInput, match=r"^mixing: got .* without weights, learn, save, restore"):
        nc.paper_federation(agents(), mixing=lambda experts, y_dim: object())
    with pytest.raises(nc.InvalidInput, match=r"^mixing: got int 3"):
        nc.Federation([nc.Agent(nc.encoders.Trend())], mixing=3).replay(np.ones((3, 1)), np.ones((3, 1)))
    with pytest.raises(nc.InvalidInput, match=r"^game: got "):
        nc.paper_federation(agents(), game=object())
    with pytest.raises(nc.InvalidInput, match=r"^solve: got a function in a spread game"):
        nc.LookbackGame(solve=lambda problem: None, placement="spread")
    wrong = nc.LookbackGame(lookback=1, solve=lambda problem: (np.zeros((1, 1)), np.zeros((1, 1))))
    with pytest.raises(nc.InvalidInput, match=r"^decoders of solve: got "):
        nc.paper_federation(agents(), game=wrong).replay(np.ones((5, 1)), np.ones((5, 1)))


def test_a_game_of_ones_own_has_no_certificate():
    def stay(problem):
        T, layout = len(problem.targets), problem.layout
        return np.zeros((T, layout.decoders[-1])), np.repeat(problem.start[None], T + 1, axis=0)

    federation = nc.paper_federation(agents(), game=nc.LookbackGame(lookback=1, solve=stay))
    federation.replay(np.ones((5, 1)), np.arange(5.0)[:, None])
    with pytest.raises(nc.InvalidInput, match="without feedback rules"):
        federation.certificate()
