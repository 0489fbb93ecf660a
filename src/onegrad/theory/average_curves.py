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
from onegrad.theory.outputs import outputs_of, with_ratios
from onegrad.theory.resolution import Solution

INTERPOLATION = 5e-4  # how far what is interpolated was from what is computed where that was tried


def averaged_along(
    laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> list[Found]:
    """`averaged`, along curves interpolated to 0.05 % (`along`) by ratios to the typical points."""
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

        for j, between in along(places, compute, INTERPOLATION).items():
            near = found[curve[between.nearest]]
            found[curve[j]] = _interpolated(solutions[curve[j]], near, between.numbers)
    mean([i for i in range(len(laws)) if i not in found])
    return [found[i] for i in range(len(laws))]


def _numbers(solution: Solution | Failure, found: Found) -> Array | None:
    """What is interpolated: ratios of means to values at the typical point, median and spread in
    units of the mean, and what averaging adds to the error estimate."""
    mean, over = found
    if isinstance(solution, Failure) or isinstance(mean, Failure) or over is None:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = outputs_of(mean) / outputs_of(solution)
    added = mean.error_estimate - solution.error_estimate
    return np.concatenate([ratios, [over.median / over.mean, over.spread / over.mean, added]])


def _interpolated(solution: Solution | Failure, near: Found, numbers: Array) -> Found:
    over = near[1]
    assert isinstance(solution, Solution) and over is not None
    *ratios, median, spread, added = numbers.tolist()
    mean = with_ratios(solution, np.array(ratios))
    estimate = solution.error_estimate + added + INTERPOLATION
    size = mean.test_error
    over = replace(over, mean=size, median=median * size, spread=spread * size)
    return replace(mean, error_estimate=estimate), over
