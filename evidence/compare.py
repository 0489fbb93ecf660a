"""Predictions beside simulations, problem by problem.

A prediction p of a simulated mean s ± e is in the band if |p − s| ≤ 1 % of |s| + 4e. An answer is
dishonest if |p − s| − 4e exceeds what it states, relative to p, in test or training error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .files import Record

BAND, SIGMAS = 0.01, 4.0
MAIN = ("test_error", "train_error", "train_objective")
STATED = ("test_error", "train_error")  # what an error estimate is about
OTHERS = ("test_loss", "train_loss", "misclassification", "calibration")
SMALLEST = 1e-9  # relative: what a standard error of zero still leaves to rounding


@dataclass(frozen=True)
class Compared:
    """One problem: what was simulated, what the theory said about it."""

    problem: Record
    answer: Record

    @property
    def id(self) -> str:
        return str(self.problem["id"])

    @property
    def kind(self) -> str:
        return str(self.problem["class"])

    @property
    def engine(self) -> str:
        return str(self.answer.get("engine", "none"))

    @property
    def status(self) -> str:
        """ok, refused, time, memory or crash."""
        return str(self.answer["status"])

    @property
    def answered(self) -> bool:
        return self.status == "ok"

    @property
    def seconds(self) -> float:
        return float(self.answer["seconds"])

    @property
    def estimate(self) -> float:
        """The relative error that the answer states; NaN where it states none."""
        value = self.answer.get("estimate")
        return math.nan if value is None else float(value)

    def both(self, name: str) -> tuple[float, float, float] | None:
        """Predicted, simulated mean and its standard error; None where one side has no number."""
        predicted: dict[str, float] = self.answer.get("predicted", {})
        simulated: dict[str, Any] = self.problem["simulated"]
        if name not in predicted or name not in simulated:
            return None
        mean, error = simulated[name]
        return predicted[name], mean, error

    def in_band(self, name: str) -> bool:
        """True where there is nothing to compare."""
        if (found := self.both(name)) is None:
            return True
        p, s, e = found
        return abs(p - s) <= (BAND + SMALLEST) * abs(s) + SIGMAS * e

    def deviation(self, name: str) -> float:
        """p/s − 1."""
        found = self.both(name)
        return math.nan if found is None or not found[1] else found[0] / found[1] - 1

    def surely_off(self, name: str) -> float:
        """(|p − s| − 4e)/|p|, at least 0."""
        if (found := self.both(name)) is None:
            return 0.0
        p, s, e = found
        beyond = max(0.0, abs(p - s) - SIGMAS * e - SMALLEST * abs(s))
        return beyond / abs(p) if p else (math.inf if beyond else 0.0)

    @property
    def proven(self) -> float:
        """What is wrong for sure in test or training error."""
        return max(self.surely_off(name) for name in STATED)

    @property
    def dishonest(self) -> bool:
        """An answer that states no error is not: it is counted apart."""
        return self.answered and self.proven > self.estimate

    @property
    def worst(self) -> float:
        """The largest deviation, relative, beyond four standard errors, of test and train."""
        return self.proven if self.answered else 0.0

    def moved(self, other: Compared) -> float:
        """The largest relative change of a number against another answer; infinite where one of
        the two has none."""
        if self.answered != other.answered:
            return math.inf
        changes = [0.0]
        for name in (*MAIN, *OTHERS):
            new, old = (one.answer.get("predicted", {}).get(name) for one in (self, other))
            if new is not None and old:
                changes.append(abs(new / old - 1))
        return max(changes)


def compared(problems: list[Record], answers: list[Record]) -> list[Compared]:
    """Every problem that has an answer, refusals among them."""
    by_id = {one["id"]: one for one in answers}
    return [Compared(one, by_id[one["id"]]) for one in problems if one["id"] in by_id]
