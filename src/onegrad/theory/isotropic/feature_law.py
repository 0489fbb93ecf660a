"""The limiting spectrum of the random features F₀F₀ᵀ/n, as a quartic.

Notation of `traces`: φ = d/n, ψ = d/N, y = 1/ψ, r = φ/ψ = N/n, c₁ and C from σ = Σ c_k H_k.
With ζ = z/c₁², Γ = C/c₁² the Stieltjes transform g(z) = lim (1/n) tr(F₀F₀ᵀ/n − z)⁻¹ is
parametrised by p (see `traces.resolve`), κ = g c₁²/(1+gC) = p/((1−p)(1−yp)):

    c₁² g = p/(N(p) − Γp),   ζ p(1−yp) = (N − Γp)(r p(Γ + 1 − yp) − (1 − yp)),  N = (1−p)(1−yp),

a quartic in p (below in e = 1 − max(1, y)p) for each z, and ζ an explicit rational function
whose stationary values are the edges [pennington2017; the parametrisation is ours, see
docs/isotropic.md].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.theory.isotropic.traces import Traces

Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class FeatureLaw:
    """The quartic of F₀F₀ᵀ/n for given c₁, C, φ, ψ: Stieltjes transform, edges, density."""

    c1: float
    rest: float
    phi: float
    psi: float

    def __post_init__(self) -> None:
        if self.c1 == 0 or not (self.rest >= 0 and self.phi > 0 and self.psi > 0):
            raise AssumptionError(
                f"the feature bulk needs c₁ ≠ 0, C ≥ 0, d/n > 0, d/N > 0; got c₁ = {self.c1:.3g}, "
                f"C = {self.rest:.3g}, d/n = {self.phi:.3g}, d/N = {self.psi:.3g}. Without a "
                "linear part the bulk is that of pure noise: Marchenko–Pastur"
            )

    def _factors(self, e: Any) -> tuple[Any, Any, Any]:
        """p, 1 − p, 1 − yp from e = 1 − max(1, y)p, which is small where they would cancel."""
        y = 1 / self.psi
        if y >= 1:
            return (1 - e) / y, (1 - self.psi) + self.psi * e, e
        return 1 - e, e, (self.psi - 1) / self.psi + y * e

    @cached_property
    def _polynomials(self) -> tuple[Polynomial, Polynomial]:
        """A, B with ζ = A(e)/B(e)."""
        r, gamma = self.phi / self.psi, self.rest / self.c1**2
        p, rest_p, keep = self._factors(Polynomial([0.0, 1.0]))
        if gamma == 0:
            return rest_p * keep * (r * p - 1), p
        return (rest_p * keep - gamma * p) * (r * p * (gamma + keep) - keep), p * keep

    def _place(self, e: Any) -> Any:
        """x = c₁²ζ at e, from the factors rather than from the expanded polynomials."""
        r, gamma = self.phi / self.psi, self.rest / self.c1**2
        p, rest_p, keep = self._factors(e)
        return self.c1**2 * (rest_p * keep - gamma * p) * (r * p * (gamma / keep + 1) - 1) / p

    def _values(self, e: Complex) -> tuple[Complex, Complex, Complex]:
        """g, m₁, m₂ from e."""
        p, rest_p, keep = self._factors(e)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            g = p / (rest_p * keep * self.c1**2 - self.rest * p)
            m1 = self.phi / self.psi * g
            q = rest_p / (1 + g * self.rest)
            return g, m1, m1 / (1 + self.c1**2 * m1 * q / self.phi)

    def stieltjes(self, z: ArrayLike) -> Complex:
        """g(z) = lim (1/n) tr(F₀F₀ᵀ/n − z)⁻¹ for Im z ≥ 0 (on the real axis: from above).

        Of the four roots the one with Im m₁, Im m₂ > 0 and Im(z m₁), Im(z m₂) ≥ 0.
        """
        z = np.asarray(z, complex)
        g, m1, m2 = self._values(self._roots(z.ravel()))
        zz = z.ravel()[:, None]
        worst = np.full(g.shape, np.inf)
        for value in (m1, m2, zz * m1, zz * m2):
            with np.errstate(invalid="ignore", divide="ignore"):
                sine = np.nan_to_num(value.imag / np.abs(value), nan=-1.0)
            worst = np.minimum(worst, sine)
        chosen = np.take_along_axis(g, np.argmax(worst, axis=1)[:, None], axis=1)[:, 0]
        return chosen.reshape(z.shape)

    def _roots(self, z: Complex) -> Complex:
        """Roots e, one row for every z, from companion matrices."""
        a, b = self._polynomials
        top = a.degree()
        table = np.zeros((z.size, top + 1), complex)
        table += np.asarray(a.coef, float)
        table[:, : b.degree() + 1] -= z[:, None] / self.c1**2 * np.asarray(b.coef, float)
        companion = np.zeros((z.size, top, top), complex)
        companion[:, np.arange(1, top), np.arange(top - 1)] = 1.0
        companion[:, :, -1] = -table[:, :-1] / table[:, -1:]
        return np.asarray(np.linalg.eigvals(companion), complex)

    def density(self, x: ArrayLike) -> Array:
        """Density of the eigenvalues x > 0 of F₀F₀ᵀ/n; zero outside the support."""
        x = np.asarray(x, float)
        inside = np.zeros(x.shape, bool)
        for low, high in self.intervals:
            inside |= (x > low) & (x < high)
        result = np.zeros(x.shape)
        if np.any(inside):
            result[inside] = np.maximum(self.stieltjes(x[inside]).imag, 0.0) / math.pi
        return result

    @cached_property
    def stationary(self) -> list[tuple[float, float]]:
        """(e, x) at the real stationary points of x(e), x > 0: every edge is among them."""
        a, b = self._polynomials
        slope = a.deriv() * b - a * b.deriv()
        points = []
        for root in np.asarray(slope.roots(), complex):
            if abs(root.imag) < 1e-7 * abs(root):
                e = _polish(slope, float(root.real))
                with np.errstate(all="ignore"):
                    x = float(self._place(np.float64(e)))
                if math.isfinite(x) and x > 0:
                    points.append((e, x))
        return sorted(points, key=lambda point: point[1])

    @cached_property
    def top(self) -> tuple[float, float]:
        """(e, x) of the upper edge: the minimum of x on the branch e → 1⁺ (p → 0⁻) of x → ∞."""
        candidates = [point for point in self.stationary if point[0] > 1]
        if not candidates:
            raise ConvergenceError("the upper edge of the feature bulk was not found")
        return min(candidates, key=lambda point: point[0])

    @cached_property
    def intervals(self) -> tuple[tuple[float, float], ...]:
        upper = self.top[1]
        # stationary values at rounding level are the hard edge at zero (as many neurons as samples)
        cuts = [x for _, x in self.stationary if 1e-13 * upper < x < upper * (1 - 1e-13)]
        cuts = [0.0, *cuts, upper]
        found: list[tuple[float, float]] = []
        for low, high in pairwise(cuts):
            if high - low < 1e-12 * upper:
                continue
            middle = (low + high) / 2
            # a hair above the axis: outside the support the imaginary part is then tiny
            g = self.stieltjes(middle + 1e-9j * (high - low))
            if g.imag > 1e-6 * abs(g):
                if found and found[-1][1] >= low * (1 - 1e-12):
                    found[-1] = (found[-1][0], high)
                else:
                    found.append((low, high))
        if not found:
            raise ConvergenceError("no support was found for the feature bulk")
        return tuple(found)

    def beyond(self, x: float) -> Traces:
        """m₁, m₂ and their derivatives in λ at λ = −x, for x above the upper edge; m₁, m₂ < 0."""
        from scipy.optimize import brentq  # slow to import, and needed here alone

        e_edge, edge = self.top
        if not x >= edge:
            raise AssumptionError(f"x = {x:.6g} lies below the upper edge {edge:.6g} of the bulk")

        def gap(log_step: float) -> float:
            return math.log(self._place(1.0 + math.exp(log_step)) / x)

        high = math.log(e_edge - 1.0)
        low = high - 2.0
        while gap(low) <= 0:
            low -= 2.0
        e = e_edge if gap(high) >= 0 else 1.0 + math.exp(brentq(gap, low, high, xtol=1e-14))
        g, m1, m2 = (float(v.real) for v in self._values(np.asarray(e, complex)))
        p, rest_p, keep = self._factors(e)
        y, r = 1 / self.psi, self.phi / self.psi
        u = 1 / (1 + g * self.rest)
        kappa = g * self.c1**2 * u
        slope_p = rest_p * keep / (1 + kappa * (1 + y) - 2 * kappa * y * p) * (self.c1 * u) ** 2
        dq = -(rest_p * self.rest * u**2 + slope_p * u)
        dg = -g / (-x - r * dq) if x > edge else -math.inf
        dm1 = r * dg
        dm2 = m2**2 * (dm1 / m1**2 - self.c1**2 / self.phi * dq * dg)
        wrap = np.asarray
        return Traces(wrap(m1), wrap(m2), wrap(dm1), wrap(dm2), wrap(g), residual=0.0)

    def edge_scale(self) -> float:
        """γ = (x''(g)/2)^(1/3) at the upper edge, from πρ ≈ √(2(E − x)/x''(g))."""
        e, _ = self.top
        a, b = self._polynomials
        slope = (a.deriv() * b - a * b.deriv()).deriv()
        curvature = float(slope(e) / b(e) ** 2) * self.c1**2  # ∂²x/∂e², the first one vanishes
        # g = p/(c₁²N − Cp), so ∂g/∂p = c₁²(1 − yp²)/(c₁²N − Cp)², and ∂p/∂e = −1/max(1, y)
        p, rest_p, keep = self._factors(e)
        y = 1 / self.psi
        dg = self.c1**2 * (1 - y * p**2) / (self.c1**2 * rest_p * keep - self.rest * p) ** 2
        return float((curvature * (max(1.0, y) / dg) ** 2 / 2) ** (1.0 / 3.0))


def _polish(polynomial: Polynomial, x: float) -> float:
    slope = polynomial.deriv()
    for _ in range(3):
        s = slope(x)
        if s == 0:
            break
        step = float(polynomial(x) / s)
        if not abs(step) < 1e-3 * (abs(x) + 1e-300):
            break
        x -= step
    return x
