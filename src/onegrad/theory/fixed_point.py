"""The fixed point of the conditional Gaussian theory.

The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² over m samples. Given κ = κ_s the features are
ν_s + D_s Ŵ_⊥ x_⊥ + E_s^{1/2} g, with Ŵ_⊥ (k × n') of independent rows of norm b_i
(docs/theory.md, sections 2 and 3; equation numbers below are its own). Sums over neurons are
sums over types i with multiplicities c_i. No matrix of nodes × nodes is formed.

Arrays may have a leading axis: a stack of problems of one shape, solved together because many
small problems cost mostly the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array

_RANK_TOLERANCE = 1e-12  # of the largest squared singular value of the table of slopes
_WEAKER = 1e-8  # the same for harmonics
_MEMORY = 12
_DAMPING = 1e-12  # of the normal equations of the acceleration, whose columns have norm one


def transposed(x: Any) -> Array:
    return np.asarray(np.swapaxes(x, -1, -2))


def one_of(record: Any, index: int) -> dict[str, Any]:
    """The fields of one problem of a stacked dataclass."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {k: np.asarray(v[index]) if isinstance(v, np.ndarray) else v for k, v in values.items()}


class Harmonic(NamedTuple):
    """Features Σ_a ω_ia table_is x_a/√p, with p independent coordinates x_a of a sample and p
    random coefficients ω_ia of a neuron, all of variance one; so many `copies` of them.

    The slopes themselves are one: p = n', table b_i d_is.
    """

    copies: float
    coordinates: float
    table: Array


@dataclass(frozen=True)
class Features:
    """The conditional Gaussian features: T types of neurons at S nodes.

    mean, slope, extra : (T, S) ν_is = E_z σ(v_i·κ_s + b_i z), d_is = E_z σ'(…),
        e_is = Var_z σ(…) − b_i² d_is²
    bulk : (T,) b_i = |ŵ_{i,⊥}|
    counts : (T,) c_i, summing to the width k
    weights : (S,) ω_s, summing to one
    labels, noise : (S,) ȳ_s = E[y|κ_s], Var[y|κ_s]
    bulk_dim : n' = n − r, an array of no axes (or the leading one)
    tilt : (T,) or None; the rows of Ŵ_⊥ are correlated as b_i² δ_ij − tilt_i tilt_j when the
        direction W₀ᵀa is among those conditioned on (docs/theory.md eq. (24))
    harmonics : what nodes and types add that stand for whole spheres of directions
        (docs/theory.md, section 8); no stacks, no tilt
    """

    mean: Array
    slope: Array
    extra: Array
    bulk: Array
    counts: Array
    weights: Array
    labels: Array
    noise: Array
    bulk_dim: Array
    tilt: Array | None = None
    harmonics: tuple[Harmonic, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bulk_dim", np.asarray(self.bulk_dim, float))

    @staticmethod
    def stack(parts: Sequence[Features]) -> Features:
        """Problems of one shape, all with a tilt or none."""
        columns: dict[str, Any] = {}
        for f in fields(Features):
            values = [getattr(p, f.name) for p in parts]
            columns[f.name] = np.stack(values) if isinstance(values[0], np.ndarray) else values[0]
        return Features(**columns)

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """(U, V) with b_i d_is = (U Vᵀ)_is, U (T, R), V (S, R), by a truncated SVD."""
        return self._factored(self.slope * np.sqrt(self.counts * self.bulk**2)[..., None])

    @cached_property
    def blocks(self) -> list[tuple[float, Array, Array, Array]]:
        """Multiplicity, coordinates and factors of the slopes and of each harmonic."""
        root = np.sqrt(self.counts)[..., None]
        others = [
            (h.copies, np.asarray(h.coordinates), *self._factored(h.table * root, _WEAKER))
            for h in self.harmonics
        ]
        return [(1.0, self.bulk_dim, *self.factors), *others]

    def _factored(self, scaled: Array, tolerance: float = _RANK_TOLERANCE) -> tuple[Array, Array]:
        """(U, V) of a table whose rows have been multiplied by √c."""
        scaled = scaled * np.sqrt(self.weights)[..., None, :]
        types, nodes = scaled.shape[-2:]
        few = types <= nodes
        values, vectors = np.linalg.eigh(
            scaled @ transposed(scaled) if few else transposed(scaled) @ scaled
        )
        kept = values > np.maximum(tolerance * values[..., -1:], 1e-300)
        # at least one direction, an empty one if there is no slope at all, keeps the shapes alive
        rank = max(1, int(kept.sum(axis=-1).max()))
        basis = (vectors * kept[..., None, :])[..., -rank:]
        left, right = (basis, transposed(scaled) @ basis) if few else (scaled @ basis, basis)
        return left / np.sqrt(self.counts)[..., None], right / np.sqrt(self.weights)[..., None]


@dataclass(frozen=True)
class FixedPoint:
    """Solution of eqs. (8)–(11): m_i > 0 and χ_s ≥ 0, with what it took to find it."""

    features: Features
    samples: Array
    ridge: Array
    gain: Array  # (T,) m_i
    chi: Array  # (S,) χ_s
    iterations: Array
    residual: Array
    finite_size: bool = False  # χ counts the mean part too, eq. (27)

    def take(self, index: int) -> FixedPoint:
        """One problem of a stack."""
        features = Features(**one_of(self.features, index))
        return FixedPoint(**one_of(self, index) | {"features": features})


class Core:
    """Matrices of rank R that belong to one (m, χ): eqs. (9)–(10) in low-rank form.

    copies, coordinates : of the block (`Harmonic`); size : (T,) c_i m_i; weights : (S,) w_s
    """

    def __init__(
        self, copies: float, coordinates: Array, u: Array, v: Array, size: Array, weights: Array
    ) -> None:
        self.copies, self.coordinates, self.u, self.v = copies, coordinates, u, v
        self.g = transposed(v) @ (weights[..., None] * v)
        share = size / coordinates[..., None]
        inner = (transposed(u) * share[..., None, :]) @ u
        self.h = np.asarray(np.linalg.inv(np.eye(inner.shape[-1]) + inner @ self.g), float)
        self.k = self.h @ inner
        self.k = 0.5 * (self.k + transposed(self.k))
        self.gh = self.g @ self.h
        self.gh = 0.5 * (self.gh + transposed(self.gh))

    def take(self, index: int) -> Core:
        one = object.__new__(Core)
        arrays = {k: v for k, v in self.__dict__.items() if isinstance(v, np.ndarray)}
        one.__dict__ = self.__dict__ | {k: np.asarray(v[index]) for k, v in arrays.items()}
        return one


def cores_of(features: Features, gain: Array, weights: Array) -> list[Core]:
    """One core for the slopes, and one for each of their harmonics."""
    return [Core(*block, features.counts * gain, weights) for block in features.blocks]


def diagonal(x: Array, inner: Array) -> Array:
    """diag(x inner xᵀ)."""
    return np.einsum("...ij,...ij->...i", x @ inner, x)


def product(matrix: Array, vector: Array) -> Array:
    """matrix @ vector, of one problem or of each in a stack."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def response_kernel(features: Features, cores: Sequence[Core], gain: Array) -> Array:
    """Z⁻¹ of eq. (15): c_i dm_i = −[Z F dw]_i."""
    kernel = np.zeros((*gain.shape, gain.shape[-1]))
    for core in cores:
        square = (core.u @ core.gh @ transposed(core.u)) ** 2
        kernel -= square / (core.coordinates[..., None, None] / core.copies)
    index = np.arange(gain.shape[-1])
    kernel[..., index, index] += 1.0 / (features.counts * gain**2)
    return np.asarray(kernel)


def response_table(cores: Sequence[Core], extra: Array, factors: Sequence[Array]) -> Array:
    """F_is = e_is + b_i² ((W⁻¹P d_i)_s)²  (eq. (14)), at nodes with factors V, one per core."""
    table = extra.copy()
    for core, v in zip(cores, factors, strict=True):
        table += core.copies * (core.u @ transposed(core.h) @ transposed(v)) ** 2
    return table


class Cholesky:
    """Factors of symmetric positive matrices; LAPACK itself, because matrices are small."""

    def __init__(self, matrix: Array, what: str) -> None:
        self.lower = []
        for one in matrix.reshape(-1, *matrix.shape[-2:]):
            lower, failed = dpotrf(one, lower=1)
            if failed:
                raise ConvergenceError(
                    f"{what} is not positive definite at this fixed point, which is therefore not "
                    "the physical one, or is too close to interpolation. Use a larger ridge."
                )
            self.lower.append(lower)

    def solve(self, right: Array) -> Array:
        """right (T,), or (P, T) with a row for each matrix."""
        if right.ndim == 1:
            return np.asarray(dpotrs(self.lower[0], right, lower=1)[0])
        pairs = zip(self.lower, right, strict=True)
        return np.stack([dpotrs(lower, row, lower=1)[0] for lower, row in pairs])

    def take(self, index: int) -> Cholesky:
        one = object.__new__(Cholesky)
        one.lower = [self.lower[index]]
        return one


def mean_share(
    features: Features, gain: Array, weights: Array, mean: Array, extra: Array, v: Array
) -> Array:
    """What the mean part adds to X at the nodes of (mean, extra, v): eq. (28).

    ∂/∂w_s log det(I + WN) at the fixed point in m, with the mean part solved in the types.
    """
    (core,) = cores_of(features, gain, weights)
    size = features.counts * gain
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
    factor = Cholesky(response_kernel(features, [core], gain), "the response of the gains")
    return np.asarray(share - response_table([core], extra, [v]).T @ factor.solve(pushed))


def _map(features: Features, samples: Array, ridge: Array, z: Array, finite_size: bool) -> Array:
    types = features.bulk.shape[-1]
    both = np.exp(z)
    gain, chi = both[..., :types], both[..., types:]
    w = features.weights / (1.0 + chi)
    inverse = ridge[..., None] + product(features.extra, w)
    x = product(transposed(features.extra), features.counts * gain)
    for core in cores_of(features, gain, w):
        inverse += core.copies * diagonal(core.u, core.gh)
        x += core.copies * core.coordinates[..., None] * diagonal(core.v, core.k)
    if finite_size:
        x += mean_share(features, gain, w, features.mean, features.extra, features.factors[1])
    x = np.maximum(x / samples[..., None], 1e-300)
    return np.log(np.concatenate([1.0 / inverse, x], axis=-1))


def solve_fixed_point(
    features: Features,
    samples: float | Array,
    ridge: float | Array,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    finite_size: bool = False,
) -> FixedPoint:
    """Solve eqs. (8)–(11) by Anderson acceleration in (log m, log χ).

    The map is monotone and scalable in these variables, so the solution is unique and plain
    iteration converges; acceleration only makes it quick, and is restarted when it does not
    help. Raises ConvergenceError with advice if `max_iterations` is not enough. An iteration
    costs O((T + S) R²). Problems of a stack converge each on its own.
    finite_size : let χ count the degrees of freedom of the mean part, eqs. (27)–(28); no stacks
    """
    m, ridges, w = np.asarray(samples, float), np.asarray(ridge, float), features.weights
    start = ridges[..., None] + product(features.extra, w)
    start += product(features.slope**2, w) * features.bulk**2
    for harmonic in features.harmonics:
        start += harmonic.copies * product(harmonic.table**2, w)
    first = product(transposed(features.extra), features.counts / start) / m[..., None]
    z = np.concatenate([-np.log(start), np.log(np.maximum(first, 1e-3))], axis=-1)
    shape, types = z.shape, start.shape[-1]
    z = z.reshape(-1, shape[-1])
    found, done = z.copy(), np.zeros(len(z), bool)
    iterations, left = np.zeros(len(z), int), np.full(len(z), np.inf)
    acceleration = Acceleration()
    for iteration in range(1, max_iterations + 1):
        image = _map(features, m, ridges, z.reshape(shape), finite_size).reshape(z.shape)
        change = image - z
        residual = np.abs(change).max(axis=1)
        if not np.all(np.isfinite(residual)):
            raise ConvergenceError(
                "the fixed point of the theory left the numbers a computer can hold; ridge = "
                f"{ridges.min():.3g} is probably too small, or a label or spike too large."
            )
        new = ~done & (residual < tolerance)
        found[new], left[new], iterations[new] = image[new], residual[new], iteration
        done |= new
        if np.all(done):
            both, lead = np.exp(found).reshape(shape), shape[:-1]
            return FixedPoint(
                features, m, ridges, both[..., :types], both[..., types:],
                iterations.reshape(lead), left.reshape(lead), finite_size,
            )  # fmt: skip
        change[done] = 0.0
        z = z + acceleration.step(z, change, residual)
    raise ConvergenceError(
        f"the fixed point of the theory moved by {residual[~done].max():.1e} after "
        f"{max_iterations} iterations (wanted {tolerance:.0e}). A larger ridge than "
        f"{ridges.min():.3g} converges faster, above all where the width is close to the number "
        "of samples."
    )


class Acceleration:
    """Anderson's mixing of the last steps, row by row."""

    def __init__(self) -> None:
        self.steps: list[Array] = []
        self.changes: list[Array] = []
        self.previous: tuple[Array, Array] | None = None
        self.best: Array | None = None

    def step(self, z: Array, change: Array, residual: Array) -> Array:
        best = residual if self.best is None else np.minimum(self.best, residual)
        astray = np.zeros(len(z), bool) if self.best is None else residual > 20 * self.best
        self.best = best
        if self.previous is not None:
            self.steps.append(z - self.previous[0])
            self.changes.append(change - self.previous[1])
            self.steps, self.changes = self.steps[-_MEMORY:], self.changes[-_MEMORY:]
        if np.any(astray):  # acceleration led these rows away: forget it
            for past in (*self.steps, *self.changes):
                past[astray] = 0.0
        self.previous = (z, change)
        if not self.steps:
            return change
        f = np.stack(self.changes, axis=1)  # (P, memory, N)
        size = np.sqrt(np.einsum("pij,pij->pi", f, f)) + 1e-300
        f /= size[:, :, None]
        gram = f @ transposed(f)
        gram[:, np.arange(len(self.steps)), np.arange(len(self.steps))] += _DAMPING
        mixing = np.linalg.solve(gram, f @ change[:, :, None])[:, None, :, 0]
        moved = np.stack(self.steps, axis=1) / size[:, :, None] + f
        step = change - (mixing @ moved)[:, 0]
        # A step of more than e³ in one go is a sign of a bad extrapolation, not of progress.
        wild = ~(np.abs(step).max(axis=1) < 3.0)
        step[wild] = change[wild]
        return np.asarray(step)
