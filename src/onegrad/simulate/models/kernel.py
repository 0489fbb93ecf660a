"""The infinite-width baseline: a readout with the activation's kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array, host, namespace
from onegrad.errors import AssumptionError
from onegrad.gaussian.pair_moments import pair_moments
from onegrad.simulate.models.base import Fitted, Mark, Model
from onegrad.simulate.network.convex import fit_kernel_readout
from onegrad.simulate.network.readout import Readout
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.exact import Predictor


@dataclass(frozen=True)
class KernelModel:
    """f(x) = Σ_s α_s·k·E_w σ(wᵀx)σ(wᵀx_s), w ~ N(0, weight_variance·I)."""

    trial: Trial
    readout: Readout

    def at_ridge(self, ridge: float) -> Fitted:
        return _fit(self.trial, ridge)

    def predict(self, inputs: Inputs) -> tuple[Array, float]:
        gram = _kernel(self.trial, inputs.batch.x, self.trial.train.batch.x)
        return gram @ self.readout.coefficients, 0.0

    def predictor(self, trial: Trial, output: int = 0) -> Predictor:
        raise AssumptionError(
            "the exact risk is known for models that are linear in their features; for the kernel "
            "model use a test set"
        )


def _kernel(trial: Trial, left: Array, right: Array) -> Array:
    """k·E_w σ(wᵀx)σ(wᵀx'): what ΦΦᵀ of k random features concentrates on.

    Computed by NumPy in double precision whatever the device: the moments need more than the
    standard has.
    """
    variance = trial.problem.weight_variance
    same = left is right
    left = host(left)
    right = left if same else host(right)
    covariance = left @ right.T
    covariance *= variance
    q = variance * np.einsum("ij,ij->i", left, left)
    p = q if same else variance * np.einsum("ij,ij->i", right, right)
    gram = pair_moments(trial.problem.activation, q, p, covariance)
    gram *= trial.problem.width
    moved: Array = trial.draw.backend.double.move(gram)
    return moved


def fit_kernel(trial: Trial) -> Fitted:
    """The network of infinite width without a step, at the same λ_eff per neuron."""
    return _fit(trial, trial.problem.effective_ridge)


def _fit(trial: Trial, ridge: float) -> Fitted:
    x, y = trial.train.batch.x, trial.train.batch.y
    gram = _kernel(trial, x, x)
    y = namespace(y).astype(y, gram.dtype, copy=False)
    return KernelModel(trial, fit_kernel_readout(gram, y, ridge, trial.problem.readout_loss))


MODEL = Model(
    "kernel",
    "baseline: infinite width",
    Mark("*", size=9.0),
    fit=fit_kernel,
    cites=("cho2009", "williams1998"),
    sampled=True,
    products="none",
    memory=lambda problem: 5 * problem.samples**2,
)
