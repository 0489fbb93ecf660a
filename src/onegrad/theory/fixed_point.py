"""The fixed point of the conditional Gaussian theory.

The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² over m samples. Given κ = κ_s the features are
ν_s + D_s Ŵ_⊥ x_⊥ + E_s^{1/2} g, with Ŵ_⊥ (k × n') of independent rows of norm b_i
(docs/theory.md, sections 2 and 3; equation numbers below are its own). Sums over neurons are
sums over types i with multiplicities c_i. No matrix of nodes × nodes is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array

_RANK_TOLERANCE = 1e-12  # of the largest squared singular value of the table of slopes
_MEMORY = 12


@dataclass(frozen=True)
class Features:
    """The conditional Gaussian features: T types of neurons at S nodes.

    mean, slope, extra : (T, S) ν_is = E_z σ(v_i·κ_s + b_i z), d_is = E_z σ'(…),
        e_is = Var_z σ(…) − b_i² d_is²
    bulk : (T,) b_i = |ŵ_{i,⊥}|
    counts : (T,) c_i, summing to the width k
    weights : (S,) ω_s, summing to one
    labels, noise : (S,) ȳ_s = E[y|κ_s], Var[y|κ_s]
    bulk_dim : n' = n − r
    tilt : (T,) or None; the rows of Ŵ_⊥ are correlated as b_i² δ_ij − tilt_i tilt_j when the
        direction W₀ᵀa is among those conditioned on (docs/theory.md eq. (24))
    """

    mean: Array
    slope: Array
    extra: Array
    bulk: Array
    counts: Array
    weights: Array
    labels: Array
    noise: Array
    bulk_dim: int
    tilt: Array | None = None

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """(U, V) with b_i d_is = (U Vᵀ)_is, U (T, R), V (S, R), by a truncated SVD."""
        scaled = self.slope * np.sqrt(self.counts * self.bulk**2)[:, None] * np.sqrt(self.weights)
        types, nodes = scaled.shape
        gram = scaled @ scaled.T if types <= nodes else scaled.T @ scaled
        values, vectors = np.linalg.eigh(gram)
        kept = values > max(_RANK_TOLERANCE * float(values[-1]), 1e-300)
        if not np.any(kept):  # no slope at all: one empty direction keeps the shapes alive
            return np.zeros((types, 1)), np.zeros((nodes, 1))
        if types <= nodes:
            left = vectors[:, kept]
            right = scaled.T @ left
        else:
            right = vectors[:, kept]
            left = scaled @ right
        return left / np.sqrt(self.counts)[:, None], right / np.sqrt(self.weights)[:, None]


@dataclass(frozen=True)
class FixedPoint:
    """Solution of eqs. (8)–(11): m_i > 0 and χ_s ≥ 0, with what it took to find it."""

    features: Features
    samples: float
    ridge: float
    gain: Array  # m_i
    chi: Array  # χ_s
    iterations: int
    residual: float  # largest change of log m, log χ under one more application of the map
    finite_size: bool = False  # χ counts the mean part too, eq. (27)


class Core:
    """Matrices of rank R that belong to one (m, χ): eqs. (9)–(10) in low-rank form."""

    def __init__(self, features: Features, gain: Array, weights: Array) -> None:
        u, v = features.factors
        self.u, self.v = u, v
        self.g = v.T @ (weights[:, None] * v)
        inner = (u.T * (features.counts * gain / features.bulk_dim)) @ u
        self.h = np.linalg.inv(np.eye(len(inner)) + inner @ self.g)
        self.k = self.h @ inner
        self.k = 0.5 * (self.k + self.k.T)
        self.gh = self.g @ self.h
        self.gh = 0.5 * (self.gh + self.gh.T)


def diagonal(x: Array, inner: Array) -> Array:
    """diag(x inner xᵀ)."""
    return np.asarray(((x @ inner) * x).sum(axis=1))


def response_kernel(features: Features, core: Core, gain: Array) -> Array:
    """Z⁻¹ of eq. (15): c_i dm_i = −[Z F dw]_i."""
    bulk = (core.u @ core.gh @ core.u.T) ** 2 / features.bulk_dim
    return np.diag(1.0 / (features.counts * gain**2)) - bulk


def response_table(core: Core, extra: Array, v: Array) -> Array:
    """F_is = e_is + b_i² ((W⁻¹P d_i)_s)²  (eq. (14))."""
    return np.asarray(extra + (core.u @ core.h.T @ v.T) ** 2)


def factor_positive(matrix: Array, what: str) -> tuple[Array, bool]:
    try:
        lower, low = cho_factor(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            f"{what} is not positive definite at this fixed point, which is therefore not the "
            "physical one, or is too close to interpolation. Use a larger ridge."
        ) from None
    return lower, bool(low)


def mean_share(
    features: Features, gain: Array, weights: Array, mean: Array, extra: Array, v: Array
) -> Array:
    """What the mean part adds to X at the nodes of (mean, extra, v): eq. (28).

    ∂/∂w_s log det(I + WN) at the fixed point in m, with the mean part solved in the types.
    """
    core, size = Core(features, gain, weights), features.counts * gain
    free, before = np.diag(1.0 / size), np.diag(size)
    if features.tilt is not None:
        lifted = core.u * (features.tilt / features.bulk)[:, None]
        free -= lifted @ core.gh @ lifted.T
        before = np.asarray(np.linalg.inv(free), dtype=float)
    after = np.linalg.inv(free + (features.mean * weights) @ features.mean.T)
    taken = before - after
    pushed = np.diag(taken) / size**2
    share = ((after @ mean) * mean).sum(axis=0)
    if features.tilt is not None:
        inner = lifted.T @ taken @ lifted
        pushed = pushed - diagonal(core.u @ core.gh, inner) / features.bulk_dim
        share = share + diagonal(v @ core.h, inner)
    factor = factor_positive(response_kernel(features, core, gain), "the response of the gains")
    return np.asarray(share - response_table(core, extra, v).T @ cho_solve(factor, pushed))


def _map(features: Features, samples: float, ridge: float, z: Array, finite_size: bool) -> Array:
    types = len(features.bulk)
    gain, chi = np.exp(z[:types]), np.exp(z[types:])
    w = features.weights / (1.0 + chi)
    core = Core(features, gain, w)
    inverse = ridge + features.extra @ w + diagonal(core.u, core.gh)
    spread = diagonal(core.v, core.k)
    x = (features.counts * gain) @ features.extra + features.bulk_dim * spread
    if finite_size:
        x += mean_share(features, gain, w, features.mean, features.extra, core.v)
    return np.concatenate([-np.log(inverse), np.log(np.maximum(x / samples, 1e-300))])


def solve_fixed_point(
    features: Features,
    samples: float,
    ridge: float,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    finite_size: bool = False,
) -> FixedPoint:
    """Solve eqs. (8)–(11) by Anderson acceleration in (log m, log χ).

    The map is monotone and scalable in these variables, so the solution is unique and plain
    iteration converges; acceleration only makes it quick, and is restarted when it does not
    help. Raises ConvergenceError with advice if `max_iterations` is not enough.
    finite_size : let χ count the degrees of freedom of the mean part, eqs. (27)–(28)
    """
    w = features.weights
    start = ridge + features.extra @ w + (features.slope**2 @ w) * features.bulk**2
    first = np.log(np.maximum(features.counts / start @ features.extra / samples, 1e-3))
    z = np.concatenate([-np.log(start), first])
    steps: list[Array] = []
    changes: list[Array] = []
    previous: tuple[Array, Array] | None = None
    best = np.inf
    for iteration in range(1, max_iterations + 1):
        image = _map(features, samples, ridge, z, finite_size)
        change = image - z
        residual = float(np.abs(change).max())
        if not np.isfinite(residual):
            raise ConvergenceError(
                "the fixed point of the theory left the numbers a computer can hold; "
                f"ridge = {ridge:.3g} is probably too small, or a label or spike too large."
            )
        if residual < tolerance:
            types = len(features.bulk)
            return FixedPoint(
                features, samples, ridge, np.exp(image[:types]), np.exp(image[types:]),
                iteration, residual, finite_size,
            )  # fmt: skip
        if residual > 20 * best:  # acceleration went astray: forget it
            steps, changes, previous = [], [], None
        best = min(best, residual)
        if previous is not None:
            steps.append(z - previous[0])
            changes.append(change - previous[1])
            steps, changes = steps[-_MEMORY:], changes[-_MEMORY:]
        previous = (z, change)
        z = z + _accelerated(change, steps, changes)
    raise ConvergenceError(
        f"the fixed point of the theory moved by {residual:.1e} after {max_iterations} "
        f"iterations (wanted {tolerance:.0e}). A larger ridge than {ridge:.3g} converges faster, "
        "above all where the width is close to the number of samples."
    )


def _accelerated(change: Array, steps: list[Array], changes: list[Array]) -> Array:
    if not steps:
        return change
    f = np.stack(changes, axis=1)
    size = np.linalg.norm(f, axis=0) + 1e-300
    mixing = np.linalg.lstsq(f / size, change, rcond=1e-10)[0] / size
    step = change - (np.stack(steps, axis=1) + f) @ mixing
    # A step of more than e³ in one go is a sign of a bad extrapolation, not of progress.
    return np.asarray(step if np.abs(step).max() < 3.0 else change)
