"""Identities inside the theory: exact up to rounding, no simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onegrad.errors import ConvergenceError
from onegrad.problem import Problem
from onegrad.theory.layers.features import NodeFeatures, features_at
from onegrad.theory.neurons.types import pure_types
from onegrad.theory.nodes.population import data_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.errors import NodeErrors, errors_of
from onegrad.theory.readout.fixed_point import solve_fixed_point
from tests.theory.settings import typical_geometry

from . import dense_reference as dense

RIDGE = 0.02


def some_features(
    tilt: bool = False,
    activation: str = "relu",
    rate: float = 12.0,
    level: QuadratureLevel = QuadratureLevel.at(0),
) -> NodeFeatures:
    """A spike in each of two components; with the initial output in the gradient, or without."""
    problem = Problem(
        data={"model": "mixture", "dim": 200, "weights": (0.3, 0.7), "spread": 10.0},
        labels={"noise": 0.3},
        network={"activation": activation, "width": 150, "convention": "isotropic"},
        training={
            "samples": 180, "rate": rate, "gradient": "exact" if tilt else "labels-only",
        },
    )  # fmt: skip
    geometry = typical_geometry(200, (0.3, 0.7), ((10.0,), (5.0,)))
    neurons = pure_types(problem, geometry, level)
    where = data_nodes(problem, geometry, neurons.spread, level)
    features = features_at(problem, geometry, neurons, where)
    assert (features.tilt is not None) == tilt
    return features


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_low_rank_form_equals_dense_equations(activation: str) -> None:
    features = some_features(activation=activation)
    result = errors_of(solve_fixed_point(features, 180, RIDGE))
    train, test = dense.errors(features, 180, RIDGE)
    assert result.train_error == pytest.approx(train, rel=1e-7)
    assert result.test_error == pytest.approx(test, rel=1e-7)
    objective = dense.solve(features, 180, RIDGE)[2]
    assert result.train_objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("tilt", [False, True])
def test_train_error_is_the_ridge_derivative_of_the_objective(tilt: bool) -> None:
    """L = train + λ‖a‖² at its minimum, so train = L − λ dL/dλ."""
    features = some_features(tilt)

    def solved(ridge: float) -> NodeErrors:
        return errors_of(solve_fixed_point(features, 180, ridge, tolerance=1e-13))

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
def test_variance_is_the_derivative_of_the_objective(tilt: bool) -> None:
    """q_s = dL/dτ when τ·(variance of the prediction at node s) is added to the objective."""
    features = some_features(tilt)
    u, v = features.factors  # the identity is exact for slopes of exactly this rank
    features = replace(features, slope=u @ v.T / features.bulk[:, None])
    result = errors_of(solve_fixed_point(features, 180, RIDGE, tolerance=1e-13))
    for node in (0, 17, 40):
        unit = np.zeros(len(features.weights))
        unit[node] = 1e-2 * features.weights[node]
        values = [dense.solve(features, 180, RIDGE, t * unit)[2] for t in (-2, -1, 1, 2)]
        slope = (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * unit[node])
        assert result.variance[node] == pytest.approx(slope, rel=1e-7)


def test_sums_over_nodes_are_the_errors() -> None:
    features = some_features()
    point = solve_fixed_point(features, 180, RIDGE)
    result = errors_of(point)
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
    one = errors_of(solve_fixed_point(features, 180, RIDGE))
    two = errors_of(solve_fixed_point(double, 180, RIDGE))
    assert two.test_error == pytest.approx(one.test_error, rel=1e-8)
    assert two.train_error == pytest.approx(one.train_error, rel=1e-8)


def test_too_few_iterations_raise_with_advice() -> None:
    with pytest.raises(ConvergenceError, match="larger ridge"):
        solve_fixed_point(some_features(), 180, 1e-9, max_iterations=3)


@pytest.mark.parametrize("tilt", [False, True])
def test_a_stack_equals_its_problems(tilt: bool) -> None:
    """With a tilt and without; slopes of different ranks share one stack."""
    ridges, samples = [0.3, 1e-2, 1e-4], [150, 400, 220]
    names, level = ("relu", "tanh", "identity"), QuadratureLevel.draft()
    parts = [some_features(tilt, name, rate=2.0, level=level) for name in names]
    assert len({one.factors[0].shape for one in parts}) > 1
    point = solve_fixed_point(NodeFeatures.stack(parts), np.array(samples, float), np.array(ridges))
    together = errors_of(point)
    for i, one in enumerate(parts):
        alone_point = solve_fixed_point(one, samples[i], ridges[i])
        alone = errors_of(alone_point)
        assert abs(point.iterations[i] - alone_point.iterations) <= 2
        assert np.allclose(point.take(i).gain, alone_point.gain, rtol=1e-9)
        mine = together.take(i)
        assert float(mine.test_error) == pytest.approx(float(alone.test_error), rel=1e-9)
        assert np.allclose(mine.variance, alone.variance, rtol=1e-8)
        assert np.allclose(mine.response.variance_at(one), alone.variance, rtol=1e-6, atol=1e-9)
