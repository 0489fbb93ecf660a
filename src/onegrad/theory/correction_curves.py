"""Finite-size corrections of many solutions: along a curve some are interpolated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.theory.errors import Correction
from onegrad.theory.finite_size import corrected, correction_of
from onegrad.theory.resolution import Solution

INTERPOLATION = 1e-3  # how far an interpolated ratio was from the computed one where that was tried
_FEWEST = 7  # points of a curve from which on some are interpolated


def with_corrections(found: Sequence[Solution | Failure]) -> list[Solution | Failure]:
    """Every solution with its correction.

    Of solutions that differ in one number, seven or more of them, the ends and the middle are
    computed; then the middle of each gap, and where the interpolation was within 0.1 % of it the
    rest of that gap is interpolated.
    """
    answers = list(found)
    alone = {i: one for i, one in enumerate(found) if isinstance(one, Solution)}
    corrections: dict[int, Correction] = {}
    for curve, places in _curves(alone):
        corrections |= _along([alone[i] for i in curve], places, curve)
    for i, one in alone.items():
        answers[i] = corrected(one, corrections.get(i) or correction_of(one))
    return answers


def _along(
    solutions: Sequence[Solution], places: Array, indices: Sequence[int]
) -> dict[int, Correction]:
    """Corrections of the points of a curve, by the index of the solution."""
    last = len(solutions) - 1
    known = {j: correction_of(solutions[j]) for j in (0, last // 2, last)}
    gaps = [(0, last // 2), (last // 2, last)]
    settled: list[int] = []
    while gaps:
        low, high = gaps.pop()
        if high - low < 2:
            continue
        middle, tried = (low + high) // 2, correction_of(solutions[(low + high) // 2])
        distance = np.max(np.abs(_between(known, places, middle) - _numbers(tried)))
        sure = distance < INTERPOLATION and not _uncorrected([*known.values(), tried])
        known[middle] = tried
        if sure:
            settled += [j for j in range(low + 1, high) if j != middle]
        else:
            gaps += [(low, middle), (middle, high)]
    answers = dict(known)
    for j in settled:
        near = min(known, key=lambda i: abs(i - j))
        test, train, objective = _between(known, places, j).tolist()
        remainder = known[near].remainder + INTERPOLATION
        answers[j] = Correction(test, train, objective, remainder, known[near].left_out)
    return {indices[j]: correction for j, correction in answers.items()}


def _numbers(correction: Correction) -> Array:
    return np.array([correction.test, correction.train, correction.objective])


def _uncorrected(corrections: Sequence[Correction]) -> bool:
    return any(correction.size == 0 for correction in corrections)


def _between(known: dict[int, Correction], places: Array, j: int) -> Array:
    """The three ratios at point j, interpolated between those known."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and needed here alone

    at = sorted(known)
    ratios = np.array([_numbers(known[i]) for i in at])
    return np.asarray(PchipInterpolator(places[at], ratios)(places[j]))


def _curves(solutions: dict[int, Solution]) -> Iterator[tuple[list[int], Array]]:
    """Solutions that differ in one number alone, in its order, and that number (its logarithm)."""
    if len(solutions) < _FEWEST:
        return
    flat = {i: dict(_flat(one.task.problem.model_dump())) for i, one in solutions.items()}
    keys = list(next(iter(flat.values())))
    if any(list(items) != keys for items in flat.values()):
        return
    varying = [key for key in keys if len({repr(items[key]) for items in flat.values()}) > 1]
    left = set(flat)
    for key in varying:
        groups: dict[str, list[int]] = {}
        for i in sorted(left):
            value = flat[i][key]
            if isinstance(value, int | float) and not isinstance(value, bool):
                rest = repr([flat[i][other] for other in varying if other != key])
                groups.setdefault(rest, []).append(i)
        for curve in groups.values():
            values = np.array([float(flat[i][key]) for i in curve])
            order = np.argsort(values, kind="stable")
            places = np.log(values[order]) if values.min() > 0 else values[order]
            if len(curve) >= _FEWEST and np.all(np.diff(places) > 0):
                left -= set(curve)
                yield [curve[j] for j in order], places


def _flat(tables: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
