"""Gauss rules for a standard Gaussian on pieces of a line, for functions that bend or jump."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, roots_legendre

from onegrad.compute.backend import Array

REACH = 8.5  # standard deviations at which Gaussian integrals are cut off
_ENDS = slice(None, -1), slice(1, None)
_FINE = 24  # panels of the discretised half-line from which a Gauss rule is made


@lru_cache(maxsize=512)
def piecewise_gauss(breaks: tuple[float, ...], order: int) -> tuple[Array, Array]:
    """Gauss rules of `order` nodes for φ(z) restricted to each piece between the breaks.

    Exact for functions that are polynomials of degree < 2·order on every piece: half-range
    rules where there is one break. Pieces of probability below 1e-12 are left out.
    """
    return piecewise_rules([breaks], order)[0]


def piecewise_rules(lines: Sequence[tuple[float, ...]], order: int) -> list[tuple[Array, Array]]:
    """`piecewise_gauss` of several choices of breaks, all pieces made together."""
    edges = [[-REACH, *sorted(b for b in breaks if abs(b) < REACH), REACH] for breaks in lines]
    owner = np.repeat(np.arange(len(lines)), [len(line) - 1 for line in edges])
    low, high = (np.concatenate([line[part] for line in edges]) for part in _ENDS)
    kept = ndtr(high) - ndtr(low) > 1e-12
    owner = owner[kept]
    nodes, weights = _restricted_gauss(low[kept], high[kept], order)
    found = []
    for number in range(len(lines)):
        mine = owner == number
        w = weights[mine].ravel()
        found.append((nodes[mine].ravel(), w / w.sum()))
    return found


def _restricted_gauss(low: Array, high: Array, order: int) -> tuple[Array, Array]:
    """Gauss rules (P, order) of φ on pieces [low, high], by Lanczos on fine discretisations."""
    x, w = _legendre()
    panel = (high - low)[:, None] / _FINE
    starts = low[:, None] + panel * np.arange(_FINE)
    z = (starts[..., None] + panel[..., None] * (x + 1) / 2).reshape(len(low), -1)
    mass = np.tile(w, _FINE) * panel / 2 * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    total = mass.sum(axis=1, keepdims=True)
    vectors = np.zeros((len(low), order, z.shape[1]))
    vectors[:, 0] = np.sqrt(mass / total)
    jacobi = np.zeros((len(low), order, order))
    for j in range(order):
        v = z * vectors[:, j]
        jacobi[:, j, j] = np.einsum("pz,pz->p", v, vectors[:, j])
        known = vectors[:, : j + 1]
        for _ in range(2):  # full reorthogonalisation: the order is small
            v -= (known.mT @ (known @ v[..., None]))[..., 0]
        if j + 1 < order:
            size = np.linalg.norm(v, axis=1)
            jacobi[:, j, j + 1] = jacobi[:, j + 1, j] = size
            vectors[:, j + 1] = v / size[:, None]
    nodes, rotation = np.linalg.eigh(jacobi)
    return nodes, total * rotation[:, 0] ** 2


@lru_cache(maxsize=1)
def _legendre() -> tuple[Array, Array]:
    x, w = roots_legendre(16)
    return x, w
