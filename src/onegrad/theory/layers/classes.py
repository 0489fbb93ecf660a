"""The largest of several outputs on a given first layer: their joint law at nodes of its own.

Outputs share χ_s and M of the layer (docs/book/any-first-layer.md).
"""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.layers.given import GivenLayer
from onegrad.theory.layers.matrix_responses import NodeSolution, solve_nodes
from onegrad.theory.layers.rules import SCATTERED, common, quadratics, rule_of
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.readout.classes import joint_law, with_values, wrong_class

_POINTS = 512  # quasi-random ones of each class


def wrong_class_on(problem: Problem, layer: GivenLayer) -> float:
    """P(argmax_c f_c(x) ≠ class of x) of the squared loss, by quasi-random points: products of
    rules along many axes are cut short, and it was 4 to 13 % too high with them
    (eq. largest-output).

    Each of K(K + 1)/2 labels costs the conjugate gradients of `solve_nodes`.
    """
    count = problem.outputs
    classes = with_values(problem, range(count))  # the label of a node is then its class
    rule = rule_of(classes, layer, SCATTERED)
    chi = common(classes, rule)[1]
    where = quasi_nodes(layer.geometry, _POINTS, layer.geometry.rank, SCATTERED)
    looked, noise = quadratics(classes, layer, where), problem.label_noise_variance
    like: NodeSolution | None = None

    def solved(group: tuple[int, ...]) -> tuple[Array, Array]:
        nonlocal like
        labels = np.eye(count)[list(group)].sum(axis=0)[rule.y.astype(int)]
        own = rule.with_labels(labels, len(group) * noise)
        like = solve_nodes(own, problem.samples, problem.effective_ridge, chi, like=like)
        return like.at(looked, problem.samples)

    law = joint_law(count, solved)
    return wrong_class(*law, looked.y.astype(int), looked.weights)
