"""The exact test error of any model that is linear in known features."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import host
from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import Activation, hermite_activation
from onegrad.gaussian.pair_moments import IDENTITY
from onegrad.gaussian.polynomials import power_to_hermite
from onegrad.models.base import Fitted, LinearInFeatures, NetworkFeatures
from onegrad.models.conditional_gaussian import ConditionalFeatures
from onegrad.models.hermite import HermiteFeatures
from onegrad.models.linear import LinearFeatures
from onegrad.models.spiked import SpikedFeatures
from onegrad.network.trial import Trial
from onegrad.risk.component import Neurons, Single
from onegrad.risk.exact import ExactRisk, Predictor, predictor_risk


def exact_risk(trial: Trial, fitted: Fitted, dtype: np.dtype | None = None) -> ExactRisk:
    """E(y − f(x))² of a fitted model of this trial, without a test set (`predictor_risk`).

    For isotropic data and mixtures, every activation and label, and every model but the kernel.
    Raises AssumptionError where it does not apply and ConvergenceError where it is not accurate
    to 0.1 %: sample the risk then.
    """
    return predictor_risk(trial, describe(trial, fitted), dtype)


def describe(trial: Trial, fitted: Fitted) -> Predictor:
    """The predictor as functions of projections of x."""
    if not isinstance(fitted, LinearInFeatures):
        raise AssumptionError(
            "the exact risk is known for models that are linear in their features; for the kernel "
            "model use a test set"
        )
    features, a = fitted.features, host(fitted.readout.coefficients)
    activation = trial.problem.activation
    if isinstance(features, NetworkFeatures):
        return Predictor(Neurons(activation, features.weights, a))
    if isinstance(features, HermiteFeatures):
        polynomial = hermite_activation(*(float(c) for c in features.coefficients))
        neurons = Neurons(polynomial, features.weights, a, features.scale)
        return Predictor(neurons, noise=features.remainder**2 * float(a @ a))
    if isinstance(features, ConditionalFeatures):
        _check_slope(features.activation, float(np.median(host(features.scales))))
        # its noise has exactly the variance that its mean lacks of σ's
        basis = host(features.basis)
        return Predictor(Neurons(features.activation, features.weights, a, basis=basis))
    if isinstance(features, SpikedFeatures):
        j = np.arange(len(features.factors))
        powers = features.factors * (host(trial.readout)[:, None] ** j).T.dot(a)
        powers[0] = 0.0
        learned = hermite_activation(*(powers @ power_to_hermite(len(powers) - 1)).tolist())
        single = Single(learned, host(features.learned), 1.0)
        return Predictor(Neurons(activation, trial.weights, a), (single,))
    if isinstance(features, LinearFeatures):
        return Predictor(singles=(Single(IDENTITY, a[1:], 1.0),), constant=float(a[0]))
    raise AssumptionError(
        f"no exact risk is known for {type(features).__name__}; use a sampled test set"
    )


def _check_slope(activation: Activation, scale: float) -> None:
    """The conditional model takes E σ' from the derivative as given; the series takes E σZ."""
    given = scale * float(activation.smoothed(0.0, scale).slope)
    true = float(activation.projections(1, scale)[1])
    if abs(given - true) > 1e-6 * (1 + abs(true)):
        raise AssumptionError(
            f"the derivative of {activation.name} is not that of its values: E σ'(bZ)·b is "
            f"{given:.4g}, E σ(bZ)Z is {true:.4g}. A function with jumps has no conditional "
            "Gaussian model of exact risk; use a sampled test set"
        )
