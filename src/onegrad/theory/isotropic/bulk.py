"""Limiting spectra without spikes: the random features F₀F₀ᵀ/n and the weights W₀W₀ᵀ.

Laws of eigenvalues; n samples, N neurons, d inputs, φ = d/n, ψ = d/N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dct, dst

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.theory.isotropic.feature_law import FeatureLaw

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

_TW1_999 = 3.2724  # 99.9 % quantile of the real Tracy–Widom law
_GRID = 512


@dataclass(frozen=True)
class Bulk:
    """A limiting eigenvalue law: an atom at zero and a density on `intervals`.

    It is a law of eigenvalues (of F₀F₀ᵀ/n, or of W₀W₀ᵀ); the singular values of F₀/√n and W₀
    are their square roots. `density` integrates to 1 − `atom`. `edge_scale` is γ in
    (largest eigenvalue − edge) ≈ γ·size^(−2/3)·(Tracy–Widom variable).
    """

    intervals: tuple[tuple[float, float], ...]
    atom: float
    density: Callable[[ArrayLike], Array]
    edge_scale: float
    _cache: dict[str, list[tuple[float, CubicSpline]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def edge(self) -> float:
        """Upper edge, as an eigenvalue."""
        return self.intervals[-1][1]

    def margin(self, size: int) -> float:
        """What to add to `edge` before an eigenvalue counts as a spike, for `size` of them.

        One draw in a thousand of a Gaussian bulk leaks further.
        """
        return _TW1_999 * self.edge_scale * size ** (-2.0 / 3.0)

    def threshold(self, size: int, edge_margin: float = 0.0) -> float:
        """Singular value (root of an eigenvalue) above which one of `size` counts as a spike."""
        return math.sqrt(self.edge + self.margin(size) + edge_margin)

    def singular_density(self, values: Array) -> Array:
        """Density at s > 0 of the nonzero singular values, from that of the eigenvalues s²."""
        return 2 * values * self.density(values**2) / (1 - self.atom)

    def mass(self) -> float:
        """Atom plus the integral of the density: 1 up to the error of the integration."""
        return self.atom + sum(float(spline(1.0)) for _, spline in self._integrals())

    def cdf(self, x: ArrayLike) -> Array:
        """Fraction of eigenvalues ≤ x, with the atom; accurate to about 1e-8."""
        x = np.asarray(x, float)
        total = np.where(x >= 0, self.atom, 0.0)
        for (low, high), (start, spline) in zip(self.intervals, self._integrals(), strict=True):
            middle, half = _window(low, high)
            cosine = np.clip((middle - np.sqrt(np.clip(x, low, high))) / half, -1.0, 1.0)
            part = (np.arccos(cosine) - start) / (math.pi - start)
            total = total + spline(np.clip(part, 0.0, 1.0))
        return total

    def _integrals(self) -> list[tuple[float, CubicSpline]]:
        if "integrals" not in self._cache:
            self._cache["integrals"] = [self._integrate(*i) for i in self.intervals]
        return self._cache["integrals"]

    def _integrate(self, low: float, high: float) -> tuple[float, CubicSpline]:
        """Cumulative integral in θ, √x = middle − half·cos θ, where the integrand is smooth.

        Midpoint sums of a smooth even periodic function converge geometrically; the cosine
        series they give is integrated term by term.
        """
        from scipy.interpolate import CubicSpline  # slow to import, and needed here alone

        middle, half = _window(low, high)
        start = math.pi / 2 if middle == 0 else 0.0
        count, previous = _GRID, math.nan
        while True:
            theta = start + (np.arange(count) + 0.5) * (math.pi - start) / count
            s = middle - half * np.cos(theta)
            values = self.density(s**2) * 2 * s * half * np.sin(theta) * (math.pi - start)
            total = float(values.mean())
            if abs(total - previous) < 1e-9:
                break
            if count >= 64 * _GRID:
                raise ConvergenceError(
                    f"the limiting density on [{low:.4g}, {high:.4g}] does not integrate to 1e-9; "
                    "the bulk is about to split or touch zero: move d/n or d/N slightly"
                )
            count, previous = 2 * count, total
        series = dct(values, type=2) / count
        k = np.arange(1, count)
        fine = np.linspace(0.0, 1.0, 2 * count + 1)
        padded = np.zeros(2 * count + 1)
        padded[1:count] = series[1:] / (math.pi * k)
        waves = np.zeros(2 * count + 1)
        waves[1:-1] = dst(padded[1:-1], type=1) / 2
        return start, CubicSpline(fine, total * fine + waves)


def _window(low: float, high: float) -> tuple[float, float]:
    """Middle and half width in √x; a bulk that touches zero is continued to negative √x."""
    a, b = math.sqrt(low), math.sqrt(high)
    return (0.0, b) if low == 0 else ((a + b) / 2, (b - a) / 2)


def weight_bulk(psi: float) -> Bulk:
    """Marchenko–Pastur law of W₀W₀ᵀ, W₀ of size N×d with entries N(0, 1/d), ψ = d/N.

    An atom 1 − ψ at zero when there are more neurons than inputs.
    """
    if not (psi > 0 and math.isfinite(psi)):
        raise AssumptionError(f"d/N = {psi} must be positive and finite")
    y = 1.0 / psi
    low, high = (1 - math.sqrt(y)) ** 2, (1 + math.sqrt(y)) ** 2

    def density(x: ArrayLike) -> Array:
        x = np.asarray(x, float)
        inside = np.maximum((high - x) * (x - low), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(inside > 0, np.sqrt(inside) / (2 * math.pi * y * x), 0.0)

    # πρ ≈ √(E − x)·√(E − E₋)/(2yE) and γ = (πρ/√(E−x))^(−2/3)
    scale = (math.sqrt(high - low) / (2 * y * high)) ** (-2.0 / 3.0)
    return Bulk(((low, high),), max(0.0, 1.0 - psi), density, scale)


def feature_bulk(c1: float, rest: float, phi: float, psi: float) -> Bulk:
    """Limiting law of F₀F₀ᵀ/n (n×n): density, edges, and the atom at zero from its rank.

    The rank is min(n, N), or min(n, N, d) for a linear activation (C = 0).

    >>> bulk = feature_bulk(0.5, 0.0908450569081046, 0.5, 0.8)     # relu − mean
    >>> abs(bulk.mass() - 1) < 1e-6
    True
    """
    law = FeatureLaw(c1, rest, phi, psi)
    rank = min(1.0, phi / psi) if rest > 0 else min(1.0, phi / psi, phi)
    return Bulk(law.intervals, 1.0 - rank, law.density, law.edge_scale())
