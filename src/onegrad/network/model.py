"""What every model is to the experiments: fitted once, then asked for predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from onegrad.backend import namespace
from onegrad.hermite import Array
from onegrad.network.readout import Readout, RidgeSolver
from onegrad.network.trial import Inputs, Trial


class Fitted(Protocol):
    """A trained model. `predict` gives the mean prediction for each sample, and the variance
    that the model's own fresh noise adds to it (the remainder of a Gaussian equivalent).
    `at_ridge` is the same model with another λ_eff, at the cost of the solution alone."""

    @property
    def readout(self) -> Readout: ...

    def at_ridge(self, ridge: float) -> Fitted: ...

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]: ...


Fit = Callable[[Trial], Fitted]


class FeatureMap(Protocol):
    """Random features given a sample: their mean (m × k) and the variance of their own noise.

    The variance is one number for all features, or m × k.
    """

    def moments(self, inputs: Inputs) -> tuple[Array, Array | float]: ...


@dataclass(frozen=True)
class LinearInFeatures:
    """Ridge regression on a feature map: the network, and every equivalent model of it."""

    features: FeatureMap
    readout: Readout
    solver: RidgeSolver | None = None

    def at_ridge(self, ridge: float) -> Fitted:
        if self.solver is None:  # a model that chooses its own ridge
            return self
        return LinearInFeatures(self.features, self.solver.fit(ridge), self.solver)

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]:
        mean, variance = self.features.moments(inputs)
        a = namespace(mean).astype(self.readout.coefficients, mean.dtype, copy=False)
        extra = variance * float(a @ a) if isinstance(variance, float) else variance @ a**2
        return mean @ a, extra


def fit_features(trial: Trial, features: FeatureMap, noise: str | None = None) -> Fitted:
    """Train the readout on the features of the training set.

    Features with noise of their own are drawn, from the stream that `noise` names.
    """
    phi, variance = features.moments(trial.train)
    if noise is not None:
        for rows, piece in trial.draw.noise(noise, phi):
            if isinstance(variance, float):
                phi[rows] += piece * math.sqrt(variance)
            else:
                phi[rows] += piece * namespace(phi).sqrt(variance[rows])
    solver = RidgeSolver(phi, trial.train.batch.y, trial.draw.pool)
    if trial.many_ridges:
        readout = solver.fit(trial.problem.effective_ridge)
        return LinearInFeatures(features, readout, solver)
    return LinearInFeatures(features, solver.fit(trial.problem.effective_ridge, last=True))


@dataclass(frozen=True)
class NetworkFeatures:
    """σ(Wx) for given weights."""

    trial: Trial
    weights: Array

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        product, out = inputs.workspace(self.weights)
        return self.trial.problem.activation.into(product, out), 0.0


def fit_network(trial: Trial) -> Fitted:
    """The network itself after its gradient step."""
    return fit_features(trial, NetworkFeatures(trial, trial.updated_weights))
