"""What is left at finite n, and the correction for the mean part's degrees of freedom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onegrad.simulation import simulate
from onegrad.theory.finite_size import mean_share
from onegrad.theory.fixed_point import solve_fixed_point

from . import dense_reference as dense
from .settings import conditional, orthogonal
from .test_fixed_point import RIDGE, some_features

# simulate(orthogonal(100, …), seeds=4000, risk="exact"): test and train error ± s.e.
SMALL_REFERENCE = {
    "relu": ((0.16631, 0.00043), (0.00629, 0.00004)),
    "tanh": ((0.23346, 0.00054), (0.01182, 0.00006)),
    "sigmoid": ((0.07319, 0.00012), (0.01704, 0.00006)),
}


@pytest.mark.parametrize("activation", list(SMALL_REFERENCE))
def test_finite_size_correction_as_documented(activation: str) -> None:
    """It takes away most of the gap of the test error; it lowers the training error too far."""
    (test, _), (train, train_error) = SMALL_REFERENCE[activation]
    problem, large = orthogonal(100, activation), orthogonal(100_000, activation)
    without, corrected = (conditional(problem, finite_size=on) for on in (False, True))
    assert abs(corrected.test_error - test) < 0.5 * abs(without.test_error - test)
    assert corrected.train_error < train - 4 * train_error
    without, corrected = (conditional(large, finite_size=on) for on in (False, True))
    assert corrected.test_error == pytest.approx(without.test_error, rel=1e-4)


@pytest.mark.slow
def test_difference_shrinks_like_one_over_n() -> None:
    """Relative difference of the test error ≈ c/n: the slope of a weighted log–log fit is −1."""
    sizes, gaps, errors, corrected = np.array([50, 100, 200]), [], [], []
    for n, seeds in zip(sizes, (1500, 1000, 600), strict=True):
        problem = orthogonal(int(n))
        measured = simulate(problem, seeds=seeds, rng=11, risk="exact").test_error
        plain = conditional(problem, accuracy=0.002)
        finite = conditional(problem, accuracy=0.002, finite_size=True)
        gaps.append(1 - plain.test_error / measured.mean)
        errors.append(measured.standard_error / measured.mean / gaps[-1])
        corrected.append(1 - finite.test_error / measured.mean)
    design = np.column_stack([np.ones(3), np.log(sizes)]) / np.array(errors)[:, None]
    covariance = np.linalg.inv(design.T @ design)
    slope = float(covariance[1] @ design.T @ (np.log(gaps) / errors))
    error = float(np.sqrt(covariance[1, 1]))
    assert error < 0.2
    assert abs(slope + 1) <= 4 * error
    assert np.all(np.abs(corrected) < 0.6 * np.array(gaps))


@pytest.mark.parametrize("tilt", [False, True])
def test_mean_share_is_the_gradient_of_a_volume(tilt: bool) -> None:
    """What the finite-size correction adds to X_s is ∂/∂w_s log det(I + WN)."""
    features = some_features(tilt)
    u, v = features.factors
    features = replace(features, slope=u @ v.T / features.bulk[:, None])
    point = solve_fixed_point(features, 180, RIDGE, tolerance=1e-13)
    w = features.weights / (1 + point.chi)
    share = mean_share(features, point.gain, w, features.mean, features.extra, features.factors[1])
    for node in (0, 17, 40):
        step = 1e-2 * w[node] * (np.arange(len(w)) == node)
        at = [dense.mean_volume(features, RIDGE, w + x * step) for x in (-2, -1, 1, 2)]
        slope = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step[node])
        assert share[node] == pytest.approx(slope, rel=1e-6)
