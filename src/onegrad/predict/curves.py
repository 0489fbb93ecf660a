"""Predictions along curves: smooth ones are computed at a few points and interpolated between."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure, OnegradError
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.theory.chance import Chance
from onegrad.theory.conditional import first_look
from onegrad.theory.curves import curves, interpolated
from onegrad.theory.few_points import (
    DRAFT,
    DRAWN,
    FEWEST,
    FINE,
    OF_SIGNS,
    OTHER_LOSS,
    RATIOS,
    Sparsity,
    fitted,
    left_out,
    misfits,
    nodes_of,
)
from onegrad.theory.options import Theory
from onegrad.theory.resolution import with_signs
from onegrad.theory.task import Solution, Task

# Logarithms of these are interpolated. A misfit counts in units of errors, that of signs less.
_POSITIVE = {
    "test_error": 1.0, "train_error": 1.0, "train_objective": 1.0, "test_loss": 1.0,
    "train_loss": 1.0, "label_variance": 1.0, "median_test_error": 1.0, "misclassification": 4.0,
}  # fmt: skip
_NAMES = (*_POSITIVE, "calibration", "spread_over_draws")
_UNITS = np.array([*_POSITIVE.values(), 4.0, 1.0])  # calibration, and spread over test error
_SQUARES = np.array([name.endswith("_error") for name in _NAMES[:-1]] + [True])
_SMOOTH = ("logistic", "huber")  # losses whose coarsest resolution is not far from the finer ones
_NOTE = (
    "Interpolated between points of the same curve that were computed, to "
    "{:.1g} %; what follows is said of the nearest of them."
)

_SMOOTHED = (
    "A draft: one first layer was drawn at each of a few points of the curve, and a polynomial "
    "laid through them; what follows is said of the nearest of them."
)

Answer = Prediction | Failure


class Look(NamedTuple):
    """What is left to chance in a problem, its typical task, and the solution of that at the
    coarsest resolution."""

    chance: Chance
    task: Task
    solution: Solution | Failure

    @property
    def logarithms(self) -> Array | None:
        """Of test and training error, where there are any."""
        one = self.solution
        errors = () if isinstance(one, Failure) else (one.test_error, one.train_error)
        return np.log(errors) if errors and min(errors) > 0 else None

    @property
    def reference(self) -> Array:
        """What numbers at this point are compared with, those of `_numbers`."""
        assert isinstance(self.solution, Solution)
        one = with_signs(self.solution)
        known = {name: getattr(one, name, None) for name in _NAMES}
        known |= {"label_variance": 1.0, "median_test_error": one.test_error}
        return _in_units(known, 0.0)


@dataclass
class Looks:
    """First looks at problems, taken where they are asked for.

    task_of : what is left to chance in a problem, and its typical task
    """

    problems: Sequence[Problem]
    theory: Theory
    task_of: Callable[[Problem], tuple[Chance, Task]]
    known: dict[int, Look] = field(default_factory=dict)

    def sparsity(self, curve: Sequence[Problem]) -> Sparsity:
        """Ratios to the coarsest resolution along ridges: elsewhere its rules change on the way."""
        if self.theory.draft:
            return DRAFT
        first, *others = (_but_ridge(problem) for problem in curve)
        same = all(one == first for one in others)
        if same and self._ratios_are_smooth(curve[0]):
            return RATIOS
        loss = curve[0].loss
        return FINE if loss.name == "squared" else OF_SIGNS if loss.signs else OTHER_LOSS

    def _ratios_are_smooth(self, problem: Problem) -> bool:
        """Means over signs of overlaps were off by 1.7 % between points, however many these are."""
        if problem.loss.name not in _SMOOTH:
            return False
        try:
            chance, _ = self.task_of(problem)
        except OnegradError:
            return False
        return all(one.kind != "overlap" for one in chance.variables)

    def at(self, points: Sequence[int]) -> dict[int, Look]:
        """Those that are known, by their place among the points."""
        return {n: self.known[i] for n, i in enumerate(points) if i in self.known}

    def reference(self, point: int, sparsity: Sparsity) -> Array:
        """What a point's numbers are ratios to, where ratios are interpolated."""
        if not sparsity.relative:
            return np.zeros(len(_UNITS))
        look = self.known.get(point)
        known = look is not None and isinstance(look.solution, Solution)
        return look.reference if look and known else np.full(len(_UNITS), np.nan)

    def needed(self) -> list[int]:
        """Points to compute: all but those that smooth curves can do without."""
        spared = left_out(self.problems, self._look, self.sparsity)
        return [i for i in range(len(self.problems)) if i not in spared]

    def _look(self, points: Sequence[int]) -> dict[int, Array | None]:
        tasks = {}
        for i in points:
            with suppress(OnegradError):
                tasks[i] = self.task_of(self.problems[i])
        found = first_look([task for _, task in tasks.values()], self.theory)
        for (i, (chance, task)), one in zip(tasks.items(), found, strict=True):
            self.known[i] = Look(chance, task, one)
        return {i: self.known[i].logarithms if i in self.known else None for i in points}


def _but_ridge(problem: Problem) -> dict[str, Any]:
    tables = problem.model_dump()
    return tables | {"training": tables["training"] | {"ridge": None}}


def with_points_between(
    looks: Looks,
    found: Mapping[int, Answer],
    compute: Callable[[Sequence[int]], Sequence[Answer]],
    alone: Callable[[Problem], Prediction],
) -> list[Answer]:
    """All answers, where some points of curves were left out (`few_points.left_out`): interpolated,
    or computed where the answers to others turn out not to be smooth.

    alone : the prediction of one problem, for what a point between others does not know
    """
    problems, answers = looks.problems, dict(found)
    for curve, places in curves(dict(enumerate(problems)), FEWEST):
        known = [j for j, i in enumerate(curve) if i in found]
        wanted = [j for j, i in enumerate(curve) if i not in found]
        if not wanted:
            continue
        sparsity = looks.sparsity([problems[i] for i in curve])
        base = {j: looks.reference(i, sparsity) for j, i in enumerate(curve)}
        numbers = [_minus(_numbers(found[curve[j]]), base[j]) for j in known]
        apart = misfits(places[known], numbers)
        counted = apart * np.where(_SQUARES, sparsity.squares, 1.0)
        stated = [_estimate(found[curve[j]]) for j in known]
        enough = np.maximum(sparsity.misfit, sparsity.estimated * np.array(stated))
        if not np.all(counted < enough[:, None]):
            continue
        rows = np.array([row for row in numbers if row is not None])
        between = interpolated(places[known], rows, places[wanted])
        between = _UNITS * (between + np.array([base[j] for j in wanted]))
        for j, row in zip(wanted, between, strict=True):
            after = bisect(known, j)
            near = sorted(known[after - 1 : after + 1], key=lambda i: abs(places[i] - places[j]))
            neighbours = [one for i in near if isinstance(one := found[curve[i]], Prediction)]
            open_by = float(apart[max(0, after - 2) : after + 2].max())
            point = _between(neighbours, row, open_by + sparsity.between)
            answers[curve[j]] = replace(point, computed=partial(alone, problems[curve[j]]))
    rest = [i for i in range(len(problems)) if i not in answers]
    answers |= zip(rest, compute(rest), strict=True)
    return [answers[i] for i in range(len(problems))]


def drawn_drafts(
    problems: Mapping[int, Problem], compute: Callable[[Problem], Answer | None]
) -> dict[int, Prediction]:
    """Drafts with first layers that are drawn, of smooth curves: one layer for each of a few
    points, which differ by chance, and a polynomial through them for all points of the curve."""
    answers: dict[int, Prediction] = {}
    for curve, places in curves(problems, FEWEST):
        nodes = next(nodes_of(places, DRAWN.nodes))
        found = [compute(problems[curve[j]]) for j in nodes]
        known = [one for one in found if isinstance(one, Prediction)]
        if len(known) < len(nodes):
            continue
        rows = fitted(places[nodes], [_numbers(one) for one in known], places)
        if rows is None:
            answers |= zip((curve[j] for j in nodes), known, strict=True)
            continue
        for j, i in enumerate(curve):
            near = known[int(np.abs(places[nodes] - places[j]).argmin())]
            said = (_SMOOTHED, *near.assumptions)
            answers[i] = replace(near, **_named(near, _UNITS * rows[j]), assumptions=said)
    return answers


def _numbers(answer: Answer) -> Array | None:
    """What is interpolated, in its units; None of a failure."""
    if isinstance(answer, Failure):
        return None
    known = {name: getattr(answer, name) for name in _NAMES}
    spread = known["spread_over_draws"]
    return _in_units(known, np.nan if spread is None else spread / answer.test_error)


def _in_units(known: Mapping[str, float | None], spread: float) -> Array:
    """Logarithms, the calibration error and the spread over the test error, in their units."""
    found = [np.nan if (v := known[name]) is None else v for name in _NAMES[:-1]]
    values = np.array([*found, spread], float)
    with np.errstate(divide="ignore", invalid="ignore"):
        values[:-2] = np.log(values[:-2])
    return np.asarray(values / _UNITS)


def _estimate(answer: Answer) -> float:
    """What an answer states; nothing of a failure, or of a draft."""
    if isinstance(answer, Failure) or math.isnan(answer.error_estimate):
        return 0.0
    return answer.error_estimate


def _minus(row: Array | None, reference: Array) -> Array | None:
    return None if row is None else row - reference


def _between(neighbours: Sequence[Prediction], row: Array, open_by: float) -> Prediction:
    """A prediction with these numbers; the first of the neighbours is the nearest."""
    near = neighbours[0]
    statuses = [one.status for one in neighbours if one.status != "ok"]
    return replace(
        near,
        **_named(near, row),
        status=statuses[0] if statuses else "ok",
        error_estimate=max(one.error_estimate for one in neighbours) + open_by,
        assumptions=(_NOTE.format(100 * open_by), *near.assumptions),
        solution=None,
    )


def _named(near: Prediction, row: Array) -> dict[str, Any]:
    """The numbers that `near` has, of a row without units."""
    numbers = dict(zip(_POSITIVE, np.exp(row[:-2]).tolist(), strict=True))
    numbers["calibration"] = max(0.0, float(row[-2]))
    numbers["spread_over_draws"] = max(0.0, float(row[-1])) * numbers["test_error"]
    return {name: x for name, x in numbers.items() if getattr(near, name) is not None}
