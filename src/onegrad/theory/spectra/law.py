"""A limiting law of eigenvalues on a grid, as a histogram is drawn against it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onegrad.compute.backend import Array
from onegrad.theory.spectra.resolvent import Resolvent

_TW1_999 = 3.2724  # 99.9 % quantile of the real Tracy–Widom law
_GRID = 72  # singular values: shares of eigenvalues to 1e-3
_WIDEST = 2.0  # largest γ over the edge; 0.63 for a square white matrix


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
    def of(cls, resolvent: Resolvent, atom: float, tail: bool = False) -> SpectralLaw:
        """From the resolvent, with `atom` the share of eigenvalues that are zero by their rank.

        The grid is from a hundredth of the edge on, with quadratic steps: singular values of a bulk
        that is not flat are mostly far below the edge, and with equal steps their shares were .02
        off on a power law.

        tail : near the edge alone, which is all that a `threshold` needs
        """
        edge = resolvent.edge()
        share = np.linspace(math.sqrt(0.01), 1.0, _GRID) ** 2
        near = (share > 0.80) & (share < 0.95)  # where the density vanishes like a square root
        if tail:
            share, near = share[near], near[near]
        s = math.sqrt(edge) * share
        density = resolvent.stieltjes(s**2)
        # πρ ≈ C√(E − x), γ = C^(−2/3); beyond a gap the grid sees next to none of a narrow last
        # part, whose slope is a steep one
        slope = float(np.median(np.pi * density[near] / np.sqrt(edge - s[near] ** 2)))
        scale = min(max(slope, 1e-300) ** (-2.0 / 3.0), _WIDEST * edge)
        density = 2 * s * density / max(1 - atom, 1e-12)
        if not tail:
            density[-1] = 0.0
        s, density = np.append(0.0, s), np.append(density[0], density)
        return cls(s, density / float(np.trapezoid(density, s)), atom, edge, scale)

    def singular_density(self, values: ArrayLike) -> Array:
        """Density at s of the singular values above zero."""
        return np.interp(np.asarray(values, float), self.values, self.densities, right=0.0)

    def singular_cdf(self, values: ArrayLike) -> Array:
        """Share of the singular values above zero that are ≤ s."""
        steps = np.diff(self.values) * (self.densities[1:] + self.densities[:-1]) / 2
        total = np.concatenate([[0.0], np.cumsum(steps)])
        return np.interp(np.asarray(values, float), self.values, total / total[-1])

    def threshold(self, size: int) -> float:
        """Singular value above which one of `size` counts as an outlier: one draw in a thousand of
        the bulk leaks further."""
        return math.sqrt(self.edge + _TW1_999 * self.edge_scale * size ** (-2.0 / 3.0))

    def distance(self, singular_values: Array) -> float:
        """Kolmogorov distance of a sample of singular values above zero, outliers included."""
        found = np.sort(np.asarray(singular_values, float))
        expected, count = self.singular_cdf(found), len(found)
        above = np.abs(np.arange(1, count + 1) / count - expected)
        return float(np.maximum(above, np.abs(np.arange(count) / count - expected)).max())
