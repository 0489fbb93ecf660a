"""Gradient descent: W + (η/k)·G."""

from __future__ import annotations

from onegrad.compute.backend import Array
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State, times_rate


def update(gradient: Array, state: State) -> Array:
    """(η/k)·G as it is."""
    return gradient


OPTIMISER = Optimiser(times_rate, update)
