"""The baseline without a step: ridge regression on the initial features."""

from __future__ import annotations

from onegrad.simulate.models.base import Fitted, Mark, Model, fit_features, initial_features
from onegrad.simulate.network.trial import Trial


def fit_random_features(trial: Trial) -> Fitted:
    """η = 0, on the network's own initial weights."""
    return fit_features(trial, initial_features(trial))


MODEL = Model(
    "random-features",
    "baseline without a step: ridge on the initial features",
    Mark("x", filled=True, size=6.0),
    fit=fit_random_features,
    cites=("mei2022",),
    products="initial",
    initial=True,
    untrained=initial_features,
)
