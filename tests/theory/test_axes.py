"""Every axis has an order of its own, and the error estimate knows when one of them is too low."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import onegrad as og
from onegrad.problem import Problem
from onegrad.theory.neurons import step
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Solution, Task

from .settings import COMPONENT, conditional, mixture, orthogonal


def isotropic(
    dim: int, activation: str, link: str, ratios: tuple[float, float], **training: Any
) -> Problem:
    """`ratios` are φ = n/m and ψ = n/k."""
    return Problem(
        data={"model": "isotropic", "dim": dim},
        labels={"link": link, "noise": 0.2},
        network={
            "activation": activation, "width": round(dim / ratios[1]), "convention": "isotropic",
        },
        training={"samples": round(dim / ratios[0]), **training},
    )  # fmt: skip


# --- labels -------------------------------------------------------------------------------

GRID = list(itertools.product([0.5, 1.0, 2.0], [0.5, 1.0, 2.0, 4.0], [1e-3, 1e-2, 0.1, 1.0]))


def furthest_from_closed_form(link: str, activation: str) -> float:
    """Over the 48 points of (φ, ψ, λ) without a step, where the closed form is exact."""
    problems = [
        isotropic(20_000, activation, link, (phi, psi), ridge=ridge, rate=0.0)
        for phi, psi, ridge in GRID
    ]
    ours = og.predict_curve(problems, "conditional")
    closed = og.predict_curve(problems, "isotropic", accuracy=0.05)  # no check by the former
    gaps = []
    for one, other in zip(ours, closed, strict=True):
        assert one.status == "ok"
        gaps += [one.test_error / other.test_error - 1, one.train_error / other.train_error - 1]
    return max(map(abs, gaps))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("link", ["relu", "tanh", "erf", "hermite(0, 1, 0.5, 0.2)"])
def test_without_a_step_the_closed_form_is_contained(link: str, activation: str) -> None:
    assert furthest_from_closed_form(link, activation) < 1e-3


# --- the estimate covers the error --------------------------------------------------------

STRONG = isotropic(255, "relu", "sigmoid", (0.5, 5 / 3), ridge=0.08, rate=12.9)
SMOOTH = isotropic(400, "relu", "tanh", (0.5, 1.0), ridge=0.02, rate=1.0, gradient="labels-only")
SPIKED = orthogonal(300, "relu", rate=60.0, strength=0.6, weighting=0.1)
EVEN = orthogonal(300, "hermite(0, 0, 1)", labels=COMPONENT, rate=90.0, ratio=0.5, ridge=1e-3)


def solved(problem: Problem, number: int) -> Solution:
    (found,) = solve_tasks([Task.of(problem)], QuadratureLevel.at(number))
    assert isinstance(found, Solution)
    return found


def apart(one: Solution, other: Solution) -> float:
    pairs = (one.test_error, other.test_error), (one.train_error, other.train_error)
    return max(abs(a / b - 1) for a, b in pairs)


@pytest.mark.parametrize("problem", [STRONG, SMOOTH, SPIKED])
def test_the_estimate_covers_the_error_of_the_quadrature(problem: Problem) -> None:
    found, exact = conditional(problem, finite_size=False), solved(problem, 3)
    assert found.status == "ok" and apart(found, exact) <= found.error_estimate


# --- the step is not dropped --------------------------------------------------------------


def test_the_readout_has_more_than_two_nodes_where_the_second_spike_counts() -> None:
    """relu, η = n^0.3 at d = 30,000: with ±1 alone a² is constant and (X̃β)² is not learned."""
    problem = Problem(
        data={"model": "isotropic", "dim": 30_000},
        labels={"link": "hermite(0, 1, 0.5, 0.2)"},
        network={"activation": "relu", "width": 30_000, "convention": "isotropic"},
        training={"samples": 40_000, "ridge": 0.01, "gradient": "labels-only"},
        scaling={"exponent": 0.3, "constant": 2.0},
    )
    found, exact = conditional(problem, finite_size=False), solved(problem, 3)
    assert apart(found, exact) < 1e-3


def test_an_even_activation_is_moved_though_its_push_at_the_origin_vanishes() -> None:
    geometry = Task.of(EVEN).geometry
    sample = step.step_sample(EVEN, geometry, QuadratureLevel.at(0), False)
    moved = step.step_importance(EVEN, geometry, sample, 1.0)
    assert moved > 1e-4
    still = orthogonal(300, "hermite(0, 0, 1)", labels=COMPONENT, rate=0.0, ratio=0.5, ridge=1e-3)
    assert conditional(EVEN, accuracy=0.005).test_error < 0.97 * conditional(still).test_error


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_no_kink_in_the_rate(activation: str) -> None:
    """What the thresholds decide about is too small to be seen in a curve."""
    rates = [0.02 * 1.6**j for j in range(9)]
    problems = [
        isotropic(500, activation, "relu", (0.5, 1.0), ridge=0.02, rate=rate) for rate in rates
    ]
    found = [p.test_error for p in og.predict_curve(problems)]
    bends = [abs(a - 2 * b + c) for a, b, c in zip(found, found[1:], found[2:], strict=False)]
    for before, after in itertools.pairwise(bends[:7]):  # as the rate squared: 1.6² at each point
        assert 1.6 <= after / before <= 4.0
    assert conditional(mixture(rate=1e-6)).test_error == pytest.approx(
        conditional(mixture(rate=0.0)).test_error, rel=1e-4
    )
