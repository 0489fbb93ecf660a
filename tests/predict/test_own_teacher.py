"""Readouts on a given layer for a teacher of one's own: against ridge regressions by hand."""

import numpy as np
import pytest

import onegrad as og

N, K, M = 40, 30, 90
U, V = np.linalg.qr(np.random.default_rng(5).standard_normal((N, 2)))[0].T
PROBLEM = og.Problem(
    data=og.Isotropic(dim=N),
    labels=og.SingleIndex(link="tanh"),
    network=og.Network(width=K, activation="relu", convention="mixture"),
    training=og.Training(samples=M, ridge=1e-3, rate=0.0),
)
WEIGHTS = np.random.default_rng(1).standard_normal((K, N)) / np.sqrt(N) + np.outer(np.ones(K), U)


def two(x):
    return np.tanh(x @ U) + 0.5 * (x @ U) * (x @ V)


def by_hand(teacher, repetitions=200):
    """Mean test error and its standard error."""
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(repetitions):
        x, fresh = rng.standard_normal((M, N)), rng.standard_normal((2000, N))
        phi = np.maximum(x @ WEIGHTS.T, 0)
        gram = phi.T @ phi / M + PROBLEM.effective_ridge * np.eye(K)
        a = np.linalg.solve(gram, phi.T @ teacher(x) / M)
        errors.append(np.mean((teacher(fresh) - np.maximum(fresh @ WEIGHTS.T, 0) @ a) ** 2))
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(repetitions)


def test_a_function_of_two_projections():
    mean, error = by_hand(two)
    found = og.predict_readout(WEIGHTS, PROBLEM, teacher=two)
    assert abs(found.test_error - mean) < 4 * error + found.error_estimate * mean


def test_a_direction_goes_through_the_problems_link():
    of_direction = og.predict_readout(WEIGHTS, PROBLEM, teacher=U)
    of_function = og.predict_readout(WEIGHTS, PROBLEM, teacher=lambda x: np.tanh(x @ U))
    mean, error = by_hand(lambda x: np.tanh(x @ U))
    for found in (of_direction, of_function):  # the features of few neurons are drawn
        assert abs(found.test_error - mean) < 4 * error + 0.01 * mean


def test_what_is_no_such_function_is_refused():
    for teacher in (lambda x: np.sin(x).sum(axis=1), lambda x: np.sign(x @ U), np.ones(3)):
        with pytest.raises(og.SpecError, match="teacher"):
            og.predict_readout(WEIGHTS, PROBLEM, teacher=teacher)
