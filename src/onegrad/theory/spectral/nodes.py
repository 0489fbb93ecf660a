"""Nodes of the data for spectra on a bulk that is not flat: one strong axis and many weak ones.

Labels have no part in spectra, so that no axis is kept for them.
"""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.geometry import Geometry
from onegrad.theory.nodes.population import Nodes
from onegrad.theory.nodes.rules import QuadratureLevel, axis_order, halves, standard_nodes


def strong_axis_nodes(geometry: Geometry, spread: Array, level: QuadratureLevel) -> Nodes:
    """Rules for fresh data in the axes of `spread` (r', r'), E[vvᵀ]/E[b²] over neurons.

    Along what neurons see most of, the step's direction, rules are on both sides of where their
    preactivations vanish: outliers of degree three there are 2 % off with 25 Gauss–Hermite nodes,
    and 4 % with 512 quasi-random points, which the weak axes need not have either.
    """
    count, single, parts = len(spread), geometry.single, []
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        root, mean = np.eye(count), np.zeros(count)
        root[:single, :single] = geometry.roots[c, :single, :single]
        mean[:single] = geometry.means[c, :single]
        values, vectors = np.linalg.eigh(root @ spread @ root)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        bend = -float(vectors[:, 0] @ root @ spread @ mean) / max(float(values[0]), 1e-300)
        rule = halves(axis_order(float(values[0]), level), bend)
        z, w = standard_nodes(values[1:], level, (rule,))
        parts.append((c, mean + z @ (root @ vectors).T, weight * w))
    return Nodes.join(parts, level)
