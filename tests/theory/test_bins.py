"""Many spikes of different strengths, in bins: against networks, and refused where bins matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.simulate.simulate import simulate
from onegrad.theory.bins import _bin_means, binned
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.layers.step import StepChance
from onegrad.theory.options import Theory
from onegrad.theory.overlaps import geometry_of
from onegrad.theory.policy import Policy
from onegrad.theory.task import Task


def unequal(strengths: np.ndarray, n: int = 300, **training: object) -> Problem:
    return Problem(
        data={"model": "mixture", "dim": n, "weights": [1.0], "rank": len(strengths),
              "strengths": strengths.tolist(), "directions": "orthogonal"},
        network={"activation": "tanh", "width": n},
        training={"samples": n, **training},
        scaling={"strength": 0.74, "weighting": 0.0},
    )  # fmt: skip


LINEAR = np.linspace(1.6, 0.4, 20)


def test_twenty_unequal_spikes_agree_with_the_network() -> None:
    """Negative control: |ξ| of the binned mixture instead of the actual one."""
    problem = unequal(LINEAR)
    rows = simulate(problem, seeds=24).results.rows
    measured = np.array([(row.test_error, row.train_error) for row in rows])
    error = measured.std(axis=0, ddof=1) / 24**0.5
    allowed = 4 * error + 4.4 / problem.dim * measured.mean(axis=0)
    found = predict(problem, "conditional")
    gap = np.abs(np.array([found.test_error, found.train_error]) - measured.mean(axis=0))
    assert np.all(gap <= allowed)
    assert found.solution is not None and found.solution.geometry.bins == 2
    assert 1e-4 < found.error_estimate < 0.02
    geometry = binned(geometry_of(problem))
    largest = float(np.linalg.eigvalsh(geometry.mean_covariance)[-1])
    scale = 1 / np.sqrt(largest) / np.linalg.norm(geometry.teacher)
    rescaled = replace(geometry, teacher=scale * geometry.teacher)
    wrong = predict_mixture(Task(problem, rescaled), Theory(accuracy=0.03))
    assert abs(wrong.test_error - measured[:, 0].mean()) > 2 * allowed[0]


def test_what_bins_change_is_stated_or_refused() -> None:
    """Two clusters of strengths, for which one bin is wrong."""
    strengths = np.concatenate([np.linspace(3.0, 2.5, 10), np.linspace(0.1, 0.05, 10)])
    problem = unequal(strengths, gradient="labels-only")
    assert 0.015 < predict(problem, "conditional").error_estimate < 0.05
    with pytest.raises(AssumptionError, match="one bin or two"):
        predict(problem, "conditional", policy=replace(Policy(), uncounted=0.01))


def test_degrees_of_freedom_of_many_directions_are_stated_or_refused() -> None:
    """Taken one by one; without the degrees of freedom of section 8 its test
    error is too low, by less than is said."""
    strengths = np.linspace(1.6, 0.4, 12)
    with pytest.raises(AssumptionError, match="degrees of freedom"):
        one_by_one = StepChance(np.zeros(13), np.zeros(13), 0)
        predict_mixture(replace(Task.of(unequal(strengths, 150)), chance=one_by_one))
    large = unequal(strengths, 1200)
    task = Task.of(large)
    assert task.geometry.single == 13
    groups = predict(large, "conditional", finite_size=False)
    ungrouped = replace(task, chance=StepChance(np.zeros(13), np.zeros(13), 0))
    alone = predict_mixture(ungrouped, Theory(finite_size=False))
    gap = alone.test_error / groups.test_error - 1
    assert -0.05 < gap < -0.005
    assert abs(gap) < alone.error_estimate < 0.05


def test_bins() -> None:
    strengths = np.array([0.1, 0.2, 3.0, 5.0])
    assert _bin_means(strengths, 2) == pytest.approx([0.15, 0.15, 4.0, 4.0])
    assert _bin_means(strengths, 1) == pytest.approx([2.075] * 4)
    geometry = geometry_of(unequal(LINEAR))
    one, two = (binned(geometry, bins) for bins in (1, 2))
    assert one.groups == (20,) and sorted(two.groups) == [10, 10]
    for simple in (one, two):
        assert np.linalg.norm(simple.teacher) == pytest.approx(np.linalg.norm(geometry.teacher))
        assert simple.special == geometry.special
