"""Test error on a sampled test set."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import ndtr

from onegrad.compute.backend import Array, host, namespace
from onegrad.network.trial import Inputs, Trial

Key = TypeVar("Key", bound=Hashable)


class Predicts(Protocol):
    """Mean prediction of each sample, and the variance of the model's own noise there."""

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]: ...


@dataclass(frozen=True)
class SampledRisk:
    """Of one model on a test set.

    value : E(y − f(x))²
    misclassification : P(sign f(x) ≠ y) where all labels are ±1 and have no noise, else NaN
    label_variance : Var y on the test set, label noise included
    """

    value: float
    misclassification: float
    label_variance: float


def sampled_risk(
    trial: Trial, models: Mapping[Key, Predicts], count: int
) -> dict[Key, SampledRisk]:
    """The errors of each model over the same `count` test samples.

    The noise of labels and of equivalent models is added exactly instead of sampled. Cost:
    2·count·k·n operations shared by all models with the same weights; memory one block.
    """
    squares, wrong = dict.fromkeys(models, 0.0), dict.fromkeys(models, 0.0)
    noise, labels = trial.label_noise_variance, []
    for batch in trial.test_batches(count):
        inputs = Inputs(batch, pool=trial.draw.pool)
        labels.append(np.asarray(host(batch.y)))
        signs = noise == 0 and bool(np.all(np.abs(labels[-1]) == 1))
        for name, model in models.items():
            prediction, extra = model.predict(inputs)
            error = batch.y - prediction
            squares[name] += float(error @ error)
            if isinstance(extra, float):
                squares[name] += extra * len(batch)
            else:
                squares[name] += float(namespace(extra).sum(extra))
            wrong[name] += _wrong_signs(batch.y, prediction, extra) if signs else math.nan
    y = np.concatenate(labels)
    return {
        name: SampledRisk(
            squares[name] / len(y) + noise, wrong[name] / len(y), float(np.var(y)) + noise
        )
        for name in models
    }


def _wrong_signs(y: Array, prediction: Array, variance: Array | float) -> float:
    """Σ P(y·f < 0) with f ~ N(prediction, variance); a prediction of 0 is half wrong."""
    margin = np.asarray(host(y * prediction))
    spread = np.sqrt(variance if isinstance(variance, float) else np.asarray(host(variance)))
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(spread > 0, ndtr(-margin / spread), 0.5 - 0.5 * np.sign(margin))
    return float(chance.sum())
