"""Settings, problems and plain draws shared by the tests of the isotropic theory."""

import math
from dataclasses import replace

import numpy as np

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.polynomials import hermite_series
from onegrad.problem import Problem
from onegrad.theory.isotropic.series import ActivationSeries, LinkSeries
from onegrad.theory.isotropic.setting import IsotropicSetting

PHI, PSI, RIDGE, NOISE = 0.5, 0.8, 0.1, 0.1
COEFFICIENTS = [0.0, 1.0, 0.5, 0.2]
RELU = ActivationSeries.of(get_activation("relu"))
# relu's c₁ and C with a cubic part: relu itself has c₃ = 0 and makes no third spike
FULL = ActivationSeries(
    (0.0, RELU.c1, RELU.coefficients[2], 0.05, 0.02, 0.01, 0.005, 0.002), RELU.rest
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


def first_step(activation, n, d, width, gradient, rng, link=COEFFICIENTS):
    """W₀, a, β = X̃ᵀr/n and the true (negative) gradient of one draw."""
    w = rng.standard_normal((width, d)) / math.sqrt(d)
    a = rng.standard_normal(width) / math.sqrt(width)
    x = rng.standard_normal((n, d))
    y = hermite_series(link, x[:, 0]) + math.sqrt(NOISE) * rng.standard_normal(n)
    u = x @ w.T
    r = y - activation(u) @ a if gradient == "exact" else y
    step = (activation.derivative(u) * np.outer(r, a)).T @ x / n
    return w, a, x.T @ r / n, step


def extrapolate(sizes, values, errors):
    """(value, standard error) at infinite size of v + w/size, for each column."""
    design = np.column_stack([np.ones(len(sizes)), 1 / sizes])
    result = []
    for column, spread in zip(values.T, errors.T, strict=True):
        weighted = design / spread[:, None]
        covariance = np.linalg.inv(weighted.T @ weighted)
        result.append((covariance[0] @ weighted.T @ (column / spread), covariance[0, 0] ** 0.5))
    return np.array(result).T
