"""The theory of types of many problems together: at their typical points, and means over draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onegrad.errors import Failure, OnegradError
from onegrad.predict.choose import patience
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import of_solution
from onegrad.problem import Problem
from onegrad.theory.chance import Chance, chance_of
from onegrad.theory.conditional import predict_mixtures
from onegrad.theory.directions.closure_error import closure_error
from onegrad.theory.draws import over_draws
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution, Task


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
            asked[i] = chance, replace(chance.typical, most=patience(problem, theory))
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
