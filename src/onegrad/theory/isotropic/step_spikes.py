"""The spiked features after one step: which directions the spikes occupy, how strongly.

After the step W ≈ W₀ + ηc₁aβᵀ with β = X̃₁ᵀr/n₁ (first-step samples, r = y or y − f₀), and

    F ≈ F_ℓ = F₀ + Σ_{k≤ℓ} c₁ᵏ c_k ηᵏ (X̃β)ᵏ (aᵏ)ᵀ  [moniri2024; ba2022]  (eq. powers)

with powers entry by entry. c_k = E[σ(Z)H_k(Z)]/k!, a ~ N(0, I/N), rows of W₀ ~ N(0, I/d).
Nothing here divides by n: that is left to the traces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.polynomials import orthonormal_hermite, sqrt_factorial
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.theory.isotropic.setting import IsotropicSetting

_DEGREES = 12  # Hermite degrees of the spikes, in inputs and in neurons: a profile to 1e-8
_NODES = 32  # nodes of their rule, exact for products of two of these degrees


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


def resummed_spikes(setting: IsotropicSetting) -> StepSpikes:
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
    The neurons' own norms are one more column, `norm_spikes`.
    """
    setting.check_linear_part()
    features, rate, width = setting.features, setting.rate, setting.width
    scale = features.c1 * rate * setting.direction_norm / math.sqrt(width)
    stretch = 2 * rate * features.coefficients[2] * setting.link.coefficients[0] / math.sqrt(width)
    kappa = setting.norm_inflation
    x, w = gauss_hermite(_NODES)
    lengths = np.sqrt((1.0 + stretch * x) ** 2 + kappa * (scale * x) ** 2)
    profile = setting.activation.smoothed(scale * np.outer(x, x), lengths).value
    rows = orthonormal_hermite(_DEGREES, x) * w
    table = rows @ (profile - features.mean) @ rows.T
    hermite = math.sqrt(width) * table / sqrt_factorial(_DEGREES)[:, None]
    hermite = hermite[:, [1, 0, *range(2, _DEGREES + 1)]]  # q₁ = a/|a| comes first
    norms = np.zeros((len(hermite), 1))
    norms[0] = _norm_strength(setting)
    return assembled(setting, np.hstack([hermite, norms]))


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


def assembled(setting: IsotropicSetting, hermite: Array) -> StepSpikes:
    """The step's spikes from their Hermite coefficients, with the linear parts added."""
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
