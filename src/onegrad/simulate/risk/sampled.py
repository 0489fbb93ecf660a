"""Test error on a sampled test set: squared errors, the readout's own loss, signs, calibration."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import expit, ndtr, ndtri

from onegrad.compute.backend import Array, host, namespace
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Inputs, Trial

Key = TypeVar("Key", bound=Hashable)

BINS = 10  # bins of the calibration error, of equal width
_LEVELS = 16  # noise levels at which an equivalent model's calibration is computed
FEWEST = 4000  # test samples of losses other than the squared one


class Predicts(Protocol):
    """Mean prediction of each sample, and the variance of the model's own noise there."""

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]: ...


@dataclass(frozen=True)
class SampledRisk:
    """The errors of one model on a test set.

    value : E(y − f(x))²
    misclassification : P(sign f(x) ≠ y) where all labels are ±1 and have no noise but flips, else
        NaN
    label_variance : Var y on the test set, label noise included
    test_loss : mean of the readout's own loss
    loss_slope : regression slope of that loss on the squared error over samples
    calibration : expected calibration error of 1/(1 + e^{−f}) for the logistic loss, else NaN
    """

    value: float
    misclassification: float
    label_variance: float
    test_loss: float
    loss_slope: float = 0.0
    calibration: float = math.nan

    def loss_given(self, exact: float) -> float:
        """The mean loss with the squared error, whose mean is known, as a control variate."""
        return self.test_loss + self.loss_slope * (exact - self.value)


def samples_worth(trial: Trial) -> int:
    """How many test samples misclassification and loss are worth, where the squared error is known:
    those of the readout, and more for losses whose mean has to be sampled."""
    count = trial.problem.samples
    return count if trial.problem.loss.name == "squared" else max(count, FEWEST)


def sampled_risk(
    trial: Trial, models: Mapping[Key, Predicts], count: int
) -> dict[Key, SampledRisk]:
    """The errors of each model over the same `count` test samples.

    The noise of labels and of equivalent models is added exactly instead of sampled. Cost:
    2·count·k·n operations shared by all models with the same weights; memory one block.
    """
    squares, wrong = dict.fromkeys(models, 0.0), dict.fromkeys(models, 0.0)
    noise, labels = trial.label_noise_variance, []
    flip, kept = trial.problem.label_flip, trial.problem.label_kept
    others = {name: _LossSample(trial.problem, noise) for name in models}
    for batch in trial.test_batches(count):
        inputs = Inputs(batch)
        labels.append(np.asarray(host(batch.y)))
        signs = trial.problem.label_noise == 0 and bool(np.all(np.abs(labels[-1]) == kept))
        for name, model in models.items():
            prediction, extra = model.predict(inputs)
            error = batch.y - prediction
            squares[name] += float(error @ error)
            if isinstance(extra, float):
                squares[name] += extra * len(batch)
            else:
                squares[name] += float(namespace(extra).sum(extra))
            if signs:
                chance = _wrong_signs(batch.y, prediction, extra)
                wrong[name] += flip * len(batch) + kept * chance
            else:
                wrong[name] = math.nan
            others[name].add(labels[-1], prediction, extra)
    y = np.concatenate(labels)
    return {
        name: _risk(squares[name] / len(y) + noise, wrong[name] / len(y), y, others[name])
        for name in models
    }


def _risk(value: float, wrong: float, y: Array, others: _LossSample) -> SampledRisk:
    variance = float(np.var(y)) + others.noise
    if others.loss.name == "squared":
        return SampledRisk(value, wrong, variance, value, 1.0)
    return SampledRisk(value, wrong, variance, *others.result())


class _LossSample:
    """The readout's own loss sample by sample, and what calibration needs; not of squared loss."""

    def __init__(self, problem: Problem, noise: float) -> None:
        self.loss, self.noise = problem.loss, noise
        self._signs = problem.loss.signs or problem.labels_binary
        self._parts: list[tuple[Array, Array]] = []
        self._bins = np.zeros((2, BINS))  # Σ of predicted chances and of labels +1
        self._count = 0

    def add(self, y: Array, prediction: Array, extra: Array | float) -> None:
        """Mean labels y (m), mean predictions and their variance."""
        if self.loss.name == "squared":
            return
        f = np.asarray(host(prediction), float)
        variance = np.broadcast_to(
            extra if isinstance(extra, float) else np.asarray(host(extra), float), f.shape
        )
        if self._signs:
            plus = 0.5 * (1 + y)
            ones = np.ones_like(f)
            loss = plus * self.loss.expected(ones, f, variance)
            loss += (1 - plus) * self.loss.expected(-ones, f, variance)
        else:
            loss = self.loss.expected(y, f, variance + self.noise)
        self._parts.append((loss, (y - f) ** 2 + variance))
        self._count += len(f)
        if self.loss.name == "logistic":
            levels = (
                ndtri((np.arange(_LEVELS) + 0.5) / _LEVELS) if np.any(variance) else np.zeros(1)
            )
            chance = expit(f[:, None] + np.sqrt(variance)[:, None] * levels)
            place = np.minimum((BINS * chance).astype(int), BINS - 1).ravel()
            labels = np.repeat(plus, len(levels)) / len(levels)
            self._bins[0] += np.bincount(place, chance.ravel() / len(levels), BINS)
            self._bins[1] += np.bincount(place, labels, BINS)

    def result(self) -> tuple[float, float, float]:
        """Mean loss, its slope on the squared error, calibration."""
        loss, square = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        error = math.nan
        if self.loss.name == "logistic":
            error = float(np.abs(self._bins[0] - self._bins[1]).sum()) / self._count
        return float(loss.mean()), slope_on(loss, square), error


def slope_on(loss: Array, square: Array) -> float:
    """The slope of losses on squared errors, sample by sample: the best factor of the squared error
    as a control variate of the loss."""
    spread = float(np.var(square))
    return float(np.mean((loss - loss.mean()) * square)) / spread if spread > 0 else 0.0


def _wrong_signs(y: Array, prediction: Array, variance: Array | float) -> float:
    """Σ P(y·f < 0) with f ~ N(prediction, variance); a prediction of 0 is half wrong."""
    margin = np.asarray(host(namespace(y).sign(y) * prediction))
    spread = np.sqrt(variance if isinstance(variance, float) else np.asarray(host(variance)))
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(spread > 0, ndtr(-margin / spread), 0.5 - 0.5 * np.sign(margin))
    return float(chance.sum())


# --- several outputs, one for each class ---------------------------------------------------


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
