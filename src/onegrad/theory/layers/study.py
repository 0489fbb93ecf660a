"""What the theory of a given first layer finds: errors, and what is as good for other layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onegrad.theory.layers.losses import LossRatios
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.errors import Correction

_DRAFT = QuadratureLevel.draft()


@dataclass(frozen=True)
class Study:
    """What was found out on one first layer and is as good for others of the same problem.

    level : of the rule for κ; by_nodes : relative difference that a coarser one makes, with one χ
        for all nodes; NaN if it was not tried
    chi : mean response, to start from
    correction : of order 1/n; where none is made it says why, and remainder how large it would be
    rough : errors of the first layer by this rule, with one χ for all nodes
    finer : errors of a finer rule over these
    sized : level of the correction; sized_off : relative error there, 0 if it is small
    counted : instead of a correction that disagrees with it, or of a coarse one, ν_sν_sᵀ counts in
        χ_s; what is open is the remainder of the correction
    settled : the correction is to be taken as it is, else only where it is small
    sampled : errors are those of samples drawn at the nodes (layer_samples.py); number : of the
        layer, whose draws are its own
    ratios : of losses other than the squared one; surplus : whether they leave the surplus of
        labels out, which is averaged over on each layer
    """

    level: QuadratureLevel
    by_nodes: float
    chi: float
    rough: MatrixErrors
    correction: Correction | None = None
    finer: tuple[float, ...] = (1.0, 1.0, 1.0)
    counted: bool = False
    settled: bool = False
    sized: QuadratureLevel = _DRAFT
    sized_off: float = 0.0
    sampled: bool = False
    number: int = 0
    ratios: LossRatios | None = None
    surplus: bool = False

    @property
    def corrected(self) -> bool:
        return self.correction is not None and not self.correction.left_out


@dataclass(frozen=True)
class LayerErrors:
    """Errors of the readout on one first layer.

    by_nodes : `Study.by_nodes`
    by_size : a bound for what is open in 1/n, relative
    directions, nodes : special ones altogether, and of the finer rule
    test_loss, train_loss : of the readout's own loss
    misclassification, calibration : of labels ±1, and of the logistic loss; else NaN
    study : for other layers of the same problem
    by_draws : relative standard error by the samples that were drawn, of `rows` of them
    outputs : errors of each output, if this is the sum over several
    """

    errors: MatrixErrors
    by_nodes: float
    by_size: float
    directions: int
    nodes: int
    test_loss: float
    train_loss: float
    misclassification: float = math.nan
    calibration: float = math.nan
    study: Study | None = None
    by_draws: float = 0.0
    rows: int = 0
    outputs: tuple[LayerErrors, ...] = ()
