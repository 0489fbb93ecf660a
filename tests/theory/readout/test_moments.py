"""Moments of losses at a node: closed forms and rules against brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from onegrad.gaussian.convex_losses import NAMES, OF_SIGNS, loss_of
from onegrad.theory.readout.calibration import calibration_error, misclassified
from onegrad.theory.readout.moments import LabelLaw, logistic_slope

Z = np.linspace(-8, 8, 801)
W = np.exp(-(Z**2) / 2) / np.exp(-(Z**2) / 2).sum()


def prox(loss, y, h, chi):
    """argmin ℓ(y, p) + (p − h)²/χ."""
    found = minimize_scalar(
        lambda p: float(loss.value(np.array(y), np.array(p))) + (p - h) ** 2 / chi,
        bracket=(h - 1, h + 1), tol=1e-12,
    )  # fmt: skip
    return found.x


def brute(loss, y, f, q, chi):
    h = f + np.sqrt(q) * Z
    p = np.array([prox(loss, y, one, chi) for one in h])
    rho = (p - h) / chi
    return [
        W @ rho, W @ rho**2, W @ loss.value(y, p), W @ (y - p) ** 2, W @ loss.value(y, h),
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_moments_are_those_of_the_proximal_step(name):
    loss, (y, f, q, chi) = loss_of(name, 0.4), (1.0, 0.3, 0.7, 1.9)
    law = LabelLaw(np.array([y]), np.zeros(1), True)
    found = law.moments(loss, np.array([f]), np.array([q]), np.array([chi]))
    expected = brute(loss, y, f, q, chi)
    np.testing.assert_allclose([float(x[0]) for x in found[1:]], expected, atol=2e-4)
    h = 1e-4  # D is −∂Eρ/∂f
    up, down = (
        law.moments(loss, np.array([f + s]), np.array([q]), np.array([chi])).mean for s in (h, -h)
    )
    assert float(found.slope[0]) == pytest.approx(float((down - up)[0]) / (2 * h), rel=1e-5)


def test_noise_counts_with_the_variance_and_flips_as_two_labels():
    f, q, chi = (np.array([v]) for v in (0.2, 0.5, 0.8))
    loss = loss_of("huber", 0.3)
    noisy = LabelLaw(np.array([0.6]), np.array([0.4]), False).moments(loss, f, q, chi)
    z, w = np.polynomial.hermite_e.hermegauss(80)
    parts = [
        LabelLaw(np.array([0.6 + np.sqrt(0.4) * one]), np.zeros(1), False).moments(loss, f, q, chi)
        for one in z
    ]
    for i, value in enumerate(noisy):
        mean = sum(a * part[i] for a, part in zip(w / w.sum(), parts, strict=True))
        np.testing.assert_allclose(value, mean, rtol=2e-3)
    flipped = LabelLaw(np.array([0.8]), np.array([0.36]), True).moments(loss, f, q, chi)
    up, down = (
        LabelLaw(np.array([s]), np.zeros(1), True).moments(loss, f, q, chi) for s in (1.0, -1.0)
    )
    np.testing.assert_allclose(flipped.square, 0.9 * up.square + 0.1 * down.square)


@pytest.mark.parametrize("chi", [1e-6, 1.0, 300.0, 1e5])
def test_the_logistic_step_at_any_response(chi):
    h = np.linspace(-300, 300, 301)
    rho = logistic_slope(h, np.array(chi))
    np.testing.assert_allclose(rho, 0.5 / (1 + np.exp(np.clip(h + chi * rho, -700, 700))),
                               atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("name", sorted({*NAMES} - {*OF_SIGNS} - {"huber"}))
def test_a_huge_response_leaves_no_training_loss(name):
    law = LabelLaw(np.array([1.0]), np.zeros(1), True)
    found = law.moments(loss_of(name), np.zeros(1), np.ones(1), np.array([1e9]))
    assert float(found.train_loss[0]) < 1e-6


@pytest.mark.parametrize(("size", "width"), [(1.0, 1.0), (8.0, 0.2)])
def test_signs_and_chances_of_gaussian_outputs(size, width):
    """Also of outputs whose whole law is in one bin, far from the others."""
    rng = np.random.default_rng(0)
    f, q = size * rng.normal(size=30), width**2 * rng.uniform(0.2, 2, 30)
    labels = rng.uniform(-1, 1, 30)
    weights = np.full(30, 1 / 30)
    h = f[:, None] + np.sqrt(q)[:, None] * Z
    share, plus = weights[:, None] * W, 0.5 * (1 + labels)[:, None]
    wrong = np.sum(share * np.where(h < 0, plus, 1 - plus))
    assert misclassified(weights, labels, f, q) == pytest.approx(wrong, abs=2e-3)
    fine = np.linspace(-8, 8, 40_001)
    w = np.exp(-(fine**2) / 2) / np.exp(-(fine**2) / 2).sum()
    p = 1 / (1 + np.exp(-(f[:, None] + np.sqrt(q)[:, None] * fine)))
    gaps = [np.sum(weights[:, None] * w * (p - plus) * ((p >= b / 10) & (p < (b + 1) / 10)))
            for b in range(10)]  # fmt: skip
    found = calibration_error(weights, labels, f, q)
    assert found == pytest.approx(np.abs(gaps).sum(), rel=1e-3)
