"""Sign descent: W + η·sign(G)/√n."""

from __future__ import annotations

import math

from onegrad.compute.backend import Array, namespace
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State, times_width


def update(gradient: Array, state: State) -> Array:
    """Every entry moves by η/√n: a row of W by η."""
    change: Array = namespace(gradient).sign(gradient)
    change *= state.rate / math.sqrt(state.dim)
    return change


OPTIMISER = Optimiser(times_width, update, worked=1)
