"""Muon without momentum: W + η·UVᵀ with G = USVᵀ, the gradient orthogonalised."""

from __future__ import annotations

from onegrad.compute.backend import Array, namespace
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State, times_width


def update(gradient: Array, state: State) -> Array:
    """η·UVᵀ over the singular values that are not rounding: O(kn·min(k, n))  [jordan2024]."""
    xp = namespace(gradient)
    left, values, right = xp.linalg.svd(gradient, full_matrices=False)
    largest = float(values[0]) if values.shape[0] else 0.0
    least = largest * max(gradient.shape) * float(xp.finfo(gradient.dtype).eps)
    kept = xp.astype(values > least, gradient.dtype)
    change: Array = (left * kept) @ right
    change *= state.rate
    return change


OPTIMISER = Optimiser(times_width, update, worked=3)
