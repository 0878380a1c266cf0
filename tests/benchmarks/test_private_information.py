"""The private-information benchmark: its methods are what they are called, and share one run of the agents."""

from math import exp, log

import numpy as np
import pytest
from private_information import rules, traffic
from private_information.agents import KINDS, owners_agents, paper_agents
from private_information.expert_run import expert_run
from private_information.methods import PRIVATE_FAMILIES, contest, papers, private_methods
from private_information.ratios import private_rows, ratios, summary
from private_information.streams import private_named, private_streams

import nashcast as nc
from nashcast.datasets import Stream, simulated_owners
from nashcast.evaluation.declared import Declared
from nashcast.evaluation.evaluate import evaluate
from nashcast.evaluation.prequential import run

SMALL = simulated_owners("lying", steps=60)


def two_targets(steps=50):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((steps, 3))
    y = np.cumsum(x @ rng.standard_normal((3, 2)), axis=0)
    return Stream("two", x, y, np.zeros(2), owners={"a": (0, 2), "b": (1,)})


@pytest.fixture(scope="module", params=["lying", "two targets"])
def same_run(request):
    stream = SMALL if request.param == "lying" else two_targets()
    agents = owners_agents(stream, "simple", 3)
    return stream, agents, expert_run(agents, stream, 3)


def replayed(agents, stream, game):
    p = stream.targets.shape[1]
    made = nc.Federation(agents, x_dim=stream.inputs.shape[1], y_dim=p, start=stream.start, seed=3, game=game)
    return made.replay(stream.inputs, stream.targets).forecasts


def test_the_run_is_the_federation_itself(same_run):
    stream, agents, found = same_run
    np.testing.assert_array_equal(found.forecasts, replayed(agents, stream, nc.JointGame()))
    everything = np.arange(len(found.owner))
    np.testing.assert_array_equal(rules.adaptive(found, stream, everything), found.forecasts)


def test_without_the_joint_experts_it_is_the_federation_without_its_game(same_run):
    stream, agents, found = same_run
    np.testing.assert_array_equal(rules.adaptive(found, stream, found.own), replayed(agents, stream, None))


def test_an_agent_alone_is_a_federation_of_one(same_run):
    stream, agents, found = same_run
    said = rules.alone(found, stream)
    for k, agent in enumerate(agents):
        np.testing.assert_allclose(said[:, :, k], replayed([agent], stream, None), rtol=1e-12, atol=1e-12)


def test_a_wild_label_is_treated_as_the_federation_treats_it():
    targets = simulated_owners("lying", steps=160).targets.copy()
    targets[120] = 1e6
    targets[140:] += 90.0
    stream = simulated_owners("lying", steps=160)._replace(targets=targets)
    agents = owners_agents(stream, "simple", 3)
    found = expert_run(agents, stream, 3)
    assert 120 not in [step for steps in found.learnt for step in steps]
    assert found.learnt[141] == [140, 141]  # the jump was in doubt until it was confirmed
    assert found.begun == 0
    np.testing.assert_array_equal(rules.adaptive(found, stream, found.own), replayed(agents, stream, None))


def ridge_forecasts(features, changes, forgetting, ridge):
    """Each row by least squares over the rows before it, solved anew."""
    found = np.zeros(len(features))
    for t in range(1, len(features)):
        weights = forgetting ** np.arange(t)[::-1]
        gram = (features[:t] * weights[:, None]).T @ features[:t]
        power = (features[: t + 1] ** 2).mean(axis=0)
        gram += np.diag(np.where(power > 0, ridge * features.shape[1] * power, 1.0))
        found[t] = features[t] @ np.linalg.solve(gram, (features[:t] * weights[:, None]).T @ changes[:t])
    return found


def chosen_on_the_warm_up(features, stream, k=0):
    known = np.append(stream.start[k], stream.targets[:-1, k])
    y, first = stream.targets[:, k], int(0.2 * len(stream.targets))
    found = [known + ridge_forecasts(features, y - known, f, 1e-3) for f in (1.0, 0.998, 0.99)]
    return min(found, key=lambda said: np.mean((said[:first] - y[:first]) ** 2))


def test_the_pooled_regression_against_brute_force():
    stream = simulated_owners(steps=60)
    known = np.vstack([stream.start, stream.targets[:-1]])[:, 0]
    x = stream.inputs
    before = np.append(known[0], known[:-1])
    features = np.column_stack(
        [np.ones(60), x - x[0], np.diff(x, axis=0, prepend=x[:1]), known - known[0], before - known[0]]
    )
    np.testing.assert_allclose(rules.pooled_regression(stream)[:, 0], chosen_on_the_warm_up(features, stream))


def test_stacking_against_brute_force(same_run):
    stream, _, found = same_run
    said = rules.alone(found, stream)
    stacked = rules.stacking(said, stream)
    known = np.vstack([stream.start, stream.targets[:-1]])
    for k in range(stream.targets.shape[1]):
        wanted = chosen_on_the_warm_up(said[:, k] - known[:, k : k + 1], stream, k)
        np.testing.assert_allclose(stacked[:, k], wanted, rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_sees_its_owners_inputs_only(kind):
    """Inputs of all others are replaced: what it forecasts alone must not move."""
    stream = simulated_owners(steps=40)
    other = stream.inputs.copy()
    other[:, 1:] = np.random.default_rng(0).standard_normal((40, 3))
    changed = stream._replace(inputs=other)
    was, now = (
        rules.alone(expert_run(owners_agents(each, kind, 1), each, 1), each)[:, :, 0] for each in (stream, changed)
    )
    np.testing.assert_array_equal(was, now)


def test_an_agent_of_the_papers_game_sees_its_owners_inputs_only():
    encoder = paper_agents(SMALL)[2]._encoder.build(5, 1)
    x = np.arange(5.0)
    from nashcast.encoders.base import Noise, input_context

    context = input_context(x, Noise(0, 0), encoder.start())
    features = encoder.encode(context._replace(state=encoder.advance(context)))
    assert features.ravel().tolist() == [1.0, 0.0, 2.0]  # one, the last input (none yet), the present one


@pytest.mark.parametrize("name", private_methods(SMALL, "simple"))
def test_no_method_sees_a_target_before_it_is_told(name):
    targets, inputs, t = SMALL.targets.copy(), SMALL.inputs.copy(), 35
    targets[t:] = targets[t:] * -3.0 + 1.0
    inputs[t + 1 :] = 7.0
    changed = SMALL._replace(targets=targets, inputs=inputs)
    was, now = (run(private_methods(each, "simple")[name], each, 1, 0.2).forecasts for each in (SMALL, changed))
    assert np.isfinite(was).all()
    np.testing.assert_array_equal(was[: t + 1], now[: t + 1])
    assert name == "persistence" or not np.array_equal(was[t + 1 :], now[t + 1 :])


def test_names_families_and_owners():
    for kind in KINDS:
        known = private_methods(SMALL, kind)
        assert {method.family for method in known.values()} == set(PRIVATE_FAMILIES)
        assert [name for name in known if name.endswith(" alone") and name != "joint game alone"] == [
            *(f"owner {k} alone" for k in range(1, 5)), "liar alone",
        ]  # fmt: skip
        assert all(method.traffic is not None for method in known.values())


def test_bytes_are_those_of_the_numbers_exchanged():
    """Five owners with one input: counted from what one step of a federation holds."""
    federation = nc.Federation(owners_agents(SMALL, "simple", 0), x_dim=5, start=SMALL.start)
    federation.predict_one(SMALL.inputs[0])
    loop = federation._loop
    said = loop._agents.forecast(SMALL.inputs[0])
    given = said.contributions
    up = said.experts.size + said.leverage.size + given.played.size + given.averaged.size + given.leverage.size
    variants, agents, speeds = len(given.played), 5, len(given.leverage)
    down = agents * (variants + speeds + 1)  # sums of contributions, of leverages, and the label
    assert traffic.federation("simple", SMALL, nc.JointGame()) == (1, 8 * (up + down))
    assert traffic.federation("simple", SMALL, None) == (1, 8 * (2 * said.experts.size + agents))
    assert traffic.forecasts("simple", SMALL) == (1, 8 * (said.experts.size + agents))
    joint_up = given.played.size + given.averaged.size + given.leverage.size
    assert traffic.joint(SMALL, nc.JointGame()) == (1, 8 * (joint_up + down))
    assert traffic.pooled(SMALL) == (1, 40)
    assert traffic.one_forecast(SMALL) == (1, 80)


def test_the_papers_game_spread_takes_a_round_for_each_step_back_and_one():
    found = traffic.papers(papers(SMALL), SMALL, 3)
    assert found.rounds == 4
    # More than the joint game's 18 numbers for each of five owners.
    assert found.bytes > traffic.joint(SMALL, nc.JointGame()).bytes


def test_central_and_spread_play_of_the_paper_are_one():
    central = private_methods(SMALL, "simple")["paper's game"].whole(SMALL, 0)[0]
    np.testing.assert_allclose(papers(SMALL).replay(SMALL.inputs, SMALL.targets).forecasts, central, atol=1e-9)


def test_ratios_against_plain_numbers():
    errors = {
        ("one", "federation"): 1.0, ("one", "ML-Poly"): 2.0, ("one", "a alone"): 4.0, ("one", "persistence"): 8.0,
        ("two", "federation"): 3.0, ("two", "ML-Poly"): 2.0, ("two", "persistence"): 0.0,
    }  # fmt: skip
    families = {"federation": "ours", "ML-Poly": "experts", "a alone": "agents", "persistence": "baselines"}
    rows = [
        {"stream": stream, "method": name, "mse_after_warmup": error, "family": families[name], "group": "g"}
        | {"owners": 2, "beside": "one" if stream == "two" else "", "dm_p": 0.01}
        for (stream, name), error in errors.items()
    ]
    first, second = ratios(rows)
    assert (first["ml_poly"], first["alone"], first["persistence"], first["cost"]) == (0.5, 0.25, 0.125, None)
    assert (second["ml_poly"], second["alone"], second["persistence"], second["cost"]) == (1.5, None, None, 3.0)
    total = summary(rows)["g"]["ml_poly"]
    assert total["mean"] == pytest.approx(exp((log(0.5) + log(1.5)) / 2))
    assert (total["worst"], total["worst_stream"]) == (1.5, "two")
    assert (total["surely_better"], total["surely_worse"]) == (1, 1)


def test_results_are_kept_and_depend_on_owners_and_agents(tmp_path, monkeypatch):
    stream = Declared("owners-useless", options=(("steps", 40),), group="simulated")
    first = private_rows(evaluate([stream], ["ML-Poly"], (1,), tmp_path, contest=contest("simple"), jobs=1))
    assert {row["method"] for row in first} == {"federation", "ML-Poly", "persistence"}
    monkeypatch.setattr("private_information.methods.expert_run", None)
    again = private_rows(evaluate([stream], ["ML-Poly"], (1,), tmp_path, contest=contest("simple"), jobs=1))
    assert first == again
    with pytest.raises(TypeError):
        evaluate([stream], ["BOA"], (2,), tmp_path, contest=contest("rich"), jobs=1)


def test_the_declared_private_streams():
    labels = [each.label for each in private_streams()]
    assert len(set(labels)) == len(labels) == 23
    groups = {group: [each for each in private_streams() if each.group == group] for group in ("sensors", "markets")}
    assert (len(groups["sensors"]), len(groups["markets"])) == (9, 4)
    assert {each.beside for each in private_streams()} == {"", "owners-independent"}
    assert private_named("owners-0.9").options == (("correlation", 0.9),)
    assert private_named("ecb-desks") == Declared("ecb-desks")
