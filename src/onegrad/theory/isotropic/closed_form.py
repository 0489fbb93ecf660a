"""Training and test error of the one-step network on isotropic Gaussian data.

Readout objective (n samples): (1/n)‖y − F a‖² + λ‖a‖²; `train_objective` is its minimum with the
penalty, `train_error` the mean squared residual (1/n)‖y − F a‖², `test_error` the mean squared
error on fresh noisy labels. φ = d/n, ψ = d/N, c_k = E[σ(Z)H_k(Z)]/k!, C = Σ_{k≥2} k! c_k²,
likewise c_{*k} for the link, ρ = c_{*1}/s, ' = ∂/∂λ. Sources: [moniri2024] with its misprints
corrected, [mei2022; adlam2020] for η = 0; degrees above two of the test error and the finite
step are derived in docs/book/closed-form.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from onegrad.errors import AssumptionError
from onegrad.problem import Problem, needed_degree
from onegrad.theory.isotropic.limits import (
    RidgeLosses,
    finite_step_losses,
    loss_drops,
    random_features_losses,
)
from onegrad.theory.isotropic.setting import MAX_DEGREE, NEGLIGIBLE, IsotropicSetting
from onegrad.theory.isotropic.step_spikes import norm_spikes, resummed_spikes

METHODS = ("finite-step", "limit", "random-features")


@dataclass(frozen=True)
class IsotropicPrediction:
    """A prediction with how it was made; errors are plain mean squared errors (no ½)."""

    train_objective: float
    train_error: float
    test_error: float
    regime: int
    method: str
    assumptions: tuple[str, ...]


def check_exponent(exponent: float) -> None:
    """Refuse α ≥ ½, where the step is no longer a few spikes on the features of W₀."""
    if not exponent < 0.5:
        raise AssumptionError(
            f"step exponent α = {exponent:.4g}: the polynomial theory needs α < 1/2 (η ≪ √n). "
            "For larger steps use the conditional Gaussian theory, which holds for any step"
        )


def regime_of(exponent: float) -> int:
    """ℓ with (ℓ−1)/(2ℓ) < α ≤ ℓ/(2ℓ+2) for a step η ~ n^α: the spikes that outgrow the bulk.

    0 for α < 0, where none does. From α = 0 on it is `degree_rule.degree_rule` at β = 2α, borders
    included, except that it is not capped at 4: a limit needs every spike. On a border spike
    ℓ + 1 is as strong as the bulk, see `on_border`.

    >>> [regime_of(a) for a in (-0.1, 0.2, 0.25, 0.29, 0.35, 0.42)]
    [0, 1, 1, 2, 3, 6]
    """
    check_exponent(exponent)
    if exponent < 0:
        return 0
    degree = needed_degree(2 * exponent)
    if degree is None or degree > MAX_DEGREE:
        raise AssumptionError(
            f"step exponent α = {exponent:.4g} needs {degree} spikes, more than {MAX_DEGREE}: it "
            "is too near 1/2. Use the conditional Gaussian theory, which holds for any step"
        )
    return degree


def on_border(exponent: float) -> bool:
    """Whether α = ℓ/(2ℓ+2) for some ℓ ≥ 0, where no limit of fixed degree holds."""
    if exponent <= 0:
        return exponent == 0
    degree = regime_of(exponent)
    return 2 * exponent > degree / (degree + 1) - NEGLIGIBLE


def predict_isotropic(problem: Problem, method: str = "finite-step") -> IsotropicPrediction:
    """Errors of the one-step network, for a problem in the isotropic convention.

    Parameters
    ----------
    method : "finite-step" at this η, with the spikes of all degrees; "limit" of large n at this α
        (η ~ n^α, from training.rate by η = n^α); "random-features", as if η were 0

    >>> problem = Problem.from_spec({
    ...     "data": {"model": "isotropic", "dim": 500},
    ...     "labels": {"link": "hermite(0, 1, 0.5, 0.2)", "noise": 0.1**0.5},
    ...     "network": {"convention": "isotropic", "activation": "relu", "width": 625},
    ...     "training": {"samples": 1000, "ridge": 0.1, "gradient": "labels-only"},
    ...     "scaling": {"exponent": 0.29}})
    >>> p = predict_isotropic(problem, "limit")
    >>> p.regime, round(p.test_error, 4)
    (2, 1.2567)
    """
    if problem.network.readout != "gaussian":
        raise AssumptionError(
            'the isotropic theory assumes network.readout = "gaussian". Use the conditional '
            "Gaussian theory"
        )
    setting = IsotropicSetting.of(problem)
    losses = isotropic_losses(setting, method)
    regime = regime_of(setting.exponent) if _trained(setting, method) else 0
    return IsotropicPrediction(
        float(losses.train_objective), float(losses.train_error), float(losses.test_error),
        regime, method, _assumptions(setting, method, regime),
    )  # fmt: skip


def isotropic_losses(setting: IsotropicSetting, method: str = "finite-step") -> RidgeLosses:
    """The losses behind `predict_isotropic`, from the numbers alone."""
    if method not in METHODS:
        raise AssumptionError(f'method = "{method}" must be one of {", ".join(METHODS)}')
    if not _trained(setting, method):
        if setting.link.coefficients[0] == 0 or method == "limit":
            return random_features_losses(setting)
        return finite_step_losses(setting, norm_spikes(setting))
    regime = regime_of(setting.exponent)
    if method == "finite-step":
        return finite_step_losses(setting, resummed_spikes(setting))
    if on_border(setting.exponent):
        raise AssumptionError(
            f"step exponent α = {setting.exponent:.4g} lies on the border between two regimes, "
            "where the limit depends on the constant of η: use the finite-step version (method "
            '"isotropic" of `predict`)'
        )
    base = random_features_losses(setting)
    train, test = loss_drops(setting, regime)
    error = base.test_error - test
    shrink = (setting.ridge * setting.traces.g) ** 2
    return RidgeLosses(base.train_objective - train, shrink * error, error)


def _trained(setting: IsotropicSetting, method: str) -> bool:
    return method != "random-features" and setting.rate > 0


def _assumptions(setting: IsotropicSetting, method: str, regime: int) -> tuple[str, ...]:
    lines = [
        "Isotropic Gaussian inputs; labels depend on one direction plus independent noise.",
        "Proportional limit: n, N, d large with d/n and d/N fixed.",
        "The activation is centred: E σ(Z) is taken off; W entries N(0, 1/d), a entries N(0, 1/N).",
        "Gaussian equivalence of the untrained features.",
    ]
    if setting.link.coefficients[0] != 0:
        lines.append("The labels have a mean, which the source excludes; it is treated as H₀.")
    if not _trained(setting, method):
        return (*lines, "No step: the features are those of the random first layer.")
    which, strength = "of every degree", f"at the strength of this step η = {setting.rate:.4g}"
    if method == "limit":
        which, strength = f"up to degree {regime}", "each in the limit of infinite strength"
    lines.append(f"Regime ℓ = {regime} (η ~ n^{setting.exponent:.4g}); spikes {which}, {strength}.")
    if method == "limit":
        lines.append("Neurons keep norm one, as in the source: what their norms teach is left out.")
    active = setting.features.active(regime)
    absent = [str(k) for k in range(1, regime + 1) if k not in active]
    if absent:
        lines.append(f"The activation has no spike of degree {', '.join(absent)}: c_k = 0 there.")
    lines.append(
        "The gradient contains the initial output f₀ (residual y − f₀)."
        if setting.gradient == "exact"
        else "The initial output is left out of the gradient (residual y), as in the source."
    )
    return tuple(lines)
