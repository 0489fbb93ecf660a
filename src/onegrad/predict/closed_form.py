"""The isotropic closed form: where it applies, and how far the theory of types is from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onegrad.errors import Failure
from onegrad.predict.engines import conditional
from onegrad.predict.prediction import Prediction
from onegrad.predict.wording import of_closed_form
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import variance_of_labels
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.isotropic.closed_form import predict_isotropic
from onegrad.theory.options import Theory


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


def closed_form(problem: Problem, theory: Theory, seed: int) -> Prediction:
    """The closed form, and how far the conditional theory is from it; a draft is not compared.

    Raises where the conditional theory fails: nothing is known then about the closed form's error.
    """
    version = "limit" if theory.method == "isotropic-limit" else "finite-step"
    result = predict_isotropic(problem, version if problem.rate else "random-features")
    power = variance_of_labels(problem, geometry_of(problem))
    if theory.draft:
        return replace(of_closed_form(result, None), label_variance=power)
    (checked,) = conditional([problem], replace(theory, method="conditional"), seed)
    if isinstance(checked, Failure):
        raise checked.error
    return replace(of_closed_form(result, checked), label_variance=power)
