"""Gram matrices of random directions: with typical overlaps, aligned, with further ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.theory.directions.eigen import SAME, eigen_axes


def aligned(gram: Array, leading: np.ndarray, alignment: float) -> Array:
    """The Gram matrix of the spikes once the leading ones, raw with this Gram matrix, are mixed.

    As `Mixture.population` draws them: leading spikes are mixed by the symmetric root of the
    matrix with `alignment` off its diagonal, and the others made orthogonal to their own leading
    one, which leaves them √(1 − cos²) of an overlap with another component's.
    """
    count = len(leading)
    mixing = np.full((count, count), alignment)
    np.fill_diagonal(mixing, 1.0)
    values, vectors = np.linalg.eigh(mixing)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    mixed = root @ gram[np.ix_(leading, leading)] @ root
    scale = np.sqrt(np.maximum(mixed.diagonal(), 1e-300))
    result = gram.copy()
    result[leading] *= math.sqrt(1 - alignment**2)
    result[:, leading] *= math.sqrt(1 - alignment**2)
    result[np.ix_(leading, leading)] = mixed / np.outer(scale, scale)
    np.fill_diagonal(result, 1.0)
    return result


def appended(gram: Array, g: Array, dim: int) -> Array:
    """The Gram matrix extended by further random unit vectors, which the rows of g determine."""
    lengths = np.sqrt(max(1, dim - len(gram)) + (g**2).sum(axis=1, keepdims=True))
    coordinates = g / lengths
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    across = coordinates @ root
    return np.block([[gram, across.T], [across, np.eye(len(coordinates))]])


def unit_vectors(gram: Array, dim: int) -> Array:
    """Rows with this Gram matrix, in as many coordinates as are needed."""
    values, vectors = eigen_axes(gram)
    _check_room(not len(gram) or values[0] >= -SAME, len(gram), dim)
    kept = values > SAME
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _check_room(enough: bool, count: int, dim: int) -> None:
    if not enough:
        raise AssumptionError(
            f"no {count} directions in dimension {dim} have these typical overlaps. Use "
            'directions = "orthogonal", a larger dim, or the overlaps of an actual draw.'
        )


def simplex(components: int) -> Array:
    """Corners of a regular simplex (components × dimensions of its span), any length."""
    if components < 3:
        return np.array([[1.0], [-1.0]][:components])
    values, vectors = eigen_axes(np.eye(components) - 1.0 / components)
    return np.asarray(vectors[:, values > 0.5])


def sign_patterns(size: int, count: int) -> Array:
    """`count` rows over `size` spikes, of mean square 1 and orthogonal as far as there is room."""
    if size == 1:
        return np.ones((count, 1))
    raw = np.random.default_rng([20250118, size]).standard_normal((size, max(size, count)))
    raw[:, 0] = 1.0
    basis = np.linalg.qr(raw)[0] * math.sqrt(size)
    return np.asarray((basis * np.sign(basis[0])).T[np.arange(count) % size])


def chance_overlaps(shape: tuple[int, int], pair: int) -> Array:
    """√n·γ_i·γ'_j of two random sets of orthonormal directions: typical, nothing left to chance.

    One of each: the mean √(2/π) of |N(0,1)|. Else the singular vectors of one fixed draw (another
    one for each pair of components) with typical singular values, which decide about ‖Σ̄‖:
    quantiles of the quarter-circle law, within 2 % of their means from 2 × 2 on; q·Q² + p − q
    for the squares of p × q, p > q.
    """
    if shape == (1, 1):
        return np.full(shape, math.sqrt(2 / math.pi))
    few, many = min(shape), max(shape)
    drawn = np.random.default_rng([20250117, pair]).standard_normal(shape)
    left, _, right = np.linalg.svd(drawn, full_matrices=False)
    half = np.linspace(0.0, math.pi / 2, 2001)  # Q = 2 sin(half), probability (2h + sin 2h)/π
    law = (2 * half + np.sin(2 * half)) / math.pi
    quantiles = 2 * np.sin(np.interp(1 - (np.arange(few) + 0.5) / few, law, half))
    return np.asarray((left * np.sqrt(few * quantiles**2 + many - few)) @ right)


@lru_cache(maxsize=32)
def drawn_frames(dim: int, sizes: tuple[int, ...], draws: int) -> Array:
    """(draws, p, p) Gram matrices of independent random orthonormal frames in `dim` dimensions.

    sizes : directions of each frame, p in all. A Gaussian matrix G (dim × p) has GᵀG = AAᵀ with
        A lower triangular, χ on its diagonal and Gaussian below (Bartlett), so that dim does not
        cost anything; each frame is its own part of G made orthonormal.
    """
    rng, count = np.random.default_rng([20261118, dim, *sizes]), sum(sizes)
    root = np.tril(rng.standard_normal((draws, count, count)), -1)
    root += np.sqrt(rng.chisquare(dim - np.arange(count), (draws, count)))[:, :, None] * np.eye(
        count
    )
    gram = root @ root.transpose(0, 2, 1)
    inverse = np.zeros_like(gram)
    first = 0
    for size in sizes:
        own = slice(first, first + size)
        inverse[:, own, own] = np.linalg.inv(np.linalg.cholesky(gram[:, own, own]))
        first += size
    return np.asarray(inverse @ gram @ inverse.transpose(0, 2, 1))


def largest_of_mean(gram: Array, shares: Sequence[float] | Array) -> Array:
    """‖Σ̄‖ = 1 + the largest eigenvalue of Σ_j s_j γ_jγ_jᵀ, s_j = ρθ, from the (…, p, p) Gram
    matrices of the γ_j: that of S^½ΓᵀΓS^½."""
    root = np.sqrt(np.asarray(shares, float))
    values = np.linalg.eigvalsh(gram * np.multiply.outer(root, root))
    return 1.0 + np.maximum(values[..., -1], 0.0)
