"""Settings of the sources beside their figures': means placed freely, a teacher of Gaussian norm.

Theory against networks within four standard errors and its own error estimate, and a nearby
setting, which the same networks refute.
"""

from __future__ import annotations

import copy
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import onegrad as og
from onegrad.errors import SpecError

FREE: dict[str, Any] = {
    "data": {"model": "mixture", "dim": 200, "centres": [[2.0, 0.0], [-0.5, 1.5]]},
    "labels": {"model": "component"},
    "network": {"activation": "relu", "width": 250},
    "training": {"samples": 300, "ridge": 1e-3},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}
GAUSSIAN: dict[str, Any] = {
    "data": {"model": "isotropic", "dim": 60},
    "labels": {"link": "hermite(0, 0, 1)", "direction": "gaussian"},
    "network": {"activation": "relu", "width": 100},
    "training": {"samples": 150, "ridge": 1e-3},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}


def changed(tables: dict[str, Any], section: str, **keys: Any) -> dict[str, Any]:
    """The tables with other keys in a section; None leaves one out."""
    other = copy.deepcopy(tables)
    other[section] |= keys
    other[section] = {k: v for k, v in other[section].items() if v is not None}
    return other


@cache
def networks(which: str) -> og.Estimate:
    if which == "free":
        return og.simulate(FREE, seeds=120, rng=3).test_error
    return og.simulate(GAUSSIAN, seeds=300, rng=3, control_variates=True).test_error


@pytest.mark.parametrize(
    "which, wrong",
    [
        # antipodal means of the same lengths
        ("free", changed(FREE, "data", centres=[[2.0], [-math.hypot(0.5, 1.5)]])),
        ("gaussian", changed(GAUSSIAN, "labels", direction="random")),
    ],
)
def test_theory_agrees_with_networks_and_a_nearby_setting_does_not(which, wrong):
    mean, error = networks(which)
    own = og.predict({"free": FREE, "gaussian": GAUSSIAN}[which])
    assert abs(own.test_error - mean) < 4 * error + own.error_estimate * mean
    assert abs(own.test_error - mean) < 0.015 * mean
    other = og.predict(wrong)
    assert abs(other.test_error - mean) > 4 * error
    assert abs(other.test_error - mean) > 2 * abs(own.test_error - mean)


def test_means_are_where_they_were_placed():
    for directions in ("random", "orthogonal", "fixed"):
        problem = og.Problem.from_spec(changed(FREE, "data", directions=directions))
        means = problem.instance(0).population.means
        wanted = np.array(FREE["data"]["centres"])
        np.testing.assert_allclose(means @ means.T, wanted @ wanted.T, atol=1e-12)
    three = changed(FREE, "data", centres=[[1.0], [0.0], [-2.0]], weights=[0.2, 0.3, 0.5])
    means = og.Problem.from_spec(three).instance(1).population.means
    assert np.linalg.norm(means, axis=1) == pytest.approx([1, 0, 2])


def test_antipodal_means_may_be_written_either_way():
    """Two ways to say the same law: theory at typical and at drawn overlaps."""
    one = og.predict(changed(FREE, "data", centres=[[1.5], [-1.5]]))
    other = og.predict(changed(FREE, "data", centres=None, mean=1.5))
    assert one.test_error == pytest.approx(other.test_error, rel=2e-3)


def test_the_norm_of_a_gaussian_teacher_is_drawn_with_it():
    problem = og.Problem.from_spec(GAUSSIAN)
    unit = og.Problem.from_spec(changed(GAUSSIAN, "labels", direction="random"))
    norms = []
    for seed in range(200):
        drawn = problem.instance(seed).teacher.direction
        norms.append(np.linalg.norm(drawn))
        plain = unit.instance(seed).teacher.direction
        np.testing.assert_allclose(drawn / norms[-1], plain, atol=1e-12)
    squares = np.square(norms)
    assert abs(squares.mean() - 1) < 4 * math.sqrt(2 / 60 / 200)
    assert squares.std() == pytest.approx(math.sqrt(2 / 60), rel=0.2)
    first = og.predict(problem, overlaps="drawn").label_variance
    assert first == pytest.approx(problem.instance(0).label_variance, rel=1e-6)


@pytest.mark.parametrize(
    "tables, message",
    [
        (changed(FREE, "data", mean=1.0), "data.mean"),
        (changed(FREE, "data", centres=[[1.0]]), "one row per component"),
        (changed(FREE, "data", centres=[[1.0], [1.0, 2.0]]), "equal length"),
        (changed(FREE, "data", centres=[[], []]), "at least one"),
        (changed(GAUSSIAN, "labels", direction="gauss"), "gaussian"),
        (
            changed(FREE, "labels", model="single-index", direction="gaussian", cosine=0.5),
            "labels.cosine",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tables, message):
    with pytest.raises(SpecError, match=message):
        og.Problem.from_spec(tables)
