"""Spikes in somebody's covariance: which eigenvalues leave the bulk, and how strong they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import median_of_bulk

_TRACY_WIDOM = 3.3  # 99.9 % quantile of the largest eigenvalue's law, in its own scale
FEWEST_COLUMNS = 10  # fewest columns for which a bulk is defined


@dataclass(frozen=True)
class Spikes:
    """Covariance ≈ noise·(I + Σ_i strengths[i]·γ_iγ_iᵀ), with columns γ_i of `directions`.

    `strengths` are corrected for the growth of sample eigenvalues. `eigenvalues` are those of the
    sample covariance, `edge` is where those of pure noise of variance `noise` end.
    """

    noise: float
    strengths: Array
    directions: Array
    eigenvalues: Array
    edge: float

    @property
    def count(self) -> int:
        """How many spikes there are."""
        return len(self.strengths)


def find_spikes(centred: Array, groups: int = 1) -> Spikes:
    """Bulk level, spikes and their strengths, from rows with mean zero (within `groups` groups).

    The bulk level makes the median eigenvalue that of the Marchenko–Pastur law; an eigenvalue above
    its edge, with room for Tracy–Widom fluctuations, is a spike. Of a spike λ the strength is the
    root θ of λ = noise·(1 + θ)(1 + γ/θ), γ = n/N  [baik2006]. With less than ten columns there
    is no bulk to speak of: noise is the mean variance, and no spike is claimed.

    Cost O(N·n·min(N, n)), memory O(min(N, n)²).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((2000, 100))
    >>> x[:, 0] *= np.sqrt(1 + 9.0)
    >>> found = find_spikes(x)
    >>> found.count, abs(found.noise - 1) < 0.05, round(found.strengths[0] / 9)
    (1, True, 1)
    """
    rows, columns = centred.shape
    freedom = max(1, rows - groups)
    if columns <= rows:
        values, vectors = np.linalg.eigh(centred.T @ centred / freedom)
    else:
        values, left = np.linalg.eigh(centred @ centred.T / freedom)
        keep = values > values[-1] * 1e-12
        values, left = values[keep], left[:, keep]
        vectors = centred.T @ left / np.sqrt(values * freedom)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    ratio = columns / freedom
    if columns < FEWEST_COLUMNS:
        noise = float(values.sum() / columns)
        return Spikes(noise, np.zeros(0), vectors[:, :0], values, np.inf)
    edge = _edge(freedom, columns)
    count = 0
    for _ in range(50):
        noise = float(np.median(values[count:])) / median_of_bulk(ratio)
        found = int(np.sum(values > noise * edge))
        if found <= count or found >= len(values) // 2:
            break
        count = found
    strengths = _strengths(values[:count] / noise, ratio)
    return Spikes(noise, strengths, vectors[:, :count], values, noise * edge)


def _edge(rows: int, columns: int) -> float:
    """Largest eigenvalue of white noise, with room for its fluctuations  [johnstone2001]."""
    root = np.sqrt(rows) + np.sqrt(columns)
    fluctuation = root * (1 / np.sqrt(rows) + 1 / np.sqrt(columns)) ** (1 / 3)
    return float((root**2 + _TRACY_WIDOM * fluctuation) / rows)


def _strengths(values: Array, ratio: float) -> Array:
    """θ from λ = (1 + θ)(1 + γ/θ), the larger root."""
    middle = values - 1 - ratio
    return (middle + np.sqrt(np.maximum(middle**2 - 4 * ratio, 0.0))) / 2
