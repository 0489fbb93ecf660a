"""What was learned along a direction, and the errors at nodes of one's own choice."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.learned import learned_function
from onegrad.theory.nodes.population import Nodes
from onegrad.theory.resolution import errors_at
from onegrad.theory.task import Solution, Task

from .settings import conditional, mixture, plain_instance, plain_result


@pytest.fixture(scope="module")
def solved() -> Solution:
    return conditional(mixture(labels={"noise": 0.1}, weighting=0.0))


def test_components_add_up(solved: Solution) -> None:
    weights = solved.geometry.weights
    assert weights @ solved.component_test == pytest.approx(solved.test_error)
    assert weights @ solved.component_train == pytest.approx(solved.train_error)


def test_errors_at_own_nodes_are_the_solved_ones(solved: Solution) -> None:
    where = Nodes(solved.where.kappa.copy(), solved.where.component, solved.where.weights)
    prediction, variance = errors_at(solved, where)
    assert np.allclose(prediction, solved.by_node.prediction)
    assert np.allclose(variance, solved.by_node.variance, rtol=1e-5)


def test_learned_function_has_the_mean_of_the_prediction(solved: Solution) -> None:
    for name in ("teacher", "spike 1.1", "spike 2.1"):
        learned = learned_function(solved, name, component=1)
        mine = solved.where.component == 1
        w = solved.where.weights[mine] / solved.where.weights[mine].sum()
        mean = w @ solved.by_node.prediction[mine]
        assert learned.learned_coefficients[0] == pytest.approx(mean, rel=1e-2)
        assert learned.learned.shape == learned.t.shape == learned.position.shape


def test_unknown_directions_get_a_suggestion(solved: Solution) -> None:
    with pytest.raises(AssumptionError, match="Did you mean"):
        learned_function(solved, "techer")
    with pytest.raises(AssumptionError, match="component 2 does not exist"):
        learned_function(solved, component=2)


def test_learned_degrees_agree_with_the_network() -> None:
    """Hermite coefficients of E[f | ξᵀx] against a regression of f on H_0, H_1, H_2."""
    problem = Problem(
        data={"model": "mixture", "dim": 500, "spread": 10.0},
        network={"width": 500},
        training={"samples": 500, "rate": 200.0},
    )
    measured, expected = [], []
    for child in np.random.SeedSequence(9).spawn(6):
        rng = np.random.default_rng(child)
        instance, geometry = plain_instance(problem, rng)
        result = plain_result(problem, instance, rng, test_samples=8000)
        mine = result.test_component == 0
        t = result.test_projection[mine]
        t = (t - t.mean()) / t.std()
        table = np.stack([np.ones_like(t), t, t**2 - 1], axis=1)
        measured.append(np.linalg.lstsq(table, result.test_prediction[mine], rcond=None)[0])
        learned = learned_function(predict_mixture(Task(problem, geometry)), degree=2)
        expected.append(learned.learned_coefficients)
    gap = np.array(measured) - np.array(expected)
    error = gap.std(axis=0, ddof=1) / len(gap) ** 0.5
    allowed = 4 * error + 0.02 * np.abs(np.array(measured).mean(axis=0))
    assert np.all(np.abs(gap.mean(axis=0)) <= allowed)
