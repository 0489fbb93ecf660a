"""Chebyshev interpolation on [−1, 1]: nodes, values to coefficients, polynomials."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from onegrad.compute.backend import Array


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
