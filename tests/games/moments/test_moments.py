"""Moments of random features against ten million draws, numerical quadrature, and their limits."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import nashcast as nc
from nashcast import seeds
from nashcast.games.moments.features import clipped_moments, echo_moments, relu_moments


def sampled_within(exact, draw, batches=10, size=1_000_000):
    """Largest distance of mean and covariance from the samples', in standard errors. draw(size) -> (size, p, d)."""
    p, d = exact.mean.shape
    total = np.zeros((p, d))
    products = np.zeros((p, p, d))
    squares, product_squares = np.zeros((p, d)), np.zeros((p, p, d))
    for _ in range(batches):
        centred = draw(size) - exact.mean
        total += centred.sum(0)
        squares += (centred**2).sum(0)
        for k in range(p):
            for l in range(k, p):
                product = centred[:, k] * centred[:, l]
                products[k, l] += product.sum(0)
                product_squares[k, l] += (product**2).sum(0)
    n = batches * size
    assert n == 10_000_000
    off = [np.abs(total / n) / np.sqrt(squares / n / n)]
    for k in range(p):
        for l in range(k, p):
            mean = products[k, l] / n
            error = np.sqrt((product_squares[k, l] / n - mean**2) / n)
            off.append((np.abs(mean - np.diagonal(exact.covariance[k, l])) / error)[None])
    return max(part.max() for part in off)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("moments", "activate"), [
    (relu_moments, lambda v: np.maximum(v, 0.0, out=v)),
    (clipped_moments, lambda v: np.clip(v / 6 + 0.5, 0.0, 1.0)),
])  # fmt: skip
def test_within_four_standard_errors_of_ten_million_draws(p, moments, activate):
    rng = np.random.default_rng(10 + p)
    a = rng.uniform(-1, 1, (p, 2)) * (1 if moments is relu_moments else 3)
    sigma = rng.uniform(0.3, 1.5, p)
    exact = moments(a, sigma)

    def draw(size):
        return activate(a + sigma[:, None] * rng.standard_normal((size, 1, 2)))

    assert sampled_within(exact, draw) < 4.0


def by_quadrature(f, kinks):
    inside = sorted(k for k in kinks if -12 < k < 12)
    edges = [-12.0, *inside, 12.0]
    pieces = itertools.pairwise(edges)
    return sum(quad(lambda w: f(w) * norm.pdf(w), lo, hi, epsabs=1e-14, epsrel=1e-13)[0] for lo, hi in pieces)


ACTIVATIONS = {
    "relu": (relu_moments, lambda v: max(v, 0.0), lambda a, s: [-a / s]),
    "clipped": (
        clipped_moments,
        lambda v: min(max(v / 6 + 0.5, 0.0), 1.0),
        lambda a, s: [(-3 - a) / s, (3 - a) / s],
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_exact_against_quadrature(name, p):
    moments, h, kinks = ACTIVATIONS[name]
    rng = np.random.default_rng(20 + p)
    a, sigma = 2 * rng.standard_normal((p, 3)), rng.uniform(0.1, 2.0, p)
    exact = moments(a, sigma)
    for f in range(3):
        for k in range(p):
            mean = by_quadrature(lambda w, k=k, f=f: h(a[k, f] + sigma[k] * w), kinks(a[k, f], sigma[k]))
            assert exact.mean[k, f] == pytest.approx(mean, abs=1e-10)
            for l in range(p):
                bends = [*kinks(a[k, f], sigma[k]), *kinks(a[l, f], sigma[l])]
                m_k, m_l = exact.mean[k, f], exact.mean[l, f]
                shared = by_quadrature(
                    lambda w, k=k, l=l, f=f, m_k=m_k, m_l=m_l: (
                        (h(a[k, f] + sigma[k] * w) - m_k) * (h(a[l, f] + sigma[l] * w) - m_l)
                    ),
                    bends,
                )
                assert exact.covariance[k, l, f, f] == pytest.approx(shared, abs=1e-10)


LARGE_NOISE = [
    ((0.0, 0.0), (1e8, 1e8)),
    ((0.0, 0.0), (1e10, 1e10)),
    ((2.0, -1.0), (7.0, 30.0)),
    ((1e8, -3e7), (1e8, 2e8)),
    ((1.0, 0.5), (1e6, 5.0)),
    ((0.3, 0.1), (0.2, 1e8)),
    ((0.0, 1.0), (1e3, 1e-3)),
    ((-20.0, 2.0), (7.0, 3.0)),
    ((1.0, 1.0), (6.0, 6.0001)),
]


@pytest.mark.parametrize(("a", "sigma"), LARGE_NOISE)
def test_clipped_moments_keep_their_digits_where_noise_is_large(a, sigma):
    """Against quadrature over the noise itself, piece by piece between the kinks."""
    _, h, kinks = ACTIVATIONS["clipped"]
    exact = clipped_moments(np.array(a)[:, None], np.array(sigma))
    bends = [kink for k in range(2) for kink in kinks(a[k], sigma[k])]
    means = [by_quadrature(lambda w, k=k: h(a[k] + sigma[k] * w), bends) for k in range(2)]
    np.testing.assert_allclose(exact.mean[:, 0], means, rtol=1e-11)
    for k in range(2):
        for l in range(2):
            shared = by_quadrature(
                lambda w, k=k, l=l: (h(a[k] + sigma[k] * w) - means[k]) * (h(a[l] + sigma[l] * w) - means[l]), bends
            )
            assert exact.covariance[k, l, 0, 0] == pytest.approx(shared, rel=1e-9)


def test_clipped_moments_tend_to_those_of_a_coin():
    """Z is 0 or 1 but with probability 6φ(0)/σ; to first order the variance is 1/4 - φ(0)/σ."""
    for sigma in (1e6, 1e8, 1e10, 1e14, 1e100):
        moments = clipped_moments(np.zeros((1, 1)), sigma)
        assert moments.mean.item() == pytest.approx(0.5, abs=1e-15)
        assert moments.covariance.item() == pytest.approx(0.25 - norm.pdf(0.0) / sigma, abs=1e-11 / sigma + 1e-15)


def test_the_closed_form_and_the_quadrature_of_clipped_moments_meet():
    """One is used up to σ = 6, the other beyond."""
    a = np.linspace(-30, 30, 61)[None]
    below, above = (clipped_moments(a, sigma) for sigma in (6.0, np.nextafter(6.0, 7.0)))
    np.testing.assert_allclose(below.mean, above.mean, rtol=1e-11)
    diagonals = [np.diagonal(each.covariance[0, 0]) for each in (below, above)]
    np.testing.assert_allclose(diagonals[0], diagonals[1], rtol=1e-8, atol=1e-15)


def test_the_covariance_keeps_its_digits_far_from_zero():
    """E[Z²] - E[Z]² would be all rounding here; the truth is σ², since the cut is never reached."""
    sigma = 1e-5
    covariance = relu_moments(np.array([[1e6]]), sigma).covariance
    assert covariance.item() == pytest.approx(sigma**2, rel=1e-12)


def test_columns_are_independent_and_rows_symmetric():
    rng = np.random.default_rng(3)
    covariance = relu_moments(rng.standard_normal((4, 3, 5)), [0.3, 0.7, 1.1]).covariance
    off_diagonal = covariance * (1 - np.eye(5))
    np.testing.assert_array_equal(off_diagonal, 0.0)
    np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1, 4, 3))
    full = covariance.transpose(0, 1, 3, 2, 4).reshape(4, 15, 15)
    assert np.linalg.eigvalsh(full).min() > -1e-15


@pytest.mark.parametrize("moments", [relu_moments, clipped_moments])
@pytest.mark.parametrize("sigma", [0.0, 1e-300, 1e-320])
def test_no_noise_is_the_deterministic_limit_without_a_warning(moments, sigma):
    a = np.array([[-2.0, 0.0, 1.5, 1e-310, -1e300, 1e300]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        result = moments(a, sigma)
    plain = np.maximum(a, 0) if moments is relu_moments else np.clip(a / 6 + 0.5, 0, 1)
    np.testing.assert_allclose(result.mean, plain, rtol=1e-14, atol=1e-299)
    np.testing.assert_array_equal(result.covariance, 0.0)


def test_scaling_units_scales_relu_moments():
    a, sigma = np.random.default_rng(1).standard_normal((2, 3)), np.array([0.4, 0.9])
    one, other = relu_moments(a, sigma), relu_moments(10 * a, 10 * sigma)
    np.testing.assert_allclose(other.mean, 10 * one.mean, rtol=1e-13)
    np.testing.assert_allclose(other.covariance, 100 * one.covariance, rtol=1e-12, atol=1e-15)


def echo_case(p=2, d=2, T=4):
    rng = np.random.default_rng(7)
    return rng.standard_normal((T, p, d)), rng.standard_normal((p, p)), rng.uniform(0, 1, (p, d)), np.full(p, 1.0)


ECHO = {"hard_sigmoid": lambda v: np.clip(v / 6 + 0.5, 0, 1), "relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}


@pytest.mark.parametrize("activation", ECHO)
def test_echo_state_moments_against_plain_sampling(activation):
    drive, B, start, sigma = echo_case()
    rng = np.random.default_rng(8)
    n = 1_000_000
    Z = np.broadcast_to(start, (n, *start.shape))
    result = echo_moments(
        drive, B, start, sigma, rng=seeds.generator(1, "echo", activation), samples=200_000, activation=activation
    )
    np.testing.assert_array_equal(result.mean[0], start)
    np.testing.assert_array_equal(result.covariance[0], 0.0)
    for t in range(1, len(drive)):
        Z = ECHO[activation](
            drive[t] + np.einsum("kj,njd->nkd", B, Z) + sigma[:, None] * rng.standard_normal((n, 1, 2))
        )
        spread = Z.std(axis=0)
        assert np.all(np.abs(result.mean[t] - Z.mean(0)) < 5 * spread * np.sqrt(1 / 200_000 + 1 / n))
        centred = Z - Z.mean(0)
        sampled = np.einsum("nkd,nld->kld", centred, centred) / n
        exact = np.einsum("kldd->kld", result.covariance[t])
        assert np.abs(exact - sampled).max() < 0.02 * np.abs(sampled).max()


def test_the_step_after_the_start_is_exact_and_later_ones_vary_less_than_plain_sampling():
    drive, B, start, sigma = echo_case()
    exact = clipped_moments(drive[1] + B @ start, sigma)
    means, plain = [], []
    for seed in range(200):
        result = echo_moments(drive, B, start, sigma, rng=seeds.generator(seed, "echo"), samples=50)
        np.testing.assert_allclose(result.mean[1], exact.mean, rtol=1e-12)
        np.testing.assert_allclose(result.covariance[1], exact.covariance, rtol=1e-9, atol=1e-14)
        means.append(result.mean[3])
        rng = np.random.default_rng(seed)
        Z = np.broadcast_to(start, (50, *start.shape))
        for t in range(1, 4):
            Z = ECHO["hard_sigmoid"](drive[t] + np.einsum("kj,njd->nkd", B, Z) + rng.standard_normal((50, 1, 2)))
        plain.append(Z.mean(0))
    assert np.mean(np.var(means, axis=0)) < 0.5 * np.mean(np.var(plain, axis=0))


def test_sampling_is_named():
    drive, B, start, sigma = echo_case()

    def once(*name):
        return echo_moments(drive, B, start, sigma, rng=seeds.generator(5, *name)).mean

    np.testing.assert_array_equal(once("echo", 1), once("echo", 1))
    assert not np.array_equal(once("echo", 1), once("echo", 2))


def echo_with(**change):
    drive, B, start, sigma = echo_case()
    arguments = {"drive": drive, "recurrent": B, "start": start, "noise": sigma, "rng": seeds.generator(1), **change}
    return echo_moments(**arguments)


BAD = [
    (lambda: relu_moments(np.ones(3), 0.1), "preactivation", "(…, y_dim, features)"),
    (lambda: relu_moments([[np.nan]], 0.1), "preactivation", "nan at index (0, 0)"),
    (lambda: relu_moments(np.ones((2, 3)), -0.1), "noise", "≥ 0"),
    (lambda: relu_moments(np.ones((2, 3)), [0.1, -0.1]), "noise", "≥ 0"),
    (lambda: relu_moments(np.ones((2, 3)), [0.1]), "noise", "(y_dim,) = (2,)"),
    (lambda: clipped_moments(np.ones((2, 3)), np.inf), "noise", "finite"),
    (lambda: echo_with(drive=np.ones((4, 2))), "drive", "(steps, y_dim, features)"),
    (lambda: echo_with(recurrent=np.ones((3, 3))), "recurrent", "(y_dim, y_dim) = (2, 2)"),
    (lambda: echo_with(start=np.ones(2)), "start", "(y_dim, features) = (2, 2)"),
    (lambda: echo_with(samples=1), "samples", "≥ 2"),
    (lambda: echo_with(activation="sigmoid"), "activation", "hard_sigmoid, relu, tanh"),
    (lambda: echo_with(rng=5), "rng", "seeds.generator"),
]


@pytest.mark.parametrize(("call", "argument", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(call, argument, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)
