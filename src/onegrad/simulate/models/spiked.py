"""The spiked model: untouched features plus ℓ rank-one terms that the step has written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import hermite_activation
from onegrad.gaussian.polynomials import power_to_hermite
from onegrad.simulate.models.base import Fitted, Mark, Model, fit_features
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.component import Neurons, Single
from onegrad.simulate.risk.exact import Predictor


@dataclass(frozen=True)
class SpikedFeatures:
    """F_ℓ = F₀ + Σ_{j≤ℓ} c₁^j c_j η^j (Xβ)^j (a^j)ᵀ  [moniri2024, Thm. on the spectrum].

    F₀ = σ(XW₀ᵀ), c_j = E[σ(Z)H_j(Z)]/j!, β = X̃ᵀe/m̃ from the step's own samples, e the residual
    that drove the step; powers are entry by entry.
    """

    trial: Trial
    learned: Array
    factors: Array

    @classmethod
    def of(cls, trial: Trial, degree: int) -> SpikedFeatures:
        batch = trial.step_batch
        c = trial.problem.activation.coefficients(degree)
        j = np.arange(degree + 1)
        factors = (c[1] * trial.problem.rate) ** j * c if degree else np.zeros(1)
        return cls(trial, batch.x.T @ trial.step_error / len(batch), factors)

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        trial = self.trial
        features = trial.problem.activation(inputs.preactivation(trial.weights))
        projection = inputs.batch.x @ self.learned
        for j, factor in enumerate(self.factors[1:], start=1):
            features += (float(factor) * projection**j)[:, None] * trial.readout**j
        return features, 0.0

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        j = np.arange(len(self.factors))
        powers = self.factors * (host(trial.readout)[:, None] ** j).T.dot(a)
        powers[0] = 0.0
        learned = hermite_activation(*(powers @ power_to_hermite(len(powers) - 1)).tolist())
        single = Single(learned, host(self.learned), 1.0)
        return Predictor(Neurons(trial.problem.activation, trial.weights, a), (single,))


def fit_spiked(trial: Trial) -> Fitted:
    """For isotropic data only: with spikes of its own the data have other learned directions."""
    if not trial.problem.data.isotropic:
        raise AssumptionError(
            'the spiked model assumes data.model = "isotropic" without a spectrum; for other data '
            'use "hermite" or "conditional-gaussian"'
        )
    if not trial.problem.one_step:
        raise AssumptionError(
            "the spiked model is that of one step of gradient descent: use training.steps = 1 and "
            'optimiser = "gd", or leave it out of compare.models'
        )
    return fit_features(trial, SpikedFeatures.of(trial, trial.degree))


MODEL = Model(
    "spiked",
    "untouched features plus ℓ rank-one polynomial spikes (isotropic data)",
    Mark("D", size=7.0),
    fit=fit_spiked,
    cites=("moniri2024", "ba2022"),
    polynomial=True,
    products="initial",
    initial=True,
    version=2,  # since 0.1: the degree rule
)
