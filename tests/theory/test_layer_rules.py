"""Rules for κ on given first layers: where products of rules along the axes do not do."""

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Trial
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.layers import rules as layer_rules
from onegrad.theory.layers.given import given_layer
from onegrad.theory.layers.rules import Tried, apart, quasi_level, rules_tried
from onegrad.theory.nodes.designs import scattered
from onegrad.theory.nodes.rules import QuadratureLevel
from tests.agreement.first_layers import gaps, trained

# components that differ by eight spikes alone, told apart by parabolas
PARABOLAS = {
    "data": {"model": "mixture", "dim": 150, "rank": 4, "strengths": [1.5, 1.52, 1.57, 1.56],
             "alignment": 0.547, "spread": 24.0},
    "labels": {"model": "component"},
    "network": {"convention": "isotropic", "activation": "hermite(0.37, 0, 0.5)", "width": 130},
    "training": {"samples": 84, "ridge": 0.06, "rate": 0.0},
}  # fmt: skip
# few samples lie far out along one spike, and decide about the readout of a parabola
FAR_OUT = {
    "data": {"model": "mixture", "dim": 349, "directions": "fixed", "spread": 246.0,
             "ranks": [1, 0]},
    "labels": {"model": "single-index", "link": "relu", "noise": 0.4},
    "network": {"convention": "isotropic", "activation": "hermite(0.38, 0, 0.95)", "width": 227},
    "training": {"samples": 1000, "ridge": 0.22},
    "scaling": {"exponent": 0.35},
}  # fmt: skip


def test_scattered_points_keep_the_first_rule_and_are_even():
    z, w = gauss_hermite(5)
    nodes, weights = scattered((z[:, None], w), 3, 400)
    assert nodes.shape == (len(weights), 4) and 380 <= len(weights) <= 420
    for power in range(10):  # the rule's own moments, exactly
        assert weights @ nodes[:, 0] ** power == pytest.approx(w @ z**power, abs=1e-12)
    np.testing.assert_allclose(weights @ nodes[:, 1:], 0.0, atol=1e-12)
    np.testing.assert_allclose(weights @ (nodes[:, 1:] * nodes[:, :1]), 0.0, atol=1e-12)
    second = (nodes[:, 1:].T * weights) @ nodes[:, 1:]
    np.testing.assert_allclose(second, np.eye(3), atol=0.12)
    same, alone = scattered((z[:, None], w), 0, 400)
    assert np.array_equal(same[:, 0], z) and np.array_equal(alone, w)


def test_quasi_random_points_are_taken_where_products_of_rules_differ():
    p = Problem.from_spec(PARABOLAS)
    trial = Trial(p, Streams(3, 0))
    geometry = drawn_geometry(trial.instance.population, None)
    layer = given_layer(p.activation, geometry, trial.weights, np.zeros((p.dim, 0)))
    assert layer.geometry.rank < layer.special
    first = Tried(QuadratureLevel.at(1), *_errors(p, layer, QuadratureLevel.at(1)))
    tried = rules_tried(p, layer, first)
    fine = _errors(p, layer, quasi_level(3))[0]
    assert tried[-1].level.quasi
    assert apart(tried[-1].errors[:2], fine[:2]) < 0.015
    assert apart(first.errors[:2], fine[:2]) > 0.15  # a product of rules


def _errors(p, layer, level):
    return layer_rules.common(p, layer_rules.rule_of(p, layer, level, lengths=False))


def test_tails_count_where_responses_of_nodes_do():
    drawn = trained(Problem.from_spec(FAR_OUT), 0, 16)
    gap, se = gaps([drawn], [drawn.predicted()])
    assert np.all(np.abs(gap) <= 4 * se + 0.02), (gap, se)
