"""Activations and links as the isotropic theory sees them, and the size of the first step.

Hermite normalisation: c_k = E[σ(Z)H_k(Z)]/k!, so that σ = Σ c_k H_k and E σ² = Σ k! c_k².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.hermite import Array, gaussian_mean, power_to_hermite, sqrt_factorial

MAX_DEGREE = 24
GRADIENTS = ("exact", "labels-only")
_NEGLIGIBLE = 1e-9  # Hermite coefficients below this part of the norm count as absent


@dataclass(frozen=True)
class Features:
    """An activation as the isotropic theory sees it: c_k for k = 0…, and C = Σ_{k≥2} k! c_k²."""

    coefficients: tuple[float, ...]
    rest: float

    @property
    def c1(self) -> float:
        return self.coefficients[1]

    def active(self, degree: int) -> tuple[int, ...]:
        """K = {1 ≤ k ≤ degree : c_k ≠ 0}; odd activations have no even spikes."""
        norm = math.sqrt(self.c1**2 + self.rest)
        return tuple(
            k
            for k in range(1, min(degree, len(self.coefficients) - 1) + 1)
            if abs(self.coefficients[k]) * math.sqrt(math.factorial(k)) > _NEGLIGIBLE * norm
        )


@dataclass(frozen=True)
class Link:
    """The teacher y = f(β_*ᵀx) + ε, |β_*| = 1: c_{*k} = E[f(Z)H_k(Z)]/k! and E f(Z)².

    `second_moment` may exceed Σ k! c_{*k}²: the part of high degree that no spike reaches.
    A mean c_{*0} ≠ 0 is allowed (the source sets it to zero).
    """

    coefficients: tuple[float, ...]
    second_moment: float

    def __post_init__(self) -> None:
        given = sum(math.factorial(k) * c**2 for k, c in enumerate(self.coefficients))
        if not self.second_moment >= given * (1 - 1e-9) - 1e-12:
            raise AssumptionError(
                f"the link's second moment {self.second_moment:.6g} is smaller than "
                f"Σ k! c_k² = {given:.6g} of the coefficients given; pass E f(Z)²"
            )

    def padded(self, degree: int) -> Array:
        """c_{*0}, …, c_{*degree}."""
        full = np.zeros(max(degree, len(self.coefficients) - 1) + 1)
        full[: len(self.coefficients)] = self.coefficients
        return full[: degree + 1]

    @property
    def linear(self) -> float:
        return self.coefficients[1] if len(self.coefficients) > 1 else 0.0


@lru_cache(maxsize=256)
def _expansion(activation: Activation) -> tuple[tuple[float, ...], float]:
    c = activation.coefficients(MAX_DEGREE)
    square = float(activation.second_moment())
    # what quadrature leaves of a coefficient that vanishes by symmetry is not a coefficient
    c[np.abs(c) * sqrt_factorial(MAX_DEGREE) < 1e-12 * math.sqrt(square)] = 0.0
    return tuple(float(v) for v in c), square


def features_of(activation: Activation) -> Features:
    """c_k and C of an activation; its mean c₀ is taken off, as the source assumes."""
    coefficients, square = _expansion(activation)
    rest = square - coefficients[0] ** 2 - coefficients[1] ** 2
    if rest < 1e-11 * (square + 1e-300):
        rest = 0.0
    return Features((0.0, *coefficients[1:]), rest)


def mean_of(activation: Activation) -> float:
    """c₀ = E σ(Z), which the theory takes off."""
    return _expansion(activation)[0][0]


def link_of(link: Link | Activation | Sequence[float]) -> Link:
    """A Link from an activation, or from its Hermite coefficients (c_{*0}, c_{*1}, …).

    >>> link_of([0.0, 1.0, 0.5]).second_moment    # 1 + 2!·0.25
    1.5
    """
    if isinstance(link, Link):
        return link
    if isinstance(link, Activation):
        coefficients, square = _expansion(link)
        return Link(coefficients, max(square, 0.0))
    values = tuple(float(c) for c in link)
    if not values or len(values) > MAX_DEGREE + 1 or not np.all(np.isfinite(values)):
        raise AssumptionError(
            f"link coefficients must be 1 to {MAX_DEGREE + 1} finite numbers (c₀, c₁, …); "
            "for another link pass the Activation itself"
        )
    return Link(values, float(sum(math.factorial(k) * c**2 for k, c in enumerate(values))))


def direction_norm2(
    features: Features, link: Link, noise_variance: float, step_phi: ArrayLike, gradient: str
) -> Array:
    """s² = lim |β|², β = X̃₁ᵀr/n₁, step_phi = d/n₁ (broadcasts over it).

    "labels-only" (r = y): c_{*1}² + (d/n₁)(E f² + σ_ε²)  [moniri2024]. "exact" (r = y − f₀):
    the initial output f₀ = F₀a is of order one and adds c₁² + (d/n₁)(c₁² + C).
    """
    step_phi = np.asarray(step_phi, float)
    s2 = link.linear**2 + step_phi * residual_moment(features, link, noise_variance, gradient)
    if gradient == "exact":
        s2 = s2 + features.c1**2
    if not np.all(s2 > 0):
        raise AssumptionError(
            "the labels vanish, so the first step has no direction; use a link or a noise "
            "variance that is not zero"
        )
    return s2


def residual_moment(features: Features, link: Link, noise_variance: float, gradient: str) -> float:
    """E r² on the first step: E f² + σ_ε², plus E f₀² = c₁² + C with the exact gradient."""
    check_gradient(gradient)
    own = features.c1**2 + features.rest if gradient == "exact" else 0.0
    return link.second_moment + noise_variance + own


def check_gradient(gradient: str) -> None:
    if gradient not in GRADIENTS:
        raise AssumptionError(
            f'gradient = "{gradient}" must be "exact" (residual y − f₀) or "labels-only" '
            "(residual y, as the source idealises)"
        )


def check_linear_part(features: Features) -> None:
    if abs(features.c1) <= _NEGLIGIBLE * math.sqrt(features.c1**2 + features.rest):
        raise AssumptionError(
            f"the activation has c₁ = E[σ(Z)Z] = {features.c1:.2g}: without a linear part the "
            "first step is not rank one and this theory does not apply. Use an activation with "
            "c₁ ≠ 0, or the conditional Gaussian theory, which makes no such assumption"
        )


def check_centred_labels(features: Features, link: Link) -> None:
    if link.coefficients[0] != 0 and 2 in features.active(2):
        raise AssumptionError(
            f"the labels have mean c₀ = {link.coefficients[0]:.3g} and the activation c₂ ≠ 0: the "
            "first spike then learns a constant too, which the formulas degree by degree do not "
            "contain. Take the mean off the labels, or use the finite-step version (method "
            '"isotropic")'
        )


@lru_cache(maxsize=256)
def slope_moment(activation: Activation) -> float:
    """E σ'(Z)²."""
    return float(gaussian_mean(lambda x: activation.derivative(x) ** 2, kinks=activation.kinks))


def swelling_of(
    activation: Activation, link: Link, noise_variance: float, step_phi: float, gradient: str
) -> float:
    """κ = (d/n₁) E r² (E σ'² − c₁²)/(c₁s)²: how much the step lengthens a neuron across β.

    Row j of the gradient is a_j(c₁β + noise), the noise of squared norm
    (d/n₁)E r²(E σ'² − c₁²) and orthogonal to β and w_j: |w_j|² grows by κ(ηc₁s a_j)². Small as a
    matrix, this shifts the mean of feature j by c₂ times as much, so that beside
    c₂(ηc₁X̃β)²(a²)ᵀ there is the equally strong c₂κ(ηc₁s)²1(a²)ᵀ, which [moniri2024] leaves out.
    """
    features = features_of(activation)
    s2 = float(direction_norm2(features, link, noise_variance, step_phi, gradient))
    noise = step_phi * residual_moment(features, link, noise_variance, gradient)
    return noise * max(slope_moment(activation) - features.c1**2, 0.0) / (features.c1**2 * s2)


def swollen_powers(order: int, swelling: float = 0.0) -> Array:
    """ξ with E(x + √κ Z)ᵖ = Σ_i ξ[p, i]·H_i(x), κ = `swelling`; for κ = 0 the plain powers."""
    k = np.arange(order + 1)
    return power_to_hermite(order) * (1.0 + swelling) ** (np.maximum(k[:, None] - k, 0) / 2)
