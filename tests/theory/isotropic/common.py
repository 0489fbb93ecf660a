"""Settings, problems and plain draws shared by the tests of the isotropic theory."""

import math
from dataclasses import replace

import numpy as np

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.polynomials import power_to_hermite, sqrt_factorial
from onegrad.problem import Problem
from onegrad.theory.isotropic.setting import (
    ActivationSeries,
    IsotropicSetting,
    LinkSeries,
    inflated_powers,
)
from onegrad.theory.isotropic.step_spikes import assembled

PHI, PSI, RIDGE, NOISE = 0.5, 0.8, 0.1, 0.1
COEFFICIENTS = [0.0, 1.0, 0.5, 0.2]
RELU = ActivationSeries.of(get_activation("relu"))
# relu's c₁ and C with a cubic part: relu itself has c₃ = 0 and makes no third spike
FULL = ActivationSeries(
    (0.0, RELU.c1, RELU.coefficients[2], 0.05, 0.02, 0.01, 0.005, 0.002, 0.001), RELU.rest
)


def link_of(coefficients):
    """The polynomial Σ c_k H_k as a link."""
    square = sum(math.factorial(k) * c**2 for k, c in enumerate(coefficients))
    return LinkSeries(tuple(float(c) for c in coefficients), float(square))


LINK = link_of(COEFFICIENTS)


def setting(activation="relu", **changes):
    """The reference setting of the tests, with the source's gradient; the step has d/n₁ = d/n."""
    if isinstance(activation, str):
        activation = get_activation(activation)
    base = IsotropicSetting(
        activation, ActivationSeries.of(activation), LINK, PHI, PSI, changes.get("phi", PHI),
        RIDGE, NOISE, rate=1.0, exponent=0.29, width=1250, gradient="labels-only",
    )  # fmt: skip
    return replace(base, **changes)


def problem(activation="relu", link=COEFFICIENTS, training=None, samples=1000, **scaling):
    """The same as a problem, with the exact gradient; `scaling` may be a rate."""
    training = {"samples": samples, "ridge": RIDGE} | (training or {})
    if "rate" in scaling:
        training["rate"] = scaling.pop("rate")
    return Problem(
        data={"model": "isotropic", "dim": samples // 2},
        labels={"link": f"hermite({', '.join(map(str, link))})", "noise": math.sqrt(NOISE)},
        network={"convention": "isotropic", "activation": activation, "width": 5 * samples // 8},
        training=training,
        scaling=scaling,
    )


def polynomial_spikes(setting, degree, inflation=0.0):
    """The spikes of F_ℓ, ℓ = `degree`, power by power after a step of rate η at N neurons.

    With `inflation` = κ the powers (X̃β)ᵏ become E(X̃β + s√κ Z)ᵏ.
    """
    features, width = setting.features, setting.width
    active = list(features.active(degree))
    top = max(active)
    # (aᵏ)ᵀq_j = N^{(1−k)/2} L_kj where LLᵀ is the moment matrix (i+j−1)!! of a√N
    moments = power_to_hermite(top)[active]
    upper = np.linalg.qr((moments * sqrt_factorial(top)).T, mode="r")
    lower = (upper * np.sign(np.diag(upper))[:, None]).T
    scale = features.c1 * setting.rate * setting.direction_norm / math.sqrt(width)
    strengths = np.array([features.coefficients[k] * scale**k for k in active])
    powers = inflated_powers(top, inflation)[active]
    return assembled(setting, math.sqrt(width) * powers.T @ (strengths[:, None] * lower))
