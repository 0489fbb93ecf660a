"""Smooth curves: a few points are computed, a check says whether they are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.curves import curves, interpolated

FEWEST = 16  # points of a curve from which on some are left out
_MOST = 0.75  # of the points: where more would be needed all are computed
_EVEN = 0.75  # places of nodes are so much even, and the rest those of Chebyshev
_FOLDS = 3  # every third node is left out at a time


class Sparsity(NamedTuple):
    """How many points are computed, and when they are enough.

    nodes : as many are computed first; twice the steps between them where that fails
    misfit : how far nodes left out may be from what the others say
    between : what interpolated points are open by, beside the misfit
    relative : ratios to the coarsest resolution are interpolated, which is solved at every point
    squares : what squared errors count in the misfit, beside losses
    estimated : part of a node's own error estimate that its misfit may be in any case
    """

    nodes: int
    misfit: float
    between: float = 5e-4
    relative: bool = False
    squares: float = 1.0
    estimated: float = 0.0


# Of 57 curves of 20 points those with a misfit below FINE.misfit were wrong by 0.048 % at most, of
# 19 drafts those below DRAFT.misfit by 0.07 %; drafts of 20 to 40 widths across k = m at ridges
# from 1e-6 on by 0.4 %.
FINE, DRAFT = Sparsity(11, 2.5e-3), Sparsity(9, 1.25e-2)
# Of losses other than the squared one, which differ by 1 to 2 % between resolutions and rules for
# means over draws; beside losses of signs squared errors by three times as much.
OTHER_LOSS = Sparsity(11, 1e-2, estimated=0.1)
OF_SIGNS = OTHER_LOSS._replace(squares=1 / 3)
# Of curves of 20 ridges, of logistic and Huber losses, by 0.25 % in errors and losses with nine of
# them, by 0.15 % with eleven, and by 1 % in misclassification. Along rates, where rules change
# between points, by 3 %.
RATIOS = Sparsity(11, 1.5e-2, relative=True)
# Drafts whose first layers are drawn, one for each point: a polynomial through them. They differ by
# chance from one to the next, by 4 % at n = 60 and 1 % at n = 200.
DRAWN = Sparsity(9, 6e-2)
_DRAWN_DEGREE = 4

Look = Callable[[Sequence[int]], Mapping[int, Array | None]]
Rule = Callable[[Sequence[Problem]], Sparsity]


def left_out(problems: Sequence[Problem], look: Look, rule: Rule = lambda _: FINE) -> set[int]:
    """Points that need not be computed, because they lie on smooth curves between others.

    look : numbers at these points, logarithms of what is interpolated, None where there are none
    rule : of a curve's problems
    """
    spared: set[int] = set()
    for curve, places in curves(dict(enumerate(problems)), FEWEST):
        known: dict[int, Array | None] = {}
        sparsity = rule([problems[i] for i in curve])
        if sparsity.relative:  # whether ratios are smooth is seen when they are known
            chosen = {curve[j] for j in next(nodes_of(places, sparsity.nodes))}
            rows = look(curve)
            spared |= {i for i in set(curve) - chosen if rows[i] is not None}
            continue
        for nodes in nodes_of(places, sparsity.nodes):
            known |= look([curve[j] for j in nodes if curve[j] not in known])
            numbers = [known[curve[j]] for j in nodes]
            if sparsity.squares * misfit(places[nodes], numbers) < sparsity.misfit:
                spared |= set(curve) - set(known)
                break
    return spared


def nodes_of(places: Array, count: int) -> Iterator[list[int]]:
    """Points to compute, each time more of them; the last ones among those before."""
    nodes: set[int] = set()
    while count <= _MOST * len(places):
        even = np.linspace(0.0, 1.0, count)
        parts = _EVEN * even + (1 - _EVEN) * np.sin(0.5 * np.pi * even) ** 2
        wanted = places[0] + parts * (places[-1] - places[0])
        nodes |= {int(np.abs(places - x).argmin()) for x in wanted}
        yield sorted(nodes)
        count = 2 * count - 1


def misfit(places: Array, numbers: Sequence[Array | None]) -> float:
    """How far nodes are from what others say about them, the largest of all numbers."""
    return float(misfits(places, numbers).max())


def misfits(places: Array, numbers: Sequence[Array | None]) -> Array:
    """How far each number of each node is from what other nodes say about it, 0 at the ends;
    infinite where some are not known, or not finite."""
    rows = [row for row in numbers if row is not None]
    unknown = np.full((len(numbers), 1), np.inf)
    if len(rows) < max(len(numbers), 2 * _FOLDS):
        return unknown
    values = np.array(rows)
    gone = np.isnan(values)
    if np.any(gone != gone[0]) or np.any(np.isinf(values)):
        return unknown
    values, inner = np.where(gone, 0.0, values), np.arange(1, len(values) - 1)
    found = np.zeros_like(values)
    for fold in range(_FOLDS):
        out = inner[inner % _FOLDS == fold]
        kept = np.setdiff1d(np.arange(len(values)), out)
        found[out] = np.abs(interpolated(places[kept], values[kept], places[out]) - values[out])
    return found


def fitted(places: Array, numbers: Sequence[Array | None], wanted: Array) -> Array | None:
    """Rows at `wanted` of polynomials of degree four, by least squares; None where numbers are
    further than `DRAWN.misfit` from them, not known or not finite."""
    rows = [row for row in numbers if row is not None]
    if len(rows) < len(numbers):
        return None
    values = np.array(rows)
    gone = np.isnan(values).all(axis=0)
    if not np.all(np.isfinite(values[:, ~gone])):
        return None
    low, high = places.min(), places.max()
    at, there = (
        np.polynomial.legendre.legvander(2 * (x - low) / (high - low) - 1, _DRAWN_DEGREE)
        for x in (places, wanted)
    )
    parts = np.linalg.lstsq(at, np.where(gone, 0.0, values), rcond=None)[0]
    if np.abs(at @ parts - values)[:, ~gone].max() > DRAWN.misfit:
        return None
    return np.where(gone, np.nan, there @ parts)
