"""What features are beyond their Gaussian equivalent: the mean of a log determinant to order one.

E log det(λ + ΦᵀΦ/m) fluctuates so little that a few hundred draws know it to 0.03, a ten thousandth
of its size, and every term of order one can be seen.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onegrad.problem import Problem
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.nodes.population import data_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.fixed_point import solve_fixed_point
from onegrad.theory.size.cumulants import Cumulants, Local
from onegrad.theory.size.free_energy import FreeEnergy, Parameters, Resampling
from onegrad.theory.size.ratio import cumulants_of, with_lengths

RIDGE, DIM, SAMPLES, DRAWS = 0.1, 80, 120, 1200
SIGMAS = {"linear": "hermite(0, 1)", "parabola": "hermite(0, 1, 0.3)", "sin": "sin", "tanh": "tanh"}


def problem_of(activation: str) -> Problem:
    return Problem.from_spec({
        "data": {"model": "isotropic", "dim": DIM},
        "labels": {"model": "single-index", "link": "tanh"},
        "network": {"convention": "isotropic", "activation": activation, "width": DIM},
        "training": {"samples": SAMPLES, "ridge": RIDGE, "rate": 0.0},
    })  # fmt: skip


def measured(problem: Problem) -> tuple[float, float]:
    """Mean of log det(λ + ΦᵀΦ/m) over draws of data and weights, and its standard error."""
    rng, found = np.random.default_rng(3), []
    for _ in range(DRAWS):
        x = rng.standard_normal((SAMPLES, DIM))
        w = rng.standard_normal((DIM, DIM)) / math.sqrt(DIM)
        phi = problem.activation(x @ w.T)
        found.append(np.linalg.slogdet(RIDGE * np.eye(DIM) + phi.T @ phi / SAMPLES)[1])
    return float(np.mean(found)), float(np.std(found) / math.sqrt(DRAWS))


class Energy:
    """F of a problem, whole or without some of the terms."""

    def __init__(self, problem: Problem) -> None:
        geometry, level = geometry_of(problem), QuadratureLevel.at(1)
        neurons = trained_types(problem, geometry, level)
        where = data_nodes(problem, geometry, neurons.spread, level)
        self.features = with_lengths(problem, geometry, neurons, where)
        self.cumulants = cumulants_of(problem, geometry, neurons, where)

    def value(self, **without: Any) -> float:
        return self._of(replace(self.cumulants, **without))

    def gaussian(self) -> float:
        return self._of(None)

    def _of(self, cumulants: Cumulants | None) -> float:
        which = Resampling(np.zeros(len(self.features.weights)))
        energy = FreeEnergy.of(self.features, float(SAMPLES), which, cumulants)
        point, at = solve_fixed_point(energy.features, energy.samples, RIDGE), Parameters(RIDGE)
        return energy.value(*energy.stationary(*energy.start(point), at), at).real


@pytest.fixture(scope="module")
def energies() -> dict[str, tuple[Energy, float, float]]:
    problems = {name: problem_of(activation) for name, activation in SIGMAS.items()}
    return {name: (Energy(p), *measured(p)) for name, p in problems.items()}


@pytest.mark.parametrize("name", SIGMAS)
def test_the_log_determinant_to_order_one(energies: dict[str, Any], name: str) -> None:
    """Within 4 standard errors (0.03 each) and 0.1 of the next order, where it is −30 to −90."""
    energy, mean, error = energies[name]
    assert abs(energy.value() - mean) < 4 * error + 0.1


@pytest.mark.parametrize("name", ["linear", "tanh"])
def test_gaussian_equivalents_with_lengths_counted_twice_fail(
    energies: dict[str, Any], name: str
) -> None:
    energy, mean, error = energies[name]
    assert abs(energy.gaussian() - mean) > 4 * error + 0.1


def test_each_term_is_needed(energies: dict[str, Any]) -> None:
    """Negative controls: without the fourth cumulants, or without the lengths of the neurons."""
    energy, mean, error = energies["parabola"]
    whole = abs(energy.value() - mean)
    for without in (
        {"fourth": tuple(0 * part for part in energy.cumulants.fourth)},
        {"lengths": 0 * energy.cumulants.lengths},
    ):
        gap = abs(energy.value(**without) - mean)
        assert gap > whole + 0.15 and gap > 4 * error


def test_one_feature_with_tails() -> None:
    """k = 1: E log(λ + ‖φ‖²/m) has −½(2 + κ₄)/(m(1+λ)²), of which κ₄ is what is meant here."""
    z = np.zeros((1, 1))
    beyond = Cumulants((z, z, z), (z + 12.0, z, z, z), z, np.zeros(1), 50.0)
    weight, gain, samples = 1.0, 1 / (1 + RIDGE), 200.0
    local = Local(
        z, z, np.array([gain**2]), np.array([weight**2 / samples]), np.zeros(1), np.zeros(1),
        np.array([gain]), np.array([weight]),
    )  # fmt: skip
    assert beyond.energy(local).real == pytest.approx(-6.0 / (samples * (1 + RIDGE) ** 2))
