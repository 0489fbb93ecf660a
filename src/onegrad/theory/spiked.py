"""The spiked features after one step: which directions the spikes occupy, how strongly.

After the step W ≈ W₀ + ηc₁aβᵀ with β = X̃₁ᵀr/n₁ (first-step samples, r = y or y − f₀), and

    F ≈ F_ℓ = F₀ + Σ_{k≤ℓ} c₁ᵏ c_k ηᵏ (X̃β)ᵏ (aᵏ)ᵀ        [moniri2024, thm. on the spectrum; ba2022]

with powers entry by entry. c_k = E[σ(Z)H_k(Z)]/k!, a ~ N(0, I/N), rows of W₀ ~ N(0, I/d).
Nothing here divides by n: that is left to the traces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.hermite import (
    Array,
    gauss_hermite,
    gaussian_mean,
    orthonormal_hermite,
    power_to_hermite,
    sqrt_factorial,
)

MAX_DEGREE = 24
GRADIENTS = ("exact", "labels-only")
_RESUMMED = 12  # Hermite degrees of the resummed spikes, in inputs and in neurons
_NODES = 40
_SMALL_STEP = 0.02
_SERIES = 16
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
    return tuple(float(v) for v in c), float(activation.second_moment())


def features_of(activation: Activation) -> Features:
    """c_k and C of an activation; its mean c₀ is taken off, as the source assumes."""
    coefficients, square = _expansion(activation)
    rest = square - coefficients[0] ** 2 - coefficients[1] ** 2
    if rest < 1e-11 * (square + 1e-300):
        rest = 0.0
    return Features((0.0, *coefficients[1:]), rest)


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
    check_gradient(gradient)
    step_phi = np.asarray(step_phi, float)
    s2 = link.linear**2 + step_phi * (link.second_moment + noise_variance)
    if gradient == "exact":
        s2 += features.c1**2 + step_phi * (features.c1**2 + features.rest)
    if not np.all(s2 > 0):
        raise AssumptionError(
            "the labels vanish, so the first step has no direction; use a link or a noise "
            "variance that is not zero"
        )
    return s2


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
            'contain. Take the mean off the labels, or use method = "finite-step" without a degree'
        )


@dataclass(frozen=True)
class Spikes:
    """The columns F q_j of the trained features along a few orthonormal neuron directions q_j.

    Along q_j the features are a polynomial in X̃β̂ (β̂ = β/|β|) plus what F₀ has there:
    `hermite[k, j]` is the coefficient of H_k(X̃β̂), `linear[:, j]` the vector b with linear part
    X̃b, in the orthonormal directions (β_*, noise of β, W₀ᵀq₁, W₀ᵀq₂, …); C is left over as
    fresh noise. q₁ = a/|a|. All other neurons are those of F₀, independent of these columns.
    """

    hermite: Array
    linear: Array
    direction: Array  # β̂ in the coordinates of `linear`
    s: float
    cosine: float  # ρ = β̂·β_*
    rest: float

    @property
    def degree(self) -> int:
        return self.hermite.shape[0] - 1

    @property
    def size(self) -> int:
        return self.hermite.shape[1]


def polynomial_spikes(
    features: Features,
    link: Link,
    *,
    noise_variance: float,
    step_phi: float,
    rate: float,
    width: float,
    degree: int,
    gradient: str,
) -> Spikes:
    """The spikes of F_ℓ, ℓ = `degree`, after a step of rate η at N = `width` neurons."""
    check_linear_part(features)
    check_centred_labels(features, link)
    s = math.sqrt(float(direction_norm2(features, link, noise_variance, step_phi, gradient)))
    active = features.active(degree)
    top = max(active, default=1)
    # (aᵏ)ᵀq_j = N^{(1−k)/2} L_kj where LLᵀ is the moment matrix (i+j−1)!! of a√N
    xi = power_to_hermite(top)[list(active)]
    upper = np.linalg.qr((xi * sqrt_factorial(top)).T, mode="r")
    lower = (upper * np.sign(np.diag(upper))[:, None]).T
    strengths = [
        features.coefficients[k] * (features.c1 * rate * s / math.sqrt(width)) ** k for k in active
    ]
    hermite = math.sqrt(width) * xi.T @ (np.array(strengths)[:, None] * lower)
    return _assemble(features, link, hermite, s, gradient)


def resummed_spikes(
    activation: Activation,
    link: Link,
    *,
    noise_variance: float,
    step_phi: float,
    rate: float,
    width: float,
    gradient: str,
    psi: float | None = None,
) -> Spikes:
    """The spikes of every degree at once, after a step of rate η at N = `width` neurons.

    Averaged over the bulk of the preactivation, neuron j has the profile
    σ̄(v) = E σ(Z + v) = Σ_k c_k vᵏ at v = ηc₁(x·β)a_j, of which F_ℓ keeps ℓ terms. The sum of
    spikes is √N Σ_kj K_kj H_k(X̃β̂) q_jᵀ, q_j the j-th Hermite function of a√N and
    K_kj = E[σ̄(τxα)H_k(x)H_j(α)]/(k!√j!), τ = ηc₁s/√N: at a finite step the series in powers
    is only asymptotic (its spikes grow as √k!·(2τ)ᵏ), this expansion converges.

    Labels with a mean c_{*0} also stretch neuron j, w_j → (1 + 2ηc₂c_{*0}a_j)w_j, because
    E[σ'(w·x)x] = 2c₂w; its profile is then E σ((1 + 2ηc₂c_{*0}a_j)Z + v), which learns a constant.
    With ψ = d/N = `psi` the neurons' own norms are included as one more column, `norm_spikes`.
    """
    features = features_of(activation)
    check_linear_part(features)
    s = math.sqrt(float(direction_norm2(features, link, noise_variance, step_phi, gradient)))
    scale = features.c1 * rate * s / math.sqrt(width)
    stretch = 2 * rate * features.coefficients[2] * link.coefficients[0] / math.sqrt(width)
    residual2 = link.second_moment + noise_variance
    if gradient == "exact":
        residual2 += features.c1**2 + features.rest
    swelling = rate**2 / width * step_phi * residual2 * (slope_moment(activation) - features.c1**2)
    # the power series is then exact, and rounding would show
    if abs(scale) < _SMALL_STEP and stretch == 0:
        series = polynomial_spikes(features, link, noise_variance=noise_variance, rate=rate,
                                   step_phi=step_phi, width=width, gradient=gradient,
                                   degree=_SERIES)  # fmt: skip
        hermite = series.hermite
    else:
        x, w = gauss_hermite(_NODES)
        profile = _profile(activation, scale, stretch, swelling, x) - profile_mean(activation)
        rows = orthonormal_hermite(_RESUMMED, x) * w
        table = rows @ profile @ rows.T
        hermite = math.sqrt(width) * table / sqrt_factorial(_RESUMMED)[:, None]
        hermite = hermite[:, [1, 0, *range(2, _RESUMMED + 1)]]  # q₁ = a/|a| comes first
    if psi is not None:
        column = np.zeros((hermite.shape[0], 1))
        column[0] = _norm_strength(features, psi)
        hermite = np.hstack([hermite, column])
    return _assemble(features, link, hermite, s, gradient)


def norm_spikes(features: Features, link: Link, psi: float) -> Spikes:
    """What W₀ ~ N(0, 1/d) does without any step: |w_j|² = 1 + δ_j gives feature j the mean c₂δ_j.

    So F₀ contains c₂1δᵀ, along δ/|δ| of strength c₂√(2N/d): labels with a mean, and the
    constant in an even spike, are fitted a little. (With rows of norm one it is absent, and the
    source neglects it.)
    """
    hermite = np.array([[_norm_strength(features, psi)], [0.0]])
    linear = np.array([[0.0], [0.0], [features.c1]])
    return Spikes(hermite, linear, np.array([0.0, 1.0, 0.0]), 1.0, 0.0, features.rest)


def _norm_strength(features: Features, psi: float) -> float:
    return features.coefficients[2] * math.sqrt(2.0 / psi)


def profile_mean(activation: Activation) -> float:
    """c₀ = σ̄(0), which the theory takes off."""
    return _expansion(activation)[0][0]


def _profile(
    activation: Activation, scale: float, stretch: float, swelling: float, x: Array
) -> Array:
    """E σ(b_j Z + scale·x_i·x_j), b_j² = (1 + stretch·x_j)² + swelling·x_j²."""
    v = scale * np.outer(x, x)
    width = np.sqrt((1.0 + stretch * x) ** 2 + swelling * x**2)
    if activation.moments is not None:
        return activation.smoothed(v, width).value
    return gaussian_mean(activation.__call__, v, width, activation.kinks)


@lru_cache(maxsize=256)
def slope_moment(activation: Activation) -> float:
    """E σ'(Z)²."""
    return float(gaussian_mean(lambda x: activation.derivative(x) ** 2, kinks=activation.kinks))


@lru_cache(maxsize=64)
def _profile_table(activation: Activation, reach: int) -> CubicSpline:
    """σ̄ on [−reach, reach]; it varies on the scale one, so the spline is good to 1e-8."""
    v = np.linspace(-reach, reach, 64 * reach + 1)
    return CubicSpline(v, gaussian_mean(activation.__call__, v, 1.0, activation.kinks))


def _assemble(features: Features, link: Link, hermite: Array, s: float, gradient: str) -> Spikes:
    # With the exact gradient β contains −c₁W₀ᵀa: it is not independent of the neurons along a.
    own = features.c1 if gradient == "exact" else 0.0
    size = hermite.shape[1]
    direction = np.zeros(2 + size)
    direction[0] = link.linear
    direction[1] = math.sqrt(max(s**2 - link.linear**2 - own**2, 0.0))
    direction[2] = -own
    direction /= s
    linear = np.outer(direction, hermite[1])
    linear[2:] += features.c1 * np.eye(size)
    return Spikes(hermite, linear, direction, s, link.linear / s, features.rest)
