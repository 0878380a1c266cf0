"""Whether agents do the joint forecast good, and who is left out of it."""

import numpy as np
import pytest

from nashcast.federation.joint.joint_judge import Judge

KNOWN = np.array([True])


def judged(needed, said, y_dim=1):
    """A judge after all steps. needed: (steps, y_dim).   said: of each agent, (steps, variants, agents, y_dim)."""
    judge = Judge(said.shape[1], said.shape[2], y_dim, 1)
    for r, c in zip(needed[..., None], said[..., None], strict=True):
        e = r - c[:, judge.included].sum(axis=1)
        judge.judge(e, c, KNOWN)
        judge.clipped(e, KNOWN)
    return judge


def variants(rng, wrong, steps=400):
    """What was needed, and what two agents said in two variants, of which the second errs less.

    The first agent says `wrong` times its part, the other a tenth and half of its part.
    """
    needed = rng.standard_normal((2, steps))
    said = np.array([[wrong[0] * needed[0], 0.1 * needed[1]], [wrong[1] * needed[0], 0.5 * needed[1]]])
    return needed.sum(axis=0)[:, None], said.transpose(2, 0, 1)[..., None]


def test_an_agent_is_judged_by_the_variant_that_errs_least():
    rng = np.random.default_rng(1)
    assert judged(*variants(rng, wrong=(-1.0, 1.0))).included.tolist() == [True, True]
    assert judged(*variants(rng, wrong=(3.0, -1.0))).included.tolist() == [False, True]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_neither_the_order_of_variants_nor_that_of_agents_matters(order):
    needed, said = variants(np.random.default_rng(2), wrong=(3.0, -1.0))
    included = judged(needed, said).included
    np.testing.assert_array_equal(judged(needed, said[:, order]).included, included)
    np.testing.assert_array_equal(judged(needed, said[:, :, order]).included, included[order])


def test_each_target_has_a_best_variant_of_its_own():
    """Of two targets whose best variants differ, an agent that does harm to one of them is left out."""
    rng = np.random.default_rng(3)
    good, bad = variants(rng, wrong=(-1.0, 1.0)), variants(rng, wrong=(-1.0, 3.0))
    flipped = good[0], good[1][:, ::-1]
    both = [np.concatenate(pair, axis=-1) for pair in zip(good, flipped, strict=True)]
    assert judged(*both, y_dim=2).included.all()
    both = [np.concatenate(pair, axis=-1) for pair in zip(good, bad, strict=True)]
    assert judged(*both, y_dim=2).included.tolist() == [False, True]


def test_units_do_not_matter():
    needed, said = variants(np.random.default_rng(4), wrong=(3.0, -1.0))
    for scale in (1e-9, 1e9):
        assert judged(scale * needed, scale * said).included.tolist() == [False, True]


def test_great_harm_in_few_rows_is_not_hidden_by_good_rows():
    """An agent that does good in 19 rows of 20 and great harm in one is left out; without the harm it is not."""
    needed, said = variants(np.random.default_rng(5), wrong=(1.0, 1.0))
    assert judged(needed, said).included.tolist() == [True, True]
    said[::20, :, 0] += 20.0
    assert judged(needed, said).included.tolist() == [False, True]
