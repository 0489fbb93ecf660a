"""The largest of several outputs on a given first layer: their joint law at nodes of its own.

Outputs share χ_s and M of the layer (docs/book/any-first-layer.md). Given κ they are N(f_s, Q_s),
and variances are quadratic in the labels: Q^{cc'} = ½[q(y_c + y_c') − q(y_c) − q(y_c')].
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.layers.given import GivenLayer
from onegrad.theory.layers.matrix_responses import NodeSolution, Quadratics, solve_nodes
from onegrad.theory.layers.rules import SCATTERED, common, quadratics, rule_of
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.readout.classes import with_values, wrong_class

_LEVEL = replace(SCATTERED, most=600)  # level of the rule for κ
_POINTS = 512  # quasi-random ones of each class


def wrong_class_on(problem: Problem, layer: GivenLayer) -> float:
    """P(argmax_c f_c(x) ≠ class of x) of the squared loss, by quasi-random points: products of
    rules along many axes are cut short, and it was 4 to 13 % too high with them
    (eq. largest-output).

    Each of K(K + 1)/2 labels costs the conjugate gradients of `solve_nodes`.
    """
    count = problem.outputs
    classes = with_values(problem, range(count))  # the label of a node is then its class
    rule = rule_of(classes, layer, _LEVEL)
    chi = common(classes, rule)[1]
    where = quasi_nodes(layer.geometry, _POINTS, layer.geometry.rank, _LEVEL)
    looked, noise = quadratics(classes, layer, where), problem.label_noise_variance
    unit, solved = np.eye(count), dict[tuple[int, ...], tuple[Array, Array]]()
    like: NodeSolution | None = None
    for size in (1, 2):
        for group in itertools.combinations(range(count), size):
            labels = unit[list(group)].sum(axis=0)[rule.y.astype(int)]
            own = Quadratics(
                rule.couplings, rule.blocks, rule.weights, labels, size * noise, rule.squares
            )
            like = solve_nodes(own, problem.samples, problem.effective_ridge, chi, like=like)
            solved[group] = like.at(looked, problem.samples)
    covariance = np.empty((len(looked), count, count))
    for i, j in itertools.product(range(count), repeat=2):
        if i == j:
            covariance[:, i, i] = solved[(i,)][1]
        else:
            both = solved[(min(i, j), max(i, j))][1]
            covariance[:, i, j] = 0.5 * (both - solved[(i,)][1] - solved[(j,)][1])
    prediction = np.stack([solved[(c,)][0] for c in range(count)], axis=1)
    return wrong_class(prediction, covariance, looked.y.astype(int), looked.weights)
