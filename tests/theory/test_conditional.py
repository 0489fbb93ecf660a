"""The conditional theory in its limits, at extremes, and where it fails."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from onegrad.errors import AssumptionError, SpecError
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.step import label_power
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task

from .settings import COMPONENT, conditional, mixture

# --- limits -------------------------------------------------------------------------------


def isotropic_problem(dim: int, activation: str, **training: Any) -> Problem:
    """k = 0.85 n, m = 1.25 n."""
    return Problem(
        data={"model": "isotropic", "dim": dim},
        labels={"link": "hermite(0, 1, 0.5, 0.2)", "noise": 0.3},
        network={
            "activation": activation, "width": round(0.85 * dim), "convention": "isotropic",
        },
        training={"samples": round(1.25 * dim), "ridge": 0.05, **training},
    )  # fmt: skip


@pytest.mark.parametrize("activation", ["tanh", "relu", "erf"])
@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
@pytest.mark.parametrize("rate", [0.0, 1.0, 4.78])
def test_isotropic_closed_forms_are_contained(activation: str, gradient: str, rate: float) -> None:
    problem = isotropic_problem(2000, activation, gradient=gradient, rate=rate)
    ours, closed = conditional(problem), predict(problem, method="isotropic")
    tolerance = 0.002 if rate <= 1 else 0.01  # the closed form expands in powers of the step
    assert ours.train_error == pytest.approx(closed.train_error, rel=tolerance)
    assert ours.test_error == pytest.approx(closed.test_error, rel=tolerance)


# train error, mean over 200 seeds (80 for dim 1000) of simulate with gradient = "labels-only",
# corrected by linear regression for the chance fluctuation of mean y² in both samples
ISOTROPIC = [
    (500, "relu", 0.35, (0.43644, 0.00262)),
    (500, "relu", 0.29, (0.44882, 0.00265)),
    (500, "tanh", 0.35, (0.48449, 0.00266)),
    (1000, "relu", 0.35, (0.44150, 0.00287)),
]


@pytest.mark.parametrize(("dim", "activation", "exponent", "train"), ISOTROPIC)
def test_larger_steps_on_isotropic_data(
    dim: int, activation: str, exponent: float, train: tuple[float, float]
) -> None:
    """The two theories agree in the test error; in the training error this one is right: the closed
    form keeps the slopes of the features as they are before the step."""
    rate = round(1.25 * dim) ** exponent
    problem = isotropic_problem(dim, activation, gradient="labels-only", rate=rate)
    ours, closed = conditional(problem, accuracy=0.003), predict(problem, method="isotropic")
    assert closed.test_error == pytest.approx(ours.test_error, rel=0.02)
    mean, standard_error = train
    assert abs(ours.train_error - mean) <= 4 * standard_error
    assert abs(closed.train_error - mean) > 4 * standard_error


def test_splitting_a_component_changes_nothing() -> None:
    two, three = mixture(), mixture(weights=(0.5, 0.2, 0.3))
    task = Task.of(two)
    whole = task.geometry
    split = Geometry(
        whole.dim,
        np.array([0.5, 0.2, 0.3]),
        whole.means[[0, 1, 1]],
        whole.covariances[[0, 1, 1]],
        whole.teacher,
    )
    one, other = predict_mixture(task), predict_mixture(Task(three, split))
    # components share a budget of nodes, so that three have other rules than two
    assert other.test_error == pytest.approx(one.test_error, rel=1e-3)


# --- extremes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"ridge": 1e-7},
        {"ridge": 1e-7, "activation": "tanh"},
        {"ridge": 1e-9, "ratio": 2.0},
        {"ridge": 10.0},
        {"ratio": 0.01},
        {"ratio": 100.0},
        {"strength": 0.0, "weighting": 0.0},
        {"rate": 0.0},
        {"weights": (1.0,)},
        {"weights": (0.0, 1.0)},
        {"activation": "erf", "labels": {"link": "tanh"}},
        {"activation": "identity"},
        {"rank": 0},
        {"n": 100_000},
    ],
)
def test_extremes_are_finite_and_ordered(changes: dict[str, Any]) -> None:
    solution = conditional(mixture(**changes))
    assert solution.status == "ok"
    assert 0 < solution.train_error < solution.train_objective
    assert solution.train_error < solution.test_error
    assert np.isfinite(solution.test_error)


def test_large_ridge_predicts_nothing() -> None:
    task = Task.of(mixture(ridge=1e6))
    solution, power = predict_mixture(task), label_power(task.problem, task.geometry)
    assert solution.test_error == pytest.approx(power, rel=1e-3)
    assert solution.train_error == pytest.approx(power, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_labels(value: float) -> None:
    """A constant is learned by an uncentred activation; zero labels give zero error."""
    solution = conditional(mixture(labels=COMPONENT | {"values": (value, value)}))
    assert 0 <= solution.test_error <= 0.01 * value


def test_interpolation_fails_with_a_reason() -> None:
    """k = m and almost no ridge: one training set says nothing about the next."""
    task = Task.of(mixture(ridge=1e-9))
    with pytest.raises(AssumptionError, match=r"leave 4\.\d degrees of freedom"):
        predict_mixture(task)
    (solution,) = solve_tasks([task], QuadratureLevel.at(0))
    assert isinstance(solution, Solution)
    assert solution.degrees_left < 10 and solution.test_error > 1
    for ratio in (0.3, 3):
        assert conditional(mixture(ridge=1e-9, ratio=ratio)).degrees_left > 400


def test_failures_say_what_to_do() -> None:
    with pytest.raises(SpecError, match="ridge"):
        mixture(ridge=0.0)
    with pytest.raises(SpecError, match="accuracy"):
        conditional(mixture(), accuracy=0.0)


def test_more_directions_than_can_be_resolved_are_refused_at_once() -> None:
    problem = Problem(
        data={"model": "mixture", "dim": 200, "rank": 20, "weights": [0.14, 0.29, 0.29, 0.28],
              "alignment": 0.9, "spread": 57.0, "directions": "fixed"},
        labels={"model": "component", "values": [-1.0, -2.0, 0.0, 0.4]},
        network={"activation": "hermite(0, 0, 1)", "width": 260, "convention": "isotropic"},
        training={"samples": 194, "ridge": 2e-4, "rate": 3.0},
    )  # fmt: skip
    start = time.process_time()
    with pytest.raises(AssumptionError, match=r"80 special directions .* resolves 60\. "):
        predict_mixture(Task.of(problem))
    assert time.process_time() - start < 1.0  # nothing was solved
