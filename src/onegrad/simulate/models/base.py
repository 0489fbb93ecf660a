"""What a model says about itself, and what all models are made of.

A model is one `Model` record, named MODEL, in a file of its own in this folder; `models` finds it
there. Nothing else in the package knows a model by name, except that others are compared with
the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from onegrad.compute.backend import Array, host, namespace
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.gaussian.pair_moments import IDENTITY
from onegrad.problem import Problem
from onegrad.simulate.network.convex import ConvexSolver, readout_solver
from onegrad.simulate.network.readout import Readout, RidgeSolver
from onegrad.simulate.network.trial import Inputs, Trial
from onegrad.simulate.risk.component import Neurons, Single
from onegrad.simulate.risk.exact import ExactRisk, Predictor, Risk, predictor_risks


class Fitted(Protocol):
    """A trained model. `predict` gives the mean prediction for each sample, and the variance
    that the model's own fresh noise adds to it (the remainder of a Gaussian equivalent).
    `at_ridge` is the same model with another λ_eff, at the cost of the solution alone.
    `predictor` is f, or one of its outputs, as functions of projections of x, for its exact risk;
    an AssumptionError where that is not known. With K outputs predictions are m × K, and the
    variance is the noise's covariance, (K, K) or (m, K, K)."""

    @property
    def readout(self) -> Readout: ...

    def at_ridge(self, ridge: float) -> Fitted: ...

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]: ...

    def predictor(self, trial: Trial, output: int = 0) -> Predictor: ...


Fit = Callable[[Trial], Fitted]


@dataclass(frozen=True)
class Mark:
    """How a model looks on a figure: a marker, or a line where it samples nothing."""

    marker: str = ""
    filled: bool = False
    size: float = 8.0
    line: Literal["", "-", "--", ":"] = ""


@dataclass(frozen=True)
class Model:
    """Everything that the rest of the package needs to know about a model.

    name, summary : as in specs and tables; what it is, in a line
    fit : trains it on a repetition; None for a theory
    theory : the method of `predict` behind it; None for what is simulated
    finite_size : whether a theory makes the 1/n correction if the spec asks for it
    mark : on figures and on the page
    cites : keys of references.bib
    version : version of its numbers: raise it when they change; stored rows are computed again
    polynomial : whether its numbers depend on `compare.degree`
    sampled : whether its risk always needs a test set
    products : with which weights it multiplies the inputs
    initial : whether it asks for the initial weights or the step's samples once the step is made
    noise : the stream of the m × k numbers that it draws on its own, if any
    untrained : its features at the initial weights, where control variates of its own are made of
        them
    memory : numbers that it holds while it is fitted, where that is more than features and Gram
        matrix
    variant : the record of "name:rest" from the rest, None where there is no such variant;
        `variants` names them for messages
    """

    name: str
    summary: str
    mark: Mark
    fit: Fit | None = None
    theory: str | None = None
    finite_size: bool = True
    cites: tuple[str, ...] = ()
    version: int = 1
    polynomial: bool = False
    sampled: bool = False
    products: Literal["trained", "initial", "none"] = "trained"
    initial: bool = False
    noise: str = ""
    untrained: Callable[[Trial], FeatureMap] | None = None
    memory: Callable[[Problem], int] | None = None
    variant: Callable[[str], Model | None] | None = None
    variants: str = ""


class FeatureMap(Protocol):
    """Random features given a sample: their mean (m × k) and the variance of their own noise.

    The variance is one number for all features, or m × k.
    """

    def moments(self, inputs: Inputs) -> tuple[Array, Array | float]: ...

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        """aᵀφ(x) as functions of projections of x, the features' own noise included."""
        ...


@dataclass(frozen=True)
class LinearInFeatures:
    """Models that fit a readout on a feature map: the network and its equivalent models."""

    features: FeatureMap
    readout: Readout
    solver: RidgeSolver | ConvexSolver | None = None

    def at_ridge(self, ridge: float) -> Fitted:
        if self.solver is None:  # the model chooses its own ridge
            return self
        return LinearInFeatures(self.features, self.solver.fit(ridge), self.solver)

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]:
        mean, variance = self.features.moments(inputs)
        a = namespace(mean).astype(self.readout.coefficients, mean.dtype, copy=False)
        if a.ndim == 2:
            return mean @ a, _covariance(variance, a)
        extra = variance * float(a @ a) if isinstance(variance, float) else variance @ a**2
        return mean @ a, extra

    def predictor(self, trial: Trial, output: int = 0) -> Predictor:
        a = host(self.readout.coefficients)
        return self.features.predictor(trial, a if a.ndim == 1 else a[:, output])


def _covariance(variance: Array | float, a: Array) -> Array | float:
    """Σ_i variance_i a_i a_iᵀ of K outputs: (K, K), or (m, K, K); 0.0 without noise."""
    if isinstance(variance, float):
        return variance * (a.T @ a) if variance else 0.0
    outputs = range(a.shape[1])
    rows = [[variance @ (a[:, i] * a[:, j]) for j in outputs] for i in outputs]
    xp = namespace(a)
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-1)


@dataclass(frozen=True)
class WithLinearPart:
    """A model fitted to labels without their linear part, with that part added back."""

    fitted: Fitted
    mean: float
    slope: Array

    @property
    def readout(self) -> Readout:
        return self.fitted.readout

    def at_ridge(self, ridge: float) -> Fitted:
        return WithLinearPart(self.fitted.at_ridge(ridge), self.mean, self.slope)

    def predict(self, inputs: Inputs) -> tuple[Array, Array | float]:
        mean, variance = self.fitted.predict(inputs)
        return mean + self.mean + inputs.batch.x @ self.slope, variance

    def predictor(self, trial: Trial, output: int = 0) -> Predictor:
        rest = self.fitted.predictor(trial, output)
        linear = Single(IDENTITY, host(self.slope), 1.0)
        return replace(rest, singles=(*rest.singles, linear), constant=rest.constant + self.mean)


def with_linear_part(fitted: Fitted, part: tuple[float, Array] | None) -> Fitted:
    """The model with what `Draw.linear_part` took off its labels, if anything, added back."""
    return fitted if part is None else WithLinearPart(fitted, *part)


def exact_risk(trial: Trial, fitted: Fitted, dtype: np.dtype | None = None) -> ExactRisk:
    """E(y − f(x))² of a fitted model of this trial, without a test set (`predictor_risks`).

    For isotropic data and mixtures, every activation and label, and every model but the kernel.
    Raises AssumptionError where it does not apply and ConvergenceError where it is not accurate
    to 0.1 %: sample the risk then.
    """
    (found,) = exact_risks(trial, [fitted], dtype)
    if isinstance(found, ExactRisk):
        return found
    try:
        raise found
    finally:
        del found  # the reference would keep this frame and the trial's arrays alive


def exact_risks(
    trial: Trial, models: Sequence[Fitted], dtype: np.dtype | None = None
) -> list[Risk]:
    """`exact_risk` of several models, or the error that it would raise; what models on the same
    weights have in common is computed once. Of several outputs the sum."""
    found: list[Risk] = [ExactRisk(0.0, 0.0, "") for _ in models]
    for output in range(trial.problem.outputs):
        predictors: dict[int, Predictor] = {}
        for i, fitted in enumerate(models):
            try:
                if isinstance(found[i], ExactRisk):
                    predictors[i] = fitted.predictor(trial, output)
            except (AssumptionError, ConvergenceError) as error:
                # Its frames would keep the trial's arrays alive
                found[i] = error.with_traceback(None)
        risks = predictor_risks(trial, list(predictors.values()), dtype, output)
        for i, risk in zip(predictors, risks, strict=True):
            known = found[i]
            if isinstance(risk, ExactRisk) and isinstance(known, ExactRisk):
                sums = known.value + risk.value, known.error + risk.error
                found[i] = ExactRisk(*sums, risk.method)
            else:
                found[i] = risk
    return found


def fit_features(trial: Trial, features: FeatureMap, noise: str | None = None) -> Fitted:
    """Train the readout on the features of the training set.

    Features with noise of their own are drawn, from the stream that `noise` names.
    """
    phi, variance = features.moments(trial.train)
    if noise is not None:
        trial.draw.add_noise(noise, phi, variance)
    solver = readout_solver(phi, trial.train.batch.y, trial.problem.readout_loss)
    if trial.many_ridges:
        readout = solver.fit(trial.problem.effective_ridge)
        return LinearInFeatures(features, readout, solver)
    return LinearInFeatures(features, solver.fit(trial.problem.effective_ridge, last=True))


@dataclass(frozen=True)
class NetworkFeatures:
    """σ(Wx) for given weights."""

    trial: Trial
    weights: Array

    def moments(self, inputs: Inputs) -> tuple[Array, float]:
        product, out = inputs.workspace(self.weights)
        return self.trial.problem.activation.into(product, out), 0.0

    def predictor(self, trial: Trial, a: Array) -> Predictor:
        return Predictor(Neurons(trial.problem.activation, self.weights, a))


def initial_features(trial: Trial) -> NetworkFeatures:
    """σ(W₀x)."""
    return NetworkFeatures(trial, trial.weights)
