"""What the step does by chance through the curvature of the neurons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import simulate
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.step_chance import quadratic_chance, stretch_variance
from onegrad.theory.policy import Policy


def even(n: int = 200, spread: float = 40.0, **others: Any) -> Problem:
    """One strong spike and a linear teacher, which an even activation cannot learn."""
    return Problem(
        data={"model": "mixture", "dim": n, "weights": [1.0], "spread": spread,
              "directions": "orthogonal"},
        labels={"model": "single-index", "link": "identity"},
        network={"convention": "isotropic", "activation": others.pop("activation",
                 "hermite(0, 0, 0.6)"), "width": 3 * n // 2},
        training={"samples": 2 * n, "ridge": 1.0, "rate": 2.0, **others},
    )  # fmt: skip


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
def test_stretch_of_trained_neurons(gradient: str) -> None:
    """The slope of v_i's change on a_iv_i, squared and times E a², against τ² of the spike alone.

    Negative control: the part of the samples alone is too small with the exact gradient.
    """
    problem = even(gradient=gradient)
    slopes = []
    for seed in range(80):
        trial = Trial(problem, Streams(seed, 0))
        geometry = geometry_of(problem, "drawn", seed)
        assert geometry.basis is not None
        spike = geometry.basis @ geometry.directions["spike 1.1"]
        before, after = trial.weights @ spike, trial.updated_weights @ spike
        x = trial.readout * before
        slopes.append(x @ (after - before) / (x @ x))
    measured = float(np.var(slopes, ddof=1)) * problem.readout_square
    expected = stretch_variance(problem, geometry_of(problem))
    error = np.sqrt(2 / 79)  # of a variance, relative; the teacher's axis adds next to nothing
    assert abs(measured / expected - 1) < 4 * error + 0.1
    if gradient == "exact":
        samples = even(gradient="labels-only")
        assert stretch_variance(samples, geometry_of(samples)) < expected / 3


def test_it_counts_for_curved_activations_along_strong_spikes_alone() -> None:
    strong, weak = even(), even(spread=2.0)
    assert quadratic_chance(strong, geometry_of(strong)) > 0.2
    assert quadratic_chance(weak, geometry_of(weak)) < 0.01
    for other in (even(activation="tanh"), even(rate=0.0)):
        assert quadratic_chance(other, geometry_of(other)) < 1e-6


def test_estimates_cover_it() -> None:
    """Types alone are far off and say so; without the bound they would not (negative control)."""
    problem = even()
    network = simulate(problem, seeds=24).test_error
    sure = 4 * network.standard_error / network.mean

    def off(method: str, policy: Policy = Policy()) -> tuple[float, float]:
        found = predict(problem, method, policy=policy)
        return abs(found.test_error / network.mean - 1) - sure, found.error_estimate

    deviation, estimate = off("conditional")
    assert 0.02 < deviation < estimate
    deviation, estimate = off("auto")  # which draws first layers instead
    assert deviation < min(0.02, estimate)
    deviation, estimate = off("conditional", Policy(stretch=math.inf))
    assert deviation > estimate
