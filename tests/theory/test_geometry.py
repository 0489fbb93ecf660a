"""The few special directions: typical overlaps against drawn ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onegrad.data.arrays import Arrays
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixture
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.task import Task
from tests.theory.settings import typical_geometry

from .settings import conditional, mixture, orthogonal, plain_instance


def test_typical_overlaps_match_drawn_ones() -> None:
    rng, problem, errors = np.random.default_rng(5), mixture(), []
    for _ in range(40):
        _, geometry = plain_instance(problem, rng)
        errors.append(predict_mixture(Task(problem, geometry)).test_error)
    typical = conditional(problem).test_error
    error = np.std(errors, ddof=1) / len(errors) ** 0.5
    assert abs(np.mean(errors) - typical) <= 4 * error + 0.005 * typical


@pytest.mark.parametrize("rank", [2, 5, 20])
def test_typical_overlaps_of_several_spikes(rank: int) -> None:
    """‖Σ̄‖, which sets the scale of the labels, as the mean over drawn spikes has it."""
    n, theta, rng = 800, 100.0, np.random.default_rng(1)
    drawn = []
    for _ in range(60):
        spikes = [np.linalg.qr(rng.standard_normal((n, rank)))[0] for _ in range(2)]
        cosine = np.linalg.svd(spikes[0].T @ spikes[1], compute_uv=False)[0]
        drawn.append(1 + 0.5 * theta * (1 + cosine))
    geometry = typical_geometry(n, (0.5, 0.5), ((theta,) * rank,) * 2)
    error = np.std(drawn, ddof=1) / math.sqrt(len(drawn))
    expected = 1 / float(geometry.teacher @ geometry.teacher)
    assert abs(np.mean(drawn) - expected) < 4 * error + 0.002 * expected
    coherent = 1 + 0.5 * theta * (1 + rank * math.sqrt(2 / (math.pi * n)))
    if rank == 20:  # as if all overlaps had one sign
        assert abs(np.mean(drawn) - coherent) > 0.1 * expected


def test_which_overlaps_a_problem_has() -> None:
    """Typical ones are shared between problems of the same geometry; a draw knows its basis."""
    typical, other = (geometry_of(mixture(ridge=ridge)) for ridge in (1e-3, 1e-2))
    assert typical is other and typical.basis is None
    assert geometry_of(mixture(), "drawn", 3).basis is not None
    drawn, again = geometry_of(orthogonal()), geometry_of(orthogonal(), "typical")
    assert drawn.basis is not None and again.basis is None
    for geometry in (drawn, again):  # all directions orthogonal: Σ̄ has the two spikes alone
        values = np.linalg.eigvalsh(geometry.mean_covariance)
        assert values[-2:] == pytest.approx([1 + 0.5 * mixture().spread] * 2)


def test_failures_say_what_to_do() -> None:
    with pytest.raises(AssumptionError, match="more dimensions"):
        typical_geometry(5, (0.5, 0.5), ((1.0,) * 3,) * 2, chance=False)
    data = Arrays(x=np.eye(30, 3), y=np.ones(30))
    problem = Problem(data=data, network={"width": 5}, training={"samples": 10, "rate": 1.0})
    with pytest.raises(AssumptionError, match="known population"):
        geometry_of(problem)
