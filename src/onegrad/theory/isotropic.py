"""Training and test error of the one-step network on isotropic Gaussian data.

Readout objective (n samples): (1/n)‖y − F a‖² + λ‖a‖²; `train_objective` is its minimum with the
penalty, `train_error` the mean squared residual (1/n)‖y − F a‖², `test_error` the mean squared
error on fresh noisy labels. φ = d/n, ψ = d/N, c_k = E[σ(Z)H_k(Z)]/k!, C = Σ_{k≥2} k! c_k²,
likewise c_{*k} for the link, ρ = c_{*1}/s, ' = ∂/∂λ. Sources: [moniri2024] with its misprints
corrected, [mei2022; adlam2020] for η = 0; degrees above two of the test error and the finite
step are derived in docs/isotropic.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onegrad.activation import Activation
from onegrad.errors import AssumptionError
from onegrad.theory.expansions import (
    MAX_DEGREE,
    Features,
    Link,
    check_gradient,
    check_linear_part,
    direction_norm2,
    features_of,
    link_of,
    swelling_of,
)
from onegrad.theory.losses import (
    Losses,
    active_set_drops,
    check_degree,
    closed_form_drops,
    finite_step_losses,
    loss_drops,
    random_features_losses,
    regression_losses,
)
from onegrad.theory.spiked import norm_spikes, polynomial_spikes, resummed_spikes
from onegrad.theory.traces import Traces, limiting_traces

__all__ = [
    "Features",
    "IsotropicPrediction",
    "Link",
    "Losses",
    "Traces",
    "active_set_drops",
    "closed_form_drops",
    "direction_norm2",
    "features_of",
    "finite_step_losses",
    "limiting_traces",
    "link_of",
    "loss_drops",
    "on_border",
    "polynomial_spikes",
    "predict_isotropic",
    "random_features_losses",
    "regime_of",
    "resummed_spikes",
    "swelling_of",
]

METHODS = ("finite-step", "limit", "random-features")
_BORDER = 1e-9
AnyLink = Link | Activation | Sequence[float]


@dataclass(frozen=True)
class IsotropicPrediction:
    """A prediction with how it was made; errors are plain mean squared errors (no ½)."""

    train_objective: float
    train_error: float
    test_error: float
    regime: int
    method: str
    gradient: str
    assumptions: tuple[str, ...]
    spikes: tuple[int, ...]
    direction_norm: float
    cosine: float
    traces: Traces


def regime_of(exponent: float) -> int:
    """ℓ with (ℓ−1)/(2ℓ) ≤ α < ℓ/(2ℓ+2) for a step η ~ n^α; 0 for α < 0.

    >>> [regime_of(a) for a in (-0.1, 0.2, 0.29, 0.35)]
    [0, 1, 2, 3]
    """
    if not exponent < 0.5:
        raise AssumptionError(
            f"step exponent α = {exponent:.4g}: the polynomial theory needs α < 1/2 (η ≪ √n). "
            "For larger steps use the conditional Gaussian theory, which holds for any step"
        )
    if exponent < 0:
        return 0
    x = 2 * exponent / (1 - 2 * exponent)
    # on the border α = (ℓ−1)/(2ℓ) spike ℓ is as strong as the bulk, so it is kept
    degree = math.floor(x + _BORDER) + 1
    if degree > MAX_DEGREE:
        raise AssumptionError(
            f"step exponent α = {exponent:.4g} needs {degree} spikes, more than {MAX_DEGREE}: it "
            "is too near 1/2. Use the conditional Gaussian theory, which holds for any step"
        )
    return degree


def on_border(exponent: float) -> bool:
    """Whether α = (ℓ−1)/(2ℓ) for some ℓ, where no limit of fixed degree holds."""
    x = 2 * exponent / (1 - 2 * exponent)
    return exponent >= 0 and abs(x - round(x)) < _BORDER


def predict_isotropic(
    activation: Activation,
    link: AnyLink,
    *,
    dim: int,
    width: int,
    samples: int,
    ridge: float,
    noise_variance: float = 0.0,
    rate: float | None = None,
    exponent: float | None = None,
    step_samples: int | None = None,
    gradient: str = "exact",
    method: str = "finite-step",
    degree: int | None = None,
) -> IsotropicPrediction:
    """Errors of the one-step network with d = `dim`, N = `width`, n = `samples`, η = `rate`.

    Parameters
    ----------
    activation : its mean E σ(Z) is taken off
    link : an Activation, Hermite coefficients (c_{*0}, c_{*1}, …), or a Link
    ridge : λ of (1/n)‖y − F a‖² + λ‖a‖²
    rate, exponent : η, and α of η ~ n^α; either one gives the other by η = n^α
    gradient : "exact" (residual y − f₀) or "labels-only" (residual y, the source's idealisation)
    method : "finite-step" at this η; "limit" of large n at this α; "random-features", η = 0
    degree : ℓ; by default the one of the regime of α for "limit", and the spikes of all degrees
        for "finite-step"

    >>> from onegrad.activation import get_activation
    >>> p = predict_isotropic(get_activation("relu"), [0, 1, 0.5, 0.2], dim=500, width=625,
    ...                       samples=1000, ridge=0.1, noise_variance=0.1, exponent=0.29,
    ...                       gradient="labels-only", method="limit")
    >>> p.regime, round(p.test_error, 4)
    (2, 1.2567)
    """
    check_gradient(gradient)
    if method not in METHODS:
        raise AssumptionError(f'method = "{method}" must be one of {", ".join(METHODS)}')
    for name, value in (("dim", dim), ("width", width), ("samples", samples),
                        ("step_samples", step_samples)):  # fmt: skip
        if value is not None and not value >= 1:
            raise AssumptionError(f"{name} = {value} must be at least 1")
    if not (noise_variance >= 0 and math.isfinite(noise_variance)):
        raise AssumptionError(f"noise_variance = {noise_variance} must be finite and ≥ 0")
    features, teacher = features_of(activation), link_of(link)
    phi, psi = dim / samples, dim / width
    step_phi = dim / (step_samples or samples)
    eta, alpha = _step_size(rate, exponent, samples, method)
    trained = method != "random-features" and eta > 0
    regime = regime_of(alpha) if trained else 0
    if degree is not None:
        check_degree(degree)
    traces = limiting_traces(features.c1, features.rest, phi, psi, ridge)
    tau2 = teacher.second_moment - teacher.linear**2 + noise_variance
    losses = Losses(
        *map(float, regression_losses(traces, phi, psi, ridge, teacher.linear**2, tau2))
    )
    if teacher.coefficients[0] != 0 and method != "limit":
        norms = norm_spikes(features, teacher, psi)
        losses = finite_step_losses(norms, teacher, traces, phi, psi, ridge, noise_variance)
    s2 = 0.0
    if trained:
        check_linear_part(features)
        s2 = float(direction_norm2(features, teacher, noise_variance, step_phi, gradient))
    if trained and method == "limit":
        if degree is None and on_border(alpha):
            raise AssumptionError(
                f"step exponent α = {alpha:.4g} lies on the border between two regimes, where "
                "the limit depends on the constant of η: use the finite-step version (method "
                '"isotropic" of `predict`)'
            )
        kept = regime if degree is None else degree
        train, test = loss_drops(features, teacher, phi, psi, ridge, noise_variance, kept,
                                 gradient=gradient, step_phi=step_phi)  # fmt: skip
        error = losses.test_error - test
        shrink = (ridge * float(traces.g)) ** 2
        losses = Losses(losses.train_objective - train, shrink * error, error)
    elif trained:
        spikes = (
            resummed_spikes(activation, teacher, noise_variance=noise_variance, rate=eta,
                            step_phi=step_phi, width=width, gradient=gradient, psi=psi)
            if degree is None
            else polynomial_spikes(features, teacher, noise_variance=noise_variance, rate=eta,
                                   step_phi=step_phi, width=width, gradient=gradient,
                                   degree=degree)
        )  # fmt: skip
        losses = finite_step_losses(spikes, teacher, traces, phi, psi, ridge, noise_variance)
    return IsotropicPrediction(
        losses.train_objective,
        losses.train_error,
        losses.test_error,
        regime,
        method,
        gradient,
        _assumptions(features, teacher, method, gradient, regime, degree, alpha, eta),
        features.active(regime if degree is None else degree) if trained else (),
        math.sqrt(s2),
        teacher.linear / math.sqrt(s2) if s2 > 0 else 0.0,
        traces,
    )


def _step_size(
    rate: float | None, exponent: float | None, samples: int, method: str
) -> tuple[float, float]:
    if rate is None and exponent is None:
        if method == "random-features":
            return 0.0, -math.inf
        raise AssumptionError(
            "give the step: rate = η, or exponent = α with η = samples^α; for no step at all use "
            'method = "random-features"'
        )
    if rate is not None and not (rate >= 0 and math.isfinite(rate)):
        raise AssumptionError(f"rate η = {rate} must be finite and ≥ 0")
    if exponent is None:
        assert rate is not None
        exponent = math.log(rate) / math.log(samples) if rate > 0 and samples > 1 else -math.inf
    if rate is None:
        rate = float(samples) ** exponent
    return rate, exponent


def _assumptions(
    features: Features,
    link: Link,
    method: str,
    gradient: str,
    regime: int,
    degree: int | None,
    alpha: float,
    eta: float,
) -> tuple[str, ...]:
    said = [
        "Isotropic Gaussian inputs; labels depend on one direction plus independent noise.",
        "Proportional limit: n, N, d large with d/n and d/N fixed.",
        "The activation is centred: E σ(Z) is taken off; W entries N(0, 1/d), a entries N(0, 1/N).",
        "Gaussian equivalence of the untrained features.",
    ]
    if link.coefficients[0] != 0:
        said.append("The labels have a mean, which the source excludes; it is treated as H₀.")
    if method == "random-features" or eta == 0:
        return (*said, "No step: the features are those of the random first layer.")
    where = f"Regime ℓ = {regime} (η ~ n^{alpha:.4g})"
    kept = regime if degree is None else degree
    if method == "limit":
        said.append(f"{where}; spikes up to degree {kept}, each in the limit of infinite strength.")
        said.append("Neurons keep norm one, as in the source: what their norms teach is left out.")
    elif degree is None:
        said.append(f"{where}; spikes of every degree, at the strength of this step η = {eta:.4g}.")
    else:
        said.append(f"{where}; spikes up to degree {kept}, at the strength of η = {eta:.4g}.")
        said.append("Neurons keep norm one, as in the source: what their norms teach is left out.")
    absent = [str(k) for k in range(1, kept + 1) if k not in features.active(kept)]
    if absent:
        said.append(f"The activation has no spike of degree {', '.join(absent)}: c_k = 0 there.")
    said.append(
        "The gradient contains the initial output f₀ (residual y − f₀)."
        if gradient == "exact"
        else "The initial output is left out of the gradient (residual y), as in the source."
    )
    return tuple(said)
