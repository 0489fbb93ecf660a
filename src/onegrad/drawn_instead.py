"""Where the theory of types refuses or is uncertain: that of first layers drawn and trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.errors import Failure, OnegradError
from onegrad.predicted import Prediction
from onegrad.problem import Problem
from onegrad.readouts import predict_layers
from onegrad.theory.options import ACCURATE, Theory

_UNCERTAIN = 0.03  # error estimate from which on first layers are drawn, too
_DRAWN_WIDTH = 1000  # neurons up to which that takes seconds


def drawn_instead(
    problem: Problem, theory: Theory, seed: int, refused: Failure
) -> Prediction | Failure:
    """The theory of drawn first layers, where that of types has `refused`; its reason if this
    fails too, or more was asked than draws can give."""
    if theory.overlaps == "typical" or theory.accuracy < ACCURATE:
        return refused
    try:
        found = predict_layers(problem, theory, seed)
    except (OnegradError, np.linalg.LinAlgError):
        return refused
    reason = f"First layers are drawn, because the theory without a draw refuses: {refused.error}"
    return replace(found, assumptions=(*found.assumptions, reason))


def is_uncertain(problem: Problem, theory: Theory, answer: Prediction) -> bool:
    """Whether first layers that are drawn may say more, within seconds: sizes leave much open, or
    the rules of types do."""
    drawn = theory.method == "auto" and theory.overlaps == "auto" and theory.finite_size
    small = problem.width <= _DRAWN_WIDTH and problem.loss.name == "squared"
    return drawn and small and answer.solution is not None and answer.error_estimate > _UNCERTAIN


def drawn_if_better(problem: Problem, theory: Theory, seed: int, answer: Prediction) -> Prediction:
    """The theory of drawn first layers if its estimate is smaller: it knows the neurons as they
    are, where that of types expands in 1/k how they fluctuate."""
    if theory.accuracy < ACCURATE:
        return answer
    try:
        found = predict_layers(problem, theory, seed)
    except (OnegradError, np.linalg.LinAlgError):
        return answer
    if not found.error_estimate < answer.error_estimate:
        return answer
    reason = (
        "First layers are drawn, because the theory without a draw is uncertain by "
        f"{100 * answer.error_estimate:.2g} %."
    )
    return replace(
        found, assumptions=(*found.assumptions, reason), solution=answer.solution,
        label_variance=answer.label_variance,
    )  # fmt: skip
