"""Errors of the readout on a given first layer, with a response χ_s of its own for every node.

Samples differ in how far the features move when they are left out: after a visible step those
along the learned direction most of all. Equations are named as in docs/book/real-data.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, cg

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.layers.low_rank import Table
from onegrad.theory.layers.matrix_errors import FeatureMoments, MatrixErrors
from onegrad.theory.readout.anderson import Acceleration

_ITERATIONS = 100
_TILE = 128  # block size for copying a triangle to the other side
_SINGULAR = "the matrix of the features is singular; use a larger ridge"
_SINGLE = 300  # neurons from which on products of k × k take most of the time
_SMALLEST = 1e-12  # response that counts as none


class Degrees(NamedTuple):
    """Degrees of freedom: `used` by the mean part, p = Σ_s u_s ν_sᵀMν_s, which χ counts only in
    part; `unfitted` m − df₁ = m Σ u_s, and `left` m − df₂, that the readout leaves."""

    used: float
    unfitted: float
    left: float


@dataclass(frozen=True)
class NodeBlock:
    """Some nodes of one group: ν and d (k × S) as tables, Var σ (k × S), and where pairs of neurons
    notice their quadratic parts q = b²E σ''/√2."""

    group: int
    mean: Table
    slope: Table
    variance: Array
    curvature: Table | None = None


class Quadratics:
    """Q_s = E[φφᵀ|node s] = ν_sν_sᵀ + D_sA_cD_s + diag(var_s) of some nodes, never formed; with
    `squares` also diag(q_s) R_c diag(q_s), the next term of Mehler's series.

    couplings : (k × k) A_c of each group, its diagonal zero (var_s has it)
    weights : (S,) ω_s, summing to one; y : (S,) E[y|s]; noise : Var[y|s], a number or (S,)
    squares : (k × k) R_c of each group, squared correlations, or none

    Sums Σ u_s Q_s and traces tr(Q_s M) are matrix products of O(S·k²) each, of O(p·k²) where the
    tables have the rank p. Memory O(S·k + k²).
    """

    def __init__(
        self,
        couplings: Sequence[Array],
        blocks: Sequence[NodeBlock],
        weights: Array,
        y: Array,
        noise: Array | float,
        squares: Sequence[Array] = (),
    ) -> None:
        self.couplings, self.blocks, self.squares = list(couplings), list(blocks), list(squares)
        self.weights, self.y, self.noise = weights, y, noise
        self.width = len(self.couplings[0])
        ends = np.cumsum([block.variance.shape[1] for block in self.blocks])
        self.places = [
            slice(end - block.variance.shape[1], end)
            for end, block in zip(ends, self.blocks, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.y)

    def _pairs(self, block: NodeBlock) -> list[tuple[Table, Array]]:
        """Tables of a block with what couples their neurons."""
        pairs = [(block.slope, self.couplings[block.group])]
        if block.curvature is not None and self.squares:
            pairs.append((block.curvature, self.squares[block.group]))
        return pairs

    def with_labels(
        self, y: Array, noise: Array | float, weights: Array | None = None
    ) -> Quadratics:
        """The same features with other labels, and perhaps other weights."""
        weights = self.weights if weights is None else weights
        return Quadratics(self.couplings, self.blocks, weights, y, noise, self.squares)

    def without_squares(self) -> Quadratics:
        """Second moments to first order in the couplings."""
        return Quadratics(self.couplings, self.blocks, self.weights, self.y, self.noise)

    def total(self, u: Array, mean: bool = True) -> Array:
        """Σ_s u_s Q_s; without the part of the means if not `mean`."""
        k = self.width
        total, diagonal = np.zeros((k, k)), np.zeros(k)
        for block, place in zip(self.blocks, self.places, strict=True):
            some = u[place]
            if mean:
                total += block.mean.outer(some)
            for table, coupling in self._pairs(block):
                outer = table.outer(some)
                outer *= coupling
                total += outer
            diagonal += block.variance @ some
        total.flat[:: k + 1] += diagonal
        return total

    def traces(self, matrix: Array, mean: bool = True) -> Array:
        """tr(Q_s·matrix) of every node; without the part of the means if not `mean`."""
        result = np.empty(len(self))
        for block, place in zip(self.blocks, self.places, strict=True):
            value = np.diagonal(matrix) @ block.variance
            for table, coupling in self._pairs(block):
                value += table.forms(coupling * matrix)
            if mean:
                value += block.mean.forms(matrix)
            result[place] = value
        return result

    def squares_of_means(self, matrix: Array) -> Array:
        """ν_sᵀ·matrix·ν_s of every node."""
        return np.concatenate([block.mean.forms(matrix) for block in self.blocks])

    def mean(self, readout: Array) -> Array:
        """ν_sᵀa of every node."""
        return np.concatenate([block.mean.along(readout) for block in self.blocks])

    def cross(self, u: Array) -> Array:
        """Σ_s u_s ν_s."""
        pairs = zip(self.blocks, self.places, strict=True)
        return np.asarray(sum(block.mean.total(u[place]) for block, place in pairs))

    def moments(self) -> FeatureMoments:
        """H = Σ ω_s Q_s, z = Σ ω_s y_s ν_s, E y²: what one χ for all nodes needs."""
        label = float(self.weights @ (self.y**2 + self.noise))
        return FeatureMoments(self.total(self.weights), self.cross(self.weights * self.y), label)


@dataclass(frozen=True)
class NodeSolution:
    """The readout at all nodes: χ_s, M, and f, q = Var f, E(y − f)² of every node.

    load : L (k × k) = Σ_s ω_s E[ρ²|s] Q_s with ρ the residual of the loss, (y − f)/(1 + χ_s) for
        the squared one; Var f = aᵀC_sa + tr(Q_sMLM)/m, C_s = Q_s − ν_sν_sᵀ
    degrees : degrees of freedom: of the mean part, and remaining
    left_out : share of E φφᵀ that quadratic parts have where they had to be left out, by Frobenius
        norms; 0 where nothing was
    """

    errors: MatrixErrors
    responses: Array
    inverse: Array
    readout: Array
    prediction: Array
    variance: Array
    load: Array
    degrees: Degrees
    left_out: float = 0.0

    def at(self, q: Quadratics, samples: int) -> tuple[Array, Array]:
        """E f and Var f at the nodes of another rule, for the same neurons."""
        moved = self.inverse @ self.load @ self.inverse
        direct = q.traces(np.outer(self.readout, self.readout), mean=False)
        return q.mean(self.readout), direct + q.traces(moved) / samples


def solve_nodes(
    q: Quadratics, samples: int, ridge: float, chi: float, tolerance: float = 1e-3,
    mean: bool = True, like: NodeSolution | None = None,
) -> NodeSolution:  # fmt: skip
    """The readout at all nodes: χ_s = tr(Q_sM)/m, M = (λ + Σ_s ω_sQ_s/(1 + χ_s))⁻¹,
    a = M Σ_s ω_sȳ_sν_s/(1 + χ_s), f_s = ν_sᵀa and Var f_s, from the common χ as the first guess
    (eqs. matrix-response, matrix-readout and matrix-variance; eqs. own-responses and
    own-response-errors).

    The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² with m = `samples` and λ = `ridge`. Each iteration
    costs two or three products of S·k² and a few of k³.

    mean : whether ν_sν_sᵀ counts in the Q_s of χ_s and of its response, an effect of order 1/m;
        without it this is the limit that the 1/n correction starts from
        (docs/book/chance-and-size.md)
    like : responses of other labels at the same nodes; χ_s and M do not depend on labels
    """
    weight = q.weights
    if like is None:
        responses, inverse = _solve_responses(q, samples, ridge, chi, tolerance, mean)
    else:
        responses, inverse = like.responses, like.inverse
    u = weight / (1 + responses)
    cross, whole = q.cross(u * q.y), inverse
    if not mean:
        system = q.total(u)
        system.flat[:: q.width + 1] += ridge
        whole = inverse_of(system)
    readout = whole @ cross
    prediction = q.mean(readout)
    left = q.y - prediction
    # subtract the squared mean prediction from aᵀQ_sa: the residual contains it
    source = left**2 + q.noise + q.traces(np.outer(readout, readout), mean=False)
    half = np.sqrt(weight) / (1 + responses)
    kind = np.float32 if q.width >= _SINGLE else np.float64  # enough for the tolerance
    short = inverse.astype(kind, copy=False)

    def apply(x: Array) -> Array:
        x = x.ravel()
        moved = short @ q.total(half * x, mean).astype(kind, copy=False) @ short
        return np.asarray(x - half * q.traces(moved.astype(float, copy=False), mean) / samples)

    size = len(q)
    operator = LinearOperator((size, size), matvec=apply, dtype=float)
    solution, failed = cg(operator, half * source, rtol=tolerance, atol=0.0, maxiter=60)
    if failed:
        raise ConvergenceError(
            "the equations of the errors at the nodes did not converge: too close to "
            "interpolation. Use a larger training.ridge, or a width further from the samples."
        )
    errors = solution / half
    test = float(weight @ errors)
    train = float(weight @ (errors / (1 + responses) ** 2))
    objective = float(u @ (q.y**2 + q.noise) - cross @ readout)
    return NodeSolution(
        MatrixErrors(test, train, objective), responses, inverse, readout, prediction,
        errors - left**2 - q.noise, q.total(half * solution, mean),
        _degrees(q, u, whole, samples, ridge),
    )  # fmt: skip


def rough_degrees(q: Quadratics, samples: int, ridge: float, chi: float) -> Degrees:
    """With one χ for all nodes: O(k³)."""
    u = q.weights / (1 + chi)
    system = q.total(u)
    system.flat[:: q.width + 1] += ridge
    return _degrees(q, u, inverse_of(system), samples, ridge)


def _degrees(q: Quadratics, u: Array, whole: Array, samples: int, ridge: float) -> Degrees:
    means = q.squares_of_means(whole)
    # M Σ u_sQ_s = I − λM
    second = q.width - 2 * ridge * np.trace(whole) + ridge**2 * np.sum(whole**2)
    return Degrees(float(u @ means), samples * float(u.sum()), samples - float(second))


def _solve_responses(
    q: Quadratics, samples: int, ridge: float, chi: float, tolerance: float, mean: bool
) -> tuple[Array, Array]:
    """χ_s = tr(Q_sM)/m with M = (λ + Σ ω_sQ_s/(1+χ_s))⁻¹, and M, by Anderson acceleration."""
    k = q.width
    z = np.full(len(q), np.log(max(chi, _SMALLEST)))
    acceleration, root = Acceleration(), np.sqrt(q.weights * len(q))[None]
    for _ in range(_ITERATIONS):
        system = q.total(q.weights / (1 + np.exp(z)), mean)
        system.flat[:: k + 1] += ridge
        inverse = inverse_of(system)
        # if every ReLU is zero at a node, its response is zero
        change = np.log(np.maximum(q.traces(inverse, mean) / samples, _SMALLEST)) - z
        residual = float(q.weights @ np.abs(change))
        if residual < tolerance:
            return np.exp(z + change), inverse
        z = z + (acceleration.step(root * z, root * change, np.array([residual])) / root)[0]
    raise ConvergenceError(
        "the responses of the nodes did not settle: too close to interpolation. Use a larger "
        "training.ridge, or a width further from the samples."
    )


def inverse_of(system: Array) -> Array:
    """Of a symmetric positive matrix, which is overwritten: k³ operations."""
    try:  # LAPACK's order of entries: the transpose of a symmetric matrix needs no copy
        factor, lower = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise ConvergenceError(_SINGULAR) from None
    inverse, failed = dpotri(factor, lower=lower, overwrite_c=True)
    if failed:
        raise ConvergenceError(_SINGULAR)
    whole = inverse.T  # its lower triangle still holds the factor
    for start in range(0, len(whole), _TILE):
        tile = slice(start, start + _TILE)
        corner = np.triu(whole[tile, tile])
        whole[tile, tile] = corner + np.triu(corner, 1).T
        whole[start + _TILE :, tile] = whole[tile, start + _TILE :].T
    return np.asarray(whole)
