"""Scaling laws: exponents of the test error along a swept key, of every model beside the theory's.

Under a power-law bulk λ_j ∝ j^−a with a > 1 and next to no ridge, the test error of a linear target
falls like min(samples, width)^−(a−1): what the smaller of the two resolves of the spectrum
[maloney2022]. docs/book/structure.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.errors import SpecError
from onegrad.results.estimates import Estimate, least_squares
from onegrad.results.results import Results
from onegrad.results.summaries import Summary


@dataclass(frozen=True)
class ScalingExponent:
    """test_error ∝ value^−exponent for one model, along one key.

    along, point : the key, and the other settings
    exponent : slope of the least-squares line of log test_error on log value, with its standard
        error: of the simulated means, and never less than what the scatter around the line says
    local : (points − 1,) exponents between neighbours: equal ones where the law is a power law
    """

    model: str
    along: str
    point: dict[str, Any]
    exponent: Estimate
    local: tuple[float, ...]

    def __repr__(self) -> str:
        local = ", ".join(f"{value:.2f}" for value in self.local)
        return f"{self.model}: test_error ∝ {self.along}^−{self.exponent} (locally {local})"


def scaling_exponents(results: Results, along: str) -> list[ScalingExponent]:
    """Exponents of the test error along a swept key, for every model and the theory.

    along : a key of the sweep with three different values or more, such as "training.samples"
    """
    groups: dict[str, list[Summary]] = {}
    keys: set[str] = set()
    for one in results.summaries():
        keys |= set(one.point)
        good = one.status == "ok" and one.test_error.mean > 0
        if along in one.point and good:
            rest = {key: value for key, value in one.point.items() if key != along}
            groups.setdefault(f"{one.model} {sorted(rest.items())}", []).append(one)
    if along not in keys:
        raise SpecError.choice("along", along, sorted(keys))
    exponents = [
        _fitted(group, along) for group in groups.values() if _values(group, along).size > 2
    ]
    if not exponents:
        raise SpecError.of(
            "along", along, "must have three different positive values or more that were computed",
            "For example [100, 200, 400, 800]",
        )  # fmt: skip
    return exponents


def _values(group: list[Summary], along: str) -> np.ndarray:
    numbers = [one.point[along] for one in group]
    if not all(isinstance(v, int | float) and v > 0 for v in numbers):
        return np.zeros(0)
    return np.unique(numbers)


def _fitted(group: list[Summary], along: str) -> ScalingExponent:
    group = sorted(group, key=lambda one: one.point[along])
    x = np.log([float(one.point[along]) for one in group])
    y = np.log([one.test_error.mean for one in group])
    errors = [one.test_error.standard_error / one.test_error.mean for one in group]
    errors_or_zero = np.array([e if math.isfinite(e) else 0.0 for e in errors])
    (_, slope), (_, weights), rest = least_squares(np.column_stack([np.ones(len(x)), x]), y)
    scatter = math.sqrt(float(rest @ rest) / max(len(x) - 2, 1) * float(weights @ weights))
    se = max(math.sqrt(float(weights**2 @ errors_or_zero**2)), scatter)
    point = {key: value for key, value in group[0].point.items() if key != along}
    local = tuple((-np.diff(y) / np.diff(x)).tolist())
    return ScalingExponent(group[0].model, along, point, Estimate(-float(slope), se), local)
