"""K-FAC of the first layer: W + (η/k)·G·(X̃ᵀX̃/m̃ + δI)⁻¹."""

from __future__ import annotations

from onegrad.compute.backend import Array, namespace
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State, times_rate


def update(gradient: Array, state: State) -> Array:
    """The gradient in the metric of the step's own inputs: O(n²(m̃ + n + k))  [martens2015].

    The factor of the outputs' gradients is left out: for one output and a fixed readout it is
    diagonal in the limit of independent neurons, and belongs to the rate.
    """
    xp, x = namespace(gradient), state.inputs
    metric = x.T @ x
    metric /= x.shape[0]
    metric += state.damping * xp.eye(state.dim, dtype=metric.dtype, device=metric.device)
    change: Array = xp.linalg.solve(metric, gradient.T).T
    return change


OPTIMISER = Optimiser(times_rate, update, worked=2)
