"""The Gaussian equivalent of random features: linear part plus noise."""

from __future__ import annotations

from onegrad.equivalents.hermite import HermiteFeatures
from onegrad.network.model import Fitted, fit_features
from onegrad.network.trial import Trial


def fit_gaussian(trial: Trial) -> Fitted:
    """c₀ + c₁X W₀ᵀ + c_{>1}Z: the Hermite model of degree 1 on the initial weights  [hu2023]."""
    problem = trial.problem
    features = HermiteFeatures.of(problem.activation, trial.weights, problem.bulk_scale, degree=1)
    return fit_features(trial, features, noise="gaussian")
