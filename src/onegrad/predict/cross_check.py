"""The isotropic closed form beside the conditional theory: where it applies, how far apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.errors import Failure, OnegradError
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.theory.isotropic.closed_form import predict_isotropic


def version_at(problem: Problem, method: str) -> str:
    return "random-features" if problem.rate == 0 else method


def why_not_isotropic(problem: Problem) -> str:
    """The first assumption of the closed form that does not hold, or nothing."""
    if not problem.data.isotropic:
        return "assumes isotropic data"
    if problem.loss.name != "squared":
        return "assumes the squared loss"
    if problem.network.convention != "isotropic":
        return 'assumes convention = "isotropic"'
    if problem.links is None:
        return "assumes single-index labels"
    if problem.network.readout != "gaussian":
        return "assumes a Gaussian initial readout"
    c1 = problem.activation.coefficients(1)[1]
    if problem.rate > 0 and abs(c1) < 1e-9:
        return "needs an activation with c₁ ≠ 0: the step learns nothing at first order here"
    beta = problem.strength
    if beta is None and problem.rate > 0 and problem.samples > 1:
        beta = 2 * float(np.log(problem.rate) / np.log(problem.samples))
    if beta is not None and beta >= 1:
        return "needs a step below √m (exponent < 1/2)"
    return ""


def cross_checked(problem: Problem, answer: Prediction | Failure) -> Prediction | Failure:
    """The conditional theory's answer, with the closed form's difference to it where that applies.

    The closed form keeps the slopes of the features fixed along the learned direction and knows
    nothing of the nonlinear spread of norms: where the two differ, simulations side with the
    conditional theory (docs/theory.md, section 6).
    """
    if isinstance(answer, Failure) or answer.status == "draft" or why_not_isotropic(problem):
        return answer
    try:
        result = predict_isotropic(problem, version_at(problem, "finite-step"))
    except OnegradError:
        return answer
    test, train = (
        f"{closed:.4g} ({100 * (closed / ours - 1):+.2g} %)"
        for closed, ours in (
            (result.test_error, answer.test_error), (result.train_error, answer.train_error)
        )
    )  # fmt: skip
    sentence = (
        "For comparison, the closed form of Moniri et al. (2024), a limit of large n that keeps "
        "the covariance of the features from before the step, has "
        f"test error {test} and training error {train}."
    )
    return replace(answer, assumptions=(*answer.assumptions, sentence))
