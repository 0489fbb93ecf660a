"""Var y from the law of the population: against samples, and the same from a drawn geometry."""

import numpy as np
import pytest

from onegrad.problem import Problem
from onegrad.theory.directions.geometry import variance_of_labels
from onegrad.theory.directions.overlaps import geometry_of

COMMON = {
    "network": {"width": 20}, "training": {"samples": 40},
    "scaling": {"strength": 0.8, "weighting": 0.1},
}  # fmt: skip
MIXTURE = {"model": "mixture", "dim": 60, "weights": [0.3, 0.7], "rank": 2, "mean": 1.5}
CASES = [
    ({"model": "isotropic", "dim": 60}, {"link": "relu", "noise": 0.3}),
    (MIXTURE, {"link": "tanh", "direction": "spikes"}),
    (MIXTURE, {"link": ["sigmoid", "hermite(0, 0, 1)"], "noise": 0.1}),
    (MIXTURE, {"model": "component", "values": [2.0, -1.0], "noise": 0.5}),
]


@pytest.mark.parametrize("data, labels", CASES)
def test_it_is_the_variance_of_many_samples(data, labels):
    problem = Problem.from_spec({"data": data, "labels": labels, **COMMON})
    instance = problem.instance(3)
    y = instance.sample(100_000, np.random.default_rng(0)).y
    fourth = np.mean((y - y.mean()) ** 4)
    error = np.sqrt((fourth - y.var() ** 2) / len(y))
    assert abs(y.var() - instance.label_variance) < 4 * error
    without = instance.label_variance - float(labels.get("noise", 0.0)) ** 2
    if labels.get("noise"):  # negative control
        assert abs(y.var() - without) > 4 * error


@pytest.mark.parametrize("data, labels", CASES)
def test_the_theory_has_the_same_of_the_same_directions(data, labels):
    problem = Problem.from_spec({"data": data, "labels": labels, **COMMON})
    drawn = geometry_of(problem, "drawn", 3)
    assert variance_of_labels(problem, drawn) == pytest.approx(
        problem.instance(3).label_variance, rel=1e-9
    )


def test_labels_of_one_value_have_none():
    labels = {"model": "component", "values": [1.0, 1.0]}
    problem = Problem.from_spec({"data": MIXTURE, "labels": labels, **COMMON})
    assert problem.instance(0).label_variance == 0.0
