"""Problems whose spikes have strengths by chance: points of their law, and the mean over it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from onegrad.errors import Failure
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import of_solution
from onegrad.problem import Problem
from onegrad.theory.averages import OverDraws
from onegrad.theory.correction_curves import with_corrections
from onegrad.theory.options import Theory
from onegrad.theory.strengths import StrengthNodes, strength_nodes
from onegrad.theory.task import Solution


def strength_points(problem: Problem, theory: Theory) -> StrengthNodes | None:
    """Points of the law of the strengths, unless they are given or of one draw."""
    data: Any = problem.data
    drawn = theory.overlaps == "drawn" or problem.directions == "fixed"
    if drawn or not getattr(data, "random_strengths", False):
        return None
    return strength_nodes(data.component_ranks, data.weights, problem.spread)


def over_strengths(
    problem: Problem,
    found: list[tuple[Solution | Failure, OverDraws | None]],
    theory: Theory,
    seed: int,
) -> Prediction | Failure:
    solutions = []
    for one, _ in found:
        if isinstance(one, Failure):
            return one
        solutions.append(one)
    if len(solutions) == 1:
        return of_solution(solutions[0], theory, seed, found[0][1])
    nodes = strength_points(problem, theory)
    assert nodes is not None
    average: Solution | Failure = nodes.mean(solutions)
    if theory.finite_size and not theory.draft and solutions[0].squared:
        (average,) = with_corrections([average])
    assert isinstance(average, Solution)
    mean = of_solution(average, theory, seed)
    note = f"Errors are averaged over the law of the spikes' strengths ({len(found)} points)."
    return replace(mean, assumptions=(*mean.assumptions, note))
