"""The best linear baseline: ridge regression on the inputs themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array, namespace
from onegrad.gaussian.pair_moments import IDENTITY
from onegrad.models.base import Fitted, LinearInFeatures, Mark, Model
from onegrad.network.readout import Spectrum
from onegrad.network.trial import Inputs, Trial
from onegrad.risk.component import Single
from onegrad.risk.exact import Predictor


@dataclass(frozen=True)
class LinearFeatures:
    """A constant and the inputs."""

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        x = inputs.batch.x
        xp = namespace(x)
        x = xp.astype(x, xp.float64, copy=False)
        return xp.concat([xp.ones_like(x[:, :1]), x], axis=1), 0.0

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        return Predictor(singles=(Single(IDENTITY, a[1:], 1.0),), constant=float(a[0]))


def fit_linear(trial: Trial) -> Fitted:
    """Ridge on (1, x) with the ridge chosen by exact leave-one-out over ten decades.

    The network's ridge means nothing here; a baseline that is to be beaten gets its own best.
    """
    features = LinearFeatures()
    design, _ = features.moments(trial.train)
    size = float(namespace(design).mean(design**2)) * trial.problem.dim
    ridges = (np.geomspace(1e-7, 1e3, 41) * size / len(trial.train.batch)).tolist()
    spectrum = Spectrum(design, namespace(design).astype(trial.train.batch.y, design.dtype))
    best = min(ridges, key=spectrum.leave_one_out)
    return LinearInFeatures(features, spectrum.fit(best))


MODEL = Model(
    "linear",
    "baseline: ridge on (1, x) with its own best ridge",
    Mark("+", filled=True),
    fit=fit_linear,
    products="none",
)
