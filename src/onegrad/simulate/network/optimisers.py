"""The optimisers of the first layer, by the names that a spec knows (spec/tables.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onegrad.compute.backend import Array, namespace


@dataclass
class State:
    """Where the training is: the step at hand, and what an optimiser remembers of earlier ones.

    number : of the step, from 1; rate : η of this step; width, dim : k, n; damping : δ of kfac
    inputs : (m̃, n) the samples of this step
    memory : an optimiser's own arrays, by name
    """

    width: int
    dim: int
    damping: float
    number: int = 0
    rate: float = 0.0
    inputs: Any = None
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Optimiser:
    """How a gradient moves the first layer.

    With G = −k·∂/∂W [1/(2m̃)·‖y − f‖²] (k × n) at the current weights:

    factor : of G/k in the matrix that `update` gets; a function of the state, so that plain
        descent is one product and nothing else
    update : from (factor/k)·G to the change of W; may overwrite its argument
    kept, worked : matrices k × n that it keeps between steps, and has beside them during one
    """

    factor: Callable[[State], float]
    update: Callable[[Array, State], Array]
    kept: int = 0
    worked: int = 0

    @property
    def normalised(self) -> bool:
        """Whether the length of the gradient does not matter, so that rates do not grow with n."""
        return self.factor is times_width


def times_width(state: State) -> float:
    """The factor k: `update` gets G itself."""
    return float(state.width)


def times_rate(state: State) -> float:
    """The factor η: `update` gets (η/k)·G."""
    return state.rate


def _descent(gradient: Array, state: State) -> Array:
    """(η/k)·G as it is."""
    return gradient


def _sign(gradient: Array, state: State) -> Array:
    """Every entry moves by η/√n: a row of W by η."""
    change: Array = namespace(gradient).sign(gradient)
    change *= state.rate / math.sqrt(state.dim)
    return change


_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


def _adam(gradient: Array, state: State) -> Array:
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


def _muon(gradient: Array, state: State) -> Array:
    """η·UVᵀ over the singular values that are not rounding: O(kn·min(k, n))  [jordan2024]."""
    xp = namespace(gradient)
    left, values, right = xp.linalg.svd(gradient, full_matrices=False)
    largest = float(values[0]) if values.shape[0] else 0.0
    least = largest * max(gradient.shape) * float(xp.finfo(gradient.dtype).eps)
    kept = xp.astype(values > least, gradient.dtype)
    change: Array = (left * kept) @ right
    change *= state.rate
    return change


def _kfac(gradient: Array, state: State) -> Array:
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


OPTIMISERS: dict[str, Optimiser] = {
    "gd": Optimiser(times_rate, _descent),  # W + (η/k)·G
    "sign": Optimiser(times_width, _sign, worked=1),  # W + η·sign(G)/√n
    "adam": Optimiser(times_width, _adam, kept=2, worked=2),  # steps of η/√n
    "muon": Optimiser(times_width, _muon, worked=3),  # W + η·UVᵀ with G = USVᵀ, without momentum
    "kfac": Optimiser(times_rate, _kfac, worked=2),  # W + (η/k)·G·(X̃ᵀX̃/m̃ + δI)⁻¹
}
