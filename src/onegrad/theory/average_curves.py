"""Means over draws of many solutions: along a curve some are interpolated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.averages import Found, averaged
from onegrad.theory.chance import Law
from onegrad.theory.curves import along, curves
from onegrad.theory.options import Theory
from onegrad.theory.outputs import NUMBERS, OF_SIGNS, outputs_of, with_ratios
from onegrad.theory.task import Solution

_SPREAD = 5e-3  # the same of the spread over draws, in units of the error
INTERPOLATION = 5e-4  # how far what is interpolated was from what is computed where that was tried
# the same with other losses, whose 1/n terms are not known: of errors, of signs, of the spread
_OTHER_LOSS = 1e-2, 1e-2, 3e-2
_CALIBRATION = OF_SIGNS[1]


def averaged_along(
    laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> list[Found]:
    """`averaged`, along curves interpolated to 0.05 % (`along`) by ratios to the typical points;
    to 1 % with losses other than the squared one."""
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

        def compute(points: list[int], curve: list[int] = curve) -> dict[int, Array | None]:
            mean([curve[j] for j in points])
            return {j: _numbers(solutions[curve[j]], found[curve[j]]) for j in points}

        other = chance[curve[0]].loss.name != "squared"
        allowed = _OTHER_LOSS if other else (INTERPOLATION, INTERPOLATION, _SPREAD)
        count = chance[curve[0]].components
        for j, between in along(places, compute, _tolerances(count, *allowed)).items():
            near = found[curve[between.nearest]]
            found[curve[j]] = _interpolated(solutions[curve[j]], near, between.numbers, allowed[0])
    mean([i for i in range(len(laws)) if i not in found])
    return [found[i] for i in range(len(laws))]


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
    added = mean.error_estimate - solution.error_estimate
    return np.concatenate([ratios, [over.median / over.mean, over.spread / over.mean, added]])


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
