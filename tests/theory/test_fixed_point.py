"""Identities inside the theory: exact up to rounding, no simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onegrad.activation import get_activation
from onegrad.errors import ConvergenceError
from onegrad.theory.features import data_nodes, features_at
from onegrad.theory.fixed_point import Features, mean_share, solve_fixed_point
from onegrad.theory.geometry import Labels, Training, typical_geometry
from onegrad.theory.neurons import pure_types
from onegrad.theory.nodes import Effort
from onegrad.theory.second_moments import Errors, errors

from . import dense_reference as dense

RIDGE = 0.02


def some_features(tilt: bool = False, activation: str = "relu", noise: float = 0.3) -> Features:
    geometry = typical_geometry(200, [0.3, 0.7], [[10.0], [5.0]])
    labels = Labels(links=(get_activation("relu"),) * 2, noise=noise)
    training = Training(
        get_activation(activation), 150, 180, 180, 12.0, RIDGE, 1 / geometry.mean_trace,
        150**-0.5, gradient="exact" if tilt else "labels-only",
    )  # fmt: skip
    effort = Effort.level(0)
    neurons = pure_types(geometry, labels, training, effort)
    where = data_nodes(geometry, labels, neurons, effort)
    return features_at(geometry, labels, training, neurons, where)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_low_rank_form_equals_dense_equations(activation: str) -> None:
    features = some_features(activation=activation)
    result = errors(solve_fixed_point(features, 180, RIDGE))
    train, test = dense.errors(features, 180, RIDGE)
    assert result.train_error == pytest.approx(train, rel=1e-7)
    assert result.test_error == pytest.approx(test, rel=1e-7)
    objective = dense.solve(features, 180, RIDGE)[2]
    assert result.train_objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("finite_size", [False, True])
@pytest.mark.parametrize("tilt", [False, True])
def test_train_error_is_the_ridge_derivative_of_the_objective(
    tilt: bool, finite_size: bool
) -> None:
    """L = train + λ‖a‖² at its minimum, so train = L − λ dL/dλ."""
    features = some_features(tilt)

    def solved(ridge: float) -> Errors:
        return errors(
            solve_fixed_point(features, 180, ridge, tolerance=1e-13, finite_size=finite_size)
        )

    def objective(ridge: float) -> float:
        return solved(ridge).train_objective

    step = 1e-3 * RIDGE
    slope = (
        8 * (objective(RIDGE + step) - objective(RIDGE - step))
        - (objective(RIDGE + 2 * step) - objective(RIDGE - 2 * step))
    ) / (12 * step)
    train = objective(RIDGE) - RIDGE * slope
    assert solved(RIDGE).train_error == pytest.approx(train, rel=1e-7)


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


@pytest.mark.parametrize("tilt", [False, True])
def test_variance_is_the_derivative_of_the_objective(tilt: bool) -> None:
    """q_s = dL/dτ when τ·(variance of the prediction at node s) is added to the objective."""
    features = some_features(tilt)
    u, v = features.factors  # the identity is exact for slopes of exactly this rank
    features = replace(features, slope=u @ v.T / features.bulk[:, None])
    result = errors(solve_fixed_point(features, 180, RIDGE, tolerance=1e-13))
    for node in (0, 17, 40):
        unit = np.zeros(len(features.weights))
        unit[node] = 1e-2 * features.weights[node]
        values = [dense.solve(features, 180, RIDGE, t * unit)[2] for t in (-2, -1, 1, 2)]
        slope = (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * unit[node])
        assert result.variance[node] == pytest.approx(slope, rel=1e-7)


def test_sums_over_nodes_are_the_errors() -> None:
    features = some_features()
    point = solve_fixed_point(features, 180, RIDGE)
    result = errors(point)
    assert result.test_error == pytest.approx(features.weights @ result.node_test)
    rest = features.noise + (features.labels - result.prediction) ** 2
    assert np.allclose(result.node_test, rest + result.variance)
    assert np.all(point.gain > 0) and np.all(point.chi > 0) and point.residual < 1e-10


def test_splitting_a_type_or_a_node_changes_nothing() -> None:
    features = some_features()
    double = replace(
        features,
        **{name: np.tile(getattr(features, name), (2, 2)) for name in ("mean", "slope", "extra")},
        **{name: np.tile(getattr(features, name), 2) for name in ("bulk", "labels", "noise")},
        counts=np.tile(features.counts / 2, 2),
        weights=np.tile(features.weights / 2, 2),
    )
    one = errors(solve_fixed_point(features, 180, RIDGE))
    two = errors(solve_fixed_point(double, 180, RIDGE))
    assert two.test_error == pytest.approx(one.test_error, rel=1e-8)
    assert two.train_error == pytest.approx(one.train_error, rel=1e-8)


def test_too_few_iterations_raise_with_advice() -> None:
    with pytest.raises(ConvergenceError, match="larger ridge"):
        solve_fixed_point(some_features(), 180, 1e-9, max_iterations=3)
