"""How far every model is from the network at worst: the last word of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onegrad.results.rows import Estimate, Results, number_or_none

ERRORS = {"test_error": "test_difference", "train_error": "train_difference"}


@dataclass(frozen=True)
class Deviation:
    """A model's difference to the network at one point, relative to the network's error."""

    point: dict[str, Any]
    difference: Estimate

    @property
    def sigmas(self) -> float:
        """The difference in standard errors; NaN where one seed gives none."""
        mean, error = self.difference
        return abs(mean) / error if error > 0 else math.nan


@dataclass(frozen=True)
class Verdict:
    """Of one model and one error: the largest deviation in percent, and in standard errors."""

    model: str
    quantity: str
    largest: Deviation
    surest: Deviation | None
    points: int

    def as_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"model": self.model, "quantity": self.quantity}
        for name, found in (("largest", self.largest), ("surest", self.surest)):
            record[name] = found and {
                "point": found.point,
                "difference": number_or_none(found.difference.mean),
                "difference_se": number_or_none(found.difference.standard_error),
                "standard_errors": number_or_none(found.sigmas),
            }
        return record | {"points": self.points}


def verdicts(results: Results) -> list[Verdict]:
    """One for each model but the network and each error, over all points where both are known."""
    summaries = [s for s in results.summaries() if s.model != "network"]
    found = []
    for model in dict.fromkeys(s.model for s in summaries):
        for quantity, field in ERRORS.items():
            deviations = [
                Deviation(s.point, getattr(s, field))
                for s in summaries
                if s.model == model and math.isfinite(getattr(s, field).mean)
            ]
            if not deviations:
                continue
            largest = max(deviations, key=lambda d: abs(d.difference.mean))
            sure = [d for d in deviations if math.isfinite(d.sigmas)]
            surest = max(sure, key=lambda d: d.sigmas) if sure else None
            found.append(Verdict(model, quantity, largest, surest, len(deviations)))
    return found
