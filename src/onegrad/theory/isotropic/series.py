"""Hermite series of activations and links, as the isotropic theory uses them.

Hermite normalisation: c_k = E[σ(Z)H_k(Z)]/k!, so that σ = Σ c_k H_k and E σ² = Σ k! c_k².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.polynomials import power_to_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gaussian_mean

MAX_DEGREE = 24
_NEGLIGIBLE = 1e-9  # Hermite coefficients below this part of the norm count as absent


@dataclass(frozen=True)
class ActivationSeries:
    """c_k of an activation whose mean is taken off (c₀ = 0), C = Σ_{k≥2} k! c_k², that mean."""

    coefficients: tuple[float, ...]
    rest: float
    mean: float = 0.0

    @classmethod
    def of(cls, activation: Activation) -> ActivationSeries:
        coefficients, square = _expansion(activation)
        rest = square - coefficients[0] ** 2 - coefficients[1] ** 2
        if rest < 1e-11 * (square + 1e-300):
            rest = 0.0
        return cls((0.0, *coefficients[1:]), rest, coefficients[0])

    @property
    def c1(self) -> float:
        return self.coefficients[1]

    @property
    def norm(self) -> float:
        """√(E (σ − E σ)²)."""
        return math.sqrt(self.c1**2 + self.rest)

    def active(self, degree: int) -> tuple[int, ...]:
        """K = {1 ≤ k ≤ degree : c_k ≠ 0}; odd activations have no even spikes."""
        return tuple(
            k
            for k in range(1, min(degree, len(self.coefficients) - 1) + 1)
            if abs(self.coefficients[k]) * math.sqrt(math.factorial(k)) > _NEGLIGIBLE * self.norm
        )


@dataclass(frozen=True)
class LinkSeries:
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

    @classmethod
    def of(cls, link: Activation) -> LinkSeries:
        coefficients, square = _expansion(link)
        return cls(coefficients, max(square, 0.0))

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
    """c₀, …, c₂₄ and E σ(Z)²."""
    c = activation.coefficients(MAX_DEGREE)
    square = float(activation.second_moment())
    # coefficients that vanish by symmetry: quadrature noise is set to zero
    c[np.abs(c) * sqrt_factorial(MAX_DEGREE) < 1e-12 * math.sqrt(square)] = 0.0
    return tuple(float(v) for v in c), square


@lru_cache(maxsize=256)
def slope_moment(activation: Activation) -> float:
    """E σ'(Z)²."""
    return float(
        gaussian_mean(lambda x: activation.derivative(x) ** 2, breakpoints=activation.breakpoints)
    )


def inflated_powers(order: int, inflation: float = 0.0) -> Array:
    """ξ with E(x + √κ Z)ᵖ = Σ_i ξ[p, i]·H_i(x), κ = `inflation`; for κ = 0 the plain powers."""
    k = np.arange(order + 1)
    return power_to_hermite(order) * (1.0 + inflation) ** (np.maximum(k[:, None] - k, 0) / 2)
