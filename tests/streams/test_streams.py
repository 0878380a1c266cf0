"""The streams: facts known of them, causality of their inputs, and clear errors."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.streams import concept_shift, ecb_rates


def test_concept_shift_is_the_traces_series():
    from golden import trace

    g = trace("fixed2_concept2d_nogame")
    rounds = int(g["rounds"])
    stream = concept_shift(rounds)
    np.testing.assert_allclose(stream.inputs, g["x"][:rounds], rtol=1e-12)
    np.testing.assert_allclose(stream.targets, g["y"][1:], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(stream.start, g["y"][0], atol=1e-12)


def test_one_target_of_the_two():
    both, second = concept_shift(), concept_shift(target=1)
    np.testing.assert_array_equal(second.targets[:, 0], both.targets[:, 1])
    assert second.inputs.shape == (200, 3)


def test_rates_know_only_what_was_known():
    stream = ecb_rates(steps=300)
    assert stream.inputs.shape == (300, 8)
    np.testing.assert_array_equal(stream.inputs[1:, 0], stream.targets[:-1, 0])  # today's rate was yesterday's target
    np.testing.assert_array_equal(stream.inputs[1:, 4:], stream.inputs[:-1, :4])
    assert stream.inputs[0, 0] == stream.start[0]
    assert np.all((stream.targets > 0.3) & (stream.targets < 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ecb_rates("XXX"), "target: got 'XXX'"),
        (lambda: ecb_rates(steps=10**6), "steps: got 1000000"),
        (lambda: concept_shift(0), "steps: got"),
        (lambda: concept_shift(target=-1), "target: got"),
    ],
)
def test_bad_streams_are_refused(call, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(words)
