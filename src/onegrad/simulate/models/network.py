"""The two-layer network itself, with its first layer trained."""

from __future__ import annotations

from onegrad.simulate.models.base import (
    Fitted,
    Mark,
    Model,
    NetworkFeatures,
    fit_features,
    initial_features,
)
from onegrad.simulate.network.trial import Trial


def fit_network(trial: Trial) -> Fitted:
    """The network itself, its first layer trained."""
    return fit_features(trial, NetworkFeatures(trial, trial.updated_weights))


MODEL = Model(
    "network",
    "the two-layer network after one exact gradient step",
    Mark("o", filled=True, size=5.0),
    fit=fit_network,
    untrained=initial_features,
)
