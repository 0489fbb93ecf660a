"""Finite-size corrections of many solutions: along a curve some are interpolated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.curves import along, curves
from onegrad.theory.errors import Correction
from onegrad.theory.finite_size import corrected, correction_of
from onegrad.theory.task import Solution

INTERPOLATION = 1e-3  # how far an interpolated ratio was from the computed one where that was tried


def with_corrections(found: Sequence[Solution | Failure]) -> list[Solution | Failure]:
    """Every solution with its correction, along curves interpolated to 0.1 % (`along`)."""
    answers = list(found)
    alone = {i: one for i, one in enumerate(found) if isinstance(one, Solution)}
    corrections: dict[int, Correction] = {}
    for curve, places in curves({i: one.task.problem for i, one in alone.items()}):

        def compute(points: list[int], curve: list[int] = curve) -> dict[int, Array | None]:
            mine = {j: correction_of(alone[curve[j]]) for j in points}
            corrections.update((curve[j], one) for j, one in mine.items())
            return {j: _numbers(one) if one.size else None for j, one in mine.items()}

        for j, between in along(places, compute, INTERPOLATION).items():
            near = corrections[curve[between.nearest]]
            test, train, objective = between.numbers.tolist()
            corrections[curve[j]] = replace(
                near, test=test, train=train, objective=objective,
                remainder=near.remainder + INTERPOLATION,
            )  # fmt: skip
    for i, one in alone.items():
        answers[i] = corrected(one, corrections.get(i) or correction_of(one))
    return answers


def _numbers(correction: Correction) -> Array:
    return np.array([correction.test, correction.train, correction.objective])
