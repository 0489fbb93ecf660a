"""What a step has found: the directions of the inputs that its neurons share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds
from scipy.special import stdtrit
from sklearn.base import clone

from onegrad.compute.backend import Array
from onegrad.tabular.estimators.first_layer import Step

_MOST = 5
_HALVES = 6  # random halves of the rows whose steps are compared
_SMALL = 64  # inputs up to which all directions are computed


def step_directions(step: Step) -> tuple[Array, Array]:
    """Leading directions (r × n, r ≤ 5) of the step, and their shares of what it moves.

    The gradient moves the preactivations by Gx̃ (each half of the neurons with its own length: where
    a linear fit leaves little, so do its neurons). In inputs of unit variance its matrix is
    G·diag(spread) = Σ_j s_j u_j v_jᵀ; v_j is direction j, of length one, and its share is s_j²/Σs².
    """
    found = step.size > 0
    matrix = step.direction[found] * step.spread / step.size[found, None]
    total = float((matrix**2).sum())
    count = min(_MOST, *matrix.shape)
    if not total:  # nothing was learned
        return np.zeros((0, matrix.shape[1])), np.zeros(0)
    if min(matrix.shape) <= _SMALL:
        _, values, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        operator = LinearOperator(
            matrix.shape, matvec=matrix.__matmul__, rmatvec=matrix.T.__matmul__
        )
        start = matrix.sum(axis=0) if matrix.shape[0] >= matrix.shape[1] else matrix.sum(axis=1)
        _, values, right = svds(operator, k=count, v0=start)
        values, right = values[::-1], right[::-1]
    values, right = values[:count], right[:count]
    largest = right[np.arange(count), np.abs(right).argmax(axis=1)]
    return right * np.sign(largest)[:, None], values**2 / total


def columns_found(pipeline: Any, x: Array, y: np.ndarray) -> list[tuple[int, float, float]]:
    """What steps on random halves of the rows have in common, with its standard errors: columns
    beyond their noise (5 % of tables of pure noise have one) and a tenth of the largest; nothing
    where no step was taken."""
    rng = np.random.default_rng(0)
    vectors = []
    for _ in range(_HALVES):
        rows = rng.permutation(len(y))[: len(y) // 2]
        if len(np.unique(y[rows])) < 2 or x.shape[1] < 2:
            return []
        fitted = clone(pipeline).fit(x[rows], y[rows]).steps[-1][1]
        if not fitted.rate_ or not len(fitted.directions_):
            return []
        vectors.append(fitted.directions_[0])
    found = np.array(vectors)
    found *= np.sign(found @ found[0])[:, None]
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1)
    limit = stdtrit(_HALVES - 1, 1 - 0.025 / len(mean))
    size = np.abs(mean)
    kept = (size > limit * error) & (size > 0.1 * size.max())
    order = [int(i) for i in np.argsort(-size, kind="stable") if kept[i]]
    return [(i, float(mean[i]), float(error[i])) for i in order]
