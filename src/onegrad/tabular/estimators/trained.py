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

# Fresh inputs that are judged, and as many of the step's beside them when rates are compared.
_JUDGED, _JUDGED_PER_NEURON = 10_000, 5


@dataclass(frozen=True)
class Recipe:
    """Neurons, activation, floor of the whitening, and the ridges to choose from (None: a path)."""

    width: int
    activation: Activation
    damping: float
    ridges: Array | None


@dataclass(frozen=True)
class Trained:
    """A first layer at the best rate with its readout.

    tried : the readout at every rate; with very many rows, fitted to a part of them
    """

    rate: float
    tried: tuple[BlockReadout, ...]
    step: Step
    layer: FirstLayer
    readout: BlockReadout

    @property
    def rate_errors(self) -> Array:
        """Leave-one-out, of each rate at its best ridge."""
        return np.array([readout.error for readout in self.tried])


def train(
    rows: Rows, scale: Array, recipe: Recipe, rates: Array, streams: Streams, left_out: bool = False
) -> Trained:
    """Step on half of the inputs; readout on all; rate and ridge judged on the other half.

    Rates are compared on at most 20,000 inputs (10 for each neuron if that is more); the best is
    then fitted to all. left_out : whether the readout is to have the outputs of the judged rows.
    """
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
    tried = tuple(readout for _, readout in found)
    best = int(np.argmin([readout.error for readout in tried]))
    layer, readout = found[best]
    if sampled:
        readout = fit_in_blocks(layer, rows, scale, recipe.ridges, None, judged, left_out)
    return Trained(float(rates[best]), tried, step, layer, readout)
