"""Spectra of matrices that somebody has: singular values, spikes against the limiting edge,
alignment of the left singular vectors with polynomial features, distance to F_ℓ.

Plain arrays in, plain numbers out: X̃ is n×d, W is N×d, F = σ(X̃Wᵀ) is n×N and is divided by √n
here; β is the direction of the step, a the initial readout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.gaussian.polynomials import orthonormal_hermite
from onegrad.theory.isotropic.bulk import Bulk

_DENSE = 600  # below this smaller dimension a full decomposition is the faster one


@dataclass(frozen=True)
class MeasuredSpectrum:
    """Leading singular values of F/√n (or W), how many are spikes, and what they align with.

    `hermite_cosines[j, k]` and `power_cosines[j, k]`: |cos| between left singular vector j and
    H_k(X̃β̂), (X̃β̂)ᵏ, k = 0…degree. Empty when no direction was given.
    """

    singular_values: Array
    edge: float
    threshold: float
    spikes: int
    hermite_cosines: Array
    power_cosines: Array


def all_singular_values(matrix: Array) -> Array:
    """Every singular value, largest first; O(n·N·min(n, N))."""
    return np.asarray(svd(matrix, compute_uv=False, check_finite=True))


def leading_singular(matrix: Array, count: int) -> tuple[Array, Array, Array]:
    """(U, s, Vᵀ) of the `count` largest singular values, largest first.

    Lanczos iterations (`scipy.sparse.linalg.svds`) once the smaller dimension exceeds 600:
    O(count·n·N) instead of O(n·N·min(n, N)), from a fixed starting vector.
    """
    small = min(matrix.shape)
    if not 1 <= count <= small:
        raise AssumptionError(f"count = {count} must lie in 1…{small}, the smaller dimension")
    if small <= _DENSE or count > small // 4:
        u, s, vt = svd(matrix, full_matrices=False)
        return u[:, :count], s[:count], vt[:count]
    start = np.random.default_rng(0).standard_normal(small)
    try:
        u, s, vt = (np.asarray(part, float) for part in svds(matrix, k=count, v0=start))
    except Exception as error:  # ARPACK raises its own kinds of errors
        raise ConvergenceError(
            f"the {count} leading singular values did not converge ({error}); ask for fewer, or "
            "use all_singular_values"
        ) from error
    order = np.argsort(s)[::-1]
    return u[:, order], s[order], vt[order]


def count_spikes(singular_values: Array, bulk: Bulk, size: int, edge_margin: float = 0.0) -> int:
    """How many exceed the limiting edge by more than the finite-size margin.

    `bulk` is a law of eigenvalues, `size` their number (n for F, N for W), `edge_margin` what
    a step adds to the edge (`outliers.step_edge_margin`).
    """
    return int(np.sum(np.asarray(singular_values) > bulk.threshold(size, edge_margin)))


def projections(inputs: Array, direction: Array) -> Array:
    """X̃β̂, β̂ = β/|β|."""
    norm = float(np.linalg.norm(direction))
    if norm == 0:
        raise AssumptionError("the direction β of the step is zero; there was no step to align to")
    return np.asarray(inputs @ (direction / norm))


def polynomial_alignments(left: Array, projected: Array, degree: int) -> tuple[Array, Array]:
    """(Hermite, power): |cos| of the columns of `left` with H_k and k-th powers of X̃β̂, k ≤ degree.

    Entry [j, k]; every feature is normalised on the sample, so that cosines are exact ones.
    """
    hermite = orthonormal_hermite(degree, projected)
    powers = projected[None, :] ** np.arange(degree + 1)[:, None]
    columns = left / np.linalg.norm(left, axis=0)
    pair = []
    for table in (hermite, powers):
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        pair.append(np.abs(columns.T @ unit.T))
    return pair[0], pair[1]


def measure_features(
    features: Array,
    bulk: Bulk,
    projected: Array | None = None,
    degree: int = 3,
    count: int = 10,
    edge_margin: float = 0.0,
) -> MeasuredSpectrum:
    """Leading singular values of F/√n against `bulk` (the law of F₀F₀ᵀ/n), and alignments.

    `projected` is X̃β̂ (`projections`); without it there are no alignments. For trained features
    pass the `edge_margin` of the step, or the lifted bulk counts as spikes.
    """
    n = features.shape[0]
    count = min(count, *features.shape)
    u, s, _ = leading_singular(features / math.sqrt(n), count)
    hermite, power = np.empty((count, 0)), np.empty((count, 0))
    if projected is not None:
        hermite, power = polynomial_alignments(u, projected, degree)
    threshold = bulk.threshold(n, edge_margin)
    return MeasuredSpectrum(
        s, math.sqrt(bulk.edge), threshold, count_spikes(s, bulk, n, edge_margin), hermite, power
    )


def measure_weights(
    weights: Array, bulk: Bulk, count: int = 5, edge_margin: float = 0.0
) -> MeasuredSpectrum:
    """Leading singular values of W against `bulk` (the law of W₀W₀ᵀ).

    For trained weights pass the `edge_margin` of the step (`outliers.weight_edge_margin`).
    """
    size = weights.shape[0]
    _, s, _ = leading_singular(weights, min(count, *weights.shape))
    threshold = bulk.threshold(size, edge_margin)
    empty = np.empty((s.size, 0))
    return MeasuredSpectrum(
        s, math.sqrt(bulk.edge), threshold, count_spikes(s, bulk, size, edge_margin), empty, empty
    )


def polynomial_features(
    untrained: Array, moved: Array, readout: Array, coefficients: Array, degree: int
) -> Array:
    """F_ℓ = F₀ + Σ_{k≤ℓ} c_k vᵏ(aᵏ)ᵀ, v = c₁ηX̃β = `moved`, ℓ = `degree`  [moniri2024].

    `coefficients` are c_k = E[σ(Z)H_k(Z)]/k! from k = 0; powers are entry by entry.
    """
    result = np.array(untrained, dtype=float)
    for k in range(1, degree + 1):
        if coefficients[k] != 0:
            result += np.outer(coefficients[k] * moved**k, readout**k)
    return result


def polynomial_distance(features: Array, model: Array) -> float:
    """‖F − F_ℓ‖/√n, which vanishes as n grows exactly when ℓ is large enough for the step."""
    largest = float(leading_singular(features - model, 1)[1][0])
    return largest / math.sqrt(features.shape[0])
