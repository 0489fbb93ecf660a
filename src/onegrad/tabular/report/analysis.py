"""Every number of the report on somebody's table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onegrad.errors import SpecError, did_you_mean
from onegrad.results.estimates import Estimate
from onegrad.tabular.estimators import OneStepClassifier, OneStepRegressor
from onegrad.tabular.learning.curve_of_rows import WIDTH, LearningCurve, curve_of
from onegrad.tabular.learning.subsets import Plan, Targets, inputs_of
from onegrad.tabular.reading.table import FEWEST_ROWS, Table
from onegrad.tabular.report.findings import Found, find_direction, heavy_tails, label_tail
from onegrad.tabular.report.scores import (
    CUT,
    LOGARITHM,
    NO_STEP,
    STEP,
    UNCUT,
    Score,
    Tails,
    compare,
)

_WIDTHS = (60, 125, 250, 500, 1000)
_WIDTH_ROWS = 1500
_CLOSE = 1.02  # a width is enough if its error is at most this times the least


@dataclass(frozen=True)
class Analysis:
    """What the page shows.

    widths : leave-one-out error of the estimator (relative to the first) by number of neurons
    clip : robust standard deviations at which inputs are cut, None for as they are
    quick : whether it is a first look, with fewer repetitions
    """

    table: Table
    curve: LearningCurve
    scores: dict[str, Score]
    widths: dict[int, float]
    found: Found
    tails: Tails
    clip: float | None
    quick: bool

    def lead(self, name: str, over: str) -> Estimate | None:
        """Score of one model less that of another, split by split; None without them."""
        if name not in self.scores or over not in self.scores:
            return None
        pairs = zip(self.scores[name].values, self.scores[over].values, strict=True)
        return Estimate.of(a - b for a, b in pairs)

    @property
    def gain(self) -> Estimate | None:
        """What the step brings."""
        return self.lead(STEP, NO_STEP)

    @property
    def cut_helps(self) -> Estimate | None:
        """What cutting the inputs brings; None if it was not tried without."""
        return self.lead(STEP, UNCUT) or self.lead(CUT, STEP)

    @property
    def logarithm_helps(self) -> Estimate | None:
        """What the logarithm of the label brings; None if it was not tried."""
        return self.lead(LOGARITHM, STEP)

    @property
    def width(self) -> int:
        """The least width whose error is within 2 % of the best one's."""
        best = min(self.widths.values())
        return min(k for k, error in self.widths.items() if error <= _CLOSE * best)

    @property
    def rate(self) -> float:
        """The rate chosen most often with most rows."""
        values, counts = np.unique(self.curve.subsets[-1].rates, return_counts=True)
        return float(values[counts.argmax()])


class Progress:
    """Says what is being done, and how long the rest may take, from the share that is done."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.begun = say, time.monotonic()
        self.start = self.share = 0.0

    def part(self, start: float, share: float) -> Callable[[str, float], None]:
        """Of the whole, the part from `start` on that is `share` of it."""

        def told(text: str, done: float) -> None:
            whole = start + share * done
            spent = time.monotonic() - self.begun
            left = f"; about {spent * (1 - whole) / whole:.0f} s left" if whole > 0.05 else ""
            self.say(f"{whole:4.0%}  {text}{left}")

        return told


def analyse(
    table: Table,
    classes: Sequence[str] | None = None,
    say: Callable[[str], None] = print,
    quick: bool = False,
) -> Analysis:
    """Tails and baselines first, which say how inputs are treated; then the learning curve, widths
    and the direction.

    classes : only rows of these, if given
    Under two minutes of CPU for 5000 rows of 30 columns; quick: a smaller network, fewer
    repetitions.
    """
    table = _only(table, classes)
    progress = Progress(say)
    width = 150 if quick else WIDTH
    tails = Tails(tuple(int(i) for i in heavy_tails(table.x)))
    if table.task == "regression":
        tails = Tails(tails.inputs, *label_tail(table.y))
    rows = _part_of(table, 1000) if quick else table
    scores, clip = compare(rows, width, tails, 3, progress.part(0.0, 0.3))
    fitted = _part_of(table, 2000) if quick else table
    targets = Targets.of(fitted.y, table.task)
    plan = Plan(width, 2 if quick else 3, clip=clip)
    curve = curve_of(inputs_of(fitted.x, len(fitted.y)), targets, plan, progress.part(0.3, 0.55))
    curve = replace(curve, rows=len(table.y))  # a quick curve may know a part of them
    progress.part(0.85, 0.1)("trying widths", 0.0)
    widths = _widths(_part_of(table, _WIDTH_ROWS), clip, quick)
    progress.part(0.95, 0.05)("looking for what the step found", 0.0)
    found = find_direction(table.x, Targets.of(table.y, table.task))
    return Analysis(table, curve, scores, widths, found, tails, clip, quick)


def _only(table: Table, classes: Sequence[str] | None) -> Table:
    if classes is None:
        return table
    if table.task == "regression":
        raise SpecError.of("classes", list(classes), "needs labels that are classes",
                           "Leave out --classes, or give --task classification")  # fmt: skip
    for name in classes:
        if name not in table.classes:
            raise SpecError.of(
                "classes", name, f"must be from {', '.join(table.classes[:20])}",
                did_you_mean(name, table.classes),
            )  # fmt: skip
    if len(set(classes)) < 2:
        raise SpecError.of("classes", list(classes), "must be two different classes or more",
                           f"For example {table.classes[0]},{table.classes[1]}")  # fmt: skip
    rows = np.isin(table.y, list(classes))
    if rows.sum() < FEWEST_ROWS:
        raise SpecError.of(
            "classes", list(classes), f"have only {rows.sum()} rows together; {FEWEST_ROWS} are "
            "needed", "Choose larger classes with --classes",
        )  # fmt: skip
    left = len(table.classes) - len(set(classes))
    notes = (*table.notes, f"{left} other classes left out.") if left else table.notes
    return replace(table, x=table.x[rows], y=table.y[rows], notes=notes)


def _part_of(table: Table, rows: int) -> Table:
    if len(table.y) <= rows:
        return table
    kept = np.random.default_rng(0).choice(len(table.y), rows, replace=False)
    if table.task == "classification" and len(np.unique(table.y[kept])) < 2:
        return table
    return replace(table, x=table.x[kept], y=table.y[kept])


def _widths(table: Table, clip: float | None, quick: bool) -> dict[int, float]:
    """Leave-one-out errors of the estimator with some widths, in one draw each."""
    kind: Any = OneStepRegressor if table.task == "regression" else OneStepClassifier
    spread = table.x.std(axis=0)
    x = (table.x - table.x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    errors = {
        width: kind(width, clip=clip, rate=[0.0, 8.0, 64.0], random_state=0).fit(x, table.y).error_
        for width in (_WIDTHS[:3] if quick else _WIDTHS)
    }
    return {width: error / errors[_WIDTHS[0]] for width, error in errors.items()}
