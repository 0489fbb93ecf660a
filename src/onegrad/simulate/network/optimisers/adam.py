"""Adam with steps of η/√n, β = (0.9, 0.999), ε = 1e-8."""

from __future__ import annotations

import math

from onegrad.compute.backend import Array, namespace
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State, times_width

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


def update(gradient: Array, state: State) -> Array:
    """(η/√n)·m̂/(√v̂ + ε), m̂ and v̂ the bias-corrected running means of G and G²  [kingma2015].

    The first step is sign descent, up to ε.
    """
    xp, memory = namespace(gradient), state.memory
    if not memory:
        memory["first"], memory["second"] = xp.zeros_like(gradient), xp.zeros_like(gradient)
    first, second = memory["first"], memory["second"]
    first *= _FIRST
    first += (1 - _FIRST) * gradient
    second *= _SECOND
    gradient *= gradient
    gradient *= 1 - _SECOND
    second += gradient
    scale: Array = xp.sqrt(second)
    scale /= math.sqrt(1 - _SECOND**state.number)
    scale += _EPSILON
    change: Array = first / scale
    change *= state.rate / math.sqrt(state.dim) / (1 - _FIRST**state.number)
    return change


OPTIMISER = Optimiser(times_width, update, kept=2, worked=2)
