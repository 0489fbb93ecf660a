"""Where single precision is enough for the large arrays of a repetition, and how one sees it.

Numbers that are rounded to 24 bits are wrong by 6e-8, each on its own; the errors of a readout
average over mk of them and change by 1e-7. Two things can magnify that: a ridge that is small
beside the features, and a test error that is small beside the labels. Both are known once a model
is fitted; what does not pass is computed again in double precision.
"""

from __future__ import annotations

from functools import lru_cache

from onegrad.errors import ConvergenceError
from onegrad.gaussian.activation import Activation
from onegrad.problem import Problem
from onegrad.simulate.network.readout import Readout
from onegrad.simulate.network.refine import ROUNDED, WORTH_ROUNDING

# Bound of what rounding changes (`Readout.magnified`) up to which it is not looked at: at the
# interpolation peak errors then change by 5e-7, fifty thousand times less (docs/devices.md).
_MAGNIFIED = 0.02
_LEAST_SIDE, _LARGE = 256, 5e8
_LEAST_ERROR = 1e-3  # smallest test error, over Var y, that single-precision features resolve


def worth_rounding(problem: Problem) -> bool:
    """Whether a repetition is tried in single precision: one large enough to gain by it (512
    neurons and samples, or 256 and products of 5e8 operations), with one step of gradient descent,
    on data of a known law with labels that do not jump, fitted by squares, and with a ridge that
    is not too small for the initial features, 6e-8·k·E φ²/λ ≤ 0.02.

    Further steps, and optimisers that take signs or inverses, magnify rounding by themselves.
    """
    training = problem.training
    plain = training.optimiser == "gd" and training.steps == 1
    fitted = problem.loss.name == "squared" and problem.outputs == 1
    side = min(problem.width, problem.samples)
    large = side >= WORTH_ROUNDING or (side >= _LEAST_SIDE and problem.operations >= _LARGE)
    known = problem.data.known and not problem.labels_binary
    if not (large and plain and fitted and known):
        return False
    square = _second_moment(problem.activation, problem.bulk_scale)
    return ROUNDED * problem.width * square <= _MAGNIFIED * problem.effective_ridge


@lru_cache(maxsize=256)
def _second_moment(activation: Activation, scale: float) -> float:
    return activation.second_moment(scale)


def check_rounding(readout: Readout, risk: float, label_variance: float) -> None:
    """Refuse numbers in which single precision may show: `risk` the test error.

    With features off by δ, the test error R moves by 2δ·√(R·Var y) at most, up to what the ridge
    makes of it.
    """
    if readout.magnified > _MAGNIFIED or risk < _LEAST_ERROR * label_variance:
        raise ConvergenceError('single precision is not enough. Use compare.dtype = "float64"')
