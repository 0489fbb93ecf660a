"""The spiked features after one step: which directions the spikes occupy, how strongly.

After the step W ≈ W₀ + ηc₁aβᵀ with β = X̃₁ᵀr/n₁ (first-step samples, r = y or y − f₀), and

    F ≈ F_ℓ = F₀ + Σ_{k≤ℓ} c₁ᵏ c_k ηᵏ (X̃β)ᵏ (aᵏ)ᵀ        [moniri2024, thm. on the spectrum; ba2022]

with powers entry by entry. c_k = E[σ(Z)H_k(Z)]/k!, a ~ N(0, I/N), rows of W₀ ~ N(0, I/d).
Nothing here divides by n: that is left to the traces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.polynomials import orthonormal_hermite, power_to_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gauss_hermite, gaussian_mean
from onegrad.theory.isotropic.series import inflated_powers
from onegrad.theory.isotropic.setting import IsotropicSetting

_RESUMMED = 12  # Hermite degrees of the resummed spikes, in inputs and in neurons
_NODES = 32
_SMALL_STEP = 0.02
_SERIES = 16


@dataclass(frozen=True)
class StepSpikes:
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


def polynomial_spikes(setting: IsotropicSetting, degree: int, inflation: float = 0.0) -> StepSpikes:
    """The spikes of F_ℓ, ℓ = `degree`, after a step of rate η at N neurons (eq. powers).

    With `inflation` = κ (`IsotropicSetting.norm_inflation`) the powers (X̃β)ᵏ become
    E(X̃β + s√κ Z)ᵏ.
    """
    setting.check_linear_part()
    setting.check_centred_labels()
    features, width = setting.features, setting.width
    active = features.active(degree)
    top = max(active, default=1)
    # (aᵏ)ᵀq_j = N^{(1−k)/2} L_kj where LLᵀ is the moment matrix (i+j−1)!! of a√N
    moments = power_to_hermite(top)[list(active)]
    xi = inflated_powers(top, inflation)[list(active)]
    upper = np.linalg.qr((moments * sqrt_factorial(top)).T, mode="r")
    lower = (upper * np.sign(np.diag(upper))[:, None]).T
    scale = features.c1 * setting.rate * setting.direction_norm / math.sqrt(width)
    strengths = [features.coefficients[k] * scale**k for k in active]
    hermite = math.sqrt(width) * xi.T @ (np.array(strengths)[:, None] * lower)
    return _assemble(setting, hermite)


def resummed_spikes(setting: IsotropicSetting, norms: bool = False) -> StepSpikes:
    """The spikes of every degree at once, after a step of rate η at N neurons.

    Averaged over the bulk of the preactivation, neuron j has the profile
    σ̄(v) = E σ(Z + v) = Σ_k c_k vᵏ at v = ηc₁(x·β)a_j, of which F_ℓ keeps ℓ terms. The sum of
    spikes is √N Σ_kj K_kj H_k(X̃β̂) q_jᵀ, q_j the j-th Hermite function of a√N and
    K_kj = E[σ̄(τxα)H_k(x)H_j(α)]/(k!√j!), τ = ηc₁s/√N: at a finite step the series in powers
    is only asymptotic (its spikes grow as √k!·(2τ)ᵏ), this expansion converges.

    The step also changes the norm of w_j across β, and the profile is E σ(b_jZ + v) with
    b_j² = (1 + 2ηc₂c_{*0}a_j)² + κ(ηc₁s a_j)²: the first because E[σ'(w·x)x] = 2c₂w when the
    labels have a mean, the second from the gradient's own noise
    (`IsotropicSetting.norm_inflation`). Both are as strong as the spikes themselves and teach
    even activations a constant; the source has neither.
    With `norms` the neurons' own norms are included as one more column, `norm_spikes`.
    """
    setting.check_linear_part()
    features, rate, width = setting.features, setting.rate, setting.width
    scale = features.c1 * rate * setting.direction_norm / math.sqrt(width)
    stretch = 2 * rate * features.coefficients[2] * setting.link.coefficients[0] / math.sqrt(width)
    kappa = setting.norm_inflation
    # the power series is exact here; resummation would add rounding errors
    if abs(scale) < _SMALL_STEP and stretch == 0:
        hermite = polynomial_spikes(setting, _SERIES, kappa).hermite
    else:
        x, w = gauss_hermite(_NODES)
        profile = _profile(setting.activation, scale, stretch, kappa * scale**2, x)
        rows = orthonormal_hermite(_RESUMMED, x) * w
        table = rows @ (profile - features.mean) @ rows.T
        hermite = math.sqrt(width) * table / sqrt_factorial(_RESUMMED)[:, None]
        hermite = hermite[:, [1, 0, *range(2, _RESUMMED + 1)]]  # q₁ = a/|a| comes first
    if norms:
        column = np.zeros((hermite.shape[0], 1))
        column[0] = _norm_strength(setting)
        hermite = np.hstack([hermite, column])
    return _assemble(setting, hermite)


def norm_spikes(setting: IsotropicSetting) -> StepSpikes:
    """What W₀ ~ N(0, 1/d) does without any step: |w_j|² = 1 + δ_j gives feature j the mean c₂δ_j.

    So F₀ contains c₂1δᵀ, along δ/|δ| of strength c₂√(2N/d): labels with a mean, and the
    constant in an even spike, are fitted a little. (With rows of norm one it is absent, and the
    source neglects it.)
    """
    features = setting.features
    hermite = np.array([[_norm_strength(setting)], [0.0]])
    linear = np.array([[0.0], [0.0], [features.c1]])
    return StepSpikes(hermite, linear, np.array([0.0, 1.0, 0.0]), 1.0, 0.0, features.rest)


def _norm_strength(setting: IsotropicSetting) -> float:
    return setting.features.coefficients[2] * math.sqrt(2.0 / setting.psi)


def _profile(
    activation: Activation, scale: float, stretch: float, inflation: float, x: Array
) -> Array:
    """E σ(b_j Z + scale·x_i·x_j), b_j² = (1 + stretch·x_j)² + inflation·x_j²."""
    if stretch == 0:  # (x, α) and (−x, −α) agree: half of the neurons are enough
        half = _smoothed(activation, scale, 0.0, inflation, x, x[x.size // 2 :])
        return np.hstack([half[::-1, ::-1][:, : x.size // 2], half])
    return _smoothed(activation, scale, stretch, inflation, x, x)


def _smoothed(
    activation: Activation,
    scale: float,
    stretch: float,
    inflation: float,
    x: Array,
    alpha: Array,
) -> Array:
    v = scale * np.outer(x, alpha)
    width = np.sqrt((1.0 + stretch * alpha) ** 2 + inflation * alpha**2)
    if activation.moments is not None:
        return activation.smoothed(v, width).value
    if activation.breakpoints:
        return gaussian_mean(activation.__call__, v, width, activation.breakpoints)
    # trapezoidal rule: geometric convergence for smooth functions, here to better than 1e-6
    z = np.arange(-45, 46) / 6.0
    weights = np.exp(-0.5 * z**2) / (6.0 * math.sqrt(2 * math.pi))
    return activation(v[..., None] + width[None, :, None] * z) @ weights


def _assemble(setting: IsotropicSetting, hermite: Array) -> StepSpikes:
    features, s, linear_part = setting.features, setting.direction_norm, setting.link.linear
    # With the exact gradient β contains −c₁W₀ᵀa: it is not independent of the neurons along a.
    own = features.c1 if setting.gradient == "exact" else 0.0
    size = hermite.shape[1]
    direction = np.zeros(2 + size)
    direction[0] = linear_part
    direction[1] = math.sqrt(max(s**2 - linear_part**2 - own**2, 0.0))
    direction[2] = -own
    direction /= s
    linear = np.outer(direction, hermite[1])
    linear[2:] += features.c1 * np.eye(size)
    return StepSpikes(hermite, linear, direction, s, linear_part / s, features.rest)
