"""Means over draws of many solutions: along a curve some are interpolated."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.average import largest
from onegrad.theory.averages import Found, averaged, begun, finer_rules, finished, first_rules
from onegrad.theory.chance import Law
from onegrad.theory.curves import along, curves
from onegrad.theory.options import Theory
from onegrad.theory.outputs import LOSSES, NUMBERS, OF_SIGNS, outputs_of, with_ratios
from onegrad.theory.task import Solution

_SPREAD = 5e-3  # the same of the spread over draws, in units of the error
INTERPOLATION = 5e-4  # how far what is interpolated was from what is computed where that was tried
# the same with other losses, whose 1/n terms are not known: of squared errors beside those of signs
# (rules that change from point to point move these most), of all other numbers, of the spread
_SQUARES, _OTHER_LOSS, _OTHER_SPREAD = 3e-2, 1e-2, 3e-2
_CALIBRATION = OF_SIGNS[1]


def averaged_along(
    laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> list[Found]:
    """`averaged`, along curves interpolated to 0.05 % (`along`) by ratios to the typical points;
    to 1 % with losses other than the squared one, squared errors to 3 %."""
    found: dict[int, Found] = {}
    chance = {
        i: one.task.problem
        for i, one in enumerate(solutions)
        if isinstance(one, Solution) and laws[i].variables
    }

    def mean(mine: list[int]) -> None:
        means = averaged([laws[i] for i in mine], [solutions[i] for i in mine], theory)
        found.update(zip(mine, means, strict=True))

    for curve, places in curves(chance):
        if chance[curve[0]].loss.name != "squared" and not theory.draft:
            own = [solutions[i] for i in curve]
            means = _of_other_losses(places, [laws[i] for i in curve], own, theory)
            found.update(zip(curve, means, strict=True))
            continue

        def compute(points: list[int], curve: list[int] = curve) -> dict[int, Array | None]:
            mean([curve[j] for j in points])
            return {j: _numbers(solutions[curve[j]], found[curve[j]]) for j in points}

        count = chance[curve[0]].components
        tolerances = _tolerances(count, INTERPOLATION, INTERPOLATION, _SPREAD)
        for j, between in along(places, compute, tolerances).items():
            near = found[curve[between.nearest]]
            found[curve[j]] = _interpolated(
                solutions[curve[j]], near, between.numbers, INTERPOLATION
            )
    mean([i for i in range(len(laws)) if i not in found])
    return [found[i] for i in range(len(laws))]


def _of_other_losses(
    places: Array, laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> list[Found]:
    """Of the points of a curve, by two curves: means by the same rule of two nodes for each
    variable all along it, and what finer rules and resolutions change where these may not do.

    What they change is small and needs few points; a curve of both together would jump where one
    point has finer rules and the next has not. Estimates are the larger ones of the two
    neighbours that have been finished, with what is interpolated: the misfit of the first curve,
    and all that the neighbours have of the second one.
    """
    todo = begun(laws, solutions, theory)
    first: dict[int, Found] = {}
    last: dict[int, Found] = {}
    changes: dict[int, Array | None] = {}

    def means(points: list[int]) -> dict[int, Array | None]:
        new = [j for j in points if j not in first]
        first_rules([todo[j] for j in new], theory)
        first.update((j, finished(todo[j], theory, checked=False)) for j in new)
        return {j: _numbers(solutions[j], first[j]) for j in points}

    def change(points: list[int]) -> dict[int, Array | None]:
        before = means(points)
        finer_rules([todo[j] for j in points], theory)
        last.update((j, finished(todo[j], theory, checked=False)) for j in points)
        for j in points:
            after, own = _numbers(solutions[j], last[j]), before[j]
            changes[j] = None if after is None or own is None else after - own
        return {j: changes[j] for j in points}

    problem = laws[0].problem
    squares = _SQUARES if problem.loss.signs else _OTHER_LOSS
    tolerances = _tolerances(problem.components, squares, _OTHER_LOSS, _OTHER_SPREAD)
    tolerances[LOSSES] = _OTHER_LOSS
    tolerances[-1] = np.inf  # estimates are not interpolated
    between = along(places, means, tolerances)
    tolerances[-2] = np.inf  # finer rules see another part of the spread: a straight line below
    moved = along(places, change, tolerances)
    found = []
    for j, solution in enumerate(solutions):
        if j in last:
            found.append(last[j])
            continue
        known = sorted(last)
        after = bisect(known, j)
        near = known[after - 1 : after + 1]
        own = between[j].numbers if j in between else _numbers(solution, first[j])
        assert own is not None
        numbers = own + moved[j].numbers
        numbers[-2] = np.interp(places[j], places[near], [_spread(last[i]) for i in near])
        numbers[-1] = max(_added(solutions[i], last[i]) for i in near)
        open_by = max(largest(c) for i in near if (c := changes[i]) is not None)
        open_by += largest(between[j].misfit) if j in between else 0.0
        found.append(_interpolated(solution, last[moved[j].nearest], numbers, open_by))
    return found


def _tolerances(components: int, errors: float, signs: float, spread: float) -> Array:
    """For each of `_numbers`."""
    found = np.full(len(NUMBERS) + 2 * components + 3, errors)
    found[OF_SIGNS], found[-2] = signs, spread
    return found


def _numbers(solution: Solution | Failure, found: Found) -> Array | None:
    """What is interpolated: ratios of means to values at the typical point (of the calibration
    error, which may be next to nothing there, the difference), median and spread in units of the
    mean, and what averaging adds to the error estimate."""
    mean, over = found
    if isinstance(solution, Failure) or isinstance(mean, Failure) or over is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = outputs_of(mean) / outputs_of(solution)
    ratios[_CALIBRATION] = (outputs_of(mean) - outputs_of(solution))[_CALIBRATION]
    added = _added(solution, found)
    return np.concatenate([ratios, [over.median / over.mean, _spread(found), added]])


def _spread(found: Found) -> float:
    """Over draws, in units of the mean."""
    assert found[1] is not None
    return found[1].spread / found[1].mean


def _added(solution: Solution | Failure, found: Found) -> float:
    """To the error estimate, by averaging."""
    assert isinstance(solution, Solution) and isinstance(found[0], Solution)
    return found[0].error_estimate - solution.error_estimate


def _interpolated(
    solution: Solution | Failure, near: Found, numbers: Array, tolerance: float
) -> Found:
    over = near[1]
    assert isinstance(solution, Solution) and over is not None
    *ratios, median, spread, added = numbers.tolist()
    calibration, ratios[_CALIBRATION] = solution.calibration, 1.0
    if calibration is not None:
        calibration = max(0.0, calibration + float(numbers[_CALIBRATION]))
    mean = replace(with_ratios(solution, np.array(ratios)), calibration=calibration)
    estimate = solution.error_estimate + added + tolerance
    size = mean.test_error
    over = replace(over, mean=size, median=median * size, spread=spread * size)
    return replace(mean, error_estimate=estimate), over
