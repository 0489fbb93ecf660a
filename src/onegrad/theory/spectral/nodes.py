"""Nodes of the data for spectra on a bulk that is not flat: one strong axis and many weak ones.

Labels have no part in spectra, so that no axis is kept for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.eigen import eigen_axes
from onegrad.theory.geometry import Geometry
from onegrad.theory.nodes.designs import scattered
from onegrad.theory.nodes.population import Nodes
from onegrad.theory.nodes.rules import QuadratureLevel, Rule, axis_order, halves, standard_nodes

_SHORTEST = 8  # order of the rule along the strong axis: polynomials of degree six are exact


def strong_axis_nodes(geometry: Geometry, spread: Array, level: QuadratureLevel) -> Nodes:
    """Rules for fresh data in the axes of `spread` (r', r'), E[vvᵀ]/E[b²] over neurons.

    Along what neurons see most of, the step's direction, rules are on both sides of where their
    preactivations vanish: outliers of degree three there are 2 % off with 25 Gauss–Hermite nodes,
    and 4 % with 512 quasi-random points, which the weak axes need not have either.
    """
    return _along_strong_axis(
        geometry, spread, level, lambda rule, values: standard_nodes(values, level, (rule,))
    )


def comparing_nodes(
    geometry: Geometry, spread: Array, level: QuadratureLevel, points: int
) -> Nodes:
    """The same rule along the strong axis, and about `points` for each component with quasi-random
    places along all others: singular vectors are steep functions along the one, and are compared
    with polynomials along any of them."""
    return _along_strong_axis(
        geometry, spread, level, lambda rule, values: _scattered(rule, values, points)
    )


def _scattered(rule: Rule, values: Array, points: int) -> tuple[Array, Array]:
    nodes, weights = rule.nodes
    return scattered((nodes[:, None], weights), len(values), points)


def _along_strong_axis(
    geometry: Geometry,
    spread: Array,
    level: QuadratureLevel,
    beside: Callable[[Rule, Array], tuple[Array, Array]],
) -> Nodes:
    """beside : standard nodes from the rule of the strong axis and the `spread` along all others"""
    count, single, parts = len(spread), geometry.single, []
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        root, mean = np.eye(count), np.zeros(count)
        root[:single, :single] = geometry.roots[c, :single, :single]
        mean[:single] = geometry.means[c, :single]
        values, vectors = eigen_axes(root @ spread @ root)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        bend = -float(vectors[:, 0] @ root @ spread @ mean) / max(float(values[0]), 1e-300)
        order = max(axis_order(float(values[0]), level), _SHORTEST)
        z, w = beside(halves(order, bend), values[1:])
        parts.append((c, mean + z @ (root @ vectors).T, weight * w))
    return Nodes.join(parts, level)
