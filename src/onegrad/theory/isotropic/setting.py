"""What the isotropic theory knows of a problem: two Hermite series and a few numbers.

Hermite normalisation: c_k = E[σ(Z)H_k(Z)]/k!, so that σ = Σ c_k H_k and E σ² = Σ k! c_k².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.polynomials import power_to_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gaussian_mean
from onegrad.problem import Problem
from onegrad.theory.isotropic.traces import Traces, limiting_traces

MAX_DEGREE = 24  # highest degree of Hermite series: beyond, k! loses digits in double precision
# Part of the norm below which a Hermite coefficient is absent, and distance of α from a border
NEGLIGIBLE = 1e-9


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
        rest = rest if rest > 1e-11 * square else 0.0
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
            if abs(self.coefficients[k]) * math.sqrt(math.factorial(k)) > NEGLIGIBLE * self.norm
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
    # what quadrature leaves of a coefficient that vanishes by symmetry is not a coefficient
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


@dataclass(frozen=True)
class IsotropicSetting:
    """One step on isotropic data: d inputs, N neurons, n₁ samples for the step, n for the readout
    (eq. spike-length).

    activation : σ; the theory takes its mean off
    features, link : the series of σ and of the teacher's link
    phi, psi, step_phi : φ = d/n, ψ = d/N, d/n₁
    ridge : λ of (1/n)‖y − F a‖² + λ‖a‖²
    noise_variance : σ_ε² of the labels
    rate, exponent : η, and α of η ~ n^α (−∞ without a step)
    width : N
    gradient : "exact" (residual y − f₀) or "labels-only" (residual y, the source's idealisation)

    phi, psi, step_phi, ridge and noise_variance may be arrays that broadcast: `direction_norm2`,
    `traces` and `random_features_losses` then are arrays too.
    """

    activation: Activation
    features: ActivationSeries
    link: LinkSeries
    phi: float
    psi: float
    step_phi: float
    ridge: float
    noise_variance: float
    rate: float
    exponent: float
    width: float
    gradient: str

    @classmethod
    def of(cls, problem: Problem) -> IsotropicSetting:
        """From a problem with isotropic data, the isotropic convention and single-index labels."""
        links = problem.links
        if not problem.data.isotropic or links is None or problem.network.convention != "isotropic":
            raise AssumptionError(
                'closed forms and limiting spectra are known for data.model = "isotropic" with '
                'convention = "isotropic" and single-index labels. Other problems have the '
                "conditional Gaussian theory; `onegrad degree` measures the terms of any"
            )
        activation, rate, exponent = problem.network.activation, problem.rate, -math.inf
        given = problem.scaling.exponent
        if given is not None:
            exponent = given[0] if isinstance(given, tuple) else given
        elif rate > 0 and problem.samples > 1:
            exponent = math.log(rate) / math.log(problem.samples)
        return cls(
            activation=activation,
            features=ActivationSeries.of(activation),
            link=LinkSeries.of(links[0]),
            phi=problem.dim / problem.samples,
            psi=problem.dim / problem.width,
            step_phi=problem.dim / problem.step_samples,
            ridge=problem.effective_ridge,
            noise_variance=problem.label_noise_variance,
            rate=rate,
            exponent=exponent,
            width=problem.width,
            gradient=problem.training.gradient,
        )

    @cached_property
    def traces(self) -> Traces:
        """m₁, m₂ and their derivatives at φ, ψ and λ."""
        return limiting_traces(self.features.c1, self.features.rest, self.phi, self.psi, self.ridge)

    @property
    def residual_moment(self) -> float:
        """E r² on the first step: E f² + σ_ε², plus E f₀² = c₁² + C with the exact gradient."""
        own = self.features.c1**2 + self.features.rest if self.gradient == "exact" else 0.0
        return self.link.second_moment + self.noise_variance + own

    @cached_property
    def direction_norm2(self) -> float:
        """s² = lim |β|², β = X̃₁ᵀr/n₁.

        "labels-only" (r = y): c_{*1}² + (d/n₁)(E f² + σ_ε²)  [moniri2024]. "exact" (r = y − f₀):
        the initial output f₀ = F₀a is of order one and adds c₁² + (d/n₁)(c₁² + C).
        """
        s2 = self.link.linear**2 + self.step_phi * self.residual_moment
        if self.gradient == "exact":
            s2 = s2 + self.features.c1**2
        if not np.all(np.asarray(s2) > 0):
            raise AssumptionError(
                "the labels vanish, so the first step has no direction; use a link or a noise "
                "variance that is not zero"
            )
        return s2

    @property
    def direction_norm(self) -> float:
        """s."""
        return math.sqrt(self.direction_norm2)

    @property
    def slope_variance(self) -> float:
        """Var σ'(Z) = E σ'² − c₁²."""
        return max(slope_moment(self.activation) - self.features.c1**2, 0.0)

    @cached_property
    def norm_inflation(self) -> float:
        """κ = (d/n₁) E r² (E σ'² − c₁²)/(c₁s)²: how much the step lengthens a neuron across β.

        Row j of the gradient is a_j(c₁β + noise), the noise of squared norm
        (d/n₁)E r²(E σ'² − c₁²) and orthogonal to β and w_j: |w_j|² grows by κ(ηc₁s a_j)². Small
        as a matrix, this shifts the mean of feature j by c₂ times as much, so that beside
        c₂(ηc₁X̃β)²(a²)ᵀ there is the equally strong c₂κ(ηc₁s)²1(a²)ᵀ, which [moniri2024] leaves
        out.
        """
        noise = self.step_phi * self.residual_moment
        return noise * self.slope_variance / (self.features.c1**2 * self.direction_norm2)

    def check_linear_part(self) -> None:
        if 1 not in self.features.active(1):
            raise AssumptionError(
                f"the activation has c₁ = E[σ(Z)Z] = {self.features.c1:.2g}: without a linear part "
                "the first step is not rank one and this theory does not apply. Use an activation "
                "with c₁ ≠ 0, or the conditional Gaussian theory, which makes no such assumption"
            )

    def check_centred_labels(self) -> None:
        mean = self.link.coefficients[0]
        if mean != 0 and 2 in self.features.active(2):
            raise AssumptionError(
                f"the labels have mean c₀ = {mean:.3g} and the activation c₂ ≠ 0: the first spike "
                "then learns a constant too, which the formulas degree by degree do not contain. "
                "Take the mean off the labels, or use the finite-step version (method "
                '"isotropic")'
            )
