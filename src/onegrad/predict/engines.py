"""The two engines of known populations, and which of them answers: neurons as types, at typical
points and as means over draws, or first layers that are drawn and trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.errors import ConvergenceError, Failure, OnegradError
from onegrad.predict.layers import layers_within
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import because_refused, because_uncertain, of_a_curve, of_solution
from onegrad.problem import Problem
from onegrad.theory.chance import Chance, chance_of
from onegrad.theory.conditional import predict_mixtures
from onegrad.theory.directions.closure_error import closure_error
from onegrad.theory.draws import over_draws
from onegrad.theory.open import Decision
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution, Task

Answer = Prediction | Failure


def conditional(
    problems: Sequence[Problem], theory: Theory, seed: int, together: bool = False
) -> list[Prediction | Failure]:
    """The conditional theory of all problems.

    together : means over draws by as many points for all of a curve, so that it does not jump
    """
    answers: dict[int, Prediction | Failure] = {}
    asked: dict[int, tuple[Chance, Task]] = {}
    for i, problem in enumerate(problems):
        try:
            chance = chance_of(problem, theory.overlaps, seed, theory.finite_size, theory.policy)
            asked[i] = chance, replace(chance.typical, most=_patience(problem, theory))
        except OnegradError as error:
            answers[i] = Failure(error)
    try:
        solutions = predict_mixtures([task for _, task in asked.values()], theory)
    except OnegradError as error:
        return [answers.get(i, Failure(error)) for i in range(len(problems))]
    chances = [chance for chance, _ in asked.values()]
    for i, (one, draws) in zip(
        asked, over_draws(chances, solutions, theory, together), strict=True
    ):
        found = _with_closure(one, theory)
        if isinstance(found, Failure):
            answers[i] = found
        else:
            answers[i] = of_solution(found, theory, seed, draws)
    return [answers[i] for i in range(len(problems))]


def _with_closure(solution: Solution | Failure, theory: Theory) -> Solution | Failure:
    """The estimate with what a bulk that is not flat leaves open."""
    if isinstance(solution, Failure) or theory.draft or solution.geometry.levels is None:
        return solution
    error = closure_error(solution)
    if isinstance(error, Failure):
        return error
    physics = solution.open.physics + error
    return replace(solution, open=replace(solution.open, physics=physics))


def _patience(problem: Problem, theory: Theory) -> float:
    """Types × nodes beyond which no resolution is solved, because layers answer sooner."""
    policy = theory.policy
    return policy.patience if _layers_answer(problem, theory, 2 * policy.layers_width) else math.inf


def choose(problem: Problem, theory: Theory, seed: int, types: Answer, alone: bool) -> Answer:
    """The answer of types, or of drawn layers: where types refuse, and for a problem `alone` where
    types are uncertain and layers have the smaller estimate. Points of a curve keep their theory.

    A layer's neurons are taken as they are, where types expand in 1/k how they fluctuate.
    """
    if theory.method != "auto" or theory.overlaps == "typical":
        return types
    if isinstance(types, Failure):
        found = _layers(problem, theory, seed, math.inf)
        return types if isinstance(found, Failure) else because_refused(found, types)
    if types.computed is not None or not _layers_answer(
        problem, theory, theory.policy.layers_width
    ):
        return types
    answer, stated, limit = types, types.error_estimate, _uncertain(types, theory)
    if not stated > limit:
        outcome = "so certain that no first layers are drawn"
    elif not alone:
        answer, outcome = of_a_curve(types), "a point of a curve keeps this theory"
    else:
        found, outcome = _layers(problem, theory, seed, stated), "first layers state no less"
        if isinstance(found, Prediction) and found.error_estimate < stated:
            answer, outcome = because_uncertain(found, types), "first layers state less, and answer"
    what = "The error estimate of the theory without a draw"
    decision = Decision("engine", stated, limit, what, outcome)
    return replace(answer, decisions=(*answer.decisions, decision))


def _layers_answer(problem: Problem, theory: Theory, width: int) -> bool:
    """Whether layers may take the place of types within seconds."""
    drawn = theory.method == "auto" and theory.overlaps == "auto" and theory.finite_size
    return drawn and problem.width <= width and problem.loss.name == "squared"


def _uncertain(types: Prediction, theory: Theory) -> float:
    """Error estimate of types from which on layers are asked. Without a 1/n correction it has a
    bound for it that is empirical, and was half of the truth in a problem of the audit."""
    solution = types.solution
    correction = None if solution is None else solution.correction
    corrected = correction is not None and (correction.size > 0 or not correction.left_out)
    return theory.policy.uncertain if corrected else theory.accuracy


def _layers(problem: Problem, theory: Theory, seed: int, enough: float) -> Answer:
    try:
        return layers_within(problem, theory, seed, enough)
    except OnegradError as error:
        return Failure(error)
    except np.linalg.LinAlgError as error:
        return Failure(ConvergenceError(f"the numerics of drawn layers fail ({error})"))
