"""The Gaussian equivalent of random features: linear part plus noise."""

from __future__ import annotations

from onegrad.simulate.models.base import Fitted, Mark, Model, fit_features
from onegrad.simulate.models.hermite import HermiteFeatures
from onegrad.simulate.network.trial import Trial


def fit_gaussian(trial: Trial) -> Fitted:
    """c₀ + c₁X W₀ᵀ + c_{>1}Z: the Hermite model of degree 1 on the initial weights  [hu2023]."""
    problem = trial.problem
    features = HermiteFeatures.of(problem.activation, trial.weights, problem.bulk_scale, degree=1)
    return fit_features(trial, features, noise="gaussian")


MODEL = Model(
    "gaussian",
    "linear features plus noise: the equivalent of random features",
    Mark("v"),
    fit=fit_gaussian,
    cites=("hu2023", "mei2022"),
    products="initial",
    initial=True,
    noise="gaussian",
)
