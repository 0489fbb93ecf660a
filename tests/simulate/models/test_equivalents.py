"""Equivalent models: each formula against a direct computation, and the limits they share."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.linalg import leading_direction
from onegrad.compute.randomness import Streams
from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.pair_moments import pair_moments
from onegrad.gaussian.polynomials import hermite_series
from onegrad.simulate.models import SIMULATED
from onegrad.simulate.models.conditional_gaussian import ConditionalFeatures, SmoothTable
from onegrad.simulate.models.hermite import HermiteFeatures
from onegrad.simulate.models.spiked import SpikedFeatures
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import simulate


def mixture(activation="tanh", strength=0.6, weighting=0.5, n=40, k=30, m=50, **data):
    return og.Problem.from_spec(
        {
            "data": {"model": "mixture", "dim": n, **data},
            "network": {"width": k, "activation": activation},
            "training": {"samples": m, "ridge": 1e-3},
            "scaling": {"strength": strength, "weighting": weighting},
        }
    )


def isotropic(activation="tanh", exponent=0.29, n=40, k=30, m=50, **training):
    return og.Problem.from_spec(
        {
            "data": {"model": "isotropic", "dim": n},
            "labels": {"link": "hermite(0, 1, 0.5)"},
            "network": {"convention": "isotropic", "width": k, "activation": activation},
            "training": {"samples": m, "ridge": 0.1, **training},
            "scaling": {"exponent": exponent},
        }
    )


def trial(problem, degree=None):
    return Trial(problem, Streams(0, 0), degree)


def test_hermite_of_a_polynomial_is_the_network():
    """A cubic activation is its own Hermite expansion, without remainder."""
    outcome = simulate(
        mixture("hermite(0.2, 1, 0.3, 0.1)"), ("network", "hermite"), seeds=2, degree=3
    )
    network, hermite = outcome.estimates["network"], outcome.estimates["hermite"]
    assert hermite.test_error.mean == pytest.approx(network.test_error.mean, rel=1e-6)
    lower = simulate(mixture("hermite(0.2, 1, 0.3, 0.1)"), ("hermite",), seeds=2, degree=2)
    assert lower.test_error.mean != pytest.approx(network.test_error.mean, rel=1e-3)


def test_hermite_features_match_the_first_two_moments():
    """Over pure noise of scale b, polynomial plus remainder has the activation's own moments."""
    activation, scale = get_activation("relu"), 0.8
    features = HermiteFeatures.of(activation, np.zeros((1, 1)), scale, degree=3)
    z = np.random.default_rng(0).standard_normal(400_000)
    polynomial = hermite_series(features.coefficients, z)
    second = np.mean(polynomial**2) + features.remainder**2
    assert second == pytest.approx(activation.second_moment(scale), rel=0.01)
    cross = np.mean(polynomial * activation(scale * z))  # the projection on low degrees
    assert cross == pytest.approx(second - features.remainder**2, rel=0.01)


def test_conditional_features_have_the_moments_of_the_network():
    """Mean, covariance with x_⊥ and variance, given κ, by brute force over x_⊥."""
    t = trial(mixture("relu", n=30, k=12, weighting=1.0, strength=0.9, mean=1.0))
    features = ConditionalFeatures.of(t)
    rng = np.random.default_rng(0)
    v = features.basis
    kappa = rng.standard_normal(v.shape[1]) * 2
    rest = rng.standard_normal((200_000, 30))
    rest -= (rest @ v) @ v.T
    pre = (v @ kappa + rest) @ t.updated_weights.T
    values = np.maximum(pre, 0)
    shift = features.along @ kappa
    value, slope, variance = get_activation("relu").smoothed(shift, features.scales)
    se = values.std(axis=0) / np.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - value) < 5 * se)
    perp = t.updated_weights - features.along @ v.T
    cross = values.T @ rest / len(values)
    np.testing.assert_allclose(cross, slope[:, None] * perp, atol=0.012)
    np.testing.assert_allclose(values.var(axis=0), variance, rtol=0.03)


def test_conditional_basis_spans_spikes_means_and_gradient():
    t = trial(mixture(rank=2, mean=1.0))
    features = ConditionalFeatures.of(t)
    v = features.basis
    np.testing.assert_allclose(v.T @ v, np.eye(v.shape[1]), atol=1e-12)
    assert v.shape[1] == 2 * 2 + 1 + 1
    learned = leading_direction(t.updated_weights - t.weights)
    for direction in [
        *t.instance.population.spikes[0].T,
        t.instance.population.means[0] / 1.0,
        learned,
    ]:
        assert np.linalg.norm(v.T @ direction) == pytest.approx(np.linalg.norm(direction))


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu", "relu"])
def test_smooth_table(name):
    rng = np.random.default_rng(0)
    activation = get_activation(name)
    scales = rng.uniform(0.7, 1.1, 20)
    shift = rng.standard_normal((50, 20)) * 1.5
    got = SmoothTable(activation, scales)(shift)
    for ours, exact in zip(got, activation.smoothed(shift, scales), strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-5)


def test_spiked_features_are_the_formula():
    t = trial(isotropic("relu"), degree=2)
    p = t.problem
    features, _ = SpikedFeatures.of(t, 2).moments(t.train)
    c = p.activation.coefficients(2)
    beta = t.step_batch.x.T @ t.step_error / p.step_samples
    x = t.train.batch.x
    want = p.activation(x @ t.weights.T)
    want = want + c[1] * c[1] * p.rate * np.outer(x @ beta, t.readout)
    want = want + c[1] ** 2 * c[2] * p.rate**2 * np.outer((x @ beta) ** 2, t.readout**2)
    np.testing.assert_allclose(features, want, atol=1e-12)


def test_without_a_step_all_first_order_models_agree():
    """η = 0: the network is its own random-features baseline, bit for bit."""
    p = og.Problem.from_spec(
        {
            "data": {"model": "isotropic", "dim": 40},
            "network": {"width": 30, "activation": "relu"},
            "training": {"samples": 50, "rate": 0.0},
        }
    )
    outcome = simulate(p, ("network", "random-features", "conditional-gaussian"), seeds=1)
    at = outcome.estimates
    assert at["network"].test_error.mean == at["random-features"].test_error.mean


@pytest.mark.parametrize("link", ["identity", "hermite(3.0)"])
def test_linear_learns_a_linear_teacher_and_a_constant(link):
    p = mixture(n=20, m=400).model_copy(update={"labels": og.SingleIndex(link=link)})
    assert simulate(p, ("linear",), seeds=2).test_error.mean < 1e-6


@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "sigmoid", "identity", "softplus"])
@pytest.mark.parametrize("centred", [False, True])
def test_pair_moments_against_quadrature(name, centred):
    activation = get_activation(name)
    activation = activation.centred() if centred else activation
    q, p = np.array([0.4, 1.0, 1.7]), np.array([0.9, 2.0])
    rho = np.array([[0.1, -0.6], [0.5, 0.0], [-0.3, 0.8]])
    covariance = rho * np.sqrt(np.outer(q, p))
    got = pair_moments(activation, q, p, covariance.copy())
    z = np.linspace(-9, 9, 361)
    w = np.exp(-0.5 * z**2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    for i in range(3):
        for j in range(2):
            inner = activation.smoothed(
                np.sqrt(p[j]) * rho[i, j] * z, np.sqrt(p[j] * (1 - rho[i, j] ** 2))
            ).value
            want = np.sum(w * activation(np.sqrt(q[i]) * z) * inner)
            assert got[i, j] == pytest.approx(want, abs=2e-4 if name == "relu" else 1e-7)


@pytest.mark.parametrize("name", ["relu", "tanh", "erf"])
def test_kernel_is_the_wide_limit_of_random_features(name):
    """ΦΦᵀ/k of many random features approaches the kernel at the rate 1/√k."""
    p = mixture(name, m=12, k=200_000, n=15)
    t = trial(p)
    features = p.activation(t.train.preactivation(t.weights))
    x = t.train.batch.x
    q = p.weight_variance * np.sum(x**2, axis=1)
    kernel = pair_moments(p.activation, q, q, p.weight_variance * x @ x.T)
    np.testing.assert_allclose(features @ features.T / p.width, kernel, atol=5 / np.sqrt(200_000))


def test_gaussian_is_hermite_of_degree_one_without_a_step():
    features = HermiteFeatures.of(get_activation("relu"), np.zeros((1, 1)), 1.0, 1)
    np.testing.assert_allclose(features.coefficients, [1 / np.sqrt(2 * np.pi), 0.5], atol=1e-12)
    assert features.remainder**2 == pytest.approx(0.5 - 1 / (2 * np.pi) - 0.25)


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_every_model_runs_in_the_isotropic_convention(name, activation):
    outcome = simulate(isotropic(activation), (name,), seeds=2)
    assert 0 < outcome.test_error.mean < 10
    assert 0 <= outcome.train_error.mean <= outcome.train_objective.mean


def test_constant_labels():
    p = mixture("relu").model_copy(update={"labels": og.ComponentLabels(values=(1.0, 1.0))})
    outcome = simulate(p, ("network", "hermite", "conditional-gaussian", "linear"), seeds=2)
    assert outcome.test_error.mean < 0.2


def test_hermite_has_degree_four_at_full_strength():
    errors = [
        simulate(
            mixture("relu", strength=1.0), ("hermite",), seeds=1, degree=degree
        ).test_error.mean
        for degree in ("auto", 4, 3)
    ]
    assert errors[0] == errors[1] != errors[2]


def test_hermite_needs_a_degree_where_no_rule_is_known():
    by_hand = og.Problem(
        data={"model": "mixture", "dim": 40, "spread": 5.0}, network={"width": 30},
        training={"samples": 50, "rate": 2.0},
    )  # fmt: skip
    with pytest.raises(og.AssumptionError, match=r"compare\.degree"):
        simulate(by_hand, ("hermite",), seeds=1)
    assert simulate(by_hand, ("hermite",), seeds=1, degree=3).test_error.mean > 0
