"""How far our numbers are from a published figure, point by point and model by model.

Two units: percent of the published value, and the spread between data sets. Where the source keeps
one data set for all trials, a published value is off from its own mean by as much as one data set
is from the next; the standard deviation between our repetitions, each with its own data, is that.
Our risk is exact; the source's is that of one test set, whose own chance is added (`test_noise`).
Points that could not be read off to 5 % are left out: the lowest ones of some pictures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.results.summaries import estimate, paired_difference
from onegrad.simulate.models import THEORIES
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import PublishedFigure, PublishedPoint, comparable, is_at

FAR = 3.0  # spreads from which on a point counts as off
_TOO_FAR = 5.0  # spreads that no point may exceed
_FEW = 8  # repetitions from which on their spread is known; below, it is taken from a whole curve
_SHARE = 0.05  # share of the points that may be off by chance
_READABLE = 0.05  # reading error over value from which on a point is drawn, but not compared


@dataclass(frozen=True)
class Comparison:
    """Ours against a published number at one point.

    what : the model, or "hermite − network" for the gap between the two, paired on both sides
    ours, published : in our convention; gaps are fractions of the network's error
    noise : of the difference: spread between data sets, reading error, our standard error
    freedom : degrees of freedom from which the spread was estimated
    """

    point: Mapping[str, Any]
    what: str
    ours: float
    published: float
    noise: float
    freedom: int

    @property
    def gap(self) -> bool:
        return "−" in self.what

    @property
    def deviation(self) -> float:
        """Relative to what is published; of gaps the plain difference."""
        return self.ours - self.published if self.gap else self.ours / self.published - 1

    @property
    def spreads(self) -> float:
        return abs(self.ours - self.published) / self.noise if self.noise > 0 else math.nan

    @property
    def far(self) -> bool:
        """Further away than three spreads; more where few repetitions tell what a spread is."""
        return not self.spreads <= _quantile(FAR, self.freedom)

    @property
    def too_far(self) -> bool:
        return not self.spreads <= _quantile(_TOO_FAR, self.freedom)


@lru_cache(maxsize=256)
def _quantile(sigmas: float, freedom: int) -> float:
    """Of Student's t: as rare as so many standard deviations of a Gaussian."""
    return float(-stdtrit(max(freedom, 1), ndtr(-sigmas)))


@dataclass(frozen=True)
class Agreement:
    """One model over all published points of a figure."""

    what: str
    comparisons: tuple[Comparison, ...]

    @property
    def gap(self) -> bool:
        """Whether it is of the difference between two models."""
        return self.comparisons[0].gap

    @property
    def mean(self) -> float:
        """Mean deviation, a fraction."""
        return float(np.mean([c.deviation for c in self.comparisons]))

    @property
    def mean_size(self) -> float:
        """Mean size of the deviation, a fraction."""
        return float(np.mean([abs(c.deviation) for c in self.comparisons]))

    @property
    def root_mean_square(self) -> float:
        """In spreads."""
        return float(np.sqrt(np.mean([c.spreads**2 for c in self.comparisons])))

    @property
    def worst(self) -> Comparison:
        return max(self.comparisons, key=lambda c: c.spreads)

    @property
    def off(self) -> int:
        """Points that are far away."""
        return sum(c.far for c in self.comparisons)

    @property
    def agrees(self) -> bool:
        """At most one point in twenty beyond three spreads, none beyond five."""
        few = self.off <= _SHARE * len(self.comparisons)
        return few and not any(c.too_far for c in self.comparisons)


def _readable(published: PublishedPoint) -> bool:
    """Whether a point could be read off well enough to be compared."""
    return published.error <= _READABLE * published.value


def agreements(experiment: Experiment, results: Results) -> list[Agreement]:
    """Network, models and theory against the published figure, where there is one."""
    figure = comparable(experiment)
    if figure is None:
        return []
    groups = _groups(results)
    found: dict[str, list[Comparison]] = {}
    for published in figure.points:
        at = next((p for p in experiment.points if is_at(published, p)), None)
        if at is None or not _readable(published):
            continue
        rows = groups.get(repr(at.settings), {})
        pooled = _pooled(groups, at.settings, published.quantity)
        for one in _compared(published, rows, figure, pooled):
            found.setdefault(one.what, []).append(one)
    for one in _gaps(experiment, figure, groups):
        found.setdefault(one.what, []).append(one)
    return [Agreement(what, tuple(points)) for what, points in found.items()]


ModelRows = Mapping[str, list[Row]]


def _groups(results: Results) -> dict[str, dict[str, list[Row]]]:
    """Good rows by point and model."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for rows in results.groups().values():
        good = [row for row in rows if row.status == "ok"]
        if good:
            groups.setdefault(repr(good[0].point), {})[good[0].model] = good
    return groups


def _pooled(
    groups: Mapping[str, ModelRows], settings: Mapping[str, Any], quantity: str, other: str = ""
) -> float:
    """Root mean square over a curve of the network's standard deviation over its mean, or of that
    of the paired difference to another model: for points with few repetitions."""
    name = settings.get("network.activation")  # None, the key of all points, where it is not swept
    squares = []
    for rows in groups.values():
        own = rows.get("network", [])
        if len(own) < 2 or own[0].point.get("network.activation") != name:
            continue
        if not other:
            values = [getattr(row, quantity) for row in own]
            squares.append(float(np.var(values, ddof=1)) / float(np.mean(values)) ** 2)
        elif other in rows:
            error = paired_difference(rows[other], own, quantity).standard_error
            squares.append(error**2 * len(own))
    return math.sqrt(float(np.mean(squares))) if squares else math.nan


def _compared(
    published: PublishedPoint, rows: ModelRows, figure: PublishedFigure, pooled: float
) -> list[Comparison]:
    if published.model.startswith("gap:"):
        return _gap_of_map(published, rows, figure)
    network = rows.get("network", [])
    own = rows.get(published.model, [])
    shown = [(published.model, own)] if own else []
    if published.model == "network":
        shown += [(name, rows[name]) for name in THEORIES if name in rows]
    found = []
    for name, chosen in shown:
        mean, error = estimate(chosen, published.quantity)
        base = network if name in THEORIES else chosen
        spread = _spread(base, published.quantity, pooled)
        spread = math.hypot(spread, test_noise(figure, published.quantity) * published.value)
        spread *= 1 if figure.one_data_set else 1 / math.sqrt(figure.trials)
        noise = math.hypot(spread, published.error, error if math.isfinite(error) else 0.0)
        freedom = len(base) - 1
        found.append(Comparison(published.point, name, mean, published.value, noise, freedom))
    return found


def test_noise(figure: PublishedFigure, quantity: str) -> float:
    """Of an error measured on a test set, relative: √(2/T) for Gaussian residuals, 2 % with 5000
    samples; measured 2.0 to 2.9 %, since residuals have heavier tails. Images are tested on samples
    here too."""
    sampled = quantity == "test_error" and not figure.images
    return math.sqrt(2 / figure.test_samples) if sampled else 0.0


def _spread(rows: Sequence[Row], quantity: str, pooled: float) -> float:
    values = [getattr(row, quantity) for row in rows]
    if len(values) < _FEW:
        return pooled * float(np.mean(values)) if values else math.nan
    return float(np.std(values, ddof=1))


def _gap_of_map(
    published: PublishedPoint, rows: ModelRows, figure: PublishedFigure
) -> list[Comparison]:
    """|model − network| over the network: published between the ends of a colour scale."""
    model = published.model.partition(":")[2]
    if model not in rows or "network" not in rows:
        return []
    mean, error = paired_difference(rows[model], rows["network"], "test_error")
    spread = error * math.sqrt(len(rows["network"]))  # standard deviation of one data set
    value, ours = published.value / 100, abs(mean)
    if published.bound == "most":
        value = min(ours, value)
    if published.bound == "least":
        value = max(ours, value)
    noise = math.hypot(spread, published.error / 100, error)
    freedom = len(rows["network"]) - 1
    return [Comparison(published.point, f"{model} − network", ours, value, noise, freedom)]


def _gaps(
    experiment: Experiment, figure: PublishedFigure, groups: Mapping[str, ModelRows]
) -> list[Comparison]:
    """model/network − 1: both sides have their two models on the same draws, so that the spread
    between data sets cancels, and a wrong degree shows."""
    networks = [p for p in figure.points if p.model == "network"]
    found = []
    for other in figure.points:
        partner = next((n for n in networks if dict(n.point) == dict(other.point)), None)
        at = next((p for p in experiment.points if is_at(other, p)), None)
        if other.model != "hermite" or partner is None or at is None:
            continue
        rows = groups.get(repr(at.settings), {})
        if "hermite" not in rows or "network" not in rows:
            continue
        if max(other.error, partner.error) > _READABLE * partner.value:
            continue
        mean, error = paired_difference(rows["hermite"], rows["network"], other.quantity)
        seeds = len(rows["network"])
        spread = error * math.sqrt(seeds)
        if seeds < _FEW:
            spread = _pooled(groups, at.settings, other.quantity, "hermite")
        reading = math.hypot(other.error, partner.error) / partner.value
        noise = math.hypot(spread * math.sqrt(1 / seeds + 1 / figure.trials), reading)
        gap = other.value / partner.value - 1
        freedom = (seeds - 1) * (len(groups) // 3 if seeds < _FEW else 1)
        found.append(Comparison(other.point, "hermite − network", mean, gap, noise, freedom))
    return found


# --- the figure as a whole ------------------------------------------------------------------


@dataclass(frozen=True)
class CommonShift:
    """Mean over the points of a figure of the network's error relative to its mean over data sets.

    data_sets, points : that it was computed from
    spread : its standard deviation between our data sets, and with it that of the test sets
    published : that of the published points
    """

    data_sets: int
    points: int
    spread: float
    published: float

    @property
    def spreads(self) -> float:
        return abs(self.published) / self.spread


def common_shift(experiment: Experiment, results: Results) -> CommonShift | None:
    """None where points have data of their own, or repetitions are few.

    One repetition has the same data at all points of a sweep that changes neither their number nor
    their law, so that its errors move together as those of the source do.
    """
    figure = comparable(experiment)
    if figure is None or not figure.one_for_all:
        return None
    networks: dict[str, dict[int, Row]] = {}
    for row in results.rows:
        if row.model == "network" and row.status == "ok":
            networks.setdefault(repr(row.point), {})[row.seed] = row
    relative = []
    quantity = figure.points[0].quantity
    for published in figure.points:
        at = next((p for p in experiment.points if is_at(published, p)), None)
        own = networks.get(repr(at.settings), {}) if at is not None else {}
        if published.model != "network" or not own or not _readable(published):
            continue
        values = np.array([getattr(own[seed], quantity) for seed in sorted(own)])
        relative.append([*(values / values.mean() - 1), published.value / values.mean() - 1])
    counts = {len(one) - 1 for one in relative}
    if len(counts) != 1 or min(counts) < _FEW:
        return None
    *ours, theirs = np.mean(relative, axis=0)
    spread = math.hypot(float(np.std(ours, ddof=1)), test_noise(figure, quantity))
    return CommonShift(len(ours), len(relative), spread, float(theirs))
