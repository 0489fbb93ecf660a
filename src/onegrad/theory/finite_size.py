"""Degrees of freedom that the mean part of the features uses up: docs/theory.md, section 7."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array
from onegrad.theory.layers.features import NodeFeatures
from onegrad.theory.woodbury import (
    Cholesky,
    diagonal,
    response_kernel,
    response_table,
    woodbury_factors,
)


def mean_share(
    features: NodeFeatures, gain: Array, weights: Array, mean: Array, extra: Array, v: Array
) -> Array:
    """What the mean part adds to X at the nodes of (mean, extra, v): ∂/∂w_s log det(I + WN).

    With M̄ = (diag(1/(c m)) − QPQᵀ)⁻¹, Ω = (M̄⁻¹ + νWνᵀ)⁻¹ and Δ = M̄ − Ω it is, in the types,

        ν_sᵀ Ω ν_s − [Fᵀ Z p]_s + [W⁻¹PQᵀ Δ QPW⁻¹]_ss                                       (28)
        p_i = Δ_ii/(c_i m_i)² − (b_i²/n') d_iᵀ PQᵀ Δ QP d_i,  Q_is = tilt_i d_is

    where terms with Q are there only with a tilt. The gains m belong to the weights w.
    """
    (slopes,) = woodbury_factors(features, gain, weights)
    size = features.counts * gain
    free, before = np.diag(1.0 / size), np.diag(size)
    if features.tilt is not None:
        lifted = slopes.u * (features.tilt / features.bulk)[:, None]
        free -= lifted @ slopes.gh @ lifted.T
        before = np.asarray(np.linalg.inv(free), dtype=float)
    after = np.linalg.inv(free + (features.mean * weights) @ features.mean.T)
    taken = before - after
    pushed = np.diag(taken) / size**2
    share = ((after @ mean) * mean).sum(axis=0)
    if features.tilt is not None:
        inner = lifted.T @ taken @ lifted
        pushed = pushed - diagonal(slopes.u @ slopes.gh, inner) / features.bulk_dim
        share = share + diagonal(v @ slopes.h, inner)
    factor = Cholesky(response_kernel(features, [slopes], gain), "the response of the gains")
    return np.asarray(share - response_table([slopes], extra, [v]).T @ factor.solve(pushed))
