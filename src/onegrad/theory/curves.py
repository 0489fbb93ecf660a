"""Curves of problems: what is computed at a few of their points and interpolated at the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem

_FEWEST = 7  # points of a curve from which on some are interpolated


class Interpolated(NamedTuple):
    """Numbers of a point between others, and the point among those computed that is nearest."""

    numbers: Array
    nearest: int


def along(
    places: Array,
    compute: Callable[[list[int]], Mapping[int, Array | None]],
    tolerance: float | Array,
) -> dict[int, Interpolated]:
    """Points of a curve at `places` that need not be computed.

    The ends and the middle are computed; then the middle of each gap, all of them together, and
    where the interpolation was within `tolerance` of every number the rest of that gap is left out.
    compute : numbers at these points, None where there are none to interpolate
    """
    last = len(places) - 1
    known = dict(compute([0, last // 2, last]))
    gaps, settled = [(0, last // 2), (last // 2, last)], []
    while gaps := [(low, high) for low, high in gaps if high - low > 1]:
        middles = [(low + high) // 2 for low, high in gaps]
        found, divided = compute(middles), []
        for (low, high), middle in zip(gaps, middles, strict=True):
            ends = [known[low], known[high], found[middle]]
            if all(end is not None for end in ends) and _is_close(
                _between(known, places, middle), found[middle], tolerance
            ):
                settled += [j for j in range(low + 1, high) if j != middle]
            else:
                divided += [(low, middle), (middle, high)]
        known |= found
        gaps = divided
    return {
        j: Interpolated(_between(known, places, j), min(known, key=lambda i: abs(i - j)))
        for j in settled
    }


def _is_close(guess: Array, found: Array | None, tolerance: float | Array) -> bool:
    assert found is not None
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isnan(found) & np.isnan(guess), 0.0, np.abs(guess - found))
    return bool(np.all(apart < tolerance))


def _between(known: Mapping[int, Array | None], places: Array, j: int) -> Array:
    """The numbers at point j, interpolated between those known."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and needed here alone

    at = sorted(i for i, numbers in known.items() if numbers is not None)
    rows = np.array([known[i] for i in at])
    empty = np.isnan(rows).any(axis=0)
    found = np.asarray(PchipInterpolator(places[at], np.where(empty, 0.0, rows))(places[j]))
    return np.where(empty, np.nan, found)


def curves(
    problems: Mapping[int, Problem], fewest: int = _FEWEST
) -> Iterator[tuple[list[int], Array]]:
    """Problems that differ in one number alone, in its order, and that number (its logarithm).

    fewest : points of a curve
    """
    if len(problems) < fewest:
        return
    flat = {i: dict(_flat(one.model_dump())) for i, one in problems.items()}
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
            if len(curve) >= fewest and np.all(np.diff(places) > 0):
                left -= set(curve)
                yield [curve[j] for j in order], places


def _flat(tables: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
