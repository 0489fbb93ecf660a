"""What the theory of a given first layer finds: errors, and what is as good for other layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.errors import Correction


@dataclass(frozen=True)
class Study:
    """What was found out on one first layer and is as good for others of the same problem.

    level : of the rule for κ; by_nodes : relative difference that a coarser one makes, with one χ
        for all nodes; NaN if it was not tried
    chi : mean response, to start from
    by_size : a bound for what is open in 1/n, relative
    finer : errors of a finer rule over those of this one, times the correction; of other losses
        theirs, too
    correction : of order 1/n; where none is made it says why, and ν_sν_sᵀ counts in χ_s
    """

    level: QuadratureLevel
    by_nodes: float
    chi: float
    by_size: float = math.nan
    finer: tuple[float, ...] = (1.0, 1.0, 1.0)
    correction: Correction | None = None

    @property
    def corrected(self) -> bool:
        return self.correction is not None and not self.correction.left_out


@dataclass(frozen=True)
class LayerErrors:
    """Errors of the readout on one first layer.

    by_nodes, by_size : see `Study`
    directions, nodes : special ones altogether, and of the finer rule
    test_loss, train_loss : of the readout's own loss
    misclassification, calibration : of labels ±1, and of the logistic loss; else NaN
    study : for other layers of the same problem
    outputs : of several outputs, whose sum this is, those of each
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
    outputs: tuple[LayerErrors, ...] = ()
