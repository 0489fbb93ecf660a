"""Singular values of weights and features before and after the step, against their limits.

Isotropic data after one step have closed forms; all other problems are those of
spectrum/structured.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.errors import AssumptionError, verb
from onegrad.problem import Problem, as_problem, degree_rule
from onegrad.simulate.memory import check_memory
from onegrad.simulate.network.trial import Trial
from onegrad.spec.presets import Spec
from onegrad.spectrum.structured import StructuredSpectrum, structured_spectrum
from onegrad.text.display import html_table, plots, text_table
from onegrad.theory.isotropic.bulk import Bulk, feature_bulk, weight_bulk
from onegrad.theory.isotropic.closed_form import check_exponent
from onegrad.theory.isotropic.measured import (
    MeasuredSpectrum,
    all_singular_values,
    leading_singular,
    measure_features,
    measure_weights,
    polynomial_distance,
    polynomial_features,
    projections,
)
from onegrad.theory.isotropic.outliers import (
    FeatureSpikes,
    WeightSpike,
    norm_outlier,
    predict_feature_spikes,
    step_edge_margin,
    weight_edge_margin,
    weight_spike,
)
from onegrad.theory.isotropic.setting import IsotropicSetting
from onegrad.theory.spectral.structured import StructuredLimit, structured_limit

_COLUMNS = ("matrix", "bulk edge", "spikes", "largest singular values", "spikes in the limit")
_FULL = 3000  # up to this many rows or columns all singular values are computed, for histograms


@dataclass(frozen=True)
class SpectrumReport:
    """One draw of the trained network beside what the limit says about it.

    `degree` is ℓ of the degree rule at β = 2α, the same that `Problem.degree` has where α is given.
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

    def __repr__(self) -> str:
        return f"Spectrum after the step, degree ℓ = {self.degree}\n" + text_table(
            _COLUMNS, self._lines()
        )

    def _repr_html_(self) -> str:
        title = f"Spectrum after the step, degree ℓ = {self.degree}"
        return html_table(title, _COLUMNS, self._lines())

    def _lines(self) -> list[list[str]]:
        spike = self.weight_spike
        limits = [spike.singular_value] if spike.present else []
        return [
            _line("weights", self.weights, limits),
            _line("features", self.features, self.feature_spikes.singular_values),
        ]

    def plot(self, which: str = "features", ax: Any = None) -> Any:
        """Singular values of the draw, the limiting density, spikes found and predicted.

        which : "features" (one panel) or "weights" (before and after the step, two)
        Returns the matplotlib axes, one or an array of two.
        """
        return plots().plot_spectrum(self, which, ax)

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


Report = SpectrumReport | StructuredSpectrum


@dataclass(frozen=True)
class LimitingSpectrum:
    """What the limit says by itself: bulks of weights and features, and their spikes."""

    degree: int
    weight_spike: WeightSpike
    weight_bulk: Bulk
    feature_spikes: FeatureSpikes
    feature_bulk: Bulk
    norm_outlier: float | None

    def __repr__(self) -> str:
        edges = (
            f"{math.sqrt(self.weight_bulk.edge):.3f}",
            f"{math.sqrt(self.feature_bulk.edge):.3f}",
        )
        spikes = ", ".join(f"{v:.3f}" for v in self.feature_spikes.singular_values) or "none"
        return (
            f"Limiting spectrum, degree ℓ = {self.degree}: bulk edges {edges[0]} (weights) and "
            f"{edges[1]} (features), spikes of the features {spikes}"
        )


@verb
def limiting_spectrum(problem: Problem | Spec) -> LimitingSpectrum | StructuredLimit:
    """The limiting laws alone; nothing is drawn.

    Closed forms for one step on isotropic data in the isotropic convention, some hundredths of a
    second; else types of neurons and nodes of the data, about a second, up to half a minute after
    a step on a bulk that is not flat. Raises AssumptionError where no limit is known: several steps
    on such a bulk, other optimisers, images.
    """
    problem = as_problem(problem)
    setting = _setting(problem)
    return structured_limit(problem) if setting is None else _limit(setting)


def closed_form_limit(problem: Problem) -> LimitingSpectrum | None:
    """The limits of one step on isotropic data, in closed form; None for other problems."""
    setting = _setting(problem)
    return None if setting is None else _limit(setting)


def _limit(setting: IsotropicSetting) -> LimitingSpectrum:
    features = setting.features
    return LimitingSpectrum(
        degree_rule(2 * setting.exponent),
        weight_spike(setting),
        weight_bulk(setting.psi),
        predict_feature_spikes(setting),
        feature_bulk(features.c1, features.rest, setting.phi, setting.psi),
        norm_outlier(setting),
    )


@verb
def spectrum(problem: Problem | Spec, seed: int = 0) -> Report:
    """Draw W and F of one repetition and compare them with the limiting laws, for every problem.

    One step on isotropic data in the isotropic convention gives a SpectrumReport with closed
    forms, all others a StructuredSpectrum; where no limit is known, the draw alone.

    Cost: the step and F (O(kmn)), all singular values up to 3000 rows or columns (O(km·min(k, m))),
    beyond that the leading ten by Lanczos iterations (O(km) each).
    """
    problem = as_problem(problem)
    check_memory(problem)
    setting = _setting(problem)
    if setting is None:
        return structured_spectrum(problem, seed)
    limit = _limit(setting)
    degree = limit.degree

    trial = Trial(problem, Streams(seed, 0))
    x = trial.train.batch.x
    before = problem.activation(trial.train.preactivation(trial.weights))
    after = problem.activation(trial.train.preactivation(trial.updated_weights))
    learned = trial.step_batch.x.T @ trial.step_error / problem.step_samples
    u, _, vt = leading_singular(trial.updated_weights, 1)
    c = problem.activation.coefficients(degree + 1)
    moved = c[1] * problem.rate * (x @ learned)
    return SpectrumReport(
        degree,
        measure_weights(
            trial.updated_weights, limit.weight_bulk, edge_margin=weight_edge_margin(setting)
        ),
        limit.weight_spike,
        limit.weight_bulk,
        _cosine(u[:, 0], trial.readout),
        _cosine(vt[0], trial.instance.teacher.direction),
        measure_features(
            after, limit.feature_bulk, projections(x, learned), max(3, degree),
            edge_margin=step_edge_margin(setting),
        ),
        limit.feature_spikes,
        limit.feature_bulk,
        limit.norm_outlier,
        tuple(
            polynomial_distance(after, polynomial_features(before, moved, trial.readout, c, j))
            for j in range(degree + 2)
        ),
        (_values(trial.weights), _values(trial.updated_weights)),
        (_values(before / math.sqrt(len(x))), _values(after / math.sqrt(len(x)))),
    )  # fmt: skip


def _line(name: str, found: MeasuredSpectrum, limits: Iterable[float]) -> list[str]:
    values = found.singular_values[: max(found.spikes, 1)]
    return [
        name, f"{found.edge:.3f}", str(found.spikes), ", ".join(f"{v:.3f}" for v in values),
        ", ".join(f"{v:.3f}" for v in limits) or "none",
    ]  # fmt: skip


def _setting(problem: Problem) -> IsotropicSetting | None:
    """Of the closed forms; None where they do not hold."""
    if not problem.one_step or problem.rate <= 0:
        return None
    try:
        setting = IsotropicSetting.of(problem)
        check_exponent(setting.exponent)
    except AssumptionError:
        return None
    return setting


def _cosine(u: Array, v: Array) -> float:
    return float(abs(u @ v) / (np.linalg.norm(u) * np.linalg.norm(v)))


def _values(matrix: Array) -> Array:
    if max(matrix.shape) > _FULL:
        return np.zeros(0)
    return all_singular_values(matrix)
