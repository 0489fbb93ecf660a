"""The readout on a given first layer from features as they are: eqs. sampled-rows,
sampled-residuals and sampled-errors.

Given κ a feature is no Gaussian number. Where few neurons have most of the response, or polynomials
of a high degree, φᵀMφ of samples with the same κ differ by factors, and with them the χ of each;
an expansion in cumulants is no help. So samples are drawn at the nodes of κ, each with its own χ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.problem import Problem
from onegrad.theory.layers.given import GivenLayer
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.layers.rules import nodes_of, quasi_level
from onegrad.theory.nodes.population import Nodes, label_means
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.readout.anderson import Acceleration

_OPERATIONS = 2e10  # operations spent on a layer: about a second
_MOST_OPERATIONS = 8e10  # layers that need more are not sampled
_PRODUCTS = 30  # products of rows × k² that a layer takes
_FEWEST = 4.0  # rows that are drawn, at least, in units of the training samples
_MOST = 20_000  # rows that are drawn, at most
_AT_A_NODE = 2  # rows at each node, at least, so that their variance is known
_FINEST = 2  # number of the finest level of quasi-random points
_GAUSSIAN = 3.0  # E r⁴/(E r²)² of Gaussian numbers
_ITERATIONS, _SOLVED, _CONJUGATE = 60, 3e-4, 60
_FAINT = 1e-12  # eigenvalues below this share of the largest are rounding errors


@dataclass(frozen=True)
class Rows:
    """Samples drawn at nodes: features (N, k), weights (N,) that sum to one, E[y|κ] and the node of
    each."""

    features: Array
    weights: Array
    labels: Array
    node: np.ndarray


@dataclass(frozen=True)
class SampledErrors:
    """errors : of the readout
    by_draws : relative standard error of test or training error, the larger, by the draws at nodes
    concentration : in how many times fewer samples errors are than those of Gaussian features, at
        least one: E T²/3(E T)² of fresh samples or of those fitted
    unfitted, left : degrees of freedom m − df₁ and m − df₂ that the readout leaves
    rows : how many samples were drawn
    """

    errors: MatrixErrors
    by_draws: float
    concentration: float
    unfitted: float
    left: float
    rows: int


def affordable(problem: Problem) -> bool:
    """Whether a layer takes a few seconds at most."""
    rows = _FEWEST * problem.samples
    return _PRODUCTS * rows * problem.width**2 < _MOST_OPERATIONS


def _rows_of(problem: Problem) -> float:
    """How many rows are drawn, where nodes do not need more."""
    wanted = _OPERATIONS / (_PRODUCTS * problem.width**2)
    return min(max(wanted, _FEWEST * problem.samples), _MOST)


def sampled_nodes(
    problem: Problem, layer: GivenLayer, level: QuadratureLevel
) -> tuple[Nodes, bool]:
    """Nodes for the rows, and whether they are those of the level: of quasi-random points as many
    as rows allow, because tails of κ have much of the errors."""
    if level.quasi:
        for number in range(_FINEST, 0, -1):
            where = nodes_of(problem, layer, quasi_level(number))
            if _AT_A_NODE * len(where.weights) <= _rows_of(problem):
                return where, False
    return nodes_of(problem, layer, level), True


def draw_rows(problem: Problem, layer: GivenLayer, where: Nodes, number: int) -> Rows:
    """At every node in proportion to its weight, two at least.

    number : number of the layer, which determines its draws
    """
    wanted = _rows_of(problem) * where.weights
    draws = np.maximum(_AT_A_NODE, np.ceil(wanted)).astype(int)
    node = np.repeat(np.arange(len(draws)), draws)
    component = where.component[node]
    features, labels = np.empty((len(node), len(layer.bulk))), np.empty(len(node))
    rng = np.random.default_rng(number)
    shift, _ = layer.preactivations(where)
    for c, part in enumerate(layer.parts):
        if c < len(layer.couplings):
            covariance = layer.couplings[c].copy()
            covariance.flat[:: len(covariance) + 1] = part.spread**2
            values, vectors = np.linalg.eigh(covariance)
            seen = values > _FAINT * values[-1]
            root = vectors[:, seen] * np.sqrt(values[seen])
        mine = np.flatnonzero(component == c)
        bulk = rng.standard_normal((len(mine), root.shape[1])) @ root.T
        features[mine] = layer.activation(shift[:, node[mine]].T + bulk)
        labels[mine] = label_means(problem, layer.geometry, c, where.kappa[node[mine]])
    return Rows(features, (where.weights / draws)[node], labels, node)


def response_spread(rows: Rows, inverse: Array, samples: int) -> float:
    """E Var[log(1 + χ)|κ] with χ = φᵀMφ/m of a sample and M = `inverse`; of Gaussian features about
    2χ²/((1 + χ)² k)."""
    chi = np.einsum("si,si->s", rows.features @ inverse, rows.features) / samples
    return float(np.sum(_within(rows, np.log1p(chi))))


def sampled_errors(problem: Problem, rows: Rows, chi: float) -> SampledErrors:
    """The fixed point with one χ for every row, to be started from a common one:

        M = (λ + Σ_s ω_s v_s φ_sφ_sᵀ)⁻¹,  τ_s = t_s/(1 − h_s),  t_s = φ_sᵀMφ_s,  h_s = ω_sv_st_s
        1/v_s = 1 + τ_s(1/m − ω_s),  χ_s = τ_s/m  (eq. sampled-rows)
        r_s = (ȳ_s − φ_sᵀM Σ ωvȳφ)/(1 − h_s)  (eq. sampled-residuals)
        T = Var[y|κ] + r² + K(ω Var[y|κ]) + K((1/m − ω)T)  (eq. sampled-errors)
        (Kf)_s = Σ_{s'≠s} ω_s'v_s'² f_s' (φ_sᵀMφ_s')²/(1 − h_s)²

    τ and r are those of a row that M has not seen. ω_s beside 1/m is that there are N rows, not
    infinitely many: with ω = 1/m this is ridge regression on m rows and T its leave-one-out error.

    Raises ConvergenceError close to interpolation.
    """
    m, ridge, noise = problem.samples, problem.effective_ridge, problem.label_noise_variance
    phi, omega, y = rows.features, rows.weights, rows.labels
    rest = np.maximum(1 / m - omega, 0.0)
    tau, v, z, t = _responses(rows, rest, ridge, chi * m)
    h, u = omega * v * t, 1 / (1 + tau / m)
    r = (y - (z @ (v * omega * y)) @ z) / (1 - h)

    def others(f: Array) -> Array:
        """Σ_{s'≠s} f_s' (φ_sᵀMφ_s')²."""
        return np.asarray(np.einsum("is,is->s", ((z * f) @ z.T) @ z, z) - f * t * t)

    source = ((r * r + noise) * (1 - h) ** 2) + others(omega**2 * v**2 * noise)
    root = np.sqrt(omega * rest) * v / (1 - h)
    operator = LinearOperator(
        (len(y), len(y)), matvec=lambda x: x.ravel() - root * others(root * x.ravel()), dtype=float
    )
    start = root * source
    found, failed = cg(operator, start, rtol=_SOLVED, atol=0.0, maxiter=_CONJUGATE)
    if failed:
        raise ConvergenceError("the errors of rows that were drawn did not converge")
    errors = (source + others(root * found)) / (1 - h) ** 2
    fitted = errors * u * u
    test, train = float(omega @ errors), float(omega @ fitted)
    if not (test > 0 and train > 0):
        raise ConvergenceError("too few rows were drawn")
    by_draws = max(
        math.sqrt(np.sum(_within(rows, x, of_mean=True))) / mean
        for x, mean in ((errors, test), (fitted, train))
    )
    fourth = max(omega @ x**2 / (omega @ x) ** 2 for x in (errors, fitted))
    # M Σ ωv φφᵀ = I − λM
    second = float(np.sum(((z * (v * omega)) @ z.T) ** 2))
    return SampledErrors(
        MatrixErrors(test, train, float(omega @ (u * (noise + y * r)))), by_draws,
        max(1.0, float(fourth) / _GAUSSIAN), m * float(omega @ u), m - second, len(phi),
    )  # fmt: skip


def _responses(
    rows: Rows, rest: Array, ridge: float, start: float
) -> tuple[Array, Array, Array, Array]:
    """τ, v, z = C⁻¹Φᵀ (k, N) with M⁻¹ = CCᵀ, and t."""
    phi, omega, k = rows.features, rows.weights, rows.features.shape[1]
    x = np.full(len(omega), math.log(max(start, 1e-300)))
    acceleration, root = Acceleration(), np.sqrt(omega * len(omega))[None]
    for _ in range(_ITERATIONS):
        v = 1 / (1 + np.exp(x) * rest)
        scaled = phi * np.sqrt(omega * v)[:, None]
        system = scaled.T @ scaled
        system.flat[:: k + 1] += ridge
        try:
            root_of = np.linalg.cholesky(system)
        except np.linalg.LinAlgError:
            raise ConvergenceError("features of rows that were drawn are degenerate") from None
        z = solve_triangular(root_of, phi.T, lower=True, check_finite=False)
        t = np.maximum(np.einsum("is,is->s", z, z), 1e-300)
        tau = t / (1 - omega * v * t)
        change = np.log(tau) - x
        residual = float(omega @ np.abs(change))
        if residual < _SOLVED:
            return tau, v, z, t
        x = x + (acceleration.step(root * x, root * change, np.array([residual])) / root)[0]
    raise ConvergenceError("the responses of rows that were drawn did not settle")


def _within(rows: Rows, values: Array, of_mean: bool = False) -> Array:
    """ω_s times the variance of values between draws at node s; ω_s² times that of their mean."""
    draws = np.bincount(rows.node)
    mean = np.bincount(rows.node, values) / draws
    variance = np.bincount(rows.node, (values - mean[rows.node]) ** 2) / (draws - 1)
    weight = np.bincount(rows.node, rows.weights)
    return np.asarray(weight**2 * variance / draws if of_mean else weight * variance)
