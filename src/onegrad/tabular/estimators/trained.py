"""One network: its step, and the readout at the best of several rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.randomness import Streams
from onegrad.gaussian.activation import Activation
from onegrad.tabular.estimators.first_layer import FirstLayer, Step, prepare_step
from onegrad.tabular.estimators.readout import BlockReadout, fit_in_blocks
from onegrad.tabular.estimators.rows import Rows

# Fresh inputs on which errors are computed; rates are also compared on as many of the step's.
_JUDGED, _JUDGED_PER_NEURON = 10_000, 5
AUTOMATIC_RATES = (0.0, 8.0, 64.0, 1.0)  # in the order in which they are tried
_WORTH = 0.99  # other rates are tried if rate 8 gets below this share of the error at rate 0


@dataclass(frozen=True)
class Recipe:
    """Neurons, activation, floor of the whitening, and the ridges to choose from (None: a path)."""

    width: int
    activation: Activation
    damping: float
    ridges: Array | None


@dataclass(frozen=True)
class Trained:
    """A first layer at the best rate, rates[best], with its readout.

    rates : the rates that were tried
    tried : the readout at every rate; with very many rows, fitted to a part of them
    """

    rates: Array
    best: int
    tried: tuple[BlockReadout, ...]
    step: Step
    layer: FirstLayer
    readout: BlockReadout

    @property
    def rate(self) -> float:
        return float(self.rates[self.best])

    @property
    def rate_errors(self) -> Array:
        """Leave-one-out, of each rate at its best ridge."""
        return np.array([readout.error for readout in self.tried])


def train(
    rows: Rows,
    scale: Array,
    recipe: Recipe,
    rates: Array | None,
    streams: Streams,
    left_out: bool = False,
) -> Trained:
    """Step on half of the inputs; readout on all; rate and ridge judged on the other half.

    rates : to choose from; None tries 0 and 8, and 64 and 1 only where 8 was at least 1 % better
        than 0: on most tables a step brings nothing, and each rate costs a fit
    Rates are compared on at most 20,000 inputs (10 for each neuron if that is more); the best is
    then fitted to all. left_out : whether the readout is to have the outputs of the judged rows.
    """
    automatic = rates is None
    rates = np.asarray(AUTOMATIC_RATES) if rates is None else rates
    half = rows.distinct // 2
    step_rows = rows.numbered(0, half if rates.any() else 0)
    step = prepare_step(
        rows, scale, recipe.activation, recipe.width, recipe.damping, step_rows, streams
    )
    count = max(_JUDGED, _JUDGED_PER_NEURON * recipe.width)
    judged = rows.numbered(half, half + count)
    sampled = len(rates) > 1 and rows.distinct > 2 * count
    used = rows.numbered(half - count, half + count) if sampled else None
    found = []
    for rate in rates:
        layer = step.at(float(rate))
        readout = fit_in_blocks(layer, rows, scale, recipe.ridges, used, judged, left_out)
        found.append((layer, readout))
        if automatic and len(found) == 2 and readout.error > _WORTH * found[0][1].error:
            break
    tried = tuple(readout for _, readout in found)
    best = int(np.argmin([readout.error for readout in tried]))
    layer, readout = found[best]
    if sampled:
        readout = fit_in_blocks(layer, rows, scale, recipe.ridges, None, judged, left_out)
    return Trained(rates[: len(found)], best, tried, step, layer, readout)
