"""The mean logarithm of the volume that a readout leaves, to order one: docs/finite-size.md.

E log det(λ + ΦᵀΦ/m) of the conditional Gaussian features is a free energy S at its stationary point
plus terms of order one. S has the fields x = (Q_s, p_i) and y = (ŵ_s, m̂_i), and is a pair of
functions coupled by x·y,

    S = A(x) − x·y + B(y)                                                                   (5)
    A = m Σ_s ω_s log(1 + Q_s/m) + Σ_i c_i log p_i + log det(I + WN)                        (6)
    B = Σ_i m̂_i (λ + Σ_s ŵ_s e_is) + Σ_B c_B p_B log det(I + ŴΘ_B)
    w_s = ω_s/(1 + Q_s/m),  N = Σ_i (c_i/p_i) ν_i ν_iᵀ,  Θ_B = (1/p_B) Σ_i m̂_i t_i t_iᵀ

Without log det(I + WN) its stationary point is the fixed point of docs/theory.md (m̂ = c m,
p = 1/m, ŵ = w). Functions here are analytic: numbers may be complex. Equation numbers are those of
docs/finite-size.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, lu_factor, lu_solve

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.cumulants import Cumulants, Local
from onegrad.theory.fixed_point import FixedPoint
from onegrad.theory.layers.features import NodeFeatures

_NEWTON = 30  # iterations; from the fixed point without log det(I + WN) it takes about four
_CLOSE = 1e-10  # relative change of the fields at which Newton stops
_IMAGINARY = 1e-30  # a step so small that derivatives along i have no truncation error
_NOISE_RANK = 1e-2  # singular values of e below this part of the largest do not bend B
_SLOPE_RANK = 1e-3  # the same for slopes and harmonics, and at most so many of them:
_MOST = 10


class Parameters(NamedTuple):
    """What errors are derivatives by.

    ridge : λ
    label : ε². The label is one more neuron, ν = ε ȳ, e = ε² Var[y|κ], of ridge one
    fresh : τ. Fresh samples count τ ω_s in every sum over samples, but are not fitted
    """

    ridge: complex
    label: complex = 0.0
    fresh: complex = 0.0


@dataclass(frozen=True)
class Resampling:
    """Whose fluctuations count beside the fields: which samples were drawn, and which neurons.

    groups : (S,) nodes with the same number share a fixed number of samples: all of them, or
        those of a component where the counts of the components are fixed
    """

    groups: np.ndarray
    samples: bool = True
    neurons: bool = True

    def over_weights(self, weights: Array, second: Array) -> complex:
        """Tr[second (diag ω − Σ_g ω_g ω_gᵀ/|ω_g|)]: a multinomial draw within each group."""
        total = second.diagonal() @ weights
        for group in np.unique(self.groups):
            mine = weights * (self.groups == group)
            total -= mine @ second @ mine / mine.sum()
        return complex(total)

    @staticmethod
    def over_counts(counts: Array, second: Array) -> complex:
        """Tr[second (diag c − c cᵀ/k)]."""
        return complex(second.diagonal() @ counts - counts @ second @ counts / counts.sum())


class SamplePart(NamedTuple):
    """A and its derivatives by x = (Q, p), and by ω and c, on which nothing else depends."""

    value: complex
    gradient: Array
    hessian: Array
    weights: Array  # ∂²A/∂ω∂ω
    counts: Array  # ∂²A/∂c∂c
    weights_fields: Array  # ∂²A/∂ω∂x
    counts_fields: Array  # ∂²A/∂c∂x
    felt: Array  # (T, S) (I − CΩ)ν


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


@dataclass(frozen=True)
class FreeEnergy:
    """S of some features without a tilt, fitted to `samples`, and what fluctuates.

    cumulants : of the features beyond their Gaussian equivalent, or None
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
        """With slopes and harmonics of low rank; what that leaves out joins e (of either sign)."""
        extra = features.extra
        _, _, u, v = features.blocks[0]
        slopes = _low_rank(u, v, features)
        extra = extra + (u @ v.T) ** 2 - slopes**2
        harmonics = []
        for harmonic, (_, _, u, v) in zip(features.harmonics, features.blocks[1:], strict=True):
            table = _low_rank(u, v, features)
            extra = extra + harmonic.copies * (harmonic.table**2 - table**2)
            harmonics.append(harmonic._replace(table=table))
        low = replace(
            features, slope=slopes / features.bulk[:, None], extra=extra,
            harmonics=tuple(harmonics),
        )  # fmt: skip
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
        """A of eq. (6).

        With n_i = c_i/p_i, C = νWνᵀ and Ω = (diag(1/n) + C)⁻¹, L = log det(I + WN) has

            L_w = diag A, L_n = diag Γ, L_ww = −A², L_nn = −Γ², L_nw = E²  (entry by entry)
            A = νᵀΩν,  Γ = C − CΩC,  E = (I − CΩ)ν
        """
        m, omega, c, s = self.samples, self.features.weights, self.features.counts, self.nodes
        q, p = x[:s], x[s:]
        g = 1 + q / m
        w, w_q, w_qq = omega / g, -omega / (m * g**2), 2 * omega / (m**2 * g**3)
        n, n_p, n_pp = np.append(c / p, at.label), -c / p**2, 2 * c / p**3
        overlap = (self._means * (w + at.fresh * omega)) @ self._means.T
        system = np.eye(len(n)) + overlap * n
        resolvent = n[:, None] * np.linalg.inv(system)
        through = overlap @ resolvent
        felt = (self._means - through @ self._means)[:-1]
        left = felt**2
        gamma = (overlap - through @ overlap)[:-1, :-1]
        a = self._means.T @ resolvent @ self._means
        by_w, by_n, ww, nn = a.diagonal(), gamma.diagonal(), -(a**2), -(gamma**2)
        value = m * omega @ np.log(g) + c @ np.log(p) + _log_det(system)
        hessian = np.empty((len(x), len(x)), ww.dtype)
        hessian[:s, :s] = w_q[:, None] * ww * w_q
        hessian[s:, s:] = n_p[:, None] * nn * n_p
        hessian[s:, :s] = n_p[:, None] * left * w_q
        hessian[:s, s:] = hessian[s:, :s].T
        bent = [-omega / (m * g**2) + by_w * w_qq, -c / p**2 + by_n * n_pp]
        hessian[np.diag_indices(len(x))] += np.concatenate(bent)
        weights_fields = np.concatenate([ww * w_q, left.T * n_p], axis=1) / g[:, None]
        weights_fields[:, :s] += np.diag(1 / g - by_w / (m * g**2))
        counts_fields = np.concatenate([left * w_q, nn * n_p], axis=1) / p[:, None]
        counts_fields[:, s:] += np.diag(1 / p - by_n / p**2)
        return SamplePart(
            complex(value), np.concatenate([omega / g + by_w * w_q, c / p + by_n * n_p]), hessian,
            ww / np.outer(g, g), nn / np.outer(p, p), weights_fields, counts_fields, felt,
        )  # fmt: skip

    def bulk_part(self, y: Array, at: Parameters) -> BulkPart:
        """B of eq. (6). With G, H, K of docs/theory.md (woodbury.py) for each block,

        B_ŵŵ = −c_B p_B (VKVᵀ)²,  B_ŵm̂ = eᵀ + c_B (VHUᵀ)²,  B_m̂m̂ = −(c_B/p_B) (UGHUᵀ)²
        """
        f, s = self.features, self.nodes
        w, gain, noise = y[:s] + at.fresh * f.weights, y[s:], at.label * f.noise
        value = at.ridge * gain.sum() + gain @ f.extra @ w + noise @ w
        by_w, by_gain = f.extra.T @ gain + noise, at.ridge + f.extra @ w
        of_nodes, of_both, of_types = [], [], []
        for copies, size, u, v, _, _ in self._blocks:
            g, t = (v.T * w) @ v, (u.T * (gain / size)) @ u
            system = np.eye(len(t)) + t @ g
            h = np.linalg.inv(system)
            k, gh = h @ t, g @ h
            value = value + copies * size * _log_det(system)
            by_w = by_w + copies * size * np.einsum("sa,ab,sb->s", v, k, v, optimize=True)
            by_gain = by_gain + copies * np.einsum("ta,ab,tb->t", u, gh, u, optimize=True)
            of_nodes.append(-copies * size * _square(k))
            of_both.append(copies * _square(h))
            of_types.append(-copies / size * _square(gh))
        rank = self.directions.shape[1] // 2 - sum(len(part) for part in of_both)
        none = np.zeros((rank, rank))
        both = block_diag(*of_both, np.eye(rank))
        inner = np.block(
            [[block_diag(*of_nodes, none), both], [both.T, block_diag(*of_types, none)]]
        )
        return BulkPart(value, np.concatenate([by_w, by_gain]), inner)

    def start(self, point: FixedPoint) -> tuple[Array, Array]:
        """The fields at the fixed point of docs/theory.md."""
        x = np.concatenate([point.chi * self.samples, 1 / point.gain])
        return x, np.concatenate([point.weights, self.features.counts * point.gain])

    def stationary(self, x: Array, y: Array, at: Parameters) -> tuple[Array, Array]:
        """x, y with A'(x) = y and B'(y) = x, by Newton; all fields stay positive.

        (I − B″A″) dx = (B' − x) + B″(A' − y),  dy = A' − y + A″dx
        """
        for _ in range(_NEWTON):
            a, b = self.sample_part(x, at), self.bulk_part(y, at)
            dx, dy = self._response(a.hessian, b.inner, a.gradient - y, b.gradient - x)
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
        self, hessian: Array, inner: Array, push_x: Array, push_y: Array
    ) -> tuple[Array, Array]:
        """How the fields move when the gradients of A and B get these additions.

        (I − B″A″)⁻¹ = I + Φ (I − inner ΦᵀA″Φ)⁻¹ inner ΦᵀA″ with B″ = Φ inner Φᵀ.
        """
        phi = self.directions
        right = push_y + phi @ (inner @ (phi.T @ push_x))
        bent = hessian @ phi
        system = np.eye(len(inner)) - inner @ (phi.T @ bent)
        dx = right + phi @ np.linalg.solve(system, inner @ (bent.T @ right))
        return dx, push_x + hessian @ dx

    def value(self, x: Array, y: Array, at: Parameters) -> complex:
        """F = S + ½ log|det S″| + ½ Tr[S″_θθ Cov θ] (+ `Cumulants.energy`) at a stationary point.

        S″_θθ = A_θθ + A_θx (I − B″A″)⁻¹ B″ A_xθ is the total second derivative by what fluctuates
        beside the fields, θ = ω with covariance (diag ω − ωωᵀ)/m and θ = c with diag c − ccᵀ/k.
        """
        a, b, phi = self.sample_part(x, at), self.bulk_part(y, at), self.directions
        system = np.eye(len(b.inner)) - b.inner @ (phi.T @ (a.hessian @ phi))
        factors = lu_factor(system, check_finite=False)
        total = a.value - x @ y + b.value + 0.5 * _log_of(factors[0].diagonal())
        kernel, f = lu_solve(factors, b.inner, check_finite=False), self.features
        if self.resampling.samples:
            seen = a.weights_fields @ phi
            second = a.weights + seen @ kernel @ seen.T
            total += 0.5 / self.samples * self.resampling.over_weights(f.weights, second)
        if self.resampling.neurons:
            seen = a.counts_fields @ phi
            second = a.counts + seen @ kernel @ seen.T
            total += 0.5 * self.resampling.over_counts(f.counts, second)
        if self.cumulants is not None:
            total += self.cumulants.energy(self._local(y, at, a.felt))
        return complex(total)

    def _local(self, y: Array, at: Parameters, felt: Array) -> Local:
        f, s = self.features, self.nodes
        w, gains, u, v = y[:s] + at.fresh * f.weights, y[s:], self._blocks[0].u, self._blocks[0].v
        size = self._blocks[0].size
        g, t = (v.T * w) @ v, (u.T * (gains / size)) @ u
        h = np.linalg.inv(np.eye(len(t)) + t @ g)
        return Local(
            u @ h.T @ v.T, felt, gains**2 / f.counts, y[:s] ** 2 / (self.samples * f.weights),
            np.einsum("ta,ab,tb->t", u, g @ h, u, optimize=True),
            size * np.einsum("sa,ab,sb->s", v, h @ t, v, optimize=True), gains, w,
        )  # fmt: skip

    def objective(self, x: Array, y: Array, at: Parameters) -> float:
        """E L = ∂F/∂ε² at ε = 0 and a stationary point: the mean of the minimal objective.

        By a step along the imaginary axis, with which the fields move.
        """
        near = at._replace(label=1j * _IMAGINARY)
        push_x = self.sample_part(x, near).gradient.imag / _IMAGINARY
        push_y = np.concatenate([self.features.noise, np.zeros(len(y) - self.nodes)])
        hessian, inner = self.sample_part(x, at).hessian, self.bulk_part(y, at).inner
        dx, dy = self._response(hessian, inner, push_x, push_y)
        moved = x + 1j * _IMAGINARY * dx, y + 1j * _IMAGINARY * dy
        return self.value(*moved, near).imag / _IMAGINARY


def _low_rank(u: Array, v: Array, features: NodeFeatures) -> Array:
    """U Vᵀ without its small singular values; √c·U has orthogonal columns, √ω·V too."""
    size = np.sqrt((features.counts @ u**2) * (features.weights @ v**2))
    kept = np.argsort(-size)[:_MOST]
    kept = kept[size[kept] > _SLOPE_RANK * size.max()]
    return np.asarray(u[:, kept] @ v[:, kept].T)


def _squares(v: Array) -> Array:
    """Columns v_a v_b, a ≤ b, with (V K Uᵀ)² = squares(V) _square(K) squares(U)ᵀ."""
    first, second = np.triu_indices(v.shape[1])
    return np.asarray(v[:, first] * v[:, second] * np.where(first == second, 1.0, np.sqrt(2)))


def _square(k: np.ndarray) -> Array:
    """K ⊗ K on symmetric pairs."""
    first, second = np.triu_indices(len(k))
    scale = np.where(first == second, np.sqrt(0.5), 1.0)
    pairs = k[np.ix_(first, first)] * k[np.ix_(second, second)]
    pairs = pairs + k[np.ix_(first, second)] * k[np.ix_(second, first)]
    return np.asarray(pairs * np.outer(scale, scale))


def _log_det(matrix: Array) -> complex:
    return _log_of(lu_factor(matrix, check_finite=False)[0].diagonal())


def _log_of(pivots: Array) -> complex:
    """Σ log|pivots|, analytic around the real axis."""
    return complex(np.log(pivots * np.sign(pivots.real)).sum())
