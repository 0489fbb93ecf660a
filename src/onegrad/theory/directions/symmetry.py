"""Directions that are alike: groups of spikes that a rotation exchanges.

Spikes of equal strength that overlap with nothing else (no teacher, no mean, no spike of another
component) may be rotated among themselves without changing the problem. Of such a group of g
directions a sample is known by its length there, ρ = |κ_F|, and a neuron by |v_F|; their angle is
averaged over, harmonic by harmonic (docs/book/structure.md). One axis stands for g of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import gammainccinv, ndtr, roots_jacobi

from onegrad.compute.backend import Array
from onegrad.theory.directions.eigen import SAME, eigen_axes, settled_basis
from onegrad.theory.directions.geometry import Geometry

_ALIKE = 1e-7  # relative difference of variances that count as equal
_SEPARATING = 100.0  # importance of lengths that tell labels apart, over others: needs finer rules
_BEYOND_CHANCE = 1.5  # times the largest cosine of two random subspaces: they are aligned
_MANY = 7  # directions from which chance overlaps are left out


@lru_cache(maxsize=64)
def grouped(geometry: Geometry) -> Geometry:
    """A mixture in which each group of equivalent directions has one axis.

    The axes of groups come last; `groups` says how many directions each of them stands for.
    Where there are many special directions but none are exactly alike, because spikes of
    different components overlap by chance, those overlaps are left out (`_without_chance`). O(r³).
    """
    if geometry.groups or geometry.rank < 2:
        return geometry
    exact = _exactly_grouped(geometry)
    if exact.groups or geometry.rank < _MANY:
        return exact
    return _exactly_grouped(_without_chance(geometry))


def _exactly_grouped(geometry: Geometry) -> Geometry:
    free = _invariant_complement(geometry)
    if free.shape[1] < 2:
        return geometry
    # A combination whose eigenvectors are those common to all covariances.
    mixed = np.einsum(
        "c,cij->ij", np.sqrt(np.arange(len(geometry.weights)) + 2.0), geometry.covariances
    )
    values, vectors = eigen_axes(free.T @ mixed @ free)
    groups = []
    for block in _clusters(values):
        basis = free @ vectors[:, block]
        if len(block) > 1 and all(_is_multiple(one, basis) for one in geometry.covariances):
            groups.append(basis)
    return _with_groups(geometry, groups) if groups else geometry


def _clusters(values: Array) -> list[np.ndarray]:
    """Indices of ascending values that are equal."""
    gaps = np.diff(values) > _ALIKE * float(np.abs(values).max())
    return np.split(np.arange(len(values)), np.flatnonzero(gaps) + 1)


def _without_chance(geometry: Geometry) -> Geometry:
    """Without the overlaps between spikes of different components that label and means do not see.

    Within the span K of teacher, means, their projections on the spikes of equal strength of
    each component, and of spikes that overlap by more than chance, everything stays as it is. The
    other spikes are made orthogonal to K and to each other, strengths and components unchanged.
    A spike of strength θ in one component loses at most θ·cos² of its variance in another:
    little beside its θ in its own.
    """
    spikes = _spike_blocks(geometry)
    seeds = np.stack(geometry.seeds, axis=1)
    for (c, _, one), (d, _, other) in itertools.combinations(spikes, 2):
        overlaps = one.T @ other
        largest = (math.sqrt(one.shape[1]) + math.sqrt(other.shape[1])) / math.sqrt(geometry.dim)
        if c == d or np.vdot(overlaps, overlaps) <= (_BEYOND_CHANCE * largest) ** 2:
            continue  # no cosine is larger than the root of the sum of all squares
        left, cosines, right = np.linalg.svd(overlaps, full_matrices=False)
        aligned = cosines > _BEYOND_CHANCE * largest
        if np.any(aligned):
            found = one @ left[:, aligned], other @ right[aligned].T
            seeds = np.concatenate([seeds, *found], axis=1)
    seen, free = [seeds], []
    for c, strength, basis in spikes:
        u, s, _ = np.linalg.svd(basis.T @ seeds, full_matrices=True)
        kept = int((s > SAME).sum())
        seen.append(basis @ u[:, :kept])
        free.append((c, strength, basis @ u[:, kept:]))
    u, s, _ = np.linalg.svd(np.concatenate(seen, axis=1), full_matrices=False)
    span = u[:, s > SAME]
    columns = np.concatenate([basis for _, _, basis in free], axis=1)
    columns = columns - span @ (span.T @ columns)
    left, s, right = np.linalg.svd(columns, full_matrices=False)
    if span.shape[1] + columns.shape[1] > geometry.rank or np.any(s < 0.5):
        return geometry  # too many directions for this symmetry
    columns = left @ right
    within = span.T @ (geometry.covariances - np.eye(geometry.rank)) @ span
    covariances = np.eye(geometry.rank) + span @ within @ span.T
    start = 0
    for c, strength, basis in free:
        mine = columns[:, start : start + basis.shape[1]]
        covariances[c] += strength * mine @ mine.T
        start += basis.shape[1]
    return replace(geometry, covariances=covariances, basis=None)


def _spike_blocks(geometry: Geometry) -> list[tuple[int, float, Array]]:
    """Component, strength and orthonormal columns of each set of spikes of equal strength."""
    found = []
    for c, covariance in enumerate(geometry.covariances):
        values, vectors = eigen_axes(covariance - np.eye(geometry.rank))
        for block in _clusters(values):
            strength = float(values[block].mean())
            if abs(strength) > _ALIKE:
                found.append((c, strength, vectors[:, block]))
    return found


def _invariant_complement(geometry: Geometry) -> Array:
    """Orthonormal columns of the largest space free of teacher and means, kept by every Σ_c."""
    seeds = np.stack(geometry.seeds, axis=1)
    lengths = np.linalg.norm(seeds, axis=0)
    reached = np.zeros((geometry.rank, 0))
    new = seeds[:, lengths > 0] / lengths[lengths > 0]
    while new.shape[1]:
        u, s, _ = np.linalg.svd(np.concatenate([reached, new], axis=1), full_matrices=False)
        grown = u[:, s > SAME]
        if grown.shape[1] == reached.shape[1]:
            break
        reached = grown
        images = [one @ reached / np.linalg.norm(one, 2) for one in geometry.covariances]
        new = np.concatenate(images, axis=1)
        new = new - reached @ (reached.T @ new)
        new = new[:, np.linalg.norm(new, axis=0) > SAME]
    return settled_basis(np.linalg.svd(reached, full_matrices=True)[0][:, reached.shape[1] :])


def _is_multiple(covariance: Array, basis: Array) -> bool:
    """Whether Σ acts on the span of the basis as a number."""
    image = covariance @ basis
    number = float(np.einsum("ij,ij->", image, basis)) / basis.shape[1]
    return bool(np.abs(image - number * basis).max() <= _ALIKE * max(1.0, abs(number)))


def _with_groups(geometry: Geometry, groups: list[Array]) -> Geometry:
    together = np.concatenate(groups, axis=1)
    rest = settled_basis(np.linalg.svd(together)[0][:, together.shape[1] :])
    r = rest.shape[1]

    def coordinates(vector: Array) -> Array:
        return np.concatenate([vector @ rest, [float(np.linalg.norm(vector @ g)) for g in groups]])

    covariances = np.zeros((len(geometry.weights), r + len(groups), r + len(groups)))
    for c, covariance in enumerate(geometry.covariances):
        covariances[c, :r, :r] = rest.T @ covariance @ rest
        for j, basis in enumerate(groups):
            covariances[c, r + j, r + j] = float(basis[:, 0] @ covariance @ basis[:, 0])
    return replace(
        geometry,
        means=np.stack([coordinates(mean) for mean in geometry.means]),
        covariances=covariances,
        teacher=np.apply_along_axis(coordinates, -1, geometry.teacher),
        directions={name: coordinates(v) for name, v in geometry.directions.items()},
        basis=None,
        groups=tuple(g.shape[1] for g in groups),
    )


def radius(z: Array, size: int) -> Array:
    """|Z_g|, Z_g ~ N(0, I_g), as a function of one Gaussian: the cube law of Wilson and Hilferty.

    Smooth, so that rules for Gaussian axes serve, and with E|Z_g|² = g exactly.
    """
    step = 2.0 / (9.0 * size)
    level = 1.0 - step
    cube = np.maximum(level + math.sqrt(step) * z, 0.0) ** 3
    return np.sqrt(size * cube / (level**3 + 3.0 * level * step))


def exact_radius(z: Array, size: int) -> Array:
    """|Z_g| with the same quantiles as one Gaussian: for points, where tails count."""
    return np.asarray(np.sqrt(2.0 * gammainccinv(0.5 * size, ndtr(-z))))


def radial_importance(importance: float, size: int, separating: bool) -> float:
    """Importance of a group's length, from the importance of each of its directions.

    A direction of importance I makes ν depend on √I·Z beside a unit Gaussian. The length of g of
    them is known to 1/√(2g), and counts in the second order where the whole is small: it moves
    the scale √(1 + gI) by √(gI²/8)·Z; and where it is large, as √(I/2)·Z does. What is learned
    varies faster than the features where lengths are what separates components of different labels.
    """
    along = size * importance**2 / (2.0 * (4.0 + size * importance))
    return _SEPARATING * along if separating else along


@lru_cache(maxsize=256)
def angles(size: int, order: int) -> tuple[Array, Array]:
    """Nodes t and weights for the cosine between a fixed and a random direction in R^size."""
    t, w = roots_jacobi(order, 0.5 * (size - 3), 0.5 * (size - 3))
    return t, w / w.sum()


def harmonic(size: int, degree: int, t: Array) -> Array:
    """P_l(t), the zonal harmonic in R^size with P_l(1) = 1 and E P_l² = 1/N_l: by recurrence."""
    previous, value = np.ones_like(t), t
    for d in range(1, degree):
        above = ((2 * d + size - 2) * t * value - d * previous) / (d + size - 2)
        previous, value = value, above
    return value if degree else previous


def multiplicity(size: int, degree: int) -> float:
    """N_l, the number of independent harmonics of degree l in R^size."""
    if degree == 0:
        return 1.0
    return (2 * degree + size - 2) / degree * math.comb(degree + size - 3, degree - 1)


@lru_cache(maxsize=64)
def degrees(groups: int, total: int) -> tuple[tuple[int, ...], ...]:
    """Degrees (l_1, …) of the harmonics that are kept, the constant first.

    Of one group up to `total`; of two together only (1, 1), because a sample is long in the
    groups of its own component alone.
    """
    unit = np.eye(groups, dtype=int)
    alone = [unit[j] * degree for degree in range(1, total + 1) for j in range(groups)]
    pairs = [unit[i] + unit[j] for i, j in itertools.combinations(range(groups), 2)]
    kept = [np.zeros(groups, dtype=int), *alone, *(pairs if total > 1 else [])]
    return tuple(tuple(int(d) for d in degree) for degree in kept)
