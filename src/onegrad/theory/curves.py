"""Curves of problems: what is computed at a few of their points and interpolated at the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem

_DEGREE = 3  # of the polynomials that are blended
_FEWEST = 7  # points of a curve from which on some are interpolated


class Interpolated(NamedTuple):
    """Numbers of a point between others, the point among those computed that is nearest, and how
    far numbers were from what others said about them where that was tried in the same gap."""

    numbers: Array
    nearest: int
    misfit: Array


def along(
    places: Array,
    compute: Callable[[list[int]], Mapping[int, Array | None]],
    tolerance: float | Array,
) -> dict[int, Interpolated]:
    """Points of a curve at `places` that need not be computed.

    The ends and the middle are computed; then the middle of each gap, all of them together, and
    where the interpolation was within `tolerance` of every number the rest of that gap is left out.
    Where ends and middle do not differ by more than that, one gap speaks for both.
    compute : numbers at these points, None where there are none to interpolate
    """
    last = len(places) - 1
    known = dict(compute([0, last // 2, last]))
    settled: dict[int, Array]
    gaps, settled = [(0, last // 2), (last // 2, last)], {}
    if _is_level(known.values(), tolerance):
        middle = (last // 2 + last) // 2
        known |= compute([middle])
        if _is_level(known.values(), tolerance):
            apart = np.ptp([row for row in known.values() if row is not None], axis=0)
            gaps, settled = [], {j: apart for j in range(1, last) if j not in known}
    while gaps := [(low, high) for low, high in gaps if high - low > 1]:
        middles = [(low + high) // 2 for low, high in gaps]
        found, divided = compute([j for j in middles if j not in known]), []
        found = {j: known[j] for j in middles if j in known} | dict(found)
        for (low, high), middle in zip(gaps, middles, strict=True):
            ends = [known[low], known[high], found[middle]]
            others = {j: row for j, row in known.items() if j != middle}
            if all(end is not None for end in ends):
                apart = _apart(_between(others, places, [middle])[0], found[middle])
                if np.all(apart < tolerance):
                    settled |= {j: apart for j in range(low + 1, high) if j != middle}
                    continue
            divided += [(low, middle), (middle, high)]
        known |= found
        gaps = divided
    if not settled:
        return {}
    rows = _between(known, places, list(settled))
    return {
        j: Interpolated(row, min(known, key=lambda i: abs(i - j)), apart)
        for (j, apart), row in zip(settled.items(), rows, strict=True)
    }


def _is_level(known: Iterable[Array | None], tolerance: float | Array) -> bool:
    """Whether these points differ by less than the tolerance in every number."""
    rows = list(known)
    if any(row is None for row in rows):
        return False
    values = np.array(rows, float)
    gone = np.isnan(values)
    return bool(np.all(gone == gone[0])) and bool(
        np.all((np.ptp(values, axis=0) < tolerance) | gone[0])
    )


def _apart(guess: Array, found: Array | None) -> Array:
    assert found is not None
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(found) & np.isnan(guess), 0.0, np.abs(guess - found))


def _between(known: Mapping[int, Array | None], places: Array, wanted: Sequence[int]) -> Array:
    """The numbers at these points, a row for each, interpolated between those known: by monotone
    pieces, because a step between neighbours may be all there is."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and needed here alone

    at = sorted(i for i, numbers in known.items() if numbers is not None)
    rows = np.array([known[i] for i in at])
    empty = np.isnan(rows).any(axis=0)
    pieces = PchipInterpolator(places[at], np.where(empty, 0.0, rows))
    return np.where(empty, np.nan, np.asarray(pieces(places[list(wanted)])))


def interpolated(nodes: Array, values: Array, places: Array) -> Array:
    """Numbers at `places`, none of them a node: a row for each, of the columns of `values`.

    By rational functions without poles (Floater and Hormann, Numer. Math. 107, 2007, d = 3),

        r(x) = Σ_k v_k f_k/(x − x_k) / Σ_k v_k/(x − x_k),   v_k = (−1)^k Σ_i Π_{j≠k} 1/|x_k − x_j|

    the sum over the runs of d + 1 neighbours i … i + d that have k among them, j in the same run.
    Errors fall as the fourth power of the distances.
    """
    count = len(nodes)
    apart = np.abs(nodes[:, None] - nodes)
    weights = np.zeros(count)
    degree = min(_DEGREE, count - 1)
    for i in range(count - degree):
        run = slice(i, i + degree + 1)
        weights[run] += 1.0 / np.prod(apart[run, run] + np.eye(degree + 1), axis=1)
    weights[1::2] *= -1.0
    parts = weights / (places[:, None] - nodes)
    return np.asarray((parts @ values) / parts.sum(axis=1, keepdims=True))


def curves(
    problems: Mapping[int, Problem], fewest: int = _FEWEST
) -> Iterator[tuple[list[int], Array]]:
    """Problems that differ in one number alone, in its order, and that number (its logarithm); then
    those that differ in several numbers which all rise or fall together, by the first of them.

    fewest : points of a curve
    """
    if len(problems) < fewest:
        return
    flat: dict[int, dict[str, Any]] = {i: {} for i in problems}
    for i, one in problems.items():
        _flatten(one.model_dump(), flat[i])
    keys = list(next(iter(flat.values())))
    if any(list(items) != keys for items in flat.values()):
        return
    varying = [key for key in keys if len({repr(items[key]) for items in flat.values()}) > 1]
    numbers = [key for key in varying if all(_is_number(items[key]) for items in flat.values())]
    left = set(flat)
    for swept in [*([key] for key in varying), *([numbers] if len(numbers) > 1 else [])]:
        groups: dict[str, list[int]] = {}
        for i in sorted(left):
            if all(_is_number(flat[i][key]) for key in swept):
                rest = repr([flat[i][other] for other in varying if other not in swept])
                groups.setdefault(rest, []).append(i)
        for curve in groups.values():
            values = np.array([[flat[i][key] for key in swept] for i in curve], float)
            order = np.argsort(values[:, 0], kind="stable")
            first, steps = values[order, 0], np.diff(values[order], axis=0)
            one_way = np.all(steps > 0, axis=0) | np.all(steps < 0, axis=0)
            if len(curve) >= fewest and np.all(one_way):
                left -= set(curve)
                yield [curve[j] for j in order], np.log(first) if first[0] > 0 else first


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flatten(tables: dict[str, Any], into: dict[str, Any], prefix: str = "") -> None:
    for key, value in tables.items():
        if isinstance(value, dict):
            _flatten(value, into, f"{prefix}{key}.")
        else:
            into[prefix + key] = value
