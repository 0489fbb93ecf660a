"""The semi-parametric theory with a response χ_s of its own for every node.

Samples differ in how far the features move when they are left out: after a visible step those
along the learned direction most of all. Equation numbers are those of docs/real-data.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.theory.anderson import Acceleration
from onegrad.theory.layers.matrix import ConditionedLayer, FeatureBlock
from onegrad.theory.layers.matrix_errors import MatrixErrors

_ITERATIONS = 100
_SMALLEST = 1e-12  # response that counts as none


class Quadratics:
    """Q_s = E[φφᵀ|node s] = ν_sν_sᵀ + D_sA_cD_s + diag(var_s) of some nodes, never formed.

    Sums Σ u_s Q_s and traces tr(Q_s M) are matrix products of O(S·k²) each. Memory O(S·k).
    """

    def __init__(self, layer: ConditionedLayer, rows: np.ndarray) -> None:
        self.couplings = [part.coupling for part in layer.parts]
        self.blocks: list[FeatureBlock] = list(layer.blocks(rows))
        self.y = np.concatenate([block.y for block in self.blocks])
        self.width, self.label_noise = layer.width, layer.nodes.label_noise
        ends = np.cumsum([len(block.y) for block in self.blocks])
        self.places = [slice(e - len(b.y), e) for e, b in zip(ends, self.blocks, strict=True)]

    def __len__(self) -> int:
        return len(self.y)

    def total(self, u: Array) -> Array:
        """Σ_s u_s Q_s."""
        k = self.width
        total, diagonal = np.zeros((k, k)), np.zeros(k)
        slopes = [np.zeros((k, k)) for _ in self.couplings]
        for block, place in zip(self.blocks, self.places, strict=True):
            some = u[place]
            total += (block.mean * some) @ block.mean.T
            slopes[block.group] += (block.slope * some) @ block.slope.T
            diagonal += block.variance @ some
        for coupling, outer in zip(self.couplings, slopes, strict=True):
            outer *= coupling
            total += outer
        total.flat[:: k + 1] += diagonal
        return total

    def traces(self, matrix: Array) -> Array:
        """tr(Q_s·matrix) of every node."""
        result = np.empty(len(self))
        products = [coupling * matrix for coupling in self.couplings]
        for block, place in zip(self.blocks, self.places, strict=True):
            value = np.einsum("ij,ij->j", block.mean, matrix @ block.mean)
            value += np.einsum("ij,ij->j", block.slope, products[block.group] @ block.slope)
            value += np.diagonal(matrix) @ block.variance
            result[place] = value
        return result

    def mean(self, readout: Array) -> Array:
        """ν_sᵀa of every node."""
        return np.concatenate([readout @ block.mean for block in self.blocks])

    def cross(self, u: Array) -> Array:
        """Σ_s u_s ν_s."""
        pairs = zip(self.blocks, self.places, strict=True)
        return np.asarray(sum(block.mean @ u[place] for block, place in pairs))


def node_errors(
    q: Quadratics, samples: int, ridge: float, chi: float, tolerance: float = 1e-3
) -> MatrixErrors:
    """Errors with χ_s per node (eqs. (9)–(12)), from the common χ as the first guess.

    The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² with m = `samples` and λ = `ridge`. Each iteration
    costs two or three products of S·k² and a few of k³.
    """
    weight = 1.0 / len(q)
    responses, inverse = _solve_responses(q, samples, ridge, chi, tolerance)
    u = weight / (1 + responses)
    cross = q.cross(u * q.y)
    readout = inverse @ cross
    left = q.y - q.mean(readout)
    outer = np.outer(readout, readout)
    # aᵀQ_sa counts the square of the mean prediction, which the residual has already
    source = left**2 + q.label_noise + q.traces(outer) - q.mean(readout) ** 2
    half = np.sqrt(weight) / (1 + responses)

    def apply(x: Array) -> Array:
        x = x.ravel()
        moved = inverse @ q.total(half * x) @ inverse
        return np.asarray(x - half * q.traces(moved) / samples)

    size = len(q)
    operator = LinearOperator((size, size), matvec=apply, dtype=float)
    right = half * source
    guess = right / max(1e-3, 1 - _share(apply, right))
    solution, failed = cg(operator, right, x0=guess, rtol=tolerance, atol=0.0, maxiter=60)
    if failed:
        raise ConvergenceError(
            "the equations of the errors at the nodes did not converge: too close to "
            "interpolation. Use a larger training.ridge, or a width further from the samples."
        )
    errors = solution / half
    test = float(errors.mean())
    train = float((errors / (1 + responses) ** 2).mean())
    objective = float(u @ (q.y**2 + q.label_noise) - cross @ readout)
    return MatrixErrors(test, train, objective)


def _share(apply: Callable[[Array], Array], right: Array) -> float:
    """How much of a vector the response gives back: a guess of its amplification."""
    return float(1 - right @ apply(right) / (right @ right))


def _solve_responses(
    q: Quadratics, samples: int, ridge: float, chi: float, tolerance: float
) -> tuple[Array, Array]:
    """χ_s = tr(Q_sM)/m with M = (λ + Σ ω_sQ_s/(1+χ_s))⁻¹, and M, by Anderson acceleration."""
    weight, k = 1.0 / len(q), q.width
    z = np.full(len(q), np.log(max(chi, _SMALLEST)))
    acceleration = Acceleration()
    for _ in range(_ITERATIONS):
        system = q.total(weight / (1 + np.exp(z)))
        system.flat[:: k + 1] += ridge
        inverse = cho_solve(cho_factor(system, overwrite_a=True), np.eye(k), overwrite_b=True)
        # a node at which every ReLU is silent has no response at all
        change = np.log(np.maximum(q.traces(inverse) / samples, _SMALLEST)) - z
        residual = float(np.abs(change).mean())
        if residual < tolerance:
            return np.exp(z + change), inverse
        z = z + acceleration.step(z[None], change[None], np.array([residual]))[0]
    raise ConvergenceError(
        "the responses of the nodes did not settle: too close to interpolation. Use a larger "
        "training.ridge, or a width further from the samples."
    )
