"""The mean logarithm of the volume that a readout leaves, to order one:
docs/book/chance-and-size.md.

E log det(λ + ΦᵀΦ/m) of the conditional Gaussian features is a free energy S at its stationary point
plus terms of order one. S has the fields x = (Q_s, p_i) and y = (ŵ_s, m̂_i), and is a pair of
functions coupled by x·y,

    S = A(x) − x·y + B(y)  (eq. two-functions)
    A = m Σ_s ω_s log(1 + Q_s/m) + Σ_i c_i log p_i + log det(I + WN)  (eq. two-parts)
    B = Σ_i m̂_i (λ + Σ_s ŵ_s e_is) + Σ_B c_B p_B log det(I + ŴΘ_B)
    w_s = ω_s/(1 + Q_s/m),  N = Σ_i (c_i/p_i) ν_i ν_iᵀ,  Θ_B = (1/p_B) Σ_i m̂_i t_i t_iᵀ

Without log det(I + WN) its stationary point is the fixed point of docs/book (m̂ = c m,
p = 1/m, ŵ = w). Functions here are analytic: numbers may be complex. Equations are named as in
docs/book/chance-and-size.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, lu_factor, lu_solve

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.features import NodeFeatures
from onegrad.theory.readout.fixed_point import FixedPoint
from onegrad.theory.size.cumulants import Cumulants, Local

_NEWTON = 30  # iterations; from the fixed point without log det(I + WN) it takes about four
_CLOSE = 1e-7  # relative change of the fields at which Newton stops: its square is what is left
_IMAGINARY = 1e-30  # a step so small that derivatives along i have no truncation error
_NOISE_RANK = 1e-2  # singular values of e below this share of the largest are dropped in B''
_SLOPE_RANK = 1e-3  # the same for slopes and harmonics;
_MOST = 10  # most singular values of each;
_MOST_PAIRS = 100  # most pairs of harmonics


class Second(NamedTuple):
    """A matrix diag(a) M diag(a) + B K Bᵀ that is not formed."""

    matrix: Array
    scale: Array
    seen: Array
    kernel: Array

    @property
    def diagonal(self) -> Array:
        through = np.einsum("sa,sa->s", self.seen @ self.kernel, self.seen)
        return np.asarray(self.scale**2 * self.matrix.diagonal() + through)

    def form(self, vector: Array) -> complex:
        """vᵀ times it times v."""
        scaled, seen = self.scale * vector, vector @ self.seen
        return complex(scaled @ self.matrix @ scaled + seen @ self.kernel @ seen)


@dataclass(frozen=True)
class Resampling:
    """Whose fluctuations count beside the fields: which samples were drawn, and which neurons.

    groups : (S,) nodes with the same number share a fixed number of samples: all of them, or
        those of a component where the counts of the components are fixed
    """

    groups: np.ndarray
    samples: bool = True
    neurons: bool = True

    def over_weights(self, weights: Array, second: Second) -> complex:
        """Tr[second (diag ω − Σ_g ω_g ω_gᵀ/|ω_g|)]: a multinomial draw within each group."""
        total = second.diagonal @ weights
        for group in np.unique(self.groups):
            mine = weights * (self.groups == group)
            total -= second.form(mine) / mine.sum()
        return complex(total)

    @staticmethod
    def over_counts(counts: Array, second: Second) -> complex:
        """Tr[second (diag c − c cᵀ/k)]."""
        return complex(second.diagonal @ counts - second.form(counts) / counts.sum())


def real_product(real: Array, other: Array) -> Array:
    """real @ other, without making complex numbers of the real ones."""
    if not np.iscomplexobj(other):
        return np.asarray(real @ other)
    found = np.empty((real.shape[0], other.shape[1]), complex)
    found.real, found.imag = real @ other.real, real @ other.imag
    return found


class Parameters(NamedTuple):
    """What errors are derivatives by.

    ridge : λ
    label : ε². The label is one more neuron, ν = ε ȳ, e = ε² Var[y|κ], of ridge one
    fresh : τ. Fresh samples count τ ω_s in every sum over samples, but are not fitted
    """

    ridge: complex
    label: complex = 0.0
    fresh: complex = 0.0


class SamplePart(NamedTuple):
    """A and its derivatives by x = (Q, p), and by θ = (ω, c), on which nothing else depends.

    With M the second derivative of log det(I + WN) by v = (w, n),

        A_xx = v_x M v_x + bent,  A_θx = v_θ M v_x + mixed,  A_θθ = v_θ M v_θ

    and all but M diagonal.
    """

    value: complex
    gradient: Array
    matrix: Array  # (S + T, S + T) M
    by_fields: Array  # (S + T,) v_x
    by_drawn: Array  # (S + T,) v_θ
    bent: Array  # (S + T,)
    mixed: Array  # (S + T,)
    felt: Array  # (T, S) (I − CΩ)ν
    label: Array  # (S + T,) ∂²A/∂x∂ε²

    def through(self, columns: Array) -> Array:
        """M v_x times real columns."""
        return real_product(columns.T, (self.matrix * self.by_fields).T).T

    def hessian_times(self, columns: Array, through: Array | None = None) -> Array:
        """A_xx times real columns; through : as above, if it is known."""
        found = self.through(columns) if through is None else through
        return np.asarray(self.by_fields[:, None] * found + self.bent[:, None] * columns)

    def drawn_times(self, columns: Array, through: Array) -> Array:
        """A_θx times real columns."""
        return np.asarray(self.by_drawn[:, None] * through + self.mixed[:, None] * columns)


class BulkPart(NamedTuple):
    """B and its derivatives by y; its Hessian is Φ·inner·Φᵀ with the fixed Φ of `FreeEnergy`."""

    value: complex
    gradient: Array
    inner: Array


class _Block(NamedTuple):
    """A table t = U Vᵀ with its c_B and p_B, and the columns of its squares (t_is)²."""

    copies: float
    size: float
    u: Array
    v: Array
    nodes: Array  # (S, R(R+1)/2) products of two columns of V
    types: Array  # (T, R(R+1)/2) of U

    def systems(self, w: Array, gain: Array) -> tuple[Array, Array, Array]:
        """G = VᵀŴV, T = Uᵀ(M̂/p)U and I + TG, whose inverse is H."""
        g, t = (self.v.T * w) @ self.v, (self.u.T * (gain / self.size)) @ self.u
        return g, t, np.eye(len(t)) + t @ g


@dataclass(frozen=True)
class FreeEnergy:
    """S of some features without a tilt, fitted to `samples`, and what fluctuates. Eqs. saddle and
    two-functions (eq. saddle-parts).

    cumulants : cumulants of the features beyond their Gaussian equivalent, or None
    """

    features: NodeFeatures
    samples: float
    resampling: Resampling
    cumulants: Cumulants | None = None

    @classmethod
    def of(
        cls,
        features: NodeFeatures,
        samples: float,
        resampling: Resampling,
        cumulants: Cumulants | None = None,
    ) -> FreeEnergy:
        """Features with slopes and harmonics of low rank; the dropped part is added to e."""
        extra, tables = features.extra, []
        whole = [features.slope * features.bulk[:, None]] + [h.table for h in features.harmonics]
        for rank, table, (copies, _, u, v) in zip(
            _ranks(features), whole, features.blocks, strict=True
        ):
            kept = np.argsort(-_sizes(u, v, features))[:rank]
            tables.append(u[:, kept] @ v[:, kept].T)
            extra = extra + copies * (table**2 - tables[-1] ** 2)
        slopes, *others = tables
        harmonics = tuple(
            h._replace(table=table) for h, table in zip(features.harmonics, others, strict=True)
        )
        low = replace(
            features, slope=slopes / features.bulk[:, None], extra=extra, harmonics=harmonics
        )
        return cls(low, samples, resampling, cumulants)

    @property
    def nodes(self) -> int:
        return len(self.features.weights)

    @cached_property
    def _means(self) -> Array:
        """(T + 1, S): ν of the types, and last ȳ."""
        return np.concatenate([self.features.mean, self.features.labels[None]])

    @cached_property
    def _blocks(self) -> list[_Block]:
        return [
            _Block(copies, float(size), u, v, _squares(v), _squares(u))
            for copies, size, u, v in self.features.blocks
        ]

    @cached_property
    def directions(self) -> Array:
        """Φ (S + T, b): the directions of y in which B is curved."""
        left, values, right = np.linalg.svd(self.features.extra, full_matrices=False)
        rank = max(1, int((values > _NOISE_RANK * max(values[0], 1e-300)).sum()))
        root = np.sqrt(values[:rank])
        nodes = [block.nodes for block in self._blocks] + [right[:rank].T * root]
        types = [block.types for block in self._blocks] + [left[:, :rank] * root]
        return np.asarray(block_diag(np.concatenate(nodes, 1), np.concatenate(types, 1)))

    def sample_part(self, x: Array, at: Parameters) -> SamplePart:
        """A of eq. two-parts.

        With n_i = c_i/p_i, C = νWνᵀ and Ω = (diag(1/n) + C)⁻¹, L = log det(I + WN) has

            L_w = diag A, L_n = diag Γ, L_ww = −A², L_nn = −Γ², L_nw = E²  (entry by entry)
            A = νᵀΩν,  Γ = C − CΩC,  E = (I − CΩ)ν
        """
        m, omega, c, s = self.samples, self.features.weights, self.features.counts, self.nodes
        q, p = x[:s], x[s:]
        g = 1 + q / m
        w, w_q, w_qq = omega / g, -omega / (m * g**2), 2 * omega / (m**2 * g**3)
        n, n_p, n_pp = np.append(c / p, at.label), -c / p**2, 2 * c / p**3
        means = self._means
        overlap = real_product(means, (means * (w + at.fresh * omega)).T).T
        system = np.eye(len(n)) + overlap * n
        resolvent = n[:, None] * np.linalg.inv(system)
        through = overlap @ resolvent
        felt = means - real_product(means.T, through.T).T
        gamma = overlap - through @ overlap
        a = real_product(means.T, real_product(means.T, resolvent.T).T)
        left, types = felt[:-1] ** 2, gamma[:-1, :-1]
        matrix = np.empty((len(x), len(x)), a.dtype)
        np.multiply(a, -a, out=matrix[:s, :s])
        np.multiply(types, -types, out=matrix[s:, s:])
        matrix[s:, :s], matrix[:s, s:] = left, left.T
        by_w, by_n, by_fields = a.diagonal(), types.diagonal(), np.concatenate([w_q, n_p])
        value = m * omega @ np.log(g) + c @ np.log(p) + _log_det(system)
        label = by_fields * np.concatenate([felt[-1] ** 2, -(gamma[-1, :-1] ** 2)])
        return SamplePart(
            complex(value), np.concatenate([omega / g + by_w * w_q, c / p + by_n * n_p]), matrix,
            by_fields, np.concatenate([1 / g, 1 / p]),
            np.concatenate([-omega / (m * g**2) + by_w * w_qq, -c / p**2 + by_n * n_pp]),
            np.concatenate([1 / g - by_w / (m * g**2), 1 / p - by_n / p**2]), felt[:-1], label,
        )  # fmt: skip

    def bulk_part(self, y: Array, at: Parameters) -> BulkPart:
        """B of eq. two-parts. With G, H, K of eq. low-rank (woodbury.py) for each block,

        B_ŵŵ = −c_B p_B (VKVᵀ)²,  B_ŵm̂ = eᵀ + c_B (VHUᵀ)²,  B_m̂m̂ = −(c_B/p_B) (UGHUᵀ)²
        """
        f, s = self.features, self.nodes
        w, gain, noise = y[:s] + at.fresh * f.weights, y[s:], at.label * f.noise
        value = at.ridge * gain.sum() + gain @ f.extra @ w + noise @ w
        by_w, by_gain = f.extra.T @ gain + noise, at.ridge + f.extra @ w
        half, start = self.directions.shape[1] // 2, 0
        inner = np.zeros((2 * half, 2 * half), np.result_type(w, gain))
        for block in self._blocks:
            copies, size, u, v, _, _ = block
            g, t, system = block.systems(w, gain)
            h = np.linalg.inv(system)
            k, gh = h @ t, g @ h
            value = value + copies * size * _log_det(system)
            by_w = by_w + copies * size * _diagonal(v, k)
            by_gain = by_gain + copies * _diagonal(u, gh)
            both = copies * _square(h)
            nodes = slice(start, start + len(both))
            types = slice(half + start, half + start + len(both))
            inner[nodes, nodes] = -copies * size * _square(k)
            inner[nodes, types], inner[types, nodes] = both, both.T
            inner[types, types] = -copies / size * _square(gh)
            start += len(both)
        noisy = np.arange(start, half)  # e is linear in either
        inner[noisy, half + noisy] = inner[half + noisy, noisy] = 1.0
        return BulkPart(value, np.concatenate([by_w, by_gain]), inner)

    def start(self, point: FixedPoint) -> tuple[Array, Array]:
        """The fields at the fixed point of docs/book/fixed-point.md."""
        x = np.concatenate([point.chi * self.samples, 1 / point.gain])
        return x, np.concatenate([point.weights, self.features.counts * point.gain])

    def stationary(self, x: Array, y: Array, at: Parameters) -> tuple[Array, Array]:
        """x, y with A'(x) = y and B'(y) = x, by Newton; all fields stay positive.

        (I − B″A″) dx = (B' − x) + B″(A' − y),  dy = A' − y + A″dx
        """
        for _ in range(_NEWTON):
            a, b = self.sample_part(x, at), self.bulk_part(y, at)
            dx, dy = self._response(a, b.inner, a.gradient - y, b.gradient - x)
            step = min(1.0, 0.5 / max(np.max(-dx / x), np.max(-dy / y), 1e-300))
            x, y = x + step * dx, y + step * dy
            change = max(np.max(np.abs(dx / x)), np.max(np.abs(dy / y)))
            if not np.isfinite(change):
                break
            if change < _CLOSE:
                return x, y
        raise ConvergenceError(
            "the finite-size correction of the theory did not converge; the problem is too close "
            "to interpolation. Use a larger ridge, a width further from the number of samples, or "
            "finite_size = false."
        )

    def _response(
        self, a: SamplePart, inner: Array, push_x: Array, push_y: Array
    ) -> tuple[Array, Array]:
        """How the fields move when the gradients of A and B get these additions.

        (I − B″A″)⁻¹ = I + Φ (I − inner ΦᵀA″Φ)⁻¹ inner ΦᵀA″ with B″ = Φ inner Φᵀ.
        """
        phi = self.directions
        right = push_y + phi @ (inner @ (phi.T @ push_x))
        bent = a.hessian_times(phi, self._through(a))
        system = np.eye(len(inner)) - inner @ (phi.T @ bent)
        dx = right + phi @ np.linalg.solve(system, inner @ (bent.T @ right))
        return dx, push_x + a.hessian_times(dx[:, None])[:, 0]

    def _through(self, a: SamplePart) -> Array:
        """`SamplePart.through` of Φ, which has two blocks."""
        phi, s = self.directions, self.nodes
        half, scaled = phi.shape[1] // 2, a.matrix * a.by_fields
        parts = [(phi[:s, :half], scaled[:, :s]), (phi[s:, half:], scaled[:, s:])]
        return np.concatenate([real_product(f.T, part.T).T for f, part in parts], axis=1)

    def value(self, x: Array, y: Array, at: Parameters) -> complex:
        return complex(sum(self.parts(x, y, at)))

    def parts(self, x: Array, y: Array, at: Parameters) -> tuple[complex, complex]:
        """F = S + ½ log|det S″| + ½ Tr[S″_θθ Cov θ] at a stationary point, and what `Cumulants`
        add to it (eq. fluctuations).

        S″_θθ = A_θθ + A_θx (I − B″A″)⁻¹ B″ A_xθ is the total second derivative by what fluctuates
        beside the fields, θ = ω with covariance (diag ω − ωωᵀ)/m and θ = c with diag c − ccᵀ/k.
        """
        a, b, phi, s = self.sample_part(x, at), self.bulk_part(y, at), self.directions, self.nodes
        through = self._through(a)
        curved = real_product(phi.T, a.hessian_times(phi, through))
        factors = lu_factor(np.eye(len(b.inner)) - b.inner @ curved, check_finite=False)
        total = a.value - x @ y + b.value + 0.5 * _log_of(factors[0].diagonal())
        kernel, f = lu_solve(factors, b.inner, check_finite=False), self.features
        seen = a.drawn_times(phi, through)
        if self.resampling.samples:
            second = Second(a.matrix[:s, :s], a.by_drawn[:s], seen[:s], kernel)
            total += 0.5 / self.samples * self.resampling.over_weights(f.weights, second)
        if self.resampling.neurons:
            second = Second(a.matrix[s:, s:], a.by_drawn[s:], seen[s:], kernel)
            total += 0.5 * self.resampling.over_counts(f.counts, second)
        if self.cumulants is None:
            return complex(total), 0j
        local = self._local(y, at, a.felt, self.cumulants.shares)
        return complex(total), self.cumulants.energy(local)

    def _local(self, y: Array, at: Parameters, felt: Array, shares: Array | None) -> Local:
        """Sums over the blocks of the bulk; of slopes what is left along z = Σ_B b_iB z_B/b_i."""
        f, s = self.features, self.nodes
        w, gains = y[:s] + at.fresh * f.weights, y[s:]
        along = np.ones((len(gains), 1)) if shares is None else np.sqrt(shares)
        slopes: Array | float = 0.0
        types, nodes = np.zeros_like(gains), np.zeros_like(w)
        for block, part in zip(self._blocks, along.T, strict=False):
            u, v, size = block.u, block.v, block.size
            g, t, system = block.systems(w, gains)
            h = np.linalg.inv(system)
            slopes = slopes + part[:, None] * (u @ h.T @ v.T)
            types, nodes = types + _diagonal(u, g @ h), nodes + size * _diagonal(v, h @ t)
        return Local(
            np.asarray(slopes), felt, gains**2 / f.counts,
            y[:s] ** 2 / (self.samples * f.weights), types, nodes, gains, w,
        )  # fmt: skip

    def objective_parts(self, x: Array, y: Array, at: Parameters) -> Array:
        """(2,) E L = ∂F/∂ε² at ε = 0 and a stationary point, the mean of the minimal objective:
        without `Cumulants`, and what they add.

        By a step along the imaginary axis, with which the fields move.
        """
        a, inner = self.sample_part(x, at), self.bulk_part(y, at).inner
        push_y = np.concatenate([self.features.noise, np.zeros(len(y) - self.nodes)])
        dx, dy = self._response(a, inner, a.label, push_y)
        moved = x + 1j * _IMAGINARY * dx, y + 1j * _IMAGINARY * dy
        near = at._replace(label=1j * _IMAGINARY)
        return np.array(self.parts(*moved, near)).imag / _IMAGINARY


def _ranks(features: NodeFeatures) -> list[int]:
    """How many singular values of each block are kept: of the slopes by their own sizes, of the
    harmonics the largest ones of all of them as long as there is room for their pairs."""
    first, *others = [np.sort(_sizes(u, v, features))[::-1] for _, _, u, v in features.blocks]
    ranks = [min(_MOST, int((first > _SLOPE_RANK * first[0]).sum()))] + [0] * len(others)
    scaled = [math.sqrt(h.copies) * x for h, x in zip(features.harmonics, others, strict=True)]
    order = sorted(((-x, j) for j, own in enumerate(scaled, 1) for x in own[:_MOST].tolist()))
    room = _MOST_PAIRS
    for size, j in order:
        room -= ranks[j] + 1
        if room < 0 or -size < _SLOPE_RANK * max(first[0], -order[0][0]):
            break
        ranks[j] += 1
    return ranks


def _sizes(u: Array, v: Array, features: NodeFeatures) -> Array:
    """Singular values of U Vᵀ: √c·U has orthogonal columns, √ω·V too."""
    return np.sqrt((features.counts @ u**2) * (features.weights @ v**2))


def _squares(v: Array) -> Array:
    """Columns v_a v_b, a ≤ b, with (V K Uᵀ)² = squares(V) _square(K) squares(U)ᵀ."""
    first, second = np.triu_indices(v.shape[1])
    return np.asarray(v[:, first] * v[:, second] * np.where(first == second, 1.0, np.sqrt(2)))


def _square(k: np.ndarray) -> Array:
    """K ⊗ K on symmetric pairs."""
    first, second, scale = _pairs(len(k))
    rows, others = k[first], k[second]
    pairs = rows[:, first] * others[:, second]
    pairs += rows[:, second] * others[:, first]
    return np.asarray(pairs * scale)


@lru_cache(maxsize=64)
def _pairs(rank: int) -> tuple[np.ndarray, np.ndarray, Array]:
    first, second = np.triu_indices(rank)
    scale = np.where(first == second, np.sqrt(0.5), 1.0)
    return first, second, np.outer(scale, scale)


def _diagonal(v: Array, k: Array) -> Array:
    """diag(V K Vᵀ)."""
    return np.einsum("sa,sa->s", real_product(v, k), v)


def _log_det(matrix: Array) -> complex:
    return _log_of(lu_factor(matrix, check_finite=False)[0].diagonal())


def _log_of(pivots: Array) -> complex:
    """Σ log|pivots|, analytic around the real axis."""
    return complex(np.log(pivots * np.sign(pivots.real)).sum())
