"""What an optimiser of the first layer says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onegrad.compute.backend import Array


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
