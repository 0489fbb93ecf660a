"""A limiting law of eigenvalues on a grid, as a histogram is drawn against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onegrad.compute.backend import Array
from onegrad.theory.spectral.resolvent import Resolvent

_TW1_999 = 3.2724  # 99.9 % quantile of the real Tracy–Widom law
_GRID = 72
_LOWEST = 0.01  # of the edge, where the grid of singular values begins
_NEAR = (0.80, 0.95)  # of the edge, where the density vanishes like a square root
_WIDEST = 2.0  # γ over the edge; 0.63 for a square white matrix


@dataclass(frozen=True)
class SpectralLaw:
    """Law of the eigenvalues of FᵀF/m or ŴŴᵀ: an atom at zero and a density below `edge`.

    values, densities : a grid of singular values s = √x, and the density of those above zero there
    edge_scale : γ in (largest eigenvalue − edge) ≈ γ·size^(−2/3)·(Tracy–Widom variable)
    """

    values: Array
    densities: Array
    atom: float
    edge: float
    edge_scale: float

    @classmethod
    def of(cls, resolvent: Resolvent, atom: float) -> SpectralLaw:
        """From the resolvent, with `atom` the share of eigenvalues that are zero by their rank."""
        edge = resolvent.edge()
        s, near = _grid(edge)
        density = resolvent.stieltjes(s**2)
        scale = _edge_scale(s[near], density[near], edge)
        density = 2 * s * density / max(1 - atom, 1e-12)
        density[-1] = 0.0
        s = np.concatenate([[0.0], s])
        density = np.concatenate([density[:1], density])
        mass = float(np.trapezoid(density, s))
        return cls(s, density / mass, atom, edge, scale)

    def singular_density(self, values: ArrayLike) -> Array:
        """Density at s of the singular values above zero."""
        return np.interp(np.asarray(values, float), self.values, self.densities, right=0.0)

    def singular_cdf(self, values: ArrayLike) -> Array:
        """Share of the singular values above zero that are ≤ s."""
        steps = np.diff(self.values) * (self.densities[1:] + self.densities[:-1]) / 2
        total = np.concatenate([[0.0], np.cumsum(steps)])
        return np.interp(np.asarray(values, float), self.values, total / total[-1])

    def threshold(self, size: int, edge_margin: float = 0.0) -> float:
        """Singular value above which one of `size` counts as an outlier: one draw in a thousand of
        the bulk leaks further."""
        leak = _TW1_999 * self.edge_scale * size ** (-2.0 / 3.0)
        return math.sqrt(self.edge + leak + edge_margin)

    def distance(self, singular_values: Array) -> float:
        """Kolmogorov distance of a sample of singular values above zero, outliers included."""
        found = np.sort(np.asarray(singular_values, float))
        expected, count = self.singular_cdf(found), len(found)
        above = np.abs(np.arange(1, count + 1) / count - expected)
        return float(np.maximum(above, np.abs(np.arange(count) / count - expected)).max())


def edge_and_threshold(resolvent: Resolvent, size: int) -> tuple[float, float]:
    """√E and `threshold` alone: the density is solved for near the edge, not along the bulk."""
    edge = resolvent.edge()
    s, near = _grid(edge)
    density = resolvent.stieltjes(s[near] ** 2)
    law = SpectralLaw(s[near], density, 0.0, edge, _edge_scale(s[near], density, edge))
    return math.sqrt(edge), law.threshold(size)


def _grid(edge: float) -> tuple[Array, NDArray[np.bool_]]:
    """Singular values up to the edge, and which of them γ is read from.

    Those of a bulk that is not flat are mostly far below the edge: with equal steps their shares
    were .02 off on a power law.
    """
    share = np.linspace(math.sqrt(_LOWEST), 1.0, _GRID) ** 2
    return math.sqrt(edge) * share, (share > _NEAR[0]) & (share < _NEAR[1])


def _edge_scale(s: Array, density: Array, edge: float) -> float:
    """γ from the density of eigenvalues at s²: πρ ≈ C√(E − x), γ = C^(−2/3)."""
    root = max(float(np.median(np.pi * density / np.sqrt(edge - s**2))), 1e-300)
    # beyond a gap the grid sees next to none of a narrow last part, whose slope is a steep one
    return min(root ** (-2.0 / 3.0), _WIDEST * edge)
