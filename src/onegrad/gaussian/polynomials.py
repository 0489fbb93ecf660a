"""Polynomials: Hermite's (probabilists', H_j) as values, series and powers; Chebyshev's.

E[H_i(Z)H_j(Z)] = j!·δ_ij for a standard Gaussian Z; `orthonormal_hermite` divides by √j!.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike
from scipy.special import gammaln

from onegrad.compute.backend import CACHED, Array, namespace

HORNER = 7  # most coefficients for Horner's rule: more would lose digits


def orthonormal_hermite(order: int, x: ArrayLike) -> Array:
    """H_j(x)/√(j!) for j = 0…order, stacked along a new first axis (three-term recurrence)."""
    x = np.asarray(x, dtype=float)
    rows = np.empty((order + 1, *x.shape))
    rows[0] = 1.0
    if order > 0:
        rows[1] = x
    for j in range(1, order):
        rows[j + 1] = (x * rows[j] - np.sqrt(j) * rows[j - 1]) / np.sqrt(j + 1)
    return rows


def sqrt_factorial(order: int) -> Array:
    """√(j!) for j = 0…order."""
    return np.exp(0.5 * gammaln(np.arange(order + 1) + 1.0))


def hermite_series(coefficients: ArrayLike, x: Any, out: Any = None, scale: float = 1.0) -> Any:
    """Σ_j coefficients[j]·H_j(x/scale), by Horner's rule up to degree 6 and by Clenshaw's
    recurrence beyond, where powers would cancel; `out` may be x itself.

    Worked on in pieces that stay in the cache: 2 to 4 operations per degree and element, no large
    temporary array.

    >>> float(hermite_series([1.0, 0.0, 2.0], 3.0))   # 1 + 2·(9 − 1)
    17.0
    """
    table = np.atleast_1d(np.asarray(coefficients, dtype=float))
    evaluate: Callable[[list[float], Any], Any] = _clenshaw
    if len(table) <= HORNER:
        evaluate = _horner
        table = table @ hermite_to_power(len(table) - 1) / scale ** np.arange(len(table))
    elif scale != 1.0:
        x = x / scale
    weights: list[float] = table.tolist()  # Python's numbers leave the precision of x as it is
    if namespace(x) is not np:
        if out is None:
            return evaluate(weights, x)
        out[...] = evaluate(weights, x)
        return out
    values = np.asarray(x)
    if values.dtype.kind != "f":
        values = values.astype(float)
    if out is None:
        out = np.empty_like(values)
    if not (values.flags.c_contiguous and out.flags.c_contiguous):
        out[...] = evaluate(weights, values)
        return out
    flat, result = values.reshape(-1), out.reshape(-1)
    apart = evaluate is _horner and len(weights) > 1 and not np.may_share_memory(flat, result)
    step = CACHED // flat.itemsize
    for start in range(0, flat.size, step):
        part = slice(start, start + step)
        if apart:
            _horner(weights, flat[part], result[part])
        else:
            result[part] = evaluate(weights, flat[part])
    return out


def _horner(powers: list[float], x: Any, out: Any = None) -> Any:
    """Σ_p powers[p]·x^p, in `out` if given: an array of NumPy other than x."""
    if len(powers) == 1:
        return namespace(x).full_like(x, powers[0])
    total = x * powers[-1] if out is None else np.multiply(x, powers[-1], out=out)
    total += powers[-2]
    for power in powers[-3::-1]:
        total *= x
        total += power
    return total


def _clenshaw(weights: list[float], x: Any) -> Any:
    """b_j = c_j + x·b_{j+1} − (j+1)·b_{j+2}; the sum is b_0."""
    xp = namespace(x)
    last, before = xp.full_like(x, weights[-1]), xp.zeros_like(x)
    for j in range(len(weights) - 2, -1, -1):
        before *= -(j + 1)
        before += weights[j]
        before += x * last
        last, before = before, last
    return last


@lru_cache(maxsize=32)
def hermite_to_power(order: int) -> Array:
    """The table of H_j(x) = Σ_p table[j, p]·x^p, j, p = 0…order; read-only."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for j in range(order):
        table[j + 1, 1:] = table[j, :-1]
        if j:
            table[j + 1] -= j * table[j - 1]
    table.setflags(write=False)
    return table


def power_to_hermite(order: int) -> Array:
    """ξ with x^p = Σ_i ξ[p, i]·H_i(x), p, i = 0…order (ξ[p, i] = p!/(2^t t! i!), p − i = 2t)."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for p in range(order):
        # x·H_i = H_{i+1} + i·H_{i−1}
        table[p + 1, 1:] += table[p, :-1]
        table[p + 1, :-1] += np.arange(1, order + 1) * table[p, 1:]
    return table


# --- Chebyshev interpolation on [−1, 1] ------------------------------------------------------


@lru_cache(maxsize=64)
def chebyshev_nodes(count: int) -> Array:
    """The zeros cos(π(i + ½)/count) of the Chebyshev polynomial of degree `count`."""
    nodes = np.cos(_angles(count))
    nodes.setflags(write=False)
    return nodes


@lru_cache(maxsize=64)
def chebyshev_transform(count: int) -> Array:
    """The matrix (degrees, nodes) from values at the nodes to Chebyshev coefficients."""
    matrix = 2 / count * np.cos(np.outer(np.arange(count), _angles(count)))
    matrix[0] /= 2
    matrix.setflags(write=False)
    return matrix


def chebyshev_basis(count: int, x: Array) -> Array:
    """T_j(x) for j < `count`, (points, count); x beyond [−1, 1] is moved to the nearest end.

    >>> values = chebyshev_nodes(4) ** 3
    >>> (chebyshev_basis(4, np.array([0.5])) @ chebyshev_transform(4) @ values).round(12)
    array([0.125])
    """
    return np.asarray(chebvander(np.clip(x, -1.0, 1.0), count - 1))


def _angles(count: int) -> Array:
    return np.pi * (np.arange(count) + 0.5) / count
