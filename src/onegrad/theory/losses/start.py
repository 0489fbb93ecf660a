"""What makes the iteration over a loss short: tables of lower rank, and a start that is near."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.layers.features import NodeFeatures

_DROPPED = 1e-7  # of the slopes' table: 1e-7 of the errors
_BESIDE_RIDGE = 1e-3  # the same: in units of the ridge, for each neuron

Near = tuple[Array, Array, Array] | None  # (f, q, χ) of nodes to start from, if some are known


def dropped(features: NodeFeatures, ridges: Array) -> float:
    """Of the slopes' table. What is dropped is added to e, and so to the ridge (10)."""
    squares = (features.slope * features.bulk[..., None]) ** 2
    power = np.einsum("...i,...is,...s->...", features.counts, squares, features.weights)
    beside = _BESIDE_RIDGE * ridges * features.counts.sum(axis=-1) / np.maximum(power, 1e-300)
    return min(_DROPPED, float(np.min(beside)))


def together(parts: Sequence[Near]) -> Near:
    """Of one problem, or of a stack if all of it have some."""
    if any(one is None for one in parts):
        return None
    known = [one for one in parts if one is not None]
    if len(known) == 1:
        return known[0]
    f, q, chi = (np.stack(one) for one in zip(*known, strict=True))
    return f, q, chi
