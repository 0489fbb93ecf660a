"""Deterministic equivalent of a resolvent (FᵀF/m − z)⁻¹, types of rows by nodes of samples.

The fixed point of the readout (docs/book/fixed-point.md) at the ridge −z, without the mean part
of the features, which is of finite rank. Equations are named as in docs/book/structure.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.features import Harmonic
from onegrad.theory.readout.anderson import Acceleration

_RANK = 1e-6  # squared singular values of tables that are left out, over the largest
_RANK_OF_MANY = 1e-3  # the same for three tables and more (a bulk that is not flat), for speed
_TOLERANCE = 1e-5  # last step of log m and log(1 + χ)
_ITERATIONS = 3000  # iterations allowed near zero; elsewhere about 20 are enough
_CROSSING = 600  # iterations on the real line: slower points lie within 1e-5 of the edge
_SMOOTHING = 0.02  # imaginary part of z over its real part, extrapolated from twice as much
_STAGES = 4  # halvings of the imaginary part, from a value at which every start converges
_EDGE = 5e-4  # relative accuracy of the edge


class Point(NamedTuple):
    """m_i and w_s = ω_s/(1 + χ_s) at some z: (P, T) and (P, S)."""

    gain: Array
    weights: Array


class Roots(NamedTuple):
    """−(M⁻¹ − QPQᵀ)⁻¹ at a real point, M = diag(c m) < 0 and Q_is = tilt_i d_is as in
    eq. tilt: C^½ (I + U diag(s) Uᵀ)⁻¹ C^½ with C = −M, U (T, R) orthonormal."""

    gain: Array  # (T,) C^½
    vectors: Array  # U
    squares: Array  # (R,) s

    def times(self, table: Array) -> Array:
        """A root of it times (T, R')."""
        scaled = self.gain[:, None] * table
        less = 1 - 1 / np.sqrt(1 + self.squares)
        return np.asarray(scaled - self.vectors @ (less[:, None] * (self.vectors.T @ scaled)))

    def applied(self, vector: Array) -> Array:
        """It times (T,)."""
        scaled = self.gain * vector
        less = 1 - 1 / (1 + self.squares)
        return np.asarray(self.gain * (scaled - self.vectors @ (less * (self.vectors.T @ scaled))))


def factors(table: Array, counts: Array, weights: Array, least: float) -> tuple[Array, Array]:
    """U (T, R) and V (S, R) with UVᵀ ≈ table, leading singular functions under counts and weights:
    squared singular values below `least` of the largest are left out."""
    scaled = table * np.sqrt(counts)[:, None] * np.sqrt(weights)
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    rank = max(1, int(np.sum(s**2 > least * max(float(s[0]) ** 2, 1e-300))))
    left: Array = u[:, :rank] * s[:rank] / np.sqrt(counts)[:, None]
    right: Array = vt[:rank].T / np.sqrt(weights)[:, None]
    return left, right


class _TableFactors:
    """Symmetric products of the factors (U, V) of a table, upper triangles in one row each.

    What the factors leave out of the table's variance, `rest` (T, S), is as good as noise: without
    it edges are 0.03 % and shares of eigenvalues 0.005 off, with it 0.001.
    """

    def __init__(self, part: Harmonic, counts: Array, weights: Array, least: float) -> None:
        self.copies, self.coordinates = part.copies, part.coordinates
        self.left, right = factors(part.table, counts, weights, least)
        self.rank = self.left.shape[1]
        self.upper = np.triu_indices(self.rank)
        self.twice = np.where(self.upper[0] == self.upper[1], 1.0, 2.0)
        self.types, self.nodes = self._products(self.left), self._products(right)  # (·, R(R+1)/2)
        self.rest = self._rest(part.table, right)

    def _products(self, rows: Array) -> Array:
        i, j = self.upper
        return np.asarray(rows[:, i] * rows[:, j])

    def _rest(self, table: Array, right: Array) -> Array:
        return np.asarray(self.copies * (table - self.left @ right.T) ** 2)

    def elsewhere(self, table: Array) -> tuple[Array, Array]:
        """Products and `rest` of the same types at other nodes, where the table is that (T, S')."""
        right: Array = np.linalg.lstsq(self.left, table, rcond=None)[0].T.astype(float)
        return self._products(right), self._rest(table, right)

    def shared(self, m: Array, w: Array) -> Array:
        """A with AAᵀ = b_i b_j d_iᵀPd_j, (T, R), at one real point beyond the edge."""
        g, t = (self._full(_times(x, y))[0] for x, y in ((w, self.nodes), (m, self.types)))
        product = g @ np.linalg.inv(np.eye(self.rank) + t @ g / self.coordinates)
        values, vectors = np.linalg.eigh(0.5 * (product + product.T))
        return np.asarray(self.left @ (vectors * np.sqrt(np.maximum(values, 0.0))))

    def terms(self, m: Array, w: Array) -> tuple[Array, Array]:
        """Its terms of eqs. complex-gains and density as products with the rows of `types` and of
        nodes, m the gains times the counts."""
        i, j = self.upper
        g, t = (self._full(_times(x, y)) for x, y in ((w, self.nodes), (m, self.types)))
        t /= self.coordinates
        h = np.linalg.inv(np.eye(self.rank) + t @ g)
        inverse, response = ((p @ q)[:, i, j] * (self.copies * self.twice)
                             for p, q in ((g, h), (h, t)))  # fmt: skip
        return inverse, self.coordinates * response

    def _full(self, rows: Array) -> Array:
        """Symmetric matrices (P, R, R) from their upper triangles (P, R(R+1)/2)."""
        full = np.empty((len(rows), self.rank, self.rank), rows.dtype)
        i, j = self.upper
        full[:, i, j] = full[:, j, i] = rows
        return full


class Resolvent:
    """m_i(z), χ_s(z) of a matrix F (m × k) whose rows belong to nodes and columns to types. Eqs.
    complex-gains, density and row-law.

    extra : (T, S) e_is, variance of an entry of type i at node s that is free of all others
    slopes : what is linear in shared coordinates
    counts, weights : (T,) c_i, summing to the columns k; (S,) ω_s, summing to one
    samples : rows m
    lift : (T,) tilt_i/b_i or None: columns are correlated as b_i² δ_ij − tilt_i tilt_j, in what is
        linear in shared coordinates (all of it where nothing is), which no bulk notices
    least : squared singular values of the tables of slopes that count as noise, over the largest
    """

    def __init__(
        self,
        extra: Array,
        slopes: Sequence[Harmonic],
        counts: Array,
        weights: Array,
        samples: float,
        lift: Array | None = None,
        least: float | None = None,
    ) -> None:
        self.lift = lift
        self.counts, self.weights, self.samples = counts, weights, samples
        if least is None:
            least = _RANK if len(slopes) <= 2 else _RANK_OF_MANY
        self.blocks = [_TableFactors(one, counts, weights, least) for one in slopes]
        self.extra = extra + sum((block.rest for block in self.blocks), np.zeros(1))
        variance = extra + sum((one.copies * one.table**2 for one in slopes), np.zeros(1))
        self.scale = float(np.max(variance @ weights))  # typical eigenvalue, at k ≪ m

    def _map(self, z: Array, gain: Array, chi: Array) -> tuple[Array, Array]:
        """1/m_i and χ_s from (m, χ) at every z."""
        w, m = self.weights / (1 + chi), self.counts * gain
        inverse = -z[:, None] + _times(w, self.extra.T)
        response = _times(m, self.extra)
        for block in self.blocks:
            to_types, to_nodes = block.terms(m, w)
            inverse += _times(to_types, block.types.T)
            response += _times(to_nodes, block.nodes.T)
        return inverse, response / self.samples

    def stieltjes(self, values: Array) -> Array:
        """Density of the eigenvalues of FᵀF/m (k of them) at some values x > 0.

        At z = x(1 + iε) the iteration with means of old and new is a contraction; ε is halved from
        where it is a strong one, and the last two densities are extrapolated to ε = 0.
        """
        # Start as if z lay inside a bulk
        start = 1j / np.sqrt(values * self.scale) - 1 / (values + self.scale)
        gain = np.repeat(start[:, None], len(self.counts), axis=1)
        chi = np.zeros((len(values), len(self.weights)), complex)
        found = []
        for stage in range(_STAGES, -1, -1):
            z = values * (1 + 1j * _SMOOTHING * 2.0**stage)
            self._settle(z, gain, chi, _TOLERANCE * (1 if stage < 2 else 100))
            found.append((gain @ self.counts).imag / (np.pi * self.counts.sum()))
        return np.maximum(2 * found[-1] - found[-2], 0.0)

    def _settle(self, z: Any, gain: Any, chi: Any, tolerance: float) -> None:
        """The fixed point at complex z, in place: log m and log(1 + χ), accelerated where
        that leads to numbers of a resolvent, Im m > 0; elsewhere by means of old and new."""
        going, speed, types = np.arange(len(z)), Acceleration(), gain.shape[1]
        for _ in range(_ITERATIONS):
            inverse, response = self._map(z[going], gain[going], chi[going])
            old = np.hstack([np.log(gain[going]), np.log1p(chi[going])])
            ratio = (1 + response) / (1 + chi[going])
            change = np.hstack([-np.log(inverse * gain[going]), np.log(ratio)])
            moved = np.abs(change).max(axis=1)
            at, by = (np.hstack([both.real, both.imag]) for both in (old, 0.5 * change))
            real, angle = np.hsplit(at + speed.step(at, by, moved), 2)
            # angles of m and of zm are both between 0 and π, and so are those of 1 + χ
            last = np.pi - np.angle(z[going])[:, None]
            bad = np.any((angle[:, :types] <= 0) | (angle[:, :types] >= last), axis=1)
            bad |= np.any((angle[:, types:] < 0) | (angle[:, types:] >= np.pi), axis=1)
            new = np.where(bad[:, None], old + 0.5 * change, real + 1j * angle)
            gain[going], chi[going] = np.exp(new[:, :types]), np.expm1(new[:, types:])
            left = moved > tolerance
            if not np.any(left):
                return
            if not np.all(left):
                going = going[left]
                speed.keep(left)

    def beyond(
        self, values: Array, near: Point | None = None, tolerance: float = 0.01 * _TOLERANCE
    ) -> tuple[Point, np.ndarray]:
        """The real solution at z = x, and whether there is one: x beyond the upper edge.

        From χ = 0, m = −1/x both fall monotonically to it, or out of their range inside the bulk.

        near : the solution at a larger x close by, from where the way is shorter
        tolerance : of the last step; 1e-5 is enough to tell whether there is a solution, because
            inside the bulk steps do not become shorter than about the distance to its edge
        """
        gain = np.repeat((-1.0 / values)[:, None], len(self.counts), axis=1)
        chi = np.zeros((len(values), len(self.weights)))
        if near is not None:
            gain[:], chi[:] = near.gain, self.weights / near.weights - 1
        outside, going = np.ones(len(values), bool), np.arange(len(values))
        for _ in range(_CROSSING):
            inverse, response = self._map(values[going], gain[going], chi[going])
            good = (inverse.max(axis=1) < 0) & (response.min(axis=1) > -1)
            outside[going[~good]] = False
            going, inverse, response = going[good], inverse[good], response[good]
            new = 1.0 / inverse
            moved = np.abs(new / gain[going] - 1).max(axis=1, initial=0.0)
            moved = np.maximum(moved, np.abs(response - chi[going]).max(axis=1, initial=0.0))
            gain[going], chi[going] = new, response
            going = going[moved > tolerance]
            if not len(going):
                break
        outside[going] &= moved[moved > tolerance] < 3 * _TOLERANCE
        return Point(gain, self.weights / (1 + chi)), outside

    def response_at(self, point: Point, extra: Array, tables: Sequence[Array]) -> Array:
        """χ at other nodes (S',), with their own tables of the same types."""
        m = self.counts * point.gain
        response = _times(m, extra)
        for block, table in zip(self.blocks, tables, strict=True):
            nodes, rest = block.elsewhere(table)
            response += _times(m, rest) + _times(block.terms(m, point.weights)[1], nodes.T)
        return np.asarray(response[0] / self.samples)

    def roots(self, point: Point) -> Roots:
        """Of the resolvent at a point beyond the edge, the part of `lift` included."""
        gain = np.maximum(-point.gain[0] * self.counts, 0.0)
        if self.lift is None:
            return Roots(np.sqrt(gain), np.zeros((len(gain), 0)), np.zeros(0))
        if self.blocks:
            part = self.blocks[0].shared(self.counts * point.gain, point.weights)
        else:
            part = np.sqrt(self.extra * point.weights[0])
        part = part * (np.sqrt(gain) * self.lift)[:, None]
        u, s, _ = np.linalg.svd(part, full_matrices=False)
        return Roots(np.sqrt(gain), u, s**2)

    def edge(self) -> float:
        """The upper edge of the bulk, of its last part where it has gaps, as an eigenvalue."""
        high = self.scale
        for _ in range(60):  # make sure it is no gap: the points above lie outside, too
            if np.all(self.beyond(high * np.geomspace(1.0, 16.0, 25), None, _TOLERANCE)[1]):
                break
            high *= 2
        else:
            raise ConvergenceError("the upper edge of the limiting bulk was not found")
        low, points = 1e-3 * self.scale, 120  # a part of the bulk beyond a gap may be narrow
        near: Point | None = None
        while high / low - 1 > _EDGE:
            inner = np.geomspace(low, high, points + 2)
            point, outside = self.beyond(inner[1:-1], near, _TOLERANCE)
            inside = np.flatnonzero(~outside)
            first = int(inside[-1]) + 1 if len(inside) else 0
            if first < points:
                near = Point(point.gain[first : first + 1], point.weights[first : first + 1])
            low, high, points = float(inner[first]), float(inner[first + 1]), 8
        return high


def _times(left: Array, right: Array) -> Array:
    """left (P, X), real or complex, times a real matrix."""
    if np.iscomplexobj(left):
        return np.asarray(left.real @ right + 1j * (left.imag @ right))
    return np.asarray(left @ right)
