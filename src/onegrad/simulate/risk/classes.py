"""Test error of networks with several outputs, one for each class, on a sampled test set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.sampled import Key, Predicts, SampledRisk, slope_on


def class_risk(trial: Trial, models: Mapping[Key, Predicts], count: int) -> dict[Key, SampledRisk]:
    """Squared errors summed over outputs, how often the largest output is the wrong one, and the
    readout's own loss.

    A model's own noise is added exactly to the squared errors; for the class one draw of it is
    made for each test sample, with the covariance that it has between the outputs, and for the
    cross-entropy of a softmax that draw and its opposite.
    """
    found = {name: _ClassSample(trial.problem) for name in models}
    noise, labels = trial.problem.outputs * trial.label_noise_variance, []
    rng = trial.streams.rng("class-noise")
    for batch in trial.test_batches(count):
        inputs, y = Inputs(batch), np.asarray(host(batch.y))
        labels.append(y)
        drawn = rng.standard_normal(y.shape)
        for name, model in models.items():
            prediction, extra = model.predict(inputs)
            covariance = np.asarray(host(extra) if not isinstance(extra, float) else 0.0, float)
            found[name].add(y, np.asarray(host(prediction), float), covariance, drawn)
    power = float(np.sum(np.var(np.concatenate(labels), axis=0))) + noise
    return {name: sample.risk(noise, power) for name, sample in found.items()}


class _ClassSample:
    """Squared errors, wrong classes and losses of one model, sample by sample."""

    def __init__(self, problem: Problem) -> None:
        self._loss = problem.readout_loss if problem.softmax else None
        self._parts: list[tuple[Array, Array, Array]] = []

    def add(self, y: Array, mean: Array, covariance: Array, drawn: Array) -> None:
        """Labels and mean outputs (m, K), the covariance of the noise and standard Gaussians."""
        square, noise = np.sum((y - mean) ** 2, axis=1), np.zeros(1)
        if covariance.ndim:
            square = square + np.trace(covariance, axis1=-2, axis2=-1)
            noise = _correlated(covariance, drawn)
        wrong = (mean + noise).argmax(axis=1) != y.argmax(axis=1)
        loss = square
        if self._loss is not None:
            both = (self._loss.value(y, mean + noise), self._loss.value(y, mean - noise))
            loss = 0.5 * (both[0] + both[1])
        self._parts.append((square, wrong, loss))

    def risk(self, noise: float, power: float) -> SampledRisk:
        square, wrong, loss = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        value, missed = float(square.mean()) + noise, float(wrong.mean())
        if self._loss is None:
            return SampledRisk(value, missed, power, value, loss_slope=1.0)
        return SampledRisk(value, missed, power, float(loss.mean()), slope_on(loss, square))


def _correlated(covariance: Array, z: Array) -> Array:
    """Gaussians of these covariances, (K, K) or (m, K, K), from standard ones (m, K)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray(np.einsum("...ij,...j->...i", root, z))
