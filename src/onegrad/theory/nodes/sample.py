"""The data's own rows as the nodes of the theory: the moments of their groups, and projections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.base import DataNodes


@dataclass(frozen=True)
class GroupMoments:
    """Mean of a group, and its covariance noise·I + directions·diag(values)·directionsᵀ."""

    mean: Array
    directions: Array
    values: Array
    noise: float

    @classmethod
    def of(cls, x: Array, noise: float) -> GroupMoments:
        """Principal directions by decreasing variance: O(N·n·min(N, n))."""
        mean = x.mean(axis=0)
        centred = x - mean
        count, dim = x.shape
        freedom = max(1, count - 1)
        if dim <= count:
            values, directions = np.linalg.eigh(centred.T @ centred / freedom)
        else:
            values, left = np.linalg.eigh(centred @ centred.T / freedom)
            kept = values > 1e-12 * max(float(values[-1]), 1e-300)
            values, left = values[kept], left[:, kept]
            directions = centred.T @ left / np.sqrt(values * freedom)
        values, directions = np.maximum(values[::-1], 0.0), directions[:, ::-1]
        return cls(mean, np.ascontiguousarray(directions), values, noise)

    def times(self, matrix: Array) -> Array:
        """Σ·matrix, for a matrix with n rows."""
        projected = self.directions.T @ matrix
        return np.asarray(
            self.directions @ (self.values[:, None] * projected) + self.noise * matrix
        )


@dataclass(frozen=True)
class PreparedNodes:
    """Nodes with the moments of its groups, and with one draw of its noise.

    The same draw serves every choice of directions, so that only the choice makes a difference.
    """

    nodes: DataNodes
    moments: tuple[GroupMoments, ...]
    white: Array

    @classmethod
    def of(cls, nodes: DataNodes, rng: np.random.Generator) -> PreparedNodes:
        """The nodes with one draw of their noise (S × n, none if they have none)."""
        moments = tuple(
            GroupMoments.of(nodes.x[nodes.group == c], nodes.noise) for c in range(nodes.groups)
        )
        size = nodes.x.shape if nodes.noise else (0, 0)
        return cls(nodes, moments, rng.standard_normal(size))

    def like(self, nodes: DataNodes) -> PreparedNodes:
        """Other nodes of the same population and size: its moments and noise are as good."""
        return PreparedNodes(nodes, self.moments, self.white)

    def projections(self, basis: Array) -> Array:
        """κ = Vᵀx of every sample, noise included."""
        kappa = self.nodes.x @ basis
        if self.nodes.noise:
            kappa += np.sqrt(self.nodes.noise) * (self.white @ basis)
        return np.asarray(kappa)
