"""Means over draws of one problem: over all that is left to chance in it.

An answer at the typical point is multiplied by the ratio of the mean over draws to the value there,
both at one coarse resolution, whose error cancels in the ratio (docs/book/chance-and-size.md).

The mean is taken over quasi-random points and their mirror images, in a few independent
randomisations, whose differences are its standard error. It is doubled until that is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtrit

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, Failure
from onegrad.theory.chance import Chance
from onegrad.theory.conditional import simplified
from onegrad.theory.nodes.designs import halton
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.open import Decision
from onegrad.theory.options import Theory
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import CALIBRATION, ERRORS, WRONG, Solution, Task

_FAR_OFF = 0.1  # relative; at 8 % a mean was still right to 3 %
_RANDOMISATIONS = 4  # independent randomisations: fewer would not give a standard error
_FIXED_POINT, _OF_LOSSES = 1e-6, 1e-4  # tolerances: squared loss, other losses
_SIGN_POINTS = 1024  # nodes of the classification error at every point

Found = tuple[Solution | Failure, "OverDraws | None"]


@dataclass(frozen=True)
class OverDraws:
    """How the test error differs between draws of what is averaged over.

    mean, median, spread : mean, median and standard deviation of the test error over draws
    points : how many problems were solved for it
    variables : how many chance quantities were averaged over
    error : relative error of the mean: Student's factor times its standard error
    wrong : the same of the mean misclassification; NaN where labels are not binary
    """

    mean: float
    median: float
    spread: float
    points: int
    variables: int
    error: float
    wrong: float


@dataclass
class _Draws:
    """The values at the points of one problem: of the typical point first, then in the order of
    `points`."""

    chance: Chance
    solution: Solution
    level: QuadratureLevel
    values: list[Array] = field(default_factory=list)
    first: Solution | None = None
    failure: Failure | None = None

    @property
    def started(self) -> Solution | None:
        """Where a loss is iterated over: the solution at the typical point. Of the absolute loss
        samples on one side of its kink there and not elsewhere do not say the way."""
        loss = self.chance.problem.loss
        return self.first if not self.solution.squared and (loss.signs or not loss.kink) else None

    @property
    def base(self) -> Array:
        return self.values[0]

    @property
    def off(self) -> float:
        """How far errors at the typical point are off at the resolution of the points, where that
        is much: then they need not cancel in the ratio. A cubic activation on a strong spike was
        24 % off there, and its mean over draws 16 %."""
        fine = np.array([self.solution.test_error, self.solution.train_error])
        off = float(np.max(np.abs(self.base[:2] - fine) / np.maximum(np.abs(fine), 1e-300)))
        return off if self.solution.squared and off > _FAR_OFF else 0.0

    @property
    def drawn(self) -> Array:
        """(points, outputs)."""
        return np.stack(self.values[1:])

    @property
    def ratio(self) -> Array:
        """The mean over draws, in units of the typical point."""
        return _ratio(self.drawn.mean(axis=0), self.base)

    @property
    def errors(self) -> Array:
        """Student's factor times the standard errors of the means, relative."""
        drawn = self.drawn
        parts = drawn.reshape(-1, _RANDOMISATIONS, drawn.shape[1]).mean(axis=0)
        quantile = stdtrit(_RANDOMISATIONS - 1, self.chance.policy.stated_points)
        return float(quantile) * relative_error(parts)

    @property
    def error(self) -> float:
        """The largest of errors and losses."""
        return _largest(self.errors)

    def enough(self, theory: Theory) -> float:
        """So well the mean should be known."""
        policy = theory.policy
        beside = policy.mean_beside * self.solution.open.total
        return max(policy.mean_known * theory.accuracy, beside)

    def goes_on(self, theory: Theory) -> bool:
        """Whether more points are wanted: misclassification may be known half as well."""
        return max(self.error, float(self.errors[WRONG]) / 2) > self.enough(theory)


def over_draws(
    chances: Sequence[Chance],
    solutions: Sequence[Solution | Failure],
    theory: Theory,
    together: bool = False,
) -> list[Found]:
    """Solutions at typical points, made means over draws.

    Errors become means; what is known node by node stays that of the typical point. The error
    estimate gains how well the mean is known. A Failure stays one. Drafts are means over the first
    few points, where the typical point is far from the mean.
    together : as many points for all that have as many variables
    """
    found: list[Found] = [(one, None) for one in solutions]
    todo: dict[int, _Draws] = {}
    for i, (chance, one) in enumerate(zip(chances, solutions, strict=True)):
        if isinstance(one, Failure) or (theory.draft and chance.near):
            continue
        if chance.variables:
            todo[i] = _Draws(chance, one, _level(chance, theory))
    _solve(list(todo.values()), 0)
    going = list(todo.values())
    count, most = 2 * _RANDOMISATIONS, 0 if theory.draft else theory.policy.points
    while going:
        _solve(going, count)
        alive = [d for d in going if d.failure is None]
        going = [d for d in alive if d.goes_on(theory)]
        if together:
            sizes = {len(d.chance.variables) for d in going}
            going = [d for d in alive if len(d.chance.variables) in sizes]
        count *= 2
        going = going if count <= most else []
    for i, draws in todo.items():
        found[i] = _finished(draws, theory)
    return found


def _level(chance: Chance, theory: Theory) -> QuadratureLevel:
    """The resolution of points that are compared with each other."""
    if theory.draft:
        return QuadratureLevel.draft()
    level = QuadratureLevel.at(0) if chance.strong else QuadratureLevel.draft()
    # The coarsest rule is several percent off here after a step
    if chance.fixed.levels is not None:
        level = QuadratureLevel.at(1)
    return level if chance.problem.loss.name == "squared" else replace(level, points=_SIGN_POINTS)


@lru_cache(maxsize=64)
def points(variables: int, count: int) -> Array:
    """(count, variables) values: of every randomisation the first quasi-random point, all their
    mirror images, then the second ones, and so on; more of them begin with the same ones."""
    half = count // (2 * _RANDOMISATIONS)
    each = [ndtri(halton(variables, half, seed)) for seed in range(_RANDOMISATIONS)]
    z = np.stack(each, axis=1)  # (half, randomisations, variables)
    return np.stack([z, -z], axis=1).reshape(count, variables)


def _solve(draws: Sequence[_Draws], count: int) -> None:
    """Values at the typical point, and at as many others; neighbours in a curve one after the
    other."""
    tasks: list[tuple[int, _Draws, Task]] = []
    for d in draws:
        known = len(d.values)
        try:
            if not known:
                tasks.append((0, d, d.chance.typical))
            wanted = points(len(d.chance.variables), count)[max(0, known - 1) :]
            if known + len(wanted) > 1:
                tasks += [(known + j, d, d.chance.task(z)) for j, z in enumerate(wanted)]
        except AssumptionError as error:
            d.failure = Failure(error)
    tasks.sort(key=lambda entry: entry[0])
    kinds = [(d.level, d.chance.of_labels, d.solution.squared) for _, d, _ in tasks]
    for kind in dict.fromkeys(kinds):
        mine = [entry for entry, own in zip(tasks, kinds, strict=True) if own == kind]
        level, finite, squared = kind
        tolerance = _FIXED_POINT if squared else _OF_LOSSES
        asked = [_prepared(d, task) for _, d, task in mine]
        solutions = solve_tasks(asked, level, tolerance, finite_size=finite)
        for (_, d, _), one in zip(mine, solutions, strict=True):
            if isinstance(one, Failure):
                d.failure = one
            else:
                d.values.append(one.numbers)
                d.first = d.first or one


def _prepared(draws: _Draws, task: Task) -> Task:
    # a loss without a margin needs no extra nodes for ratios
    task = replace(task, flat=not task.problem.loss.signs, coarse=draws.started)
    return simplified(task) if draws.chance.groups else task


def _finished(draws: _Draws, theory: Theory) -> Found:
    if draws.failure is not None:
        return draws.failure, None
    solution, ratio = draws.solution, draws.ratio
    mean = solution.times(ratio)
    # E|e + z s| of a bin has an excess over |e|, in squares. A ratio would say how small e happens
    # to be at the coarse resolution of the means.
    if solution.calibration is not None and ratio[CALIBRATION] > 1:
        excess = float(draws.base[CALIBRATION] ** 2 * (ratio[CALIBRATION] ** 2 - 1))
        mean = replace(mean, calibration=math.sqrt(solution.calibration**2 + excess))
    if draws.chance.exchangeable:
        test, train = np.ones_like(mean.component_test), np.ones_like(mean.component_train)
        test, train = mean.test_error * test, mean.train_error * train
        mean = replace(mean, component_test=test, component_train=train)
    values = solution.test_error * draws.drawn[:, 0] / draws.base[0]
    error = draws.error
    over = OverDraws(
        mean.test_error, float(np.median(values)), float(values.std()), len(values),
        len(draws.chance.variables), error, float(draws.errors[WRONG]),
    )  # fmt: skip
    if theory.draft:
        return mean, over
    known = replace(solution.open, chance=error + draws.off)
    enough = draws.enough(theory)
    outcome = f"{len(values)} points of {len(draws.chance.variables)} chance quantities"
    outcome += " are enough" if error <= enough else ", and more would take long"
    decision = Decision(
        "chance", error, enough, "The uncertainty (95 %) of the mean over draws", outcome
    )
    return replace(mean, open=known, decisions=(*mean.decisions, decision)), over


def relative_error(rows: Array) -> Array:
    """Standard error of the mean of rows, in units of it; 0 for one row."""
    count = len(rows)
    if count == 1:
        return np.zeros(rows.shape[1])
    size = np.maximum(np.abs(rows.mean(axis=0)), 1e-300)
    return np.asarray(rows.std(axis=0, ddof=1) / size / math.sqrt(count))


def _ratio(value: Array, base: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(value / base)


def _largest(values: Array) -> float:
    """Of those of errors and losses; an error of training that is 0 has no ratio."""
    own = values[ERRORS]
    return float(np.max(np.where(np.isnan(own), 0.0, np.abs(own))))
