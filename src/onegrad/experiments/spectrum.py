"""Singular values of weights and features before and after the step, against their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import SingleIndex
from onegrad.errors import AssumptionError
from onegrad.hermite import Array
from onegrad.network.trial import Trial
from onegrad.problem import Problem
from onegrad.randomness import Streams
from onegrad.theory.bulk import Bulk, feature_bulk, weight_bulk
from onegrad.theory.isotropic import features_of, link_of, regime_of
from onegrad.theory.measured_spectrum import (
    MeasuredSpectrum,
    all_singular_values,
    leading_singular,
    measure_features,
    measure_weights,
    polynomial_distance,
)
from onegrad.theory.spectrum import (
    FeatureSpikes,
    WeightSpike,
    norm_outlier,
    predict_feature_spikes,
    step_leak,
    weight_leak,
    weight_spike,
)

_FULL = 3000  # up to this many rows or columns all singular values are computed, for histograms


@dataclass(frozen=True)
class SpectrumReport:
    """One draw of the trained network beside what the limit says about it.

    `distances[j]` is ‖F − F_j‖/√m for j = 0…ℓ+1 spikes kept. `norm_outlier` is a singular value
    of the untrained features that the fluctuating norms of x and w push out of the bulk; it was
    not learned. Histograms are empty for matrices with more than 3000 rows and columns.
    """

    degree: int
    weights: MeasuredSpectrum
    weight_spike: WeightSpike
    weight_bulk: Bulk
    readout_cosine: float
    teacher_cosine: float
    features: MeasuredSpectrum
    feature_spikes: FeatureSpikes
    feature_bulk: Bulk
    norm_outlier: float | None
    distances: tuple[float, ...]
    weight_values: tuple[Array, Array]  # before, after
    feature_values: tuple[Array, Array]

    def as_json(self) -> dict[str, Any]:
        return {
            "degree": self.degree,
            "weights": {
                "edge": self.weights.edge,
                "spikes": self.weights.spikes,
                "leading": self.weights.singular_values.tolist(),
                "predicted": self.weight_spike.singular_value
                if self.weight_spike.present
                else None,
                "readout_cosine": self.readout_cosine,
                "teacher_cosine": self.teacher_cosine,
            },
            "features": {
                "edge": self.features.edge,
                "threshold": self.features.threshold,
                "spikes": self.features.spikes,
                "leading": self.features.singular_values.tolist(),
                "predicted": self.feature_spikes.singular_values.tolist(),
                "power_cosines": self.features.power_cosines.tolist(),
                "hermite_cosines": self.features.hermite_cosines.tolist(),
                "distances": list(self.distances),
            },
        }


@dataclass(frozen=True)
class LimitingSpectrum:
    """What the limit says by itself: bulks of weights and features, and their spikes."""

    degree: int
    weight_spike: WeightSpike
    weight_bulk: Bulk
    feature_spikes: FeatureSpikes
    feature_bulk: Bulk
    norm_outlier: float | None


def limiting_spectrum(problem: Problem) -> LimitingSpectrum:
    """The limiting laws alone; nothing is drawn. Some hundredths of a second."""
    _check(problem)
    assert isinstance(problem.labels, SingleIndex)
    link, activation = problem.labels.links[0], problem.network.activation
    exponent = problem.scaling.exponent
    if exponent is None:
        exponent = math.log(max(problem.rate, 1e-12)) / math.log(problem.samples)
    features = features_of(activation)
    phi, psi = problem.dim / problem.samples, problem.dim / problem.width
    sizes, step = _sizes(problem), _step(problem)
    return LimitingSpectrum(
        regime_of(exponent),
        weight_spike(features, link_of(link), psi=psi, step_phi=problem.dim / problem.step_samples,
                     **step),
        weight_bulk(psi),
        predict_feature_spikes(activation, link, **sizes, **step,
                               step_samples=problem.step_samples),
        feature_bulk(features.c1, features.rest, phi, psi),
        norm_outlier(features, phi, psi),
    )  # fmt: skip


def spectrum_report(problem: Problem, seed: int = 0) -> SpectrumReport:
    """Draw W and F of one repetition and compare them with the limiting laws.

    Cost: the step and F (O(kmn)), all singular values up to 3000 rows or columns (O(km·min(k, m))),
    beyond that the leading ten by Lanczos iterations (O(km) each).
    """
    limit = limiting_spectrum(problem)
    assert isinstance(problem.labels, SingleIndex)
    link, activation = problem.labels.links[0], problem.network.activation
    sizes, step = _sizes(problem), _step(problem)
    degree, bulk, bulk_w = limit.degree, limit.feature_bulk, limit.weight_bulk

    trial = Trial(problem, Streams(seed, 0))
    x = trial.train.batch.x
    before = problem.activation(trial.train.preactivation(trial.weights))
    after = problem.activation(trial.train.preactivation(trial.updated_weights))
    learned = trial.step_batch.x.T @ trial.step_error / problem.step_samples
    measured = measure_features(
        after, bulk, inputs=x, direction=learned, degree=max(3, degree),
        leak=step_leak(activation, link, **sizes, **step, step_samples=problem.step_samples),
    )  # fmt: skip
    leak_w = weight_leak(
        activation, link, dim=problem.dim, width=problem.width,
        step_phi=problem.dim / problem.step_samples, **step,
    )  # fmt: skip
    u, _, vt = leading_singular(trial.updated_weights, 1)
    teacher = trial.world.teacher.direction
    coefficients = problem.activation.coefficients(degree + 1)
    distances = tuple(
        polynomial_distance(after, before, x, learned, trial.readout, coefficients, problem.rate, j)
        for j in range(degree + 2)
    )
    return SpectrumReport(
        degree,
        measure_weights(trial.updated_weights, bulk_w, leak=leak_w),
        limit.weight_spike,
        bulk_w,
        _cosine(u[:, 0], trial.readout),
        _cosine(vt[0], teacher),
        measured,
        limit.feature_spikes,
        bulk,
        limit.norm_outlier,
        distances,
        (_values(trial.weights), _values(trial.updated_weights)),
        (_values(before / math.sqrt(len(x))), _values(after / math.sqrt(len(x)))),
    )


def _sizes(problem: Problem) -> dict[str, Any]:
    return {"dim": problem.dim, "width": problem.width, "samples": problem.samples}


def _step(problem: Problem) -> dict[str, Any]:
    assert isinstance(problem.labels, SingleIndex)
    return {
        "rate": problem.rate,
        "noise_variance": problem.labels.noise**2,
        "gradient": problem.training.gradient,
    }


def _check(problem: Problem) -> None:
    wanted = (
        isinstance(problem.data, Isotropic)
        and problem.network.convention == "isotropic"
        and isinstance(problem.labels, SingleIndex)
    )
    if not wanted:
        raise AssumptionError(
            'the limiting spectra are known for data.model = "isotropic" with convention = '
            '"isotropic" and single-index labels; `onegrad degree` measures the terms of any'
        )
    if problem.rate <= 0:
        raise AssumptionError(
            "there is no step to look at: give scaling.exponent, or training.rate above 0"
        )


def _cosine(u: Array, v: Array) -> float:
    return float(abs(u @ v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def _values(matrix: Array) -> Array:
    if max(matrix.shape) > _FULL:
        return np.zeros(0)
    return all_singular_values(matrix)
