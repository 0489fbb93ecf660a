"""Which polynomial degree is enough for a problem, and what the terms left out amount to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onegrad.equivalents.conditional_gaussian import leading_direction
from onegrad.hermite import Array, hermite_series, sqrt_factorial
from onegrad.network.trial import Trial
from onegrad.problem import Problem, degree_rule
from onegrad.randomness import Streams


@dataclass(frozen=True)
class Term:
    """The term h_j/j!·H_j(Ŵx/b) of the features, at the problem's own size.

    `share` of E σ(bZ)², and `norm_ratio`: its operator norm over that of the same polynomial of
    independent Gaussians, that is of pure noise, which the Hermite model puts in the place of a
    term it leaves out. A ratio near 1 is harmless; above, structure is lost. `exponent`: the
    theorem bounds the term's excess by n^exponent.
    """

    degree: int
    kept: bool
    share: float
    norm_ratio: float
    exponent: float | None


@dataclass(frozen=True)
class DegreeReport:
    """The degree ℓ, the interval of the parameter that it belongs to, and the next terms.

    Degree 1 is enough from below: its interval has no lower end (None).
    """

    degree: int | None
    symbol: str
    value: float | None
    interval: tuple[float | None, float] | None
    to_next: float | None
    on_boundary: bool
    terms: tuple[Term, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def degree_report(problem: Problem, seed: int = 0, beyond: int = 3) -> DegreeReport:
    """The degree rule, and one draw of the trained network that measures the terms.

    Cost: one gradient step and one product XŴᵀ (O(kmn)), then elementwise work.
    """
    beta = problem.strength
    finite = beta is not None and beta < 1
    degree = degree_rule(beta) if finite else None
    isotropic = problem.scaling.exponent is not None
    unit = 0.5 if isotropic else 1.0  # the isotropic source's α is β/2
    interval = _interval(degree, unit) if degree else None
    value = None if beta is None else beta * unit
    trial = Trial(problem, Streams(seed, 0))
    shown = (degree or 0) + beyond
    terms = _terms(trial, shown, degree or 0, beta)
    to_next = interval[1] - value if interval and value is not None else None
    boundary = to_next is not None and abs(to_next) < 1e-9
    symbol = "α (scaling.exponent)" if isotropic else "β (scaling.strength)"
    return DegreeReport(degree, symbol, value, interval, to_next, boundary, terms)


def _interval(degree: int, unit: float) -> tuple[float | None, float]:
    low = (degree - 1) / degree * unit if degree > 1 else None
    return low, degree / (degree + 1) * unit


def _terms(trial: Trial, upto: int, degree: int, beta: float | None) -> tuple[Term, ...]:
    problem = trial.problem
    scale = problem.bulk_scale
    h = problem.activation.projections(upto, scale)
    energy = problem.activation.second_moment(scale)
    scaled = trial.train.preactivation(trial.updated_weights) / scale
    noise = np.random.default_rng(0).standard_normal(scaled.shape)
    terms = []
    for j in range(1, upto + 1):
        size = float(abs(h[j]) / sqrt_factorial(j)[-1])
        unit = np.zeros(j + 1)
        unit[j] = 1.0 / sqrt_factorial(j)[-1]
        ratio = _operator_norm(hermite_series(unit, scaled))
        ratio /= _operator_norm(hermite_series(unit, noise))
        share = size**2 / energy if energy else 0.0
        exponent = None if beta is None else (1 - j * (1 - beta)) / 2
        terms.append(Term(j, j <= degree, share, ratio if share > 1e-12 else 0.0, exponent))
    return tuple(terms)


def _operator_norm(matrix: Array) -> float:
    return float(np.linalg.norm(matrix @ leading_direction(matrix)))
