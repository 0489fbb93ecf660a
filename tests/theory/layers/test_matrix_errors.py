"""Errors with one response for all nodes and with their own: identities, and ridge regressions."""

import numpy as np
import pytest

from onegrad.theory.layers.matrix_errors import common_errors
from onegrad.theory.layers.matrix_responses import solve_nodes
from tests.theory.spiked_nodes import conditioned, spiked_nodes


@pytest.mark.parametrize("width, samples, ridge", [(30, 60, 0.01), (60, 40, 1e-3), (25, 25, 0.3)])
def test_training_error_is_the_derivative_of_the_objective(width, samples, ridge):
    """train = L − λ dL/dλ, whichever way χ is taken: L is a minimum over the readout."""
    nodes = spiked_nodes(300, label_noise=0.2)
    layer, _ = conditioned(nodes, width=width)
    rows = np.arange(len(nodes))
    moments, q = layer.moments(rows), layer.rule(rows)

    def common(level):
        return common_errors(moments, samples, level)[0]

    def own(level):
        chi = common_errors(moments, samples, level)[1]
        return solve_nodes(q, samples, level, chi, tolerance=1e-10).errors

    h = 1e-4
    for errors in (common, own):
        up, down = errors(ridge * (1 + h)), errors(ridge * (1 - h))
        slope = (up.train_objective - down.train_objective) / (2 * h)
        at = errors(ridge)
        assert at.train_objective - slope == pytest.approx(at.train_error, rel=1e-5)
        assert at.train_error < at.test_error and at.train_error < at.train_objective


def test_equal_nodes_have_equal_responses():
    """One node many times: χ_s is the common χ, and so are the errors."""
    layer, _ = conditioned(spiked_nodes(400), width=20)
    rows = np.zeros(50, dtype=int)
    moments = layer.moments(rows)
    plain, chi = common_errors(moments, 30, 0.05)
    own = solve_nodes(layer.rule(rows), 30, 0.05, chi, tolerance=1e-11).errors
    np.testing.assert_allclose(own, plain, rtol=1e-8)


def test_ordinary_ridge_regression_of_gaussian_features():
    """Against ridge regressions themselves, with features that are Gaussian given the group."""
    nodes = spiked_nodes(4000)
    layer, weights = conditioned(nodes, "identity", width=30)
    moments = layer.moments()
    common, chi = common_errors(moments, 60, 0.02)
    own = solve_nodes(layer.rule(np.arange(4000)), 60, 0.02, chi).errors
    found = []
    for seed in range(200):
        train, test = (spiked_nodes(c, seed=1000 + 2 * seed + i) for i, c in ((0, 60), (1, 400)))
        phi, fresh = train.x @ weights.T, test.x @ weights.T
        a = np.linalg.solve(phi.T @ phi / 60 + 0.02 * np.eye(30), phi.T @ train.y / 60)
        found.append(
            (np.mean((test.y - fresh @ a) ** 2), np.mean((train.y - phi @ a) ** 2),
             np.mean((train.y - phi @ a) ** 2) + 0.02 * a @ a)
        )  # fmt: skip
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(200)
    # the finite-size term is of order 1/m = 1/60
    assert np.all(np.abs(own - mean) < 4 * error + mean / 60)
    assert np.all(np.abs(common - mean) < 4 * error + 3 * mean / 60)
    wrong, _ = common_errors(moments, 60, 0.2)  # negative control: the wrong ridge
    assert np.any(np.abs(wrong - mean) > 4 * error + 3 * mean / 60)
