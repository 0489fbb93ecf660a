"""Ridge regression at another number of rows, from the leave-one-out errors at one.

Equations are named as in docs/learning-curves.md. The data's own features are the nodes, at
full rank; that there are only N of them is taken into account exactly, to leading order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array

# The least share of the rows that the fit must leave free for its leave-one-out error to be turned
# into that of another number of rows; below, a few directions decide and nothing averages out.
LEAST_FREE = 0.35
_MOST_USED = 0.97  # largest df₁/m at which a ridge exists, with a margin


class LevelPath(NamedTuple):
    """What N rows say about the law of the features, along a path of ridges.

    first, second : df₁ = tr H(H+κ)⁻¹ and df₂ = tr [H(H+κ)⁻¹]² of the population, at the level κ
    error : test error at this κ with infinitely many rows
    """

    first: Array
    second: Array
    error: Array


def level_path(ridges: Array, errors: Array, values: Array, rows: int) -> LevelPath:
    """df₁, df₂ and the error without variance from quantities at hand (eqs. free-directions and
    bias-at-hand).

    ridges, errors : ridges of the fit to `rows` rows, and leave-one-out mean squared errors
    values : eigenvalues of the centred covariance of the features on those rows, at most rows − 1
        of them other than zero
    With g_p = Σ_j (λ/(s_j+λ))^p over N = rows − 1 of them: df₁ = N − g₁, 1 − df₂/N = g₁²/(N g₂).
    """
    count = rows - 1
    values = np.sort(values)[::-1][:count]
    share = ridges[:, None] / (values + ridges[:, None])
    rest = count - len(values)
    first, second = rest + share.sum(axis=1), rest + (share**2).sum(axis=1)
    free = first**2 / (count * second)
    kept = free >= min(LEAST_FREE, float(free.max()))
    return LevelPath(count - first[kept], count * (1 - free[kept]), errors[kept] * free[kept])


def tuned_error(paths: Sequence[LevelPath], rows: int) -> float:
    """The least test error at `rows` rows over paths and levels (eqs. level and tuned-error):
    only levels that some ridge > 0 reaches with so many rows count, df₁ < m."""
    found = []
    for path in paths:
        reached = path.first < _MOST_USED * rows
        if reached.any():
            found.append(float(np.min(path.error[reached] / (1 - path.second[reached] / rows))))
    if not found:  # even the largest ridge is too small for so few rows
        found = [float(path.error[-1]) for path in paths]
    return min(found)


def mean_path(paths: Sequence[Sequence[LevelPath]]) -> list[LevelPath]:
    """Paths of several draws (each with one for every rate) put together, rate by rate.

    Draws have slightly different levels at the same ridge; the largest ridges are common to all.
    """
    joined = []
    for of_rate in zip(*paths, strict=False):  # rates that every draw has tried
        shortest = min(len(path.first) for path in of_rate)
        parts = [np.array(path)[:, -shortest:] for path in of_rate]
        joined.append(LevelPath(*np.mean(parts, axis=0)))
    return joined
