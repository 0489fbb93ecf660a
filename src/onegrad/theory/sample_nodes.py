"""Somebody's sample as the nodes of the theory: features given the sample's own projections.

Equation numbers are those of docs/real-data.md. Given the group c of a sample and its projections
κ = Vᵀx on a few directions, the rest of x is taken as Gaussian with the group's own conditional
mean and covariance; κ itself is as it is, not Gaussian at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.hermite import Array
from onegrad.theory.smoothing import smoothed

_BLOCK = 1 << 21  # numbers of a table of neurons × nodes held at once


@dataclass(frozen=True)
class Sample:
    """Samples that stand for their population.

    x : (S, n), y : (S,), group : (S,) whole numbers from 0, the classes if the labels are such
    noise : variance of the white noise that every use of a sample adds to x (0: none)
    label_noise : variance of what every use adds to y
    """

    x: Array
    y: Array
    group: np.ndarray
    noise: float = 0.0
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        shapes = (self.x.shape[:1], self.y.shape, self.group.shape)
        if self.x.ndim != 2 or len(set(shapes)) != 1:
            raise AssumptionError(
                f"x {self.x.shape}, y {self.y.shape} and group {self.group.shape} disagree; they "
                "must be (S, n), (S,) and (S,)."
            )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1

    def rows(self, which: np.ndarray) -> Sample:
        return Sample(self.x[which], self.y[which], self.group[which], self.noise, self.label_noise)


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
class Prepared:
    """A sample with the moments of its groups, and with one draw of its noise.

    The same draw serves every choice of directions, so that only the choice makes a difference.
    """

    sample: Sample
    moments: tuple[GroupMoments, ...]
    white: Array

    @classmethod
    def of(cls, sample: Sample, rng: np.random.Generator) -> Prepared:
        moments = tuple(
            GroupMoments.of(sample.x[sample.group == c], sample.noise) for c in range(sample.groups)
        )
        size = sample.x.shape if sample.noise else (0, 0)
        return cls(sample, moments, rng.standard_normal(size))

    def like(self, sample: Sample) -> Prepared:
        """Another sample of the same population and size: its moments and noise are as good."""
        return Prepared(sample, self.moments, self.white)

    def projections(self, basis: Array) -> Array:
        """κ = Vᵀx of every sample, noise included."""
        kappa = self.sample.x @ basis
        if self.sample.noise:
            kappa += np.sqrt(self.sample.noise) * (self.white @ basis)
        return np.asarray(kappa)


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
class Block:
    """Features at some nodes of one group: mean, slope and variance (k × S), labels."""

    group: int
    rows: np.ndarray
    mean: Array
    slope: Array
    variance: Array
    y: Array


@dataclass(frozen=True)
class Conditioned:
    """A sample and a network's first layer, conditioned on the projections on `basis`.

    Memory O(k²·groups); the tables of neurons × nodes come in blocks.
    """

    sample: Sample
    activation: Activation
    basis: Array
    kappa: Array
    parts: tuple[GroupFeatures, ...] = field(repr=False)

    @property
    def width(self) -> int:
        return len(self.parts[0].offset)

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        weights: Array,
        activation: Activation,
        directions: Array,
        rank: int,
    ) -> Conditioned:
        """Condition on the `rank` leading directions of every group, its mean, and `directions`.

        Cost O(k·n·(n + r) + k²·n) for each group.
        """
        moments = prepared.moments
        leading = [m.directions[:, :rank] for m in moments]
        means = np.stack([m.mean for m in moments], axis=1)
        basis = orthonormal(np.hstack([directions, means, *leading]))
        parts = tuple(_group_features(m, weights, basis) for m in moments)
        return cls(prepared.sample, activation, basis, prepared.projections(basis), parts)

    def blocks(self, rows: np.ndarray | None = None) -> Iterator[Block]:
        """The features at the given nodes (all by default), group by group."""
        rows = np.arange(len(self.sample)) if rows is None else rows
        step = max(1, _BLOCK // self.width)
        for c, part in enumerate(self.parts):
            members = rows[self.sample.group[rows] == c]
            for start in range(0, len(members), step):
                some = members[start : start + step]
                shift = part.slope @ self.kappa[some].T
                shift += part.offset[:, None]
                moments = smoothed(self.activation, shift, part.spread[:, None])
                yield Block(c, some, *moments, self.sample.y[some])


def orthonormal(columns: Array) -> Array:
    """Orthonormal basis of a span, without directions that are there already."""
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 1e-12] / norms[norms > 1e-12]
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > 1e-6])


def _group_features(moments: GroupMoments, weights: Array, basis: Array) -> GroupFeatures:
    """x | κ = μ + L(κ − Vᵀμ) + N(0, Σ − LVᵀΣ) with L = ΣV(VᵀΣV)⁻¹ (eq. (2))."""
    along = moments.times(basis)
    within = basis.T @ along
    # a direction without any variance (constant pixels, fewer samples than directions) has
    # nothing to say about the rest
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
