"""The estimator on parts of a table: errors on held-out rows, and what its theory needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.gaussian.activation import get_activation
from onegrad.tabular.estimators.clipping import bounds_of
from onegrad.tabular.estimators.rows import Rows
from onegrad.tabular.estimators.shared import AUTOMATIC_RATES
from onegrad.tabular.estimators.trained import Recipe, train
from onegrad.tabular.learning.more_rows import LevelPath, level_path
from onegrad.tabular.reading.table import LARGEST, Task, labels_of

FEWEST_ROWS = 60
CLIP = 5.0  # robust standard deviations at which inputs are cut
_MOST_ROWS = 10_000  # fitted to
_MOST_TEST = 4000
_LEAST = 1e-12  # relative error: below is rounding
_SMALLEST = 16  # rows of the smallest subset

Say = Callable[[str, float], None]


@dataclass(frozen=True)
class Plan:
    """Neurons; splits into held-out rows and subsets; the seed of them and of the weights; robust
    standard deviations at which inputs are cut (None: they are not)."""

    width: int
    repeats: int = 3
    seed: int = 0
    clip: float | None = CLIP


@dataclass(frozen=True)
class Targets:
    """Columns (N × outputs) with mean zero, and the class of each row (None for numbers).

    variance : mean square of the columns, the error of the best constant
    """

    columns: Array
    codes: np.ndarray | None
    classes: tuple[str, ...]

    @property
    def variance(self) -> float:
        return float((self.columns**2).mean())

    @classmethod
    def of(cls, y: Any, task: str | None) -> Targets:
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise SpecError.of("y", f"shape {labels.shape}", "must be one label for each row")
        if labels.dtype.kind in "fiub":
            labels = labels.astype(float)
            if not np.isfinite(labels).all():
                raise SpecError.of("y", "NaN or inf", "must be finite", "Drop the rows without one")
        else:
            labels = labels.astype(str)
        known, kind = labels_of(labels, "y", task)
        if kind == "regression":
            centred = known - known.mean()
            return cls((centred / centred.std())[:, None], None, ())
        names, codes = np.unique(known, return_inverse=True)
        columns = np.eye(len(names))[codes]
        if len(names) == 2:  # one column says it all
            columns = columns[:, 1:]
        columns = columns - columns.mean(axis=0)
        return cls(columns, codes, tuple(str(name) for name in names))

    @property
    def task(self) -> Task:
        return "regression" if self.codes is None else "classification"

    def wrong(self, output: Array, rows: np.ndarray) -> float:
        """Share of these rows whose largest output is another class; NaN for numbers."""
        if self.codes is None:
            return float("nan")
        if len(self.classes) == 2:
            share = self.codes.mean()  # columns are 0/1 less the share of the second class
            said = (output[:, 0] + share > 0.5).astype(int)
        else:
            shares = np.bincount(self.codes, minlength=len(self.classes)) / len(self.codes)
            said = (output + shares).argmax(axis=1)
        return float(np.mean(said != self.codes[rows]))


@dataclass(frozen=True)
class Subset:
    """Repetitions at one number of rows.

    error : of each repetition on its held-out rows, over that of the best constant
    noise : standard error of such a mean, because of the held-out rows
    wrong : share of held-out rows in a wrong class
    rates : chosen
    paths : for each repetition, one for every rate that was tried
    """

    rows: int
    error: Array
    noise: float
    wrong: Array
    rates: Array
    paths: tuple[tuple[LevelPath, ...], ...]

    @property
    def mean(self) -> float:
        return max(float(self.error.mean()), _LEAST)

    @property
    def standard_error(self) -> float:
        between = self.error.std(ddof=1) / np.sqrt(len(self.error)) if len(self.error) > 1 else 0.0
        return float(np.hypot(between, self.noise / np.sqrt(len(self.error))))


def inputs_of(x: Any, count: int) -> Array:
    """A table of finite numbers with `count` rows."""
    try:
        inputs = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecError.of(
            "X", type(x).__name__, "must hold numbers",
            "Code categories as numbers, or give a data frame, whose columns are coded",
        ) from None  # fmt: skip
    if inputs.ndim != 2 or len(inputs) != count or not inputs.shape[1]:
        raise SpecError.of(
            "X", f"shape {inputs.shape}", f"must be a table with one row for each of {count} labels"
        )
    if not np.isfinite(inputs).all():
        raise SpecError.of("X", "NaN or inf", "must be finite", "Fill the gaps first")
    if np.abs(inputs).max() > LARGEST:
        raise SpecError.of(
            "X", f"{np.abs(inputs).max():g}", f"numbers must be at most {LARGEST:g}",
            "Give the column in another unit",
        )  # fmt: skip
    if count < FEWEST_ROWS:
        raise SpecError.of(
            "X", f"{count} rows", f"must have at least {FEWEST_ROWS}", "Collect more rows"
        )
    return inputs


def sizes_of(count: int) -> tuple[int, tuple[int, ...]]:
    """Held-out rows, and the numbers of rows that are fitted: halves of halves of the others."""
    held_out = min(max(count // 5, 12), _MOST_TEST)
    largest = min(count - held_out, _MOST_ROWS)
    sizes = {max(_SMALLEST, largest // 2**j) for j in range(5)}
    return held_out, tuple(sorted(sizes))


def measure(x: Array, targets: Targets, plan: Plan, say: Say) -> tuple[Subset, ...]:
    """Every size, `plan.repeats` times: other held-out rows, other subsets, other random weights.

    Rows are standardised, then cut, by the rows that are fitted to: StandardScaler and `clip` of
    the estimators in a pipeline.
    """
    held_out, sizes = sizes_of(len(x))
    found: dict[int, list[tuple[Any, ...]]] = {size: [] for size in sizes}
    work, done = plan.repeats * sum(size + 100 for size in sizes), 0
    for repeat in range(plan.repeats):
        streams = Streams(plan.seed, repeat)
        order = streams.rng("test-data").permutation(len(x))
        test, pool = order[:held_out], order[held_out:]
        for size in sizes:
            say(f"fitting {size:,} rows, repetition {repeat + 1} of {plan.repeats}", done / work)
            found[size].append(fit(x, targets, pool[:size], test, (plan, streams)))
            done += size + 100
    return tuple(_subset(size, parts) for size, parts in found.items())


def fit(
    x: Array, targets: Targets, rows: np.ndarray, test: np.ndarray, how: tuple[Plan, Streams]
) -> tuple[Any, ...]:
    """Relative error on the test rows, its standard error, share in a wrong class, rate, paths."""
    plan, streams = how
    mean, spread = x[rows].mean(axis=0), x[rows].std(axis=0)
    spread = np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)
    inputs, judged = (x[rows] - mean) / spread, (x[test] - mean) / spread
    if plan.clip is not None:
        bounds = bounds_of(inputs, np.ones(len(inputs)), plan.clip)
        inputs, judged = np.clip(inputs, *bounds), np.clip(judged, *bounds)
    y = targets.columns[rows]
    data = Rows(inputs, lambda which: y[which], None, streams.rng("split"), plan.width)
    recipe = Recipe(plan.width, get_activation("relu"), 1.0, None)
    scale = np.ones(y.shape[1])
    one = train(data, scale, recipe, np.asarray(AUTOMATIC_RATES), streams)
    features = one.layer.features(judged)
    output = features @ one.readout.coefficients + one.readout.intercept
    squares = ((output - targets.columns[test]) ** 2).mean(axis=1) / targets.variance
    paths = tuple(
        level_path(r.ridges, r.errors / targets.variance, r.values, len(rows)) for r in one.tried
    )
    noise = squares.std(ddof=1) / np.sqrt(len(squares))
    return squares.mean(), noise, targets.wrong(output, test), one.rate, paths


def _subset(size: int, parts: Sequence[tuple[Any, ...]]) -> Subset:
    error, noise, wrong, rates, paths = zip(*parts, strict=True)
    return Subset(
        size, np.array(error), float(np.mean(noise)), np.array(wrong), np.array(rates), paths
    )
