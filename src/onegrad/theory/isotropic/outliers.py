"""Predicted spikes of the weights and features after one step, and what they align with.

Everything is about singular values of W and of F/√n. The features' spikes solve a small secular
equation in the traces m₁, m₂ of the bulk at λ = −x (derivation: docs/isotropic.md), so their
appearance at the edge of the bulk, and not only their existence at infinite strength as in
[moniri2024], is predicted. The weights are the rectangular rank-one model of [ba2022].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.polynomials import power_to_hermite, sqrt_factorial
from onegrad.theory.isotropic.feature_law import FeatureLaw
from onegrad.theory.isotropic.setting import IsotropicSetting
from onegrad.theory.isotropic.step_spikes import StepSpikes, polynomial_spikes, resummed_spikes


@dataclass(frozen=True)
class WeightSpike:
    """The spike of W after the step; cosines are 0 and the value the edge if there is none."""

    singular_value: float
    edge: float
    present: bool
    readout_cosine: float  # left singular vector against a
    teacher_cosine: float  # right singular vector against β_*


def weight_spike(setting: IsotropicSetting) -> WeightSpike:
    """Spike of W = W₀ + ηc₁aβᵀ (N×d, W₀ entries N(0, 1/d)) in the limit at fixed η.

    Along â the row of W has squared norm 1 + θ², θ² = η²c₁²s² for "labels-only" and
    η²c₁²s² − 2ηc₁² for "exact" (β then contains −c₁W₀ᵀa, which shortens the old row). With
    y = N/d there is a spike iff θ⁴ > y, at √((1+θ²)(y+θ²))/θ.
    """
    c1, y = setting.features.c1, 1.0 / setting.psi
    pull = (setting.rate * c1) ** 2
    theta2 = pull * setting.direction_norm2
    if setting.gradient == "exact":
        theta2 -= 2 * setting.rate * c1**2
    edge = 1 + math.sqrt(y)
    if not (theta2 > 0 and theta2**2 > y):
        return WeightSpike(edge, edge, False, 0.0, 0.0)
    value = math.sqrt((1 + theta2) * (y + theta2) / theta2)
    left2 = 1 - y * (1 + theta2) / (theta2 * (theta2 + y))
    right2 = 1 - (y + theta2) / (theta2 * (theta2 + 1))
    teacher2 = right2 * pull * setting.link.linear**2 / theta2
    return WeightSpike(value, edge, True, math.sqrt(left2), math.sqrt(min(teacher2, 1.0)))


@dataclass(frozen=True)
class FeatureSpikes:
    """Spikes of F/√n, strongest first, and the cosines of their left singular vectors.

    `hermite_cosines[j, k]`, `power_cosines[j, k]`: spike j against H_k(X̃β̂) and (X̃β̂)ᵏ,
    β̂ = β/|β| (k = 0 is the constant vector), absolute values.
    `teacher_cosines[j, k]`: against H_k(X̃β_*).
    """

    singular_values: Array
    hermite_cosines: Array
    power_cosines: Array
    teacher_cosines: Array
    edge: float

    @property
    def count(self) -> int:
        return int(self.singular_values.size)


def feature_spikes(law: FeatureLaw, spikes: StepSpikes) -> FeatureSpikes:
    """Solve det(I + MᵀR(x)M) = 0 above the bulk, R(x) = (F₀F₀ᵀ/n − x)⁻¹, M the spikes' columns.

    MᵀRM = (ψ/φ)[m₂ AᵀA + m₁(BᵀKB + C·I)] at λ = −x, A = `spikes.linear`, B = `spikes.hermite`
    without degree one, K = diag(k!). Each eigenvalue of −MᵀRM falls as x grows, so there are as
    many spikes as eigenvalues above one at the edge.
    """
    top = spikes.degree
    root = sqrt_factorial(top)
    inner = root.copy()
    inner[1] = 0.0
    linear = spikes.linear.T @ spikes.linear
    scaled = inner[:, None] * spikes.hermite
    size = spikes.size
    other = scaled.T @ scaled + spikes.rest * np.eye(size)
    ratio = law.psi / law.phi

    def secular(x: float) -> Array:
        at = law.beyond(x)
        return -ratio * (at.m2 * linear + at.m1 * other)

    edge = law.top[1]
    start = edge * (1 + 1e-12)
    at_edge = np.linalg.eigvalsh(secular(start))[::-1] if size else np.empty(0)
    reach = (1 + math.sqrt(law.phi)) ** 2  # largest |X̃b|²/n for |b| = 1
    limit = 2.0 * (start + float(np.trace(linear) * reach + np.trace(other)))
    values, hermite, power, teacher = [], [], [], []
    normalised = power_to_hermite(top) * root
    normalised /= np.linalg.norm(normalised, axis=1, keepdims=True)
    for j in range(int(np.sum(at_edge > 1.0))):

        def excess(x: float, j: int = j) -> float:
            return float(np.linalg.eigvalsh(secular(x))[::-1][j]) - 1.0

        while excess(limit) > 0:
            limit *= 4.0
        x = _root(excess, start, limit, 1e-13 * edge)
        at = law.beyond(x)
        v = np.linalg.eigh(secular(x))[1][:, ::-1][:, j]
        norm = math.sqrt(-ratio * float(v @ (at.dm2 * linear + at.dm1 * other) @ v))
        cosines = ratio * at.m1 * scaled @ v
        along = spikes.linear @ v
        cosines[1] = ratio * at.m2 * float(spikes.direction @ along)
        cosines = cosines / norm
        with_teacher = cosines * spikes.cosine ** np.arange(top + 1)
        with_teacher[1] = ratio * float(at.m2) * along[0] / norm
        values.append(math.sqrt(x))
        hermite.append(np.abs(cosines))
        power.append(np.abs(normalised @ cosines))
        teacher.append(np.abs(with_teacher))
    shape = (len(values), top + 1)
    return FeatureSpikes(
        np.array(values),
        np.array(hermite).reshape(shape),
        np.array(power).reshape(shape),
        np.array(teacher).reshape(shape),
        math.sqrt(edge),
    )


def law_of(setting: IsotropicSetting) -> FeatureLaw:
    """The law of F₀F₀ᵀ/n."""
    features = setting.features
    return FeatureLaw(features.c1, features.rest, setting.phi, setting.psi)


def predict_feature_spikes(setting: IsotropicSetting, degree: int | None = None) -> FeatureSpikes:
    """Spikes of F/√n after the step.

    `degree` = ℓ keeps the spikes of F_ℓ only; by default all degrees are summed
    (`step_spikes.resummed_spikes`), which is what the network has at a finite step.
    """
    if degree is None:
        return feature_spikes(law_of(setting), resummed_spikes(setting))
    return feature_spikes(law_of(setting), polynomial_spikes(setting, degree))


def norm_outlier(setting: IsotropicSetting) -> float | None:
    """Singular value of F₀/√n that leaves the bulk before any step, or None.

    When c₂ ≠ 0 the norms |x_i| and |w_j| fluctuate enough to matter: F₀ contains
    c₂ε1ᵀ + c₂1δᵀ, ε_i = |x_i|²/d − 1, δ_j = |w_j|² − 1, two rank-one terms of strength
    c₂√(2N/d) (in units of √n). They are spikes if 1 + (ψ/φ)(c₁²m₂ + (C + 2c₂²/ψ)m₁) vanishes
    above the edge, at λ = −x; both at the same place. No feature was learned there.
    """
    law, features = law_of(setting), setting.features
    strength = features.rest + 2 * features.coefficients[2] ** 2 / law.psi

    def excess(x: float) -> float:
        at = law.beyond(x)
        return float(-law.psi / law.phi * (features.c1**2 * at.m2 + strength * at.m1)) - 1.0

    start = law.top[1] * (1 + 1e-12)
    if excess(start) <= 0:
        return None
    limit = 4.0 * start
    while excess(limit) > 0:
        limit *= 4.0
    return math.sqrt(_root(excess, start, limit))


def step_edge_margin(setting: IsotropicSetting) -> float:
    """How far the step lifts the bulk of F Fᵀ/n itself, as an eigenvalue; vanishes as n grows.

    Besides its spikes F − F₀ contains τ diag(x)(σ'(X̃W₀ᵀ) − c₁)diag(α), x = X̃β̂ and α = a√N
    standard Gaussian, τ = ηc₁s/√N. Its squared norm over n is about
    τ²(E σ'² − c₁²)(max x²·N/n + max α²), with 2 ln n and 2 ln N for the maxima; independent of
    the bulk, it adds in squares. Twice that is returned: a margin for counting, not a limit.
    """
    width, ratio = setting.width, setting.phi / setting.psi
    tau2 = (setting.rate * setting.features.c1) ** 2 * setting.direction_norm2 / width
    largest = math.log(width / ratio) * ratio + math.log(width)
    return 4 * tau2 * setting.slope_variance * largest


def weight_edge_margin(setting: IsotropicSetting) -> float:
    """How far the noise of the step lifts the bulk of W Wᵀ itself, as an eigenvalue.

    Row j of the step's noise is a_j times a vector of squared length κ(ηc₁s)²
    (`IsotropicSetting.norm_inflation`) in no particular direction. The squared norm of all of
    them is about κ(ηc₁s)²(max a² + |a|²/d), max a² = 2 ln N/N; independent of W₀, it adds in
    squares. Twice that is returned: a margin for counting, not a limit.
    """
    pull = (setting.rate * setting.features.c1) ** 2 * setting.direction_norm2
    largest = 2 * math.log(setting.width) + 1 / setting.psi
    return 2 * setting.norm_inflation * pull * largest / setting.width


def _root(
    function: Callable[[float], float], low: float, high: float, within: float = 2e-12
) -> float:
    """Where the function is zero between two places of opposite sign, to 1e-13 of it."""
    from scipy.optimize import brentq  # slow to import, and needed here alone

    return float(brentq(function, low, high, xtol=within, rtol=1e-13))
