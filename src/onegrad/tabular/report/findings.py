"""What a step finds in the columns, and which columns have heavy tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.gaussian.activation import get_activation
from onegrad.tabular.estimators.clipping import bounds_of
from onegrad.tabular.estimators.directions import step_directions
from onegrad.tabular.estimators.first_layer import prepare_step
from onegrad.tabular.estimators.rows import Rows
from onegrad.tabular.learning.subsets import CLIP, Targets

_HALVES = 8
_NEURONS = 60
_MOST_ROWS = 4000
_FREE = 10  # rows for each column from which on the columns' correlations are taken off in full
_FAR = 10.0  # robust standard deviations that Gaussian columns do not reach
_LEAST_FAR = 3  # rows out there that make a tail


@dataclass(frozen=True)
class Found:
    """The leading direction of the step.

    coefficients : of the columns in units of their standard deviations, the largest one is ±1
    errors : their standard errors (over random halves of the rows)
    share : of the step that goes along it
    """

    coefficients: Array
    errors: Array
    spread: Array
    share: float

    @property
    def certain(self) -> np.ndarray:
        """Columns beyond their noise and a tenth of the largest, largest first. With n columns, 5 %
        of tables of pure noise have one (Student's t of the halves, Bonferroni)."""
        from scipy.special import stdtrit

        limit = stdtrit(_HALVES - 1, 1 - 0.025 / len(self.coefficients))
        sizes = np.abs(self.coefficients)
        kept = (sizes > limit * self.errors) & (sizes > 0.1)
        order = np.argsort(-sizes, kind="stable")
        return order[kept[order]]


def find_direction(x: Array, targets: Targets, seed: int = 0) -> Found:
    """The direction that steps on random halves of the rows share, with its scatter.

    The scatter of halves is the standard error of the whole (half-sample jackknife). Columns are
    decorrelated as far as there are rows for it.
    """
    rng = np.random.default_rng(seed)
    low, high = bounds_of(x, np.ones(len(x)), CLIP)
    inputs = np.clip(x, low, high)
    spread = inputs.std(axis=0)
    used = spread > 0
    standard = (inputs - inputs.mean(axis=0)) / np.where(used, spread, np.inf)
    damping = 1e-3 if len(x) > _FREE * x.shape[1] else 1.0
    scale = np.ones(targets.columns.shape[1])
    vectors, shares = [], []
    for half in range(_HALVES):
        rows = rng.permutation(len(x))[: min(len(x) // 2, _MOST_ROWS)]
        streams = Streams(seed, half)
        data = Rows(standard[rows], targets.columns[rows].__getitem__, None, rng, _NEURONS)
        everything = np.ones(len(rows), dtype=bool)
        step = prepare_step(
            data, scale, get_activation("relu"), _NEURONS, damping, everything, streams
        )
        directions, parts = step_directions(step)
        if not len(parts):
            continue
        vectors.append(directions[0])
        shares.append(parts[0])
    if not vectors:
        return Found(np.zeros(x.shape[1]), np.ones(x.shape[1]), spread, 0.0)
    found = np.array(vectors)
    found *= np.sign(found @ found[0])[:, None]
    mean = found.mean(axis=0)
    with_target = (standard @ mean) @ targets.columns[:, -1]
    largest = np.abs(mean).max() * (1.0 if with_target >= 0 else -1.0)
    return Found(mean / largest, found.std(axis=0, ddof=1) / abs(largest), spread, np.mean(shares))


def heavy_tails(x: Array) -> np.ndarray:
    """Columns in which several rows are ten robust standard deviations from the median."""
    low, high = bounds_of(x, np.ones(len(x)), _FAR)
    far = ((x < low) | (x > high)).sum(axis=0)
    number = [len(np.unique(column)) > 2 for column in x.T]  # two values have no tail
    return np.flatnonzero((far >= _LEAST_FAR) & number)


def label_tail(y: Array) -> tuple[int, float]:
    """Numbers ten robust standard deviations from their median: how many, and their share of the
    variance; (0, 0) if they are too few to make a tail."""
    low, high = bounds_of(y[:, None], np.ones(len(y)), _FAR)
    far = (y < low) | (y > high)
    if far.sum() < _LEAST_FAR:
        return 0, 0.0
    squares = (y - y.mean()) ** 2
    return int(far.sum()), float(squares[far].sum() / squares.sum())
