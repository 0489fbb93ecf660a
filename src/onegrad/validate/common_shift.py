"""How far a whole published figure is from ours where one data set moves all its points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.spec.experiment import Experiment
from onegrad.spec.published import comparable, is_at
from onegrad.validate.reproduced import readable, test_noise

_FEWEST = 8  # data sets from which on their spread is known


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
        if published.model != "network" or not own or not readable(published):
            continue
        values = np.array([getattr(own[seed], quantity) for seed in sorted(own)])
        relative.append([*(values / values.mean() - 1), published.value / values.mean() - 1])
    counts = {len(one) - 1 for one in relative}
    if len(counts) != 1 or min(counts) < _FEWEST:
        return None
    *ours, theirs = np.mean(relative, axis=0)
    spread = math.hypot(float(np.std(ours, ddof=1)), test_noise(figure, quantity))
    return CommonShift(len(ours), len(relative), spread, float(theirs))
