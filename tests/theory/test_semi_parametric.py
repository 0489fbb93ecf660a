"""The semi-parametric theory of given first layers and nodes."""

import numpy as np
import pytest

from onegrad.data.base import DataNodes
from onegrad.errors import AssumptionError
from onegrad.problem import Problem
from onegrad.theory.layers.matrix import DrawnLayer
from onegrad.theory.layers.semi_parametric import predict_from_layers
from onegrad.theory.options import Theory
from tests.theory.spiked_nodes import spiked_nodes

rng = np.random.default_rng


def test_too_few_samples_are_refused():
    nodes = spiked_nodes(12)
    layer = DrawnLayer(np.ones((3, 40)), np.zeros((40, 0)))
    problem = Problem(
        data={"model": "isotropic", "dim": 40}, network={"width": 3},
        training={"samples": 10, "rate": 1.0},
    )  # fmt: skip
    with pytest.raises(AssumptionError, match=r"at least 20 samples.*there are 12"):
        predict_from_layers(problem, lambda i: (layer, nodes))


def test_the_draws_are_as_many_as_are_asked_for():
    """One layer again and again: no scatter, and the mean is the first."""
    nodes = spiked_nodes(200)
    layer = DrawnLayer(rng(1).standard_normal((20, 40)) / 6, np.eye(40)[:, 5:6])
    problem = Problem(
        data={"model": "isotropic", "dim": 40}, network={"width": 20},
        training={"samples": 50, "rate": 1.0, "ridge": 1e-3},
    )  # fmt: skip
    seen = []

    def draw(i):
        seen.append(i)
        return layer, nodes

    found = predict_from_layers(problem, draw, draws=(5, 5))
    assert seen == [0, 1, 2, 3, 4] and found.draws == 5 and found.nodes == 200
    once = predict_from_layers(problem, draw, Theory(accuracy=0.03), draws=(1, 1))
    assert once.draws == 1 and 0 < once.errors.train_error < once.errors.test_error


def test_shapes_that_disagree():
    with pytest.raises(AssumptionError, match="disagree"):
        DataNodes(np.zeros((3, 2)), np.zeros(2), np.zeros(3, dtype=int))
