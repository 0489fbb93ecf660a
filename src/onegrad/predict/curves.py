"""Predictions along curves: of smooth ones a few points are computed, the others interpolated.

Interpolated are logarithms of final numbers. Every third of the points that were computed is left
out at a time, and compared with what the others say about it: where that is further off than
wanted, more points are computed, and in the end all of them.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import Failure
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import interpolated_to
from onegrad.problem import Problem
from onegrad.theory.open import Decision
from onegrad.theory.options import Theory

# Logarithms of these are interpolated. A misfit counts in units of errors, that of signs less.
_POSITIVE = {
    "test_error": 1.0, "train_error": 1.0, "train_objective": 1.0, "test_loss": 1.0,
    "train_loss": 1.0, "label_variance": 1.0, "median_test_error": 1.0, "misclassification": 4.0,
}  # fmt: skip
_NAMES = (*_POSITIVE, "calibration", "spread_over_draws")
_UNITS = np.array([*_POSITIVE.values(), 4.0, 1.0])  # calibration, and spread over test error
_DEGREE = 3  # degree of the polynomials that are blended
_FOLDS = 3  # cross-validation: every third node is left out at a time
_EVEN = 0.75  # weight of even spacing in the nodes' places; the rest is Chebyshev spacing
# Smallest stated error of an interpolated point, measured where the misfit was near 0

Answer = Prediction | Failure


def along_curves(
    problems: Sequence[Problem],
    theory: Theory,
    compute: Callable[[Sequence[Problem]], Sequence[Answer]],
    alone: Callable[[Problem], Prediction],
) -> list[Answer]:
    """All answers; on smooth curves a few points are computed and the others interpolated.

    compute : the answers of some problems together
    alone : the prediction of one problem, for what a point between others does not know
    """
    policy = theory.policy
    answers: dict[int, Answer] = {}
    nodes = policy.curve_draft_nodes if theory.draft else policy.curve_nodes
    for curve, places in curves(problems, policy.curve_points):
        for chosen in nodes_of(places, nodes, policy.curve_most * len(places)):
            new = [curve[j] for j in chosen if curve[j] not in answers]
            answers |= zip(new, compute([problems[i] for i in new]), strict=True)
            known = [answers[curve[j]] for j in chosen]
            apart = misfits(places[chosen], [_numbers(one) for one in known])
            enough = [_enough(one, theory) for one in known]
            if np.all(apart < np.array(enough)[:, None]):
                between = _between(curve, places, chosen, known, apart, theory)
                answers |= {
                    i: replace(one, computed=partial(alone, problems[i]))
                    for i, one in between.items()
                }
                break
    rest = [i for i in range(len(problems)) if i not in answers]
    answers |= zip(rest, compute([problems[i] for i in rest]), strict=True)
    return [answers[i] for i in range(len(problems))]


def _enough(answer: Answer, theory: Theory) -> float:
    """So near a point should be to what others say about it."""
    policy = theory.policy
    stated = 0.0 if isinstance(answer, Failure) else answer.error_estimate
    stated = 0.0 if math.isnan(stated) else stated
    return max(policy.curve_misfit * theory.accuracy, policy.curve_beside * stated)


def _between(
    curve: Sequence[int],
    places: Array,
    chosen: Sequence[int],
    known: Sequence[Answer],
    apart: Array,
    theory: Theory,
) -> dict[int, Prediction]:
    """The points of a curve that were not computed, by their place among all problems."""
    wanted = [j for j in range(len(curve)) if j not in chosen]
    rows = np.array([_numbers(one) for one in known])
    found = _UNITS * interpolated(places[chosen], rows, places[wanted])
    answers = {}
    for j, row in zip(wanted, found, strict=True):
        after = bisect(chosen, j)
        near = sorted((after - 1, after), key=lambda i: abs(places[chosen[i]] - places[j]))
        neighbours = [one for i in near if isinstance(one := known[i], Prediction)]
        open_by = float(apart[max(0, after - 2) : after + 2].max()) + theory.policy.curve_between
        decision = Decision(
            "curve", open_by, theory.policy.curve_misfit * theory.accuracy,
            "The distance of computed points from what the others say about them",
            f"this point is interpolated between {len(chosen)}",
        )  # fmt: skip
        worst = max(neighbours, key=lambda one: one.error_estimate)
        known_to = replace(worst.open, rules=worst.open.rules + open_by)
        statuses = [one.status for one in neighbours if one.status != "ok"]
        first = neighbours[0]
        answers[curve[j]] = replace(
            first,
            **_named(first, row),
            status=statuses[0] if statuses else "ok",
            error_estimate=worst.error_estimate + open_by,
            open=known_to,
            assumptions=(interpolated_to(open_by), *first.assumptions),
            decisions=(*first.decisions, decision),
            solution=None,
        )
    return answers


def _numbers(answer: Answer) -> Array | None:
    """What is interpolated, in its units: logarithms, the calibration error, and the spread over
    the test error; A failure gives None."""
    if isinstance(answer, Failure):
        return None
    known = {name: getattr(answer, name) for name in _NAMES}
    found = [np.nan if (v := known[name]) is None else v for name in _NAMES]
    values = np.array(found, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        values[:-2] = np.log(values[:-2])
    values[-1] /= answer.test_error
    return np.asarray(values / _UNITS)


def _named(near: Prediction, row: Array) -> dict[str, Any]:
    """The numbers that `near` has, of a row without units."""
    numbers = dict(zip(_POSITIVE, np.exp(row[:-2]).tolist(), strict=True))
    numbers["calibration"] = max(0.0, float(row[-2]))
    numbers["spread_over_draws"] = max(0.0, float(row[-1])) * numbers["test_error"]
    return {name: x for name, x in numbers.items() if getattr(near, name) is not None}


def nodes_of(places: Array, count: int, most: float) -> Iterator[list[int]]:
    """Points to compute, each time more of them; the last ones among those before."""
    nodes: set[int] = set()
    while count <= most:
        even = np.linspace(0.0, 1.0, count)
        parts = _EVEN * even + (1 - _EVEN) * np.sin(0.5 * np.pi * even) ** 2
        wanted = places[0] + parts * (places[-1] - places[0])
        nodes |= {int(np.abs(places - x).argmin()) for x in wanted}
        yield sorted(nodes)
        count = 2 * count - 1


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


def curves(problems: Sequence[Problem], fewest: int) -> Iterator[tuple[list[int], Array]]:
    """Problems that differ in one number alone, in its order, and that number (its logarithm); then
    those that differ in several numbers which all rise or fall together, by the first of them.

    fewest : points of a curve
    """
    if len(problems) < fewest:
        return
    flat: dict[int, dict[str, Any]] = {i: {} for i in range(len(problems))}
    for i, one in enumerate(problems):
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
