"""Gauss rules for a standard Gaussian on pieces of a line, for functions that bend or jump."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, roots_legendre

from onegrad.compute.backend import Array

REACH = 8.5  # beyond it a Gaussian is not looked at
_FINE = 24  # panels of the discretised half-line from which a Gauss rule is made


@lru_cache(maxsize=512)
def piecewise_gauss(breaks: tuple[float, ...], order: int) -> tuple[Array, Array]:
    """Gauss rules of `order` nodes for φ(z) restricted to each piece between the breaks.

    Exact for functions that are polynomials of degree < 2·order on every piece: half-range
    rules where there is one break. Pieces of probability below 1e-12 are left out.
    """
    edges = [-REACH, *sorted(b for b in breaks if abs(b) < REACH), REACH]
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        if ndtr(high) - ndtr(low) > 1e-12:
            x, w = _restricted_gauss(low, high, order)
            nodes.append(x)
            weights.append(w)
    w = np.concatenate(weights)
    return np.concatenate(nodes), w / w.sum()


def _restricted_gauss(low: float, high: float, order: int) -> tuple[Array, Array]:
    """Gauss rule of φ on [low, high], by Lanczos on a fine discretisation of it."""
    x, w = roots_legendre(16)
    starts = low + (high - low) * np.arange(_FINE)[:, None] / _FINE
    z = (starts + (high - low) / _FINE * (x + 1) / 2).ravel()
    mass = np.tile(w, _FINE) * (high - low) / (2 * _FINE)
    mass = mass * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    total = mass.sum()
    vectors = np.zeros((order, z.size))
    vectors[0] = np.sqrt(mass / total)
    diagonal, off = np.zeros(order), np.zeros(order)
    for j in range(order):
        v = z * vectors[j]
        diagonal[j] = v @ vectors[j]
        for _ in range(2):  # full reorthogonalisation: the order is small
            v -= vectors[: j + 1].T @ (vectors[: j + 1] @ v)
        if j + 1 < order:
            off[j + 1] = np.linalg.norm(v)
            vectors[j + 1] = v / off[j + 1]
    jacobi = np.diag(diagonal) + np.diag(off[1:], 1) + np.diag(off[1:], -1)
    nodes, rotation = np.linalg.eigh(jacobi)
    return nodes, total * rotation[0] ** 2
