"""A neuron's own share of the initial output: against networks, and against a plain mean."""

from __future__ import annotations

import numpy as np
import pytest

from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.own_output import own_moments

# mean of 240 networks with its standard error: test, train
NETWORK = ((0.4804, 0.0024), (0.2435, 0.0012))


def quadratic() -> Problem:
    """Three components with a strong spike each, labels by component, an even activation."""
    return Problem.from_spec({
        "data": {"model": "mixture", "dim": 201, "rank": 1, "weights": [0.243, 0.289, 0.468],
                 "directions": "orthogonal", "spread": 22.5},
        "labels": {"model": "component", "values": [0.624, 0.49, -0.671]},
        "network": {"convention": "isotropic", "activation": "hermite(0.0422, 0, 0.847)",
                    "width": 54},
        "training": {"samples": 191, "ridge": 0.000992, "step_samples": 329, "rate": 0.142},
    })  # fmt: skip


def beyond(problem: Problem) -> list[float]:
    """Relative deviations of test and training error from networks, less 4 standard errors."""
    found = predict(problem, "conditional")  # where `auto` draws first layers
    pairs = zip((found.test_error, found.train_error), NETWORK, strict=True)
    return [(abs(value - mean) - 4 * error) / mean for value, (mean, error) in pairs]


def test_networks_of_an_even_activation() -> None:
    assert max(beyond(quadratic())) < 0.005


def test_labels_with_a_mean() -> None:
    """Lengths after the step, whose noise knows E[ūψσ'²]: 24 networks, and without it −7 %."""
    problem = Problem.from_spec({
        "data": {"model": "isotropic", "dim": 542},
        "labels": {"model": "single-index", "link": "sigmoid", "noise": 0.0529},
        "network": {"convention": "isotropic", "activation": "hermite(0.0372, 0, 0.441)",
                    "width": 103},
        "training": {"samples": 564, "ridge": 0.0248, "step_samples": 609},
        "scaling": {"exponent": 0.336, "constant": 0.569},
    })  # fmt: skip
    assert predict(problem, "conditional").test_error == pytest.approx(0.10662, abs=4 * 0.00054)


def test_the_push_is_a_mean_over_samples() -> None:
    """E[ψσ'x] of one neuron by plain sampling, ψ = σ(p) − ν̄-free linear part at that κ."""
    problem = quadratic()
    geometry, rng = geometry_of(problem), np.random.default_rng(0)
    r, variance = geometry.rank, problem.weight_variance
    start, bulk = rng.normal(size=(1, r + 1)) * np.sqrt(variance), np.array([0.95])
    found = own_moments(problem, geometry, start, bulk)
    count, sums = 400_000, np.zeros(r + 1)
    for c, share in enumerate(geometry.weights):
        kappa = geometry.means[c] + rng.normal(size=(count, r)) @ geometry.roots[c]
        rest = rng.normal(size=count)
        scale = np.sqrt(bulk[0] ** 2 + start[0, -1] ** 2)
        p = kappa @ start[0, :r] + scale * rest
        sigma = problem.activation  # an even one: d̄ = 0
        own = sigma(p) * sigma.derivative(p)
        sums += share * np.append((own[:, None] * kappa).mean(axis=0), (own * rest).mean() / scale)
    expected = np.append(found.push[0], found.stretch[0])
    assert sums == pytest.approx(expected, rel=0.1, abs=0.1 * np.abs(expected).max())
