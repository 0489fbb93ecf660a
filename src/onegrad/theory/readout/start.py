"""What makes the iteration over a loss short: tables of lower rank, and a start that is near."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.features import NodeFeatures

_DROPPED = 1e-7  # share of the slopes' table that is dropped: 1e-7 of the errors
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


def turned(kappa: Array, own: Geometry, other: Geometry) -> Array:
    """Coordinates κ of samples (S, r') in the basis of another geometry, in which the named
    directions u and the means have nearly the same projections: κ' = Tκ with Tᵀu' ≈ u.

    Bases are chosen for each geometry. The same directions with other overlaps have others, in
    which a function of κ would be one of other directions.
    """
    if own is other or own.groups or other.groups or own.rank != other.rank:
        return kappa
    names = [name for name in own.directions if name in other.directions]
    mine, theirs = (
        np.stack([*(g.directions[name] for name in names), *g.means]) for g in (own, other)
    )
    turn = np.linalg.lstsq(theirs, mine, rcond=None)[0]
    return np.column_stack([kappa[:, : own.rank] @ turn.T, kappa[:, own.rank :]])
