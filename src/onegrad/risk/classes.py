"""Test error of networks with several outputs, one for each class, on a sampled test set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.network.trial import Inputs, Trial
from onegrad.risk.sampled import Key, Predicts, SampledRisk


def class_risk(trial: Trial, models: Mapping[Key, Predicts], count: int) -> dict[Key, SampledRisk]:
    """Squared errors summed over outputs, and how often the largest output is the wrong one.

    A model's own noise is added exactly to the squared errors; for the class one draw of it is
    made for each test sample, with the covariance that it has between the outputs.
    """
    squares, wrong = dict.fromkeys(models, 0.0), dict.fromkeys(models, 0.0)
    noise, labels = trial.problem.outputs * trial.label_noise_variance, []
    rng = trial.streams.rng("class-noise")
    for batch in trial.test_batches(count):
        inputs, y = Inputs(batch, pool=trial.draw.pool), np.asarray(host(batch.y))
        labels.append(y)
        drawn = rng.standard_normal(y.shape)
        for name, model in models.items():
            found, extra = model.predict(inputs)
            prediction = np.asarray(host(found), float)
            covariance = np.asarray(host(extra) if not isinstance(extra, float) else 0.0, float)
            squares[name] += float(np.sum((y - prediction) ** 2))
            if covariance.ndim:
                each = np.trace(covariance, axis1=-2, axis2=-1)
                squares[name] += float(np.sum(np.broadcast_to(each, len(y))))
                prediction = prediction + _correlated(covariance, drawn)
            wrong[name] += float(np.sum(prediction.argmax(axis=1) != y.argmax(axis=1)))
    y = np.concatenate(labels)
    power = float(np.sum(np.var(y, axis=0))) + noise
    return {
        name: SampledRisk(value, wrong[name] / len(y), power, value, loss_slope=1.0)
        for name, value in ((name, square / len(y) + noise) for name, square in squares.items())
    }


def _correlated(covariance: Array, z: Array) -> Array:
    """Gaussians of these covariances, (K, K) or (m, K, K), from standard ones (m, K)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(np.einsum("...ij,...j->...i", root, z))
