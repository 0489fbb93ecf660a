"""Exact gradient steps on the first layer."""

from __future__ import annotations

from onegrad.compute.backend import Array, multiplied, namespace, pieces, product
from onegrad.data.population import Batch
from onegrad.gaussian.activation import Activation
from onegrad.problem import Problem
from onegrad.simulate.network.optimisers import OPTIMISERS, State
from onegrad.spec.tables import DAMPING


def residual(activation: Activation, preactivation: Array, readout: Array, y: Array) -> Array:
    """y − f₀, with the initial output f₀ = σ(XWᵀ)a."""
    error = namespace(y).asarray(y, copy=True)
    for rows in pieces(preactivation):
        error[rows] -= activation(preactivation[rows]) @ readout
    return error


def slopes_and_error(
    activation: Activation,
    preactivation: Array,
    readout: Array,
    y: Array,
    factor: float,
    labels_only: bool,
    out: Array,
) -> Array:
    """Writes S = (factor/m)·error aᵀ ⊙ σ'(XWᵀ) to `out` (m × k) and returns the error (m, or m × K
    with a readout of k × K).

    `preactivation` is XWᵀ (m × k), read once; `out` may be the same array. The error is y − f₀ for
    the exact gradient, y itself for the idealisation without the initial output. With factor η,
    SᵀX = η·G where G = −∂/∂W [1/(2m)·‖y − σ(XWᵀ)a‖²] = (1/m)·(error aᵀ ⊙ σ'(XWᵀ))ᵀX  (k × n), and
    the step is Ŵ = W + η·G  [demir2025, eq. 5]: a product of 2kmn operations beside that of XWᵀ.
    """
    m = y.shape[0]
    error = namespace(y).asarray(y, copy=True)
    for rows in pieces(preactivation):
        if labels_only:
            slopes = activation.slope(preactivation[rows])
        else:
            values, slopes = activation.value_and_slope(preactivation[rows])
            error[rows] -= values @ readout
        # not in place: a derivative may return its own argument
        if readout.ndim == 2:  # K outputs: the sum over them
            out[rows] = slopes * (factor / m * error[rows] @ readout.T)
            continue
        part = multiplied(slopes, (factor / m * error[rows])[:, None], out[rows])
        part *= readout
    return error


class Steps:
    """The steps of a problem's training, one after the other, with the optimiser's memory."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._optimiser = OPTIMISERS[problem.training.optimiser]
        self._state = State(problem.width, problem.dim, problem.training.damping or DAMPING)

    def next(self, batch: Batch) -> float:
        """Begin the next step, on these samples; what its slopes are to be multiplied by."""
        state = self._state
        state.rate, state.inputs = self._problem.rates[state.number], batch.x
        state.number += 1
        return self._optimiser.factor(state)

    def change(self, gradient: Array) -> Array:
        """What the step adds to the weights, from SᵀX of `slopes_and_error`; may overwrite it."""
        return self._optimiser.update(gradient, self._state)

    def move(self, weights: Array, readout: Array, batch: Batch) -> None:
        """One more step, in place: the gradient at these weights, through their own output
        (eq. gradient-step)."""
        slopes = product(batch.x, weights.T)
        slopes_and_error(
            self._problem.activation, slopes, readout, batch.y, self.next(batch),
            self._problem.training.gradient == "labels-only",
            out=slopes,
        )  # fmt: skip
        weights += self.change(product(slopes.T, batch.x))
