"""Means over draws of one problem: over the law of its chance overlaps and of its first step.

An answer at the typical point is multiplied by the ratio of the mean over the law to the value
there, both at one coarse resolution, whose error cancels in the ratio (docs/theory.md, section 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError, Failure
from onegrad.theory.average import WORST, Average, OverDraws, largest, ratio, relative
from onegrad.theory.chance import ORDERS, Law
from onegrad.theory.conditional import simplified
from onegrad.theory.errors import SURPLUS_SHARE
from onegrad.theory.label_change import label_change
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.outputs import OF_SIGNS, outputs_of, with_ratios
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.size_bound import finite_size_bound
from onegrad.theory.task import Solution, Task

_SCREEN = 0.1  # of the accuracy: less than that chance may do without being averaged over
_SIGNS = 6.0  # times the square of an effect: what rules of signs may be wrong by
_LOSS_WORST = 0.2  # of losses that are iterated over, WORST: drawn layers take minutes instead
_LOSS_SIGNS, _LOSS_MOVED = 2.0, 0.5  # of losses that are iterated over; part of what signs change
_FIXED_POINT = 1e-6  # its tolerance
_OF_LOSSES = 1e-4  # the same where a loss is iterated over, whose means are known to 1 % at best
_SIGN_CHANGE = 0.02  # of misclassification: by more than that a surplus of labels needs a fine rule
_SIGN_ORDER = 9  # of that rule
_MOST_PAIRS, _FEW_PAIRS = 256, 16  # of a rule of two nodes each, before and after merging
_DRAFT_ERROR = 0.03  # of what a coarse resolution says about an effect
_DRAFT_CHANCE = 0.5  # Q up to which a draft leaves the step's chance out: below 0.2 %, measured
_SIGN_POINTS = 1024  # nodes of the classification error: with half of them 5 % off
_DRAFT_SIGNS = 256  # nodes of the classification error, in the means of a draft


Found = tuple[Solution | Failure, OverDraws | None]


def averaged(
    laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> list[Found]:
    """Solutions at the typical points of their laws, made means over the laws.

    Errors become means over draws; what is known node by node stays that of the typical point.
    The error estimate gains what two rules over the law differ by. A Failure stays one.
    """
    found: list[Found] = [(one, None) for one in solutions]
    todo = begun(laws, solutions, theory)
    first_rules(list(todo.values()), theory)
    finer_rules(list(todo.values()), theory)
    for i, (law, one) in enumerate(zip(laws, solutions, strict=True)):
        if isinstance(one, Solution) and law.left_out and not theory.draft:
            found[i] = replace(one, error_estimate=one.error_estimate + law.left_out), None
    found_now = {i: finished(average, theory) for i, average in todo.items()}
    return [found_now.get(i, one) for i, one in enumerate(found)]


def begun(
    laws: Sequence[Law], solutions: Sequence[Solution | Failure], theory: Theory
) -> dict[int, Average]:
    """Averages of those that have something to average over, nothing known yet."""
    todo = {
        # beyond no margin samples count nothing, and ratios need no nodes for it
        i: Average(law, one, _level(law, theory), flat=not law.problem.loss.signs)
        for i, (law, one) in enumerate(zip(laws, solutions, strict=True))
        if isinstance(one, Solution) and law.variables
    }
    for average in todo.values():
        if theory.finite_size and not (theory.draft or average.solution.squared):
            average.left_by_sizes = finite_size_bound(average.solution)
    if theory.draft:  # the solution itself is as coarse as what is compared with it
        todo = {
            i: a
            for i, a in todo.items()
            if (a.law.strong and a.law.importance > _DRAFT_CHANCE)
            or label_change(a.law) > theory.accuracy
        }
        for average in todo.values():
            if not average.law.strong:
                (name,) = average.law.canonical(average.law.typical[None])
                average.values[name] = outputs_of(average.solution)
    return todo


def _level(law: Law, theory: Theory) -> QuadratureLevel:
    """The resolution of points that are compared with each other."""
    if not law.strong:
        return QuadratureLevel.draft()
    level = QuadratureLevel.at(0)
    if theory.draft:
        return replace(level, points=_DRAFT_SIGNS)
    return level if law.problem.loss.name == "squared" else replace(level, points=_SIGN_POINTS)


def first_rules(averages: Sequence[Average], theory: Theory) -> None:
    """Whether chance counts, and means by two nodes for each variable where it does; each stage is
    solved for all problems together."""
    _solve([(a, a.law.typical[None]) for a in averages if a.iterated])  # to start from
    _solve([(a, np.vstack([a.law.typical, a.law.screen])) for a in averages])
    averages = [a for a in averages if a.failure is None]
    for a in averages:
        plus, minus, low = a.at(a.law.screen)
        odd, even = 0.5 * np.abs(plus - minus), np.abs(0.5 * (plus + minus) - low)
        a.effect = largest(relative(odd + even, a.base))
        a.bend = float(even[0])
        a.spread = math.sqrt(odd[0] ** 2 + 2 * a.bend**2)
        a.ratios, a.nodes = [ratio(0.5 * (plus + minus), a.base)], _pair(a.law)
    visible = [a for a in averages if a.effect > _limit(theory) or a.law.importance > 1]
    for a in visible:
        a.active = list(range(len(a.law.variables))) if _all_count(a) else []
    _choose([a for a in visible if not a.active], theory)
    for a in _rule(visible, 2):
        a.effect = max(a.effect, a.scatter)
        if not a.solution.squared:  # signs do not all go together, nor do sizes
            nodes, weights = a.nodes
            own, each = a.at(nodes)[:, 0], a.bend**2 / max(1, len(a.active))
            a.spread = math.sqrt(weights @ (own - weights @ own) ** 2 + 2 * each)
    if not theory.draft:
        _resolve_signs([a for a in averages if a.failure is None])


def finer_rules(averages: Sequence[Average], theory: Theory) -> None:
    """Finer means of those whose rule of two nodes may be wrong by more than is enough."""
    averages = [a for a in averages if a.failure is None and a.orders]
    before = [len(a.ratios) for a in averages]
    visible = [
        a
        for a in averages
        if _sign_error(a) > a.enough(theory) or (a.law.importance > 1 and a.solution.squared)
    ]
    _choose([a for a in visible if _all_count(a)], theory)
    for order in ORDERS:
        visible = _rule(visible, order)
        visible = [a for a in visible if a.moved > a.enough(theory)]
    if theory.draft:
        return
    _refine([a for a in averages if a.failure is None and len(a.ratios) > 2], theory)
    known = [a for a, n in zip(averages, before, strict=True) if len(a.ratios) > n]
    _resolve_signs([a for a in known if a.failure is None])


def _limit(theory: Theory) -> float:
    return _SCREEN * theory.accuracy


def _resolve_signs(averages: list[Average]) -> None:
    """Misclassification and calibration with a finer rule over the surplus of labels, which may
    decide all signs where it changes no error: at strong ridges outputs are small. What else is
    left to chance stays at its typical values in both rules that are compared.

    Signs may change within a small part of the distance of two nodes. So each node of the finer
    rule stands for a Gaussian around it, whose variance is in that of the outputs."""
    chosen = []
    for a in averages:
        orders = [1] * len(a.law.variables)
        for j, variable in enumerate(a.law.variables):
            if variable.kind == "balance":
                used = a.orders[j] if a.orders else 2
                pair, short, fine = (
                    replace(a, nodes=a.law.nodes([*orders[:j], order, *orders[j + 1 :]]))
                    for order in (2, used, _SIGN_ORDER)
                )
                fine.nodes[0][:, j] *= math.sqrt(1 - SURPLUS_SHARE)
                chosen.append((a, pair, short, fine))
    _solve([(part, part.nodes[0]) for _, *parts in chosen for part in parts[:2]])
    chosen = [entry for entry in chosen if entry[1].failure is None and _signs_change(entry[1])]
    _solve([(fine, fine.nodes[0]) for *_, fine in chosen])
    for a, _, short, fine in chosen:
        if short.failure is None and fine.failure is None:
            last = a.ratios[-1].copy()
            last[OF_SIGNS] *= ratio(fine.mean_ratio, short.mean_ratio)[OF_SIGNS]
            a.ratios[-1] = last


def _signs_change(average: Average) -> bool:
    """Whether the surplus changes misclassification by more than two nodes can say."""
    change = ratio(average.at(average.nodes[0])[:, OF_SIGNS[0]], average.base[OF_SIGNS[0]]) - 1
    return bool(np.abs(change).max() > _SIGN_CHANGE)


def _refine(averages: list[Average], theory: Theory) -> None:
    """How far the resolution can be trusted, by a look at another one; finer means where not."""
    with np.errstate(invalid="ignore"):  # an error of training that is 0 has no ratio
        _look(averages, QuadratureLevel.at(1))
        _finer([a for a in averages if a.failure is None and a.resolution > a.enough(theory)])


def _finer(averages: list[Average]) -> None:
    """Means at the next resolution, by a short rule for what it changes:

        E v ≈ Q v⁰ + Q₃(v¹ − v⁰), relative to the typical point of each resolution

    with the long rule Q at the coarse resolution, and rules up to order three at both; of two
    nodes for each variable with losses that are iterated over.
    """
    found = []
    for a in averages:
        order = ORDERS[0] if a.solution.squared else 2
        nodes = a.law.nodes(a.law.affordable(order, a.active))
        fine = replace(_at(a, QuadratureLevel.at(1)), nodes=nodes)
        found.append((a, replace(a, nodes=nodes), fine))
    both = [part for _, *parts in found for part in parts]
    _solve([(part, np.vstack([part.law.typical, part.nodes[0]])) for part in both])
    for a, short, fine in found:
        a.failure = short.failure or fine.failure
        if a.failure is None:
            a.ratios.append(a.ratios[-1] * ratio(fine.mean_ratio, short.mean_ratio))
            a.resolution = a.moved


def _at(average: Average, level: QuadratureLevel) -> Average:
    """The same at a finer resolution, nothing found yet."""
    return replace(average, level=level, values={}, flat=average.solution.flat)


def _look(averages: list[Average], level: QuadratureLevel) -> None:
    """What another resolution says about the point that differs most from the typical one, and
    for the mean if errors of other points are in proportion to their difference."""
    others = [_at(a, level) for a in averages]
    _solve([(other, a.farthest) for a, other in zip(averages, others, strict=True)], signs=False)
    for a, other in zip(averages, others, strict=True):
        a.failure = other.failure
        if a.failure is None:
            one, two = (ratio(*x.at(a.farthest)[::-1]) for x in (a, other))
            a.resolution = largest((two - one) * a.extent)


def _choose(averages: list[Average], theory: Theory) -> None:
    """Variables that count, by what happens without each of them; the most important first."""
    averages = [a for a in averages if a.failure is None]
    points = []
    for a in averages:
        start = a.law.screen[0]
        points.append(start + np.diag(a.law.low - start) if len(start) > 3 else start[None])
    _solve(list(zip(averages, points, strict=True)))
    for a, rows in zip(averages, points, strict=True):
        if a.failure is not None:
            continue
        count = len(a.law.variables)
        if count <= 3:
            a.active = list(range(count))
            continue
        scores = relative(np.abs(a.at(rows) - a.at(a.law.screen[:1])), a.base).max(axis=1)
        order = np.argsort(-scores, kind="stable")
        beyond = np.cumsum(scores[order][::-1])[::-1]  # of each one and all that are weaker
        a.active = order[beyond > 2 * _limit(theory)].tolist()
        a.left_out = float(beyond[len(a.active)]) if len(a.active) < count else 0.0


def _sign_error(a: Average) -> float:
    """What a rule of two nodes for each variable may be wrong by. Of 16 random problems with other
    losses the next rule changed errors by .2 % at most where this is below 1 %."""
    return (_SIGNS if a.solution.squared else _LOSS_SIGNS) * a.effect**2


def _all_count(a: Average) -> bool:
    """Whether all variables have two nodes each to begin with: of a loss that is iterated over,
    where such a rule is short. Its means are then of the same variables all along a curve."""
    if a.solution.squared:
        return False
    nodes = a.law.nodes([2] * len(a.law.variables))[0]
    return len(nodes) <= _MOST_PAIRS and len(set(a.law.canonical(nodes))) <= _FEW_PAIRS


def _rule(averages: list[Average], order: int) -> list[Average]:
    """Means by rules up to that order; of those for which there is room for one that is new."""
    new = []
    for a in averages:
        orders = a.law.affordable(order, a.active)
        if a.failure is None and orders != a.orders:
            a.orders, a.nodes = orders, a.law.nodes(orders)
            new.append(a)
    averages = new
    _solve([(a, a.nodes[0]) for a in averages])
    for a in averages:
        if a.failure is None:
            a.ratios.append(a.mean_ratio)
            a.rule_error = a.moved
    return [a for a in averages if a.failure is None]


def _solve(wanted: list[tuple[Average, Array]], signs: bool = True) -> None:
    """Values at points that are not known yet; neighbours in a curve one after the other.

    signs : with misclassification and calibration
    """
    tasks: list[tuple[int, Average, tuple[float, ...], Task]] = []
    for a, points in wanted:
        names = a.law.canonical(points)
        new = {n: p for n, p in zip(names, points, strict=True) if n not in a.values}
        try:
            for number, (name, point) in enumerate(new.items()):
                start = a.first or (a.solution if a.iterated else None)
                task = replace(a.law.task(point), coarse=start, flat=a.flat)
                tasks.append((number, a, name, simplified(task)))
        except AssumptionError as error:
            a.failure = Failure(error)
    tasks.sort(key=lambda entry: entry[0])
    kinds = [(a.level, a.finite, a.solution.squared) for _, a, *_ in tasks]
    for kind in set(kinds):
        level, finite, squared = kind
        mine = [entry for entry, own in zip(tasks, kinds, strict=True) if own == kind]
        found = [task for *_, task in mine]
        tolerance = _FIXED_POINT if squared else _OF_LOSSES
        solutions = solve_tasks(found, level, tolerance, signs, finite)
        for (_, a, name, _), one in zip(mine, solutions, strict=True):
            if isinstance(one, Failure):
                a.failure = one
            else:
                a.values[name] = outputs_of(one)
                a.first = a.first or (one if a.iterated else None)


def finished(average: Average, theory: Theory, checked: bool = True) -> Found:
    """The mean over draws, and how the test error differs between them.

    checked : a Failure where it is not known well enough
    """
    if average.failure is not None:
        return average.failure, None
    solution, gauss = average.solution, len(average.ratios) > 2
    ratio = average.ratios[-1]
    nodes, weights = average.nodes
    mean = with_ratios(solution, ratio)
    # E|e + z s| of a bin has an excess over |e|, in squares. A ratio would say how small e happens
    # to be at the coarse resolution of the means.
    if solution.calibration is not None and ratio[OF_SIGNS[1]] > 1:
        excess = float(average.base[OF_SIGNS[1]] ** 2 * (ratio[OF_SIGNS[1]] ** 2 - 1))
        mean = replace(mean, calibration=math.sqrt(solution.calibration**2 + excess))
    if average.law.exchangeable:  # points were merged that differ in which component is which
        test, train = np.full_like(mean.component_test, mean.test_error), mean.component_train
        train = np.full_like(train, mean.train_error)
        mean = replace(mean, component_test=test, component_train=train)
    values = solution.test_error * average.at(nodes)[:, 0] / average.base[0]
    if gauss:
        spread = float(np.sqrt(weights @ (values - weights @ values) ** 2))
        median = _median(values, weights)
        error = average.rule_error + average.resolution
    else:  # signs alone do not show what sizes do
        spread = average.spread / average.base[0] * solution.test_error
        median = mean.test_error
        moved = average.rule_error * (1.0 if solution.squared else _LOSS_MOVED)
        error = max(_sign_error(average), moved) + _DRAFT_ERROR * largest(ratio - 1)
    error += average.left_out + average.law.left_out
    estimate = solution.error_estimate if theory.draft else solution.error_estimate + error
    over = OverDraws(
        mean.test_error, median, spread, len(average.values), len(average.active)
    )  # fmt: skip
    worst = WORST if solution.squared else _LOSS_WORST
    if checked and not theory.draft and error > max(worst, theory.accuracy):
        return Failure(ConvergenceError(
            f"errors differ from draw to draw by {100 * average.effect:.0f} %, by chance overlaps "
            "of the directions and chance parts of the step, "
            f"and their mean over draws is known to {error:.1e} only (wanted "
            f"{theory.accuracy:.0e}). Ask for a lower accuracy, use overlaps = \"drawn\" for one "
            'draw, directions = "orthogonal", or a smaller spread or mean.'
        )), over  # fmt: skip
    return replace(mean, error_estimate=estimate), over


def _median(values: Array, weights: Array) -> float:
    """From the first three moments, mean − μ₃/(6σ²) (Cornish and Fisher): nodes are no sample."""
    mean = weights @ values
    variance, third = (weights @ (values - mean) ** p for p in (2, 3))
    return float(mean - third / (6 * variance) if variance > 0 else mean)


def _pair(law: Law) -> tuple[Array, Array]:
    return law.screen[:2], np.full(2, 0.5)
