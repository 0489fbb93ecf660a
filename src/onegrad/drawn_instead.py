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
_UNKNOWN = " and has no correction for finite sizes here"


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
    """Whether first layers that are drawn may say more, within seconds: sizes leave much open, the
    rules of types do, or nothing is known of the terms of order 1/n."""
    drawn = theory.method == "auto" and theory.overlaps == "auto" and theory.finite_size
    small = problem.width <= _DRAWN_WIDTH and problem.loss.name == "squared"
    if not (drawn and small) or answer.solution is None:
        return False
    least = theory.accuracy if _uncorrected(answer) else _UNCERTAIN
    return answer.error_estimate > least


def drawn_if_better(problem: Problem, theory: Theory, seed: int, answer: Prediction) -> Prediction:
    """The theory of drawn first layers if its estimate is smaller: it knows the neurons as they
    are, where that of types expands in 1/k how they fluctuate.

    Without a correction the estimate of types has a bound for it that is empirical, and was half
    of the truth in a problem of the audit: there theirs need only be small.
    """
    if theory.accuracy < ACCURATE:
        return answer
    try:
        found = predict_layers(problem, theory, seed)
    except (OnegradError, np.linalg.LinAlgError):
        return answer
    enough = max(answer.error_estimate, _UNCERTAIN if _uncorrected(answer) else 0.0)
    if not found.error_estimate < enough:
        return answer
    reason = (
        "First layers are drawn, because the theory without a draw is uncertain by "
        f"{100 * answer.error_estimate:.2g} %{_UNKNOWN * _uncorrected(answer)}."
    )
    return replace(
        found, assumptions=(*found.assumptions, reason), solution=answer.solution,
        label_variance=answer.label_variance,
    )  # fmt: skip


def _uncorrected(answer: Prediction) -> bool:
    assert answer.solution is not None
    correction = answer.solution.correction
    return correction is None or (correction.size == 0 and bool(correction.left_out))
