"""Theory as a curve: a fine grid between the swept points, finer where it bends or jumps.

The curve goes through the numbers of the run. Between them it is computed to the same accuracy
where data have no structure and a flat bulk, which takes seconds. Elsewhere its shape is that of a
draft of the same theory, multiplied by the ratio of the two, interpolated: a draft is a percent or
two off, and the ratio changes slowly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import OnegradError
from onegrad.figures.best_constant import label_power
from onegrad.figures.style import RATIOS
from onegrad.predict.predict import predict_curve, theory_of
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.results.summaries import Summary
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import override
from onegrad.theory.options import DRAFT, Theory

_GRID = 62  # even: on a symmetric axis the middle, where drafts may jump, is not one of them
_ROUNDS = {"isotropic-limit": 6}  # of halving the intervals where much happens; a limit may jump
_USUAL_ROUNDS = 2
_STEEP = 0.04  # of the range of the curve: a larger change between neighbours is looked into
_INSIDE = 0.4  # where an interval is cut; its middle may be a border at which a limit is not known
NOTHING = 1e-4  # of the largest error of a curve
_LITTLE = 1e-2  # the same, where it need not be a draft of
_TRUSTED = 1.25  # largest over smallest ratio of the run's numbers to a draft
_WHOLE = ("network.width", "training.samples", "training.step_samples", "data.dim")
_FIRST_WEIGHT = "data.weights"
_NO_CURVE = ("data.rank", "compare.degree")  # nothing lies between two of their values


@dataclass(frozen=True)
class TheoryLine:
    """Positions along the axis, every error there by its name, and Var y where it is known."""

    x: Array
    errors: dict[str, Array]
    power: Array | None = None


def theory_line(
    experiment: Experiment, summaries: Sequence[Summary], axis: str, quantities: Sequence[str]
) -> TheoryLine:
    """The line of one theory through the points of one curve, which stand along `axis`.

    A polyline through the points alone where nothing lies between them, where other keys advance
    with the axis, and where a point takes seconds: real data, several classes, several indices
    among spikes.
    """
    points = sorted(summaries, key=lambda s: position(s.point[axis]))
    known = np.array([position(s.point[axis]) for s in points])
    exact = {q: np.array([getattr(s, q).mean for s in points]) for q in quantities}
    problems = {repr(p.settings): p.problem for p in experiment.points}
    problem = problems.get(repr(points[0].point))
    plain = TheoryLine(known, exact)
    if problem is None or not _has_curve(experiment, problem, axis, known):
        return plain
    theory = theory_of(points[0].model, experiment.compare)
    flat = problem.data.bulk_eigenvalues is None
    if problem.data.structured or not flat or not problem.one_step:  # up to seconds a point
        theory = replace(theory, accuracy=DRAFT)
    rounds = _ROUNDS.get(points[0].model, _USUAL_ROUNDS)
    try:
        drafts = _drafts(problem, theory, axis, known, (quantities[0], rounds))
    except OnegradError:
        return plain
    good = {x: p for x, p in drafts.items() if p.status != "failed"}
    if not all(x in good for x in known.tolist()):
        return plain
    grid = np.array(sorted(good))
    place = np.log if axis in RATIOS and known[0] > 0 else np.asarray
    at, errors = (place(grid), place(known)), {}
    for q in quantities:
        ratio = _ratio(exact[q], [getattr(good[x], q) for x in known.tolist()])
        if ratio is None:  # not a draft of this curve
            return plain
        errors[q] = np.array([getattr(good[x], q) for x in grid.tolist()], float)
        errors[q] *= np.interp(*at, ratio)
        errors[q][np.searchsorted(grid, known)] = exact[q]
    power = np.array([good[x].label_variance for x in grid.tolist()], float)
    ratio = _ratio([label_power(s) for s in points], power[np.searchsorted(grid, known)])
    return TheoryLine(grid, errors, None if ratio is None else power * np.interp(*at, ratio))


def _ratio(exact: Sequence[float] | Array, draft: Sequence[float] | Array) -> Array | None:
    """Of the run's numbers to a draft's, 1 where both are nothing beside the largest; None where
    it changes too much from point to point."""
    one, other = np.array(exact, float), np.array(draft, float)
    some = np.nan_to_num(one) > NOTHING * np.nanmax(one, initial=0.0)
    for counts in (some, some & (one > _LITTLE * np.nanmax(one, initial=0.0))):
        ratio = np.divide(one, other, out=np.ones_like(one), where=counts)
        if np.all(np.isfinite(ratio)) and ratio.max() <= _TRUSTED * ratio.min():
            return ratio
    return None


def position(value: Any) -> float:
    """Where a swept value stands on an axis; mixtures by their first weight."""
    return float(value[0] if isinstance(value, list | tuple) else value)


def _has_curve(experiment: Experiment, problem: Problem, axis: str, known: Array) -> bool:
    apart = len(known) > 1 and len(set(known.tolist())) == len(known)
    alone = axis not in experiment.zipped and axis not in _NO_CURVE
    mixture = axis != _FIRST_WEIGHT or problem.components == 2
    if problem.outputs > 1 or (problem.joint_link is not None and problem.data.structured):
        return False  # a point takes seconds
    return apart and alone and mixture and problem.data.known and bool(np.all(np.isfinite(known)))


def _drafts(
    problem: Problem, theory: Theory, axis: str, known: Array, refined: tuple[str, int]
) -> dict[float, Prediction]:
    """Predictions on a grid that has all known positions, refined where the curve is steep.

    refined : the error whose steepness counts, and how often intervals are halved
    """
    quantity, rounds = refined
    ratios = axis in RATIOS and known[0] > 0
    grid = (np.geomspace if ratios else np.linspace)(known[0], known[-1], _GRID)
    found: dict[float, Prediction] = {}
    wanted = _places(axis, [*grid.tolist(), *known.tolist()], found)
    for _ in range(1 + rounds):
        if not wanted:
            break
        there = predict_curve([_moved(problem, axis, x) for x in wanted], theory)
        found |= dict(zip(wanted, there, strict=True))
        wanted = _places(axis, _steep(found, quantity, ratios), found)
    return found


def _places(axis: str, values: Sequence[float], found: dict[float, Prediction]) -> list[float]:
    """Positions not yet looked at, whole where the key is."""
    whole = axis in _WHOLE
    places = sorted({float(round(v)) if whole else float(v) for v in values})
    return [x for x in places if x not in found]


def _steep(found: dict[float, Prediction], quantity: str, ratios: bool) -> list[float]:
    xs = sorted(x for x, p in found.items() if p.status != "failed")
    ys = [getattr(found[x], quantity) for x in xs]
    finite = [y for y in ys if math.isfinite(y)]
    size = max(finite) - min(finite) if finite else 0.0
    steps = zip(itertools.pairwise(xs), itertools.pairwise(ys), strict=True)
    return [
        a * (b / a) ** _INSIDE if ratios else a + _INSIDE * (b - a)
        for (a, b), (y, z) in steps
        if abs(z - y) > _STEEP * size
    ]


def _moved(problem: Problem, axis: str, x: float) -> Problem:
    """The problem at another place along the axis."""
    value: Any = round(x) if axis in _WHOLE else x
    if axis == _FIRST_WEIGHT:
        value = [x, 1 - x]
    return Problem.from_spec(override(problem.model_dump(exclude_unset=True), axis, value))
