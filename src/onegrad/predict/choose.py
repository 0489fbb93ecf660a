"""Which of two theories answers: neurons as types, or first layers that are drawn and trained."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from onegrad.errors import ConvergenceError, Failure, OnegradError
from onegrad.predict.layers import layers_within
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import because_refused, because_uncertain
from onegrad.problem import Problem
from onegrad.theory.open import Decision
from onegrad.theory.options import Theory

Answer = Prediction | Failure


def patience(problem: Problem, theory: Theory) -> float:
    """Types × nodes beyond which no resolution is solved, because layers answer sooner."""
    policy = theory.policy
    return policy.patience if _layers_answer(problem, theory, policy.types_width) else math.inf


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
    if not alone or not _layers_answer(problem, theory, theory.policy.layers_width):
        return types
    limit = _uncertain(types, theory)
    if not types.error_estimate > limit:
        return _decided(
            types, types.error_estimate, limit, "so certain that no first layers are drawn"
        )
    found = _layers(problem, theory, seed, types.error_estimate)
    if isinstance(found, Failure) or not found.error_estimate < types.error_estimate:
        return _decided(
            types, types.error_estimate, limit, "first layers were drawn, and state no less"
        )
    found = because_uncertain(found, types)
    return _decided(found, types.error_estimate, limit, "first layers were drawn, and answer")


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


def _decided(answer: Prediction, value: float, limit: float, outcome: str) -> Prediction:
    what = "The error estimate of the theory without a draw"
    decision = Decision("engine", value, limit, what, outcome)
    return replace(answer, decisions=(*answer.decisions, decision))
