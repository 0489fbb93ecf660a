"""The actual matrix of a first layer, conditioned on the projections of the data's own nodes.

Equations are named as in docs/book/real-data.md. Given the group c of a node and its projections
κ = Vᵀx on a few directions, the rest of x is taken as Gaussian with the group's own conditional
mean and covariance; κ itself is as it is, not Gaussian at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import span_basis
from onegrad.data.base import DataNodes
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.smoothing import smoothed
from onegrad.theory.layers.low_rank import DenseTable
from onegrad.theory.layers.matrix_errors import FeatureMoments
from onegrad.theory.layers.matrix_responses import NodeBlock, Quadratics
from onegrad.theory.nodes.sample import GroupMoments, PreparedNodes

_BLOCK = 1 << 21  # numbers of a table of neurons × nodes held at once


@dataclass(frozen=True)
class DrawnLayer:
    """A trained first layer as it is: weights (k, n), and the directions (n, q) to condition on
    beside the principal ones of the data."""

    weights: Array
    directions: Array


@dataclass(frozen=True)
class GroupFeatures:
    """What the features of a group need: preactivation = offset + slope·κ + N(0, coupling).

    offset : (k,), slope : (k, r), spread : (k,) √diag, coupling : (k, k) without its diagonal
    """

    offset: Array
    slope: Array
    spread: Array
    coupling: Array


@dataclass(frozen=True)
class ConditionedLayer:
    """Nodes and a network's first layer, conditioned on the projections κ on `basis`.

    basis : (n, r) orthonormal columns, kappa : (S, r), parts : one for each group.
    Memory O(k²·groups); the tables of neurons × nodes come in blocks.
    """

    nodes: DataNodes
    activation: Activation
    basis: Array
    kappa: Array
    parts: tuple[GroupFeatures, ...] = field(repr=False)

    @property
    def width(self) -> int:
        """k: number of neurons."""
        return len(self.parts[0].offset)

    @classmethod
    def of(
        cls,
        prepared: PreparedNodes,
        layer: DrawnLayer,
        activation: Activation,
        rank: int,
    ) -> ConditionedLayer:
        """Condition on the `rank` leading directions of every group, its mean, and the layer's own.

        Cost O(k·n·(n + r) + k²·n) for each group.
        """
        moments = prepared.moments
        leading = [m.directions[:, :rank] for m in moments]
        means = np.stack([m.mean for m in moments], axis=1)
        basis = unit_basis(np.hstack([layer.directions, means, *leading]))
        parts = tuple(_group_features(m, layer.weights, basis) for m in moments)
        return cls(prepared.nodes, activation, basis, prepared.projections(basis), parts)

    def rule(self, rows: np.ndarray) -> Quadratics:
        """The given rows as nodes of one weight, group by group (eq. own-features)."""
        blocks, order = [], []
        for c, part in enumerate(self.parts):
            some = rows[self.nodes.group[rows] == c]
            if not some.size:
                continue
            shift = part.slope @ self.kappa[some].T
            shift += part.offset[:, None]
            mean, slope, variance = smoothed(self.activation, shift, part.spread[:, None])
            blocks.append(NodeBlock(c, DenseTable(mean), DenseTable(slope), variance))
            order.append(some)
        y, couplings = self.nodes.y[np.concatenate(order)], [p.coupling for p in self.parts]
        return Quadratics(couplings, blocks, np.full(len(y), 1 / len(y)), y, self.nodes.label_noise)

    def moments(self, rows: np.ndarray | None = None) -> FeatureMoments:
        """Averages over the given rows, all by default (eq. one-response): O(S·k²)."""
        rows = np.arange(len(self.nodes)) if rows is None else rows
        step = max(1, _BLOCK // self.width)
        parts = [rows[start : start + step] for start in range(0, len(rows), step)]
        found = [self.rule(some).moments() for some in parts]
        return FeatureMoments.mean(found, [len(some) for some in parts])


def unit_basis(columns: Array) -> Array:
    """Orthonormal basis of a span, each column counted by its direction alone."""
    norms = np.linalg.norm(columns, axis=0)
    return span_basis(columns[:, norms > 1e-12] / norms[norms > 1e-12], 1e-6)


def _group_features(moments: GroupMoments, weights: Array, basis: Array) -> GroupFeatures:
    """x | κ = μ + L(κ − Vᵀμ) + N(0, Σ − LVᵀΣ) with L = ΣV(VᵀΣV)⁻¹ (eq. own-nodes)."""
    along = moments.times(basis)
    within = basis.T @ along
    # a direction without variance (constant pixels, fewer samples than directions) does not tell
    # anything about the rest
    inverse = np.linalg.pinv(within, rcond=1e-10, hermitian=True)
    slope = (weights @ along) @ inverse
    offset = weights @ moments.mean - slope @ (basis.T @ moments.mean)
    projected = weights @ moments.directions
    coupling = (projected * moments.values) @ projected.T
    if moments.noise:
        coupling += moments.noise * (weights @ weights.T)
    coupling -= slope @ (weights @ along).T
    diagonal = np.diagonal(coupling).copy()
    np.fill_diagonal(coupling, 0.0)
    floor = 1e-8 * float(np.max(np.einsum("ij,ij->i", projected**2, moments.values[None, :])))
    spread = np.sqrt(np.maximum(diagonal, max(floor, 1e-300)))
    return GroupFeatures(offset, slope, spread, coupling)
