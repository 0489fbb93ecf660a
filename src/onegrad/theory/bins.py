"""Many spikes of different strengths: as if those of a bin were equally strong.

Unequal spikes are not alike, so that no group of them (symmetry.py) has one axis; and rules over so
many directions do not count the degrees of freedom that the readout spends on them. Where each
component's strengths are replaced by the means of a few bins, groups serve, and the difference
between one bin and two says how much the bins matter (docs/theory.md, section 8).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.geometry import Geometry
from onegrad.theory.symmetry import grouped

_NONE = 1e-7  # eigenvalues of Σ_c − I below this are no spikes
BINS = 2


@lru_cache(maxsize=64)
def binned(geometry: Geometry, bins: int = BINS) -> Geometry:
    """The mixture with the strengths of each component's spikes averaged in bins, and grouped.

    The teacher keeps its norm, which the strongest spike of the actual mixture sets: |ξ|² is
    1/‖Σ̄‖ of the unbinned problem. `bins` of the result says that it is not the mixture itself.
    """
    covariances = np.empty_like(geometry.covariances)
    for c, covariance in enumerate(geometry.covariances):
        values, vectors = np.linalg.eigh(covariance - np.eye(geometry.rank))
        spikes = values > _NONE
        values[spikes] = _bin_means(values[spikes], bins)
        covariances[c] = np.eye(geometry.rank) + (vectors * values) @ vectors.T
    return replace(grouped(replace(geometry, covariances=covariances)), bins=bins)


def _bin_means(strengths: Array, bins: int) -> Array:
    """Ascending strengths, each replaced by the mean of its bin; two bins part where the sum of
    squares within them is smallest."""
    if bins == 1 or len(strengths) < 2:
        return np.full_like(strengths, strengths.mean() if len(strengths) else 0.0)
    within = [
        strengths[:cut].var() * cut + strengths[cut:].var() * (len(strengths) - cut)
        for cut in range(1, len(strengths))
    ]
    cut = 1 + int(np.argmin(within))
    halves = strengths[:cut], strengths[cut:]
    return np.concatenate([np.full_like(half, half.mean()) for half in halves])
