"""The readout on any first layer: its errors, given the law of the data and nothing else.

With the data's special directions and the layer's own in V, features given κ = Vᵀx are Gaussian,
and their covariance is that of the actual weights (docs/layers.md):

    A = Ŵ_⊥Ŵ_⊥ᵀ (k × k),  Q_s = ν_sν_sᵀ + D_sAD_s + E_s,  χ_s = tr(Q_sM)/m,
    M = (λ + Σ_s ω_sQ_s/(1 + χ_s))⁻¹

ν_s, D_s, E_s as for types of neurons (docs/theory.md, section 1), M as for real data
(docs/real-data.md): the same engine, with the nodes of a known population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import outlying_directions
from onegrad.problem import Problem
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.features import features_at
from onegrad.theory.layers.low_rank import table_of
from onegrad.theory.layers.matrix_errors import MatrixErrors, common_errors
from onegrad.theory.layers.matrix_responses import NodeBlock, Quadratics, solve_nodes
from onegrad.theory.layers.types import NeuronTypes, drawn_types
from onegrad.theory.nodes.population import data_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import level_for

_MOST_DIRECTIONS = 4  # of the layer's own
_VISIBLE = 0.01  # share of the bulk's variance from which on a direction is one of its own
_NODES = 2400  # of the finer rule at most, but for axes that need more
_LEFT_OUT = 1e-3  # of tables by their rank, in units of the ridge


@dataclass(frozen=True)
class LayerErrors:
    """Errors of the readout on one first layer.

    by_nodes : relative difference that a coarser rule makes, with one χ for all nodes; NaN if it
        was not tried
    by_size : what is open in 1/m, relative: the share of the mean part's degrees of freedom
    directions, nodes : special ones altogether, and of the finer rule
    """

    errors: MatrixErrors
    by_nodes: float
    by_size: float
    directions: int
    nodes: int


def own_directions(weights: Array, basis: Array, start: Array | None = None) -> Array:
    """Directions (n, q) that the layer has learned beside `basis` (n, r): orthonormal, q ≤ 4.

    Singular directions above the edge of the bulk, of Ŵ_⊥ and, where W₀ is known, of (Ŵ − W₀)_⊥.
    Every neuron counts alike, whatever its length: steps move some much further than others. Only
    those stay that have 1 % of the variance of a preactivation, and more than directions of a pure
    bulk; what is weaker is as good as linear and in A already.
    """
    found, (k, n) = basis, weights.shape
    visible = max(_VISIBLE, (1 / math.sqrt(k) + 1 / math.sqrt(n)) ** 2)  # more than the bulk's own
    for matrix in ([] if start is None else [weights - start]) + [weights]:
        rest = matrix - (matrix @ found) @ found.T
        norms = np.linalg.norm(rest, axis=1, keepdims=True)
        new = outlying_directions(rest / np.maximum(norms, 1e-300), _MOST_DIRECTIONS)
        outside = weights - (weights @ found) @ found.T
        share = np.sum((outside @ new) ** 2, axis=0) / np.sum(outside**2)
        found = np.hstack([found, new[:, share > visible]])
    own = np.linalg.qr(found)[0][:, basis.shape[1] :]
    return np.asarray(own[:, :_MOST_DIRECTIONS])


def needed_bytes(problem: Problem) -> int:
    """Memory of `layer_errors`, to about 30 %: eight matrices k × k, the tables of the nodes, and
    the weights twice."""
    k = problem.width
    return 8 * (8 * k * k + 4 * _NODES * k + 3 * k * problem.dim)


def layer_errors(
    problem: Problem, geometry: Geometry, weights: Array, own: Array, draft: bool = False
) -> LayerErrors:
    """Errors on fresh samples of the readout that is trained on `weights` (k × n).

    geometry : with its basis; own : (n, q) orthonormal directions beside it (`own_directions`)
    draft : one rule for κ, no comparison

    Cost O(k²(n + k)): three eigendecompositions, a few inverses and about ten products of k × k
    matrices. Memory: `needed_bytes`.
    """
    assert geometry.basis is not None
    basis = np.hstack([geometry.basis, own])
    neurons = drawn_types(weights, basis)
    rest = weights - neurons.vectors @ basis.T
    coupling = rest @ rest.T
    np.fill_diagonal(coupling, 0.0)
    fine = _quadratics(problem, geometry, neurons, coupling, 1 if draft else 2)
    plain, chi = common_errors(fine.moments(), problem.samples, problem.effective_ridge)
    by_nodes = math.nan
    if not draft:
        coarse = _quadratics(problem, geometry, neurons, coupling, 1).moments()
        other, _ = common_errors(coarse, problem.samples, problem.effective_ridge)
        by_nodes = max(abs(a / b - 1) for a, b in zip(other[:2], plain[:2], strict=True) if b)
    errors, by_size = solve_nodes(fine, problem.samples, problem.effective_ridge, chi, 1e-4)
    return LayerErrors(errors, by_nodes, by_size, basis.shape[1], len(fine))


def _quadratics(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, coupling: Array, number: int
) -> Quadratics:
    level = level_for(problem, geometry, QuadratureLevel.at(number))
    where = data_nodes(problem, geometry, neurons.spread, level)
    f = features_at(problem, geometry, neurons, where)
    variance = f.extra + (f.bulk[:, None] * f.slope) ** 2
    left_out = _LEFT_OUT * problem.effective_ridge
    mean = table_of(f.mean, f.weights, left_out)
    slope = table_of(f.slope, f.weights, left_out / max(float(np.mean(f.bulk**2)), 1e-300))
    block = NodeBlock(0, mean, slope, variance)
    return Quadratics([coupling], [block], f.weights, f.labels, f.noise)
