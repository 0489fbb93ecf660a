"""Families of rules for Gaussian averages, each with nodes and weights that sum to one.

Σ w f(z) ≈ E f(Z), Z ~ N(0, I): two-level designs, quasi-random points, and products of
rules.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from onegrad.compute.backend import Array
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.directions.eigen import eigen_axes

_BITS = 40  # bits of quasi-random points


@lru_cache(maxsize=16)
def two_level(count: int, turn: int = 0) -> tuple[Array, Array]:
    """The points ±1 of a folded Hadamard design: exact for polynomials of degree 3.

    2H points for `count` ≤ H = 2^j axes, where a tensor rule would need 2^count. Right for axes
    along which the integrand is nearly linear. `turn` rotates it.
    """
    if count == 0:
        return np.zeros((1, 0)), np.ones(1)
    size = 1
    hadamard = np.ones((1, 1))
    while size < count:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
        size *= 2
    points = np.concatenate([hadamard[:, :count], -hadamard[:, :count]]) @ _rotation(count, turn)
    return points, np.full(len(points), 1.0 / len(points))


@lru_cache(maxsize=16)
def cross_polytope(count: int) -> tuple[Array, Array]:
    """0 and the points ±√D along each axis, D = max(count, 5): exact for polynomials of degree 3.

    Beyond that wrong where `two_level` is right, and the other way round: E z_j⁴ is D instead of 3
    (1 there), E z_i²z_j² is 0 instead of 1 (1 there). So the difference of the two says what
    either of them may be off: at most half of it in D = 5 axes of their own.
    """
    if count == 0:
        return np.zeros((1, 0)), np.ones(1)
    size = max(count, 5)
    points = math.sqrt(size) * np.concatenate([np.eye(count), -np.eye(count)])
    weights = np.full(2 * count, 0.5 / size)
    if count == size:
        return points, weights
    return np.concatenate([points, np.zeros((1, count))]), np.append(weights, 1 - count / size)


MOST_FIFTH = 7  # axes of a rule of degree five; in more its weights would be negative


@lru_cache(maxsize=64)
def fifth_degree(count: int, turn: int = 0) -> tuple[Array, Array]:
    """Exact for polynomials of degree 5, with positive weights, in up to MOST_FIFTH axes.

    Products of 3 + turn Gauss nodes for one or two axes; then the rule of Mysovskikh, d² + 3d + 3
    points: the origin, the vertices ±a of a regular simplex and the directions ±b of the
    midpoints of its edges, at the radius √(d + 2). `turn` rotates it: two resolutions that are
    both of degree five then differ in the orders that neither integrates.
    """
    if count <= 2:
        return tensor([gauss_hermite(3 + turn)] * count) if count else two_level(0)
    centred = np.eye(count + 1) - 1.0 / (count + 1)
    vertices = eigen_axes(centred)[1][:, 1:] * math.sqrt((count + 1) / count)
    pairs = [vertices[i] + vertices[j] for i, j in itertools.combinations(range(count + 1), 2)]
    edges = np.array(pairs) * math.sqrt(count / (2 * (count - 1)))
    share = 1.0 / ((count + 1) * (count + 2)) ** 2
    parts = [(edges, 2 * (count - 1) ** 2 * share)]
    if count < MOST_FIFTH:
        parts.append((vertices, 0.5 * count**2 * (7 - count) * share))
    nodes, weights = [np.zeros((1, count))], [np.array([2.0 / (count + 2)])]
    for part, weight in parts:
        nodes += [math.sqrt(count + 2) * part, -math.sqrt(count + 2) * part]
        weights.append(np.full(2 * len(part), weight))
    return np.concatenate(nodes) @ _rotation(count, turn), np.concatenate(weights)


def _rotation(count: int, turn: int) -> Array:
    """A fixed orthogonal matrix, another one for each `turn`; none for zero."""
    if turn == 0:
        return np.eye(count)
    drawn = np.random.default_rng([20250117, turn]).standard_normal((count, count))
    return np.asarray(np.linalg.qr(drawn)[0])


@lru_cache(maxsize=16)
def quasi_gaussian(dimension: int, points: int) -> tuple[Array, Array]:
    """Quasi-random points made Gaussian, symmetric and with exact second moments."""
    if dimension == 0:
        return np.zeros((1, 0)), np.ones(1)
    half = max(points // 2, 2 * dimension)
    count = 1 << max(1, math.ceil(math.log2(half)))
    u = halton(dimension, count)
    # Evenly spaced together with their mirror images
    u[:, 0] = (np.floor(count * u[:, 0]) + 0.25) / count
    z = ndtri(np.clip(u, 1e-12, 1 - 1e-12))
    z = np.concatenate([z, -z])
    root = np.linalg.cholesky(z.T @ z / len(z))
    z = np.linalg.solve(root, z.T).T
    return z, np.full(len(z), 1.0 / len(z))


def scattered(first: tuple[Array, Array], count: int, most: int) -> tuple[Array, Array]:
    """Nodes (S, q + count) and weights: those of `first` (·, q), each with quasi-random points of
    its own along `count` further axes.

    About `most` nodes altogether, but at least two at each of `first`, and as many there as the
    square root of its weight asks for; always with their mirror images along the further axes.
    """
    nodes, weights = first
    if count == 0:
        return first
    share = np.sqrt(weights)
    pairs = np.maximum(1, np.rint(0.5 * most * share / share.sum())).astype(int)
    points = quasi_gaussian(count, 2 * int(pairs.sum()))[0]
    ends = np.cumsum(pairs)
    beside = [points[end - size : end] for end, size in zip(ends, pairs, strict=True)]
    further = np.concatenate([np.concatenate([some, -some]) for some in beside])
    owner = np.repeat(np.arange(len(weights)), 2 * pairs)
    return np.concatenate([nodes[owner], further], axis=1), (weights / (2 * pairs))[owner]


def halton(dimension: int, count: int, randomisation: int | None = None) -> Array:
    """Points of [0, 1)^dimension: Halton's, the digits of each prime base permuted at random.

    The permutations are always the same ones, others for each `randomisation`. As even as scrambled
    Sobol points in 3 to 40 dimensions, without the half second it takes to import those.
    """
    seed = [20250117] if randomisation is None else [20250117, randomisation]
    generator = np.random.default_rng(seed)
    points = np.zeros((count, dimension))
    primes = (c for c in itertools.count(2) if all(c % p for p in range(2, math.isqrt(c) + 1)))
    for j, base in enumerate(itertools.islice(primes, dimension)):
        digits, unit = np.arange(count), 1.0
        for _ in range(math.ceil(_BITS / math.log2(base))):
            unit /= base
            points[:, j] += unit * generator.permutation(base)[digits % base]
            digits //= base
    return points


def tensor(rules: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Product of rules; a rule's nodes are (p,) for one axis or (p, axes)."""
    nodes, weights = rules[0][0].reshape(len(rules[0][1]), -1), rules[0][1]
    for x, w in rules[1:]:
        x = x.reshape(len(w), -1)
        nodes = np.concatenate(
            [np.repeat(nodes, len(w), axis=0), np.tile(x, (len(nodes), 1))], axis=1
        )
        weights = (weights[:, None] * w).ravel()
    return nodes, weights
