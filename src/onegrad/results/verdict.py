"""How far every model is from the network at worst: the last word of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from onegrad.results.estimates import Estimate
from onegrad.results.rows import Row
from onegrad.results.summaries import grouped, number_or_none, relative_difference, summaries

ERRORS = {"test_error": "test_difference", "train_error": "train_difference"}
BAND = 0.01  # relative difference that counts as agreement
LEVEL = 0.01  # probability that chance alone makes a model differ somewhere
# Quantities compared in addition, where they differ from the errors.
_MORE = ("misclassification", "test_loss", "train_loss")


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
    deviations: tuple[Deviation, ...] = ()

    def beyond(self, band: float, level: float, seeds: int) -> list[Deviation]:
        """Deviations that are larger than `band` and chance: the interval of a mean over so many
        seeds, Student's, in which all of them lie with the probability 1 − level."""
        if seeds < 2:
            return []
        factor = float(stdtrit(seeds - 1, 1 - level / (2 * max(1, len(self.deviations)))))
        return [
            d
            for d in self.deviations
            if abs(d.difference.mean) > band + factor * d.difference.standard_error
        ]

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


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """One for each model but the network and each error, over all points where both are known."""
    compared = [s for s in summaries(rows) if s.model != "network"]
    more = _more_deviations(rows)
    verdicts = []
    for model in dict.fromkeys(s.model for s in compared):
        for quantity in (*ERRORS, *_MORE):
            deviations = more.get((model, quantity), [])
            if quantity in ERRORS:
                deviations = [
                    Deviation(s.point, getattr(s, ERRORS[quantity]))
                    for s in compared
                    if s.model == model and math.isfinite(getattr(s, ERRORS[quantity]).mean)
                ]
            if not deviations:
                continue
            largest = max(deviations, key=lambda d: abs(d.difference.mean))
            sure = [d for d in deviations if math.isfinite(d.sigmas)]
            surest = max(sure, key=lambda d: d.sigmas) if sure else None
            verdicts.append(
                Verdict(model, quantity, largest, surest, len(deviations), tuple(deviations))
            )
    return verdicts


def _more_deviations(rows: Sequence[Row]) -> dict[tuple[str, str], list[Deviation]]:
    """Of classification errors and losses, by model and quantity."""
    deviations: dict[tuple[str, str], list[Deviation]] = {}
    groups = grouped(rows)
    for (number, model), own in groups.items():
        network = groups.get((number, "network"), [])
        if model == "network" or not network:
            continue
        for quantity in _MORE:
            error = quantity.replace("_loss", "_error")
            if error != quantity and all(
                getattr(row, quantity) == getattr(row, error) for row in network
            ):
                continue  # the squared loss is the squared error
            difference = relative_difference(own, network, quantity)
            if math.isfinite(difference.mean):
                deviations.setdefault((model, quantity), []).append(
                    Deviation(own[0].point, difference)
                )
    return deviations
