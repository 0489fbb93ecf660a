"""What an audit found: predictions of random problems beside their simulations.

A prediction p of an error whose simulated mean is s ± e deviates by p/s − 1; it is in the band if
|p − s| ≤ 0.01·s + 4e. A certainty is dishonest if |p − s| − 4e, what no bad luck of the simulation
explains, exceeds the error that the theory states for its test and training error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.results.estimates import Estimate
from onegrad.results.rows import QUANTITIES
from onegrad.results.summaries import number_or_none
from onegrad.spec.toml_text import to_toml

BAND = 0.01  # relative deviation that counts as agreement, beside the simulation's own error
SIGMAS = 4.0  # standard errors attributed to the simulation
_STATED = ("test_error", "train_error")  # errors for which a theory states an estimate


@dataclass(frozen=True)
class Checked:
    """One problem, predicted and simulated.

    spec : its tables; dim : n
    predicted : errors by name, none where the theory refused, with its sentence in `refusal`
    simulated : mean and standard error by name, over `seeds` repetitions
    error_estimate : what the theory states; NaN where it has checked nothing
    seconds : of the prediction
    seed : root of the simulation's random numbers
    failure : why there is no simulation; empty where there is one
    """

    number: int
    spec: dict[str, Any]
    dim: int
    predicted: dict[str, float]
    simulated: dict[str, Estimate]
    error_estimate: float
    seconds: float
    seeds: int = 0
    refusal: str = ""
    failure: str = ""
    seed: int = 0

    @property
    def compared(self) -> bool:
        """Whether there are two sides to compare."""
        return not self.refusal and not self.failure

    def deviation(self, quantity: str) -> float:
        """p/s − 1."""
        mean = self.simulated[quantity].mean
        return self.predicted[quantity] / mean - 1 if mean else math.inf

    def sigmas(self, quantity: str) -> float:
        """(p − s)/e."""
        mean, error = self.simulated[quantity]
        return (self.predicted[quantity] - mean) / error if error > 0 else math.nan

    def in_band(self, quantity: str) -> bool:
        """|p − s| ≤ 0.01·s + 4e."""
        mean, error = self.simulated[quantity]
        return bool(abs(self.predicted[quantity] - mean) <= BAND * abs(mean) + SIGMAS * error)

    @property
    def all_in_band(self) -> bool:
        """Test error, training error and objective."""
        return all(self.in_band(quantity) for quantity in QUANTITIES)

    @property
    def proven(self) -> float:
        """(|p − s| − 4e)/p, the larger of test and train, at least 0: what is wrong for sure."""
        excess = [0.0]
        for quantity in _STATED:
            predicted, (mean, error) = self.predicted[quantity], self.simulated[quantity]
            beyond = abs(predicted - mean) - SIGMAS * error
            excess.append(beyond / abs(predicted) if predicted else math.inf if beyond > 0 else 0.0)
        return float(np.nanmax(excess))

    @property
    def dishonest(self) -> bool:
        """More is wrong for sure than the theory states; an unstated error (NaN) is no lie."""
        return self.compared and self.proven > self.error_estimate

    @property
    def largest(self) -> float:
        """The largest deviation beyond the band of all three, relative: the order of the worst."""
        if not self.compared:
            return 0.0
        beyond = [
            abs(self.predicted[q] - self.simulated[q].mean) - SIGMAS * self.simulated[q][1]
            for q in QUANTITIES
        ]
        scales = [abs(self.simulated[q].mean) or math.inf for q in QUANTITIES]
        return max(0.0, *(b / s for b, s in zip(beyond, scales, strict=True)))

    def toml(self) -> str:
        """A spec that `onegrad run` takes: the same problem, with the models of the audit."""
        compare = {"models": ["network", "theory"], "seeds": max(self.seeds, 2), "seed": self.seed}
        return to_toml({"name": f"audit problem {self.number}", **self.spec, "compare": compare})

    def as_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"problem": self.number, "spec": self.spec, "n": self.dim}
        for q in QUANTITIES:
            mean, error = self.simulated.get(q, Estimate(math.nan, math.nan))
            record |= {q: number_or_none(self.predicted.get(q, math.nan))}
            record |= {f"{q}_simulated": number_or_none(mean), f"{q}_se": number_or_none(error)}
        record |= {"error_estimate": number_or_none(self.error_estimate), "seeds": self.seeds}
        record |= {"seconds": round(self.seconds, 4), "refusal": self.refusal}
        if self.compared:
            record |= {"in_band": self.all_in_band, "dishonest": self.dishonest}
        return record | ({"failure": self.failure} if self.failure else {})


@dataclass(frozen=True)
class Audit:
    """All problems of an audit, and what its table says about them."""

    seed: int
    problems: tuple[Checked, ...]

    @property
    def compared(self) -> tuple[Checked, ...]:
        """Problems that were both predicted and simulated."""
        return tuple(one for one in self.problems if one.compared)

    @property
    def refused(self) -> tuple[Checked, ...]:
        return tuple(one for one in self.problems if one.refusal)

    @property
    def dishonest(self) -> tuple[Checked, ...]:
        return tuple(one for one in self.problems if one.dishonest)

    @property
    def unstated(self) -> tuple[Checked, ...]:
        """Predictions without an error estimate."""
        return tuple(one for one in self.compared if math.isnan(one.error_estimate))

    def share_in_band(self, *quantities: str) -> float:
        """Share of the compared problems whose errors of these names are all in the band."""
        wanted = quantities or QUANTITIES
        return _share(all(one.in_band(q) for q in wanted) for one in self.compared)

    def deviations(self, quantity: str) -> np.ndarray:
        """p/s − 1 of every compared problem."""
        return np.array([one.deviation(quantity) for one in self.compared])

    def worst(self, count: int = 10) -> list[Checked]:
        """The largest deviations outside the band that simulation errors do not explain."""
        outside = [one for one in self.compared if not one.all_in_band]
        return sorted(outside, key=lambda one: -one.largest)[:count]

    def refusals(self) -> list[tuple[str, list[int]]]:
        """Refused problems by the sentence of the refusal, whose numbers are left out."""
        found: dict[str, tuple[str, list[int]]] = {}
        for one in self.refused:
            key = re.sub(r"\d[\d.e+-]*", "#", one.refusal)
            found.setdefault(key, (one.refusal, []))[1].append(one.number)
        return sorted(found.values(), key=lambda entry: -len(entry[1]))

    def as_json(self) -> dict[str, Any]:
        seconds = [one.seconds for one in self.problems]
        return {
            "seed": self.seed, "problems": len(self.problems), "compared": len(self.compared),
            "in_band": {q: number_or_none(self.share_in_band(q)) for q in QUANTITIES}
            | {"all": number_or_none(self.share_in_band())},
            "dishonest": [one.number for one in self.dishonest],
            "unstated": [one.number for one in self.unstated],
            "refused": [{"sentence": s, "problems": numbers} for s, numbers in self.refusals()],
            "not_simulated": [one.number for one in self.problems if one.failure],
            "seconds": {name: number_or_none(value) for name, value in times(seconds).items()},
            "rows": [one.as_json() for one in self.problems],
        }  # fmt: skip


def times(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 90 % quantile and maximum."""
    if not seconds:
        return dict.fromkeys(("median", "90 %", "max"), math.nan)
    values = np.quantile(seconds, (0.5, 0.9, 1.0))
    return dict(zip(("median", "90 %", "max"), map(float, values), strict=True))


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found) if found else math.nan
