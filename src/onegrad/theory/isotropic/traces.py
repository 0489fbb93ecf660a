"""Limiting traces m₁, m₂ of the random-feature resolvent, and their ridge derivatives.

n samples, N neurons, d inputs; φ = d/n, ψ = d/N; F₀ = σ(X̃W₀ᵀ) is n×N with X̃ ~ N(0, 1),
W₀ ~ N(0, 1/d), c_k = E[σ(Z)H_k(Z)]/k! (so that σ = Σ c_k H_k), c₀ = 0, C = Σ_{k≥2} k! c_k².
With g = lim (1/n) tr(F₀F₀ᵀ/n + λI)⁻¹:

* m₁ = (φ/ψ) lim tr(F₀F₀ᵀ + λnI)⁻¹ = (φ/ψ) g,
* m₂ = (φ/ψ) lim (1/d) tr X̃ᵀ(F₀F₀ᵀ + λnI)⁻¹X̃

[moniri2024, slide "Analysis of Training/Test Error"; pennington2017; adlam2020].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError

_ITERATIONS = 200
_SETTLED = 1e-13


@dataclass(frozen=True)
class Traces:
    """m₁, m₂, their derivatives in the ridge, and g = (ψ/φ)m₁; arrays or numbers alike.

    The derivatives are negative. `residual` is that of the self-consistent equation, whose
    terms are of order one.
    """

    m1: Array
    m2: Array
    dm1: Array
    dm2: Array
    g: Array
    residual: float


class Resolved(NamedTuple):
    """What the weights contribute at a given g; every entry is free of cancellation."""

    p: Array  # 1 − (1/N) tr(I + κW₀W₀ᵀ)⁻¹
    one_minus_p: Array
    one_minus_yp: Array  # (1/d) tr(I + κW₀ᵀW₀)⁻¹
    q: Array  # (1/N) tr(I + g·Cov F₀)⁻¹
    dq: Array  # ∂q/∂g


def resolve(g: Array, c1: float, rest: float, psi: Array) -> Resolved:
    """p, q and ∂q/∂g from κ = g c₁²/(1+gC), y = 1/ψ, for g > 0.

    p solves p = κ(1−p)(1−yp). Its two factors are rationalised where they would cancel.
    """
    u = 1.0 / (1.0 + g * rest)
    kappa = g * c1**2 * u
    y = 1.0 / psi
    a = kappa * (psi - 1.0) / psi
    low, high = 1.0 - a, 1.0 + a
    root = np.sqrt(low**2 + 4.0 * kappa)
    denominator = 1.0 + kappa + kappa * y + root
    p = 2.0 * kappa / denominator
    one_minus_p = _plus(low, root, 4.0 * kappa) / denominator
    one_minus_yp = _plus(high, root, 4.0 * kappa * y) / denominator
    q = u * one_minus_p
    slope_p = one_minus_p * one_minus_yp / root * (c1 * u) ** 2
    dq = -(one_minus_p * rest * u**2 + slope_p * u)
    return Resolved(p, one_minus_p, one_minus_yp, q, dq)


def _plus(x: Array, root: Array, excess: Array) -> Array:
    """x + root where root² = x² + excess, without cancellation for x < 0."""
    return np.where(x >= 0, x + root, excess / (root - np.minimum(x, 0.0)))


def _equation(
    g: Array, c1: float, rest: float, phi: Array, psi: Array, ridge: Array
) -> tuple[Array, Array]:
    """f(g) = λg + (φ/ψ)(1 − q(g)) − 1 and ∂f/∂g.

    Three algebraically equal forms; each point uses the one whose terms are smallest, since
    φ ≈ ψ (as many neurons as samples) and φ ≈ 1 with C ≈ 0 cancel in the plain one.
    """
    at = resolve(g, c1, rest, psi)
    ratio = phi / psi
    u = 1.0 / (1.0 + g * rest)
    v = g * rest * u
    shared = ridge * g
    forms = (
        (ratio * v, ratio * u * at.p, -1.0),
        ((phi - psi) / psi, -ratio * at.q, 0.0),
        (phi - 1.0, phi * (1.0 - psi) / psi * v, -phi * u * at.one_minus_yp),
    )
    values = np.stack([np.broadcast_to(shared + a + b + c, g.shape) for a, b, c in forms])
    sizes = np.stack(
        [np.broadcast_to(np.abs(a) + np.abs(b) + np.abs(c), g.shape) for a, b, c in forms]
    )
    best = np.argmin(sizes, axis=0)[None]
    return np.take_along_axis(values, best, axis=0)[0], ridge - ratio * at.dq


def limiting_traces(
    c1: float, rest: float, phi: ArrayLike, psi: ArrayLike, ridge: ArrayLike
) -> Traces:
    """m₁, m₂, ∂m₁/∂λ, ∂m₂/∂λ for c₁, C = `rest`, φ, ψ and λ = `ridge`; broadcasts (eq. traces).

    The ridge is that of (1/n)‖y − F a‖² + λ‖a‖². g is the only root in (0, 1/λ] of the
    increasing f(g) = λg + (φ/ψ)(1 − q(g)) − 1; 1/g lies in [λ, λ + (φ/ψ)(c₁² + C)].
    Newton's method in log g, bisected whenever it leaves that bracket or stalls. Accuracy:
    better than 1e-9 relative for φ, ψ in 1e-3…1e3 and λ in 1e-8…1e4.

    >>> t = limiting_traces(0.5, 0.0908450569081046, 0.5, 0.8, 0.1)   # relu − mean
    >>> [f"{float(v):.9f}" for v in (t.m1, t.m2)]
    ['3.940857344', '2.182540578']
    """
    phi, psi, ridge = np.broadcast_arrays(
        np.asarray(phi, float), np.asarray(psi, float), np.asarray(ridge, float)
    )
    _check(c1, rest, phi, psi, ridge)
    t, residual = _solve(c1, rest, phi, psi, ridge)
    g = np.exp(t)
    at = resolve(g, c1, rest, psi)
    ratio = phi / psi
    dg = -g / (ridge - ratio * at.dq)
    m1, dm1 = ratio * g, ratio * dg
    m2 = m1 / (1.0 + c1**2 * m1 * at.q / phi)
    dm2 = m2**2 * (dm1 / m1**2 - c1**2 / phi * at.dq * dg)
    return Traces(m1, m2, dm1, dm2, g, residual)


def _solve(c1: float, rest: float, phi: Array, psi: Array, ridge: Array) -> tuple[Array, float]:
    low = -np.log(ridge + phi / psi * (c1**2 + rest))
    high = -np.log(ridge)
    low, high = low - 1e-14 * (1 + np.abs(low)), high + 1e-14 * (1 + np.abs(high))
    t = 0.5 * (low + high)
    previous = high - low
    f = np.full_like(t, np.inf)
    for _ in range(_ITERATIONS):
        g = np.exp(t)
        f, slope = _equation(g, c1, rest, phi, psi, ridge)
        low, high = np.where(f < 0, t, low), np.where(f < 0, high, t)
        # in log g, log(1 + f) is nearly piecewise linear: Newton goes far in one step
        newton = -np.log1p(f) * (1.0 + f) / (g * slope)
        settled = np.abs(newton) <= _SETTLED * (1.0 + np.abs(t))
        good = (t + newton > low) & (t + newton < high) & (2.0 * np.abs(newton) < previous)
        step = np.where(good | settled, newton, 0.5 * (low + high) - t)
        t = t + step
        previous = np.abs(step)
        if np.all(settled):
            return t, float(np.max(np.abs(f)))
    raise ConvergenceError(
        f"the traces of the random features did not settle in {_ITERATIONS} steps (last change "
        f"{float(np.max(previous)):.1e}); keep d/n and d/N within 1e-3…1e3 and the ridge within "
        "1e-8…1e4"
    )


def _check(c1: float, rest: float, phi: Array, psi: Array, ridge: Array) -> None:
    if not (np.isfinite(c1) and np.isfinite(rest) and rest >= 0 and c1**2 + rest > 0):
        raise AssumptionError(
            f"the activation has c₁ = {c1:.3g} and C = Σ_{{k≥2}} k! c_k² = {rest:.3g}; "
            "both must be finite, C ≥ 0, and not both zero: use an activation that is not constant"
        )
    for name, values in (("d/n", phi), ("d/N", psi), ("ridge", ridge)):
        if not np.all((values > 0) & np.isfinite(values)):
            raise AssumptionError(
                f"{name} = {np.min(values):.3g} must be positive and finite; for no ridge at all "
                "use a small one such as 1e-8"
            )
