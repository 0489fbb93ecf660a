"""Losses of the readout in the proportional limit: untrained, after a large step, at a finite one.

Readout objective (n samples): (1/n)‖y − F a‖² + λ‖a‖². φ = d/n, ψ = d/N,
c_k = E[σ(Z)H_k(Z)]/k!, C = Σ_{k≥2} k! c_k², likewise c_{*k} for the link, ρ = c_{*1}/s,
' = ∂/∂λ; R₀ = (F₀F₀ᵀ + λnI)⁻¹ has its n inside, see `traces`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onegrad.compute.backend import Array
from onegrad.gaussian.polynomials import sqrt_factorial
from onegrad.theory.isotropic.setting import IsotropicSetting, inflated_powers
from onegrad.theory.isotropic.step_spikes import StepSpikes


class RidgeLosses(NamedTuple):
    """Minimum of the objective with its penalty, mean squared residual, mean squared test error."""

    train_objective: Array
    train_error: Array
    test_error: Array


# --- random features: no step -----------------------------------------------------------


def random_features_losses(setting: IsotropicSetting) -> RidgeLosses:
    """Losses of ridge regression on F₀; broadcasts over the numbers of the setting
    (eq. two-traces).

    With τ₀² = E f² − c_{*1}² + σ_ε²: L_tr = λ(ψ/φ)(c_{*1}² m₂ + τ₀² m₁) and
    L_te = (φ/(ψ m₁²))(−c_{*1}² m₂' − τ₀² m₁')  [mei2022; adlam2020]. A mean of the labels counts
    as noise here, as for rows of W₀ of norm one; `step_spikes.norm_spikes` has what Gaussian rows
    add.
    """
    link = setting.link
    tau2 = link.second_moment - link.linear**2 + setting.noise_variance
    return regression_losses(setting, link.linear**2, tau2)


def regression_losses(
    setting: IsotropicSetting, linear2: ArrayLike, noise2: ArrayLike, norm2: ArrayLike = 0.0
) -> RidgeLosses:
    """Losses of regressing X̃b + τz on F₀, |b|² = linear2, τ² = noise2, with λ·norm2 on top.

    The residual obeys the exact limit (1/n)‖y − Fa‖² = (λg)² L_te, since it is L − λ ∂L/∂λ
    with the spikes' coordinates fixed (their objective is stationary).
    """
    traces = setting.traces
    phi, psi, ridge = (np.asarray(v, float) for v in (setting.phi, setting.psi, setting.ridge))
    b2, t2 = np.asarray(linear2, float), np.asarray(noise2, float)
    objective = ridge * (psi / phi * (traces.m2 * b2 + traces.m1 * t2) + np.asarray(norm2))
    test = phi / (psi * traces.m1**2) * (-traces.dm2 * b2 - traces.dm1 * t2)
    return RidgeLosses(objective, (ridge * traces.g) ** 2 * test, test)


# --- the limit of a large step, degree by degree ----------------------------------------


def captured(setting: IsotropicSetting, degree: int, inflation: float) -> tuple[Array, Array]:
    """(t, h): the label's Hermite coefficients along β̂ and what ℓ = `degree` spikes fit of them.

    t_k = c_{*k}ρᵏ. With D = diag(m₁ k!), D₁ = m₂, and Ξ = (ξ_{ik})_{i∈K} from
    xⁱ = Σ ξ_{ik}H_k, h is the D-orthogonal projection of t on the rows of Ξ, over the active
    set K = {k ≤ ℓ : c_k ≠ 0}.
    """
    link, active = setting.link, setting.features.active(degree)
    top = max(active, default=1)
    t = link.padded(top) * (link.linear / setting.direction_norm) ** np.arange(top + 1)
    if not active:
        return t, np.zeros_like(t)
    scale = math.sqrt(float(setting.traces.m1)) * sqrt_factorial(top)
    scale[1] = math.sqrt(float(setting.traces.m2))
    rows = inflated_powers(top, inflation)[list(active)] * scale
    basis, _ = np.linalg.qr((rows / np.linalg.norm(rows, axis=1, keepdims=True)).T)
    return t, basis @ (basis.T @ (scale * t)) / scale


def loss_drops(
    setting: IsotropicSetting, degree: int, inflation: float = 0.0
) -> tuple[float, float]:
    """(Δ_ℓ, Λ_ℓ): limits of L_tr(F₀) − L_tr(F) and L_te(F₀) − L_te(F) for ℓ = `degree` (eq. drop).

    Δ_ℓ = λ(ψ/φ) tᵀDh and Λ_ℓ = (φ/(ψm₁²))[2tᵀ(−D')h − hᵀ(−D')h], see `captured`; with every c_k
    nonzero these are λ(ψ/φ)[m₂c_{*1}²ρ² + m₁T_ℓ] and (φ/(ψm₁²))[−m₂'c_{*1}²ρ² − m₁'T_ℓ], T_ℓ of
    eqs. polynomial-gain and inflated-gain. Δ is the general-ℓ theorem of [moniri2024]; Λ for
    ℓ ≤ 2 its proposition, corrected. The source has `inflation` 0; `norm_inflation` of the setting
    is that of the literal gradient.
    """
    setting.check_linear_part()
    setting.check_centred_labels()
    traces, ratio = setting.traces, setting.psi / setting.phi
    t, h = captured(setting, degree, inflation)
    weights = sqrt_factorial(t.size - 1) ** 2
    first = np.arange(t.size) == 1
    d = np.where(first, traces.m2, traces.m1 * weights)
    dd = np.where(first, -traces.dm2, -traces.dm1 * weights)
    train = setting.ridge * ratio * (t @ (d * h))
    return float(train), float(((2 * t - h) @ (dd * h)) / (ratio * traces.m1**2))


# --- a finite step ----------------------------------------------------------------------


def finite_step_losses(setting: IsotropicSetting, spikes: StepSpikes) -> RidgeLosses:
    """Losses with spikes of finite strength, the readout's coordinates on them minimised over
    (eq. finite-step).

    Given the readout's part w = Σ v_j q_j on the spikes' neurons (h = B v the polynomial it
    makes), what is left for F₀ is X̃b + noise of variance τ², with
    |b|² = |c_{*1}β_* − (linear)v|²,
    τ² = σ_ε² + E f² − c_{*1}² + Σ_{k≠1} k!(h_k² − 2t_kh_k) + C|v|²,
    and the objective λ(ψ/φ)(m₂|b|² + m₁τ²) + λ|v|² is quadratic in v.
    """
    link, top = setting.link, spikes.degree
    t = link.padded(top) * spikes.cosine ** np.arange(top + 1)
    root = sqrt_factorial(top)
    root[1] = 0.0  # degree one is in `linear`
    m1, m2 = float(setting.traces.m1), float(setting.traces.m2)
    goal = np.zeros(spikes.linear.shape[0])
    goal[0] = link.linear
    size = spikes.size
    own = spikes.rest * m1 + setting.phi / setting.psi
    matrix = np.vstack([
        math.sqrt(m2) * spikes.linear,
        math.sqrt(m1) * root[:, None] * spikes.hermite,
        math.sqrt(own) * np.eye(size),
    ])  # fmt: skip
    right = np.concatenate([math.sqrt(m2) * goal, math.sqrt(m1) * root * t, np.zeros(size)])
    # columns span many orders of magnitude when the spikes do: scaled QR, no truncation
    norms = np.linalg.norm(matrix, axis=0)
    q, upper = np.linalg.qr(matrix / norms)
    v = np.linalg.solve(upper, q.T @ right) / norms
    b2 = float(np.sum((goal - spikes.linear @ v) ** 2))
    left = float(np.sum((root * (t - spikes.hermite @ v)) ** 2) - np.sum((root * t) ** 2))
    norm2 = float(v @ v)
    noise2 = setting.noise_variance + link.second_moment - link.linear**2
    return regression_losses(setting, b2, noise2 + left + spikes.rest * norm2, norm2)
