"""The readout on any first layer: its errors, given the law of the data and nothing else.

With the data's special directions and the layer's own in V, features given κ = Vᵀx are Gaussian,
and their covariance is that of the actual weights (docs/layers.md):

    A = Ŵ_⊥Ŵ_⊥ᵀ (k × k),  Q_s = ν_sν_sᵀ + D_sAD_s + E_s,  χ_s = tr(Q_sM)/m,
    M = (λ + Σ_s ω_sQ_s/(1 + χ_s))⁻¹

ν_s, D_s, E_s as for types of neurons (docs/theory.md, section 1), M as for real data
(docs/real-data.md): the same engine, with the nodes of a known population. Where the bulk of the
data is Λ instead of the identity, x stands for Λ^{−½}x and Ŵ for ŴΛ^{½} (docs/structure.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import outlying_directions
from onegrad.errors import AssumptionError
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.theory.geometry import Geometry
from onegrad.theory.layers.features import features_at
from onegrad.theory.layers.low_rank import table_of
from onegrad.theory.layers.matrix_errors import MatrixErrors, common_errors
from onegrad.theory.layers.matrix_responses import (
    Degrees,
    NodeBlock,
    NodeSolution,
    Quadratics,
    solve_nodes,
)
from onegrad.theory.layers.types import NeuronTypes, drawn_types
from onegrad.theory.losses.calibration import calibration_error, misclassified
from onegrad.theory.losses.label_surplus import surplus_deviation, with_surplus
from onegrad.theory.losses.matrix_loss import (
    LossSolution,
    on_fresh_samples,
    solve_matrix_loss,
)
from onegrad.theory.nodes.population import Nodes, data_nodes, quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.resolution import level_for
from onegrad.theory.size_bound import bound_of

_MOST_DIRECTIONS = 4  # of the layer's own
_VISIBLE = 0.01  # share of the bulk's variance from which on a direction is one of its own
_NODES = 2400  # of the finer rule at most, but for axes that need more
_MOST_SPENT = 0.4  # of the degrees of freedom left: errors were off by a factor of three at 0.52
_AT_MOST = 1.0  # training errors at interpolation are known to about a factor of two
_SIGN_NODES = 1024  # of the classification error, for each component
_OTHER_LOSS = 2.0  # what is open in 1/m with losses other than the squared one
_LEFT_OUT = 1e-3  # of tables by their rank, in units of the ridge


@dataclass(frozen=True)
class LayerErrors:
    """Errors of the readout on one first layer.

    by_nodes : relative difference that a coarser rule makes, with one χ for all nodes; NaN if it
        was not tried
    by_size : a bound for what is open in 1/n, relative
    directions, nodes : special ones altogether, and of the finer rule
    test_loss, train_loss : of the readout's own loss
    misclassification, calibration : of labels ±1, and of the logistic loss; else NaN
    """

    errors: MatrixErrors
    by_nodes: float
    by_size: float
    directions: int
    nodes: int
    test_loss: float
    train_loss: float
    misclassification: float = math.nan
    calibration: float = math.nan


def own_directions(weights: Array, basis: Array, start: Array | None = None) -> Array:
    """Directions (n, q) that the layer has learned beside `basis` (n, r): orthonormal, q ≤ 4.

    Singular directions above the edge of the bulk, of Ŵ_⊥ and, where W₀ is known, of (Ŵ − W₀)_⊥.
    Every neuron counts alike, whatever its length: steps move some much further than others. Only
    those stay that have 1 % of the variance of a preactivation, and more than directions of a pure
    bulk; what is weaker is as good as linear and in A already.
    """
    found, (k, n) = basis, weights.shape
    visible = max(_VISIBLE, (1 / math.sqrt(k) + 1 / math.sqrt(n)) ** 2)  # more than the bulk's own
    for matrix in ([] if start is None else [weights - start]) + [weights]:
        rest = matrix - (matrix @ found) @ found.T
        norms = np.linalg.norm(rest, axis=1, keepdims=True)
        new = outlying_directions(rest / np.maximum(norms, 1e-300), _MOST_DIRECTIONS)
        outside = weights - (weights @ found) @ found.T
        share = np.sum((outside @ new) ** 2, axis=0) / np.sum(outside**2)
        found = np.hstack([found, new[:, share > visible]])
    own = np.linalg.qr(found)[0][:, basis.shape[1] :]
    return np.asarray(own[:, :_MOST_DIRECTIONS])


def needed_bytes(problem: Problem) -> int:
    """Memory of `layer_errors`, to about 30 %: eight matrices k × k, the tables of the nodes, and
    the weights twice."""
    k = problem.width
    return 8 * (8 * k * k + 4 * _NODES * k + 3 * k * problem.dim)


def layer_errors(
    problem: Problem, geometry: Geometry, weights: Array, own: Array, theory: Theory = Theory()
) -> LayerErrors:
    """Errors on fresh samples of the readout that is trained on `weights` (k × n).

    geometry : with its basis; own : (n, q) orthonormal directions beside it (`own_directions`)
    theory : a draft has one rule for κ and no comparison; with finite_size losses of labels ±1 are
        means over training sets with more labels of one sign

    Cost O(k²(n + k)): three eigendecompositions, a few inverses and about ten products of k × k
    matrices. Memory: `needed_bytes`.
    """
    assert geometry.basis is not None
    basis = np.hstack([geometry.basis, own])
    neurons = drawn_types(weights, basis)
    rest = weights - neurons.vectors @ basis.T
    coupling = rest @ rest.T
    np.fill_diagonal(coupling, 0.0)
    levels = [QuadratureLevel.at(i) for i in ((1,) if theory.draft else (2, 1))]
    where = [_nodes(problem, geometry, neurons, level) for level in levels]
    rules = [_quadratics(problem, geometry, neurons, coupling, nodes) for nodes in where]
    fine, (plain, chi) = rules[0], _common(problem, rules[0])
    solved = solve_nodes(fine, problem.samples, problem.effective_ridge, chi, 1e-4)
    found, by_nodes = LossSolution(solved, *solved.errors[:2]), math.nan
    by_size = _by_size(problem, solved.degrees)
    others: list[tuple[float, ...]]
    reference: tuple[float, ...]
    if problem.loss.name == "squared":
        others = [_common(problem, rule)[0][:2] for rule in rules[1:]]
        reference = plain[:2]
    else:
        found, by_size = _with_loss(problem, fine, solved), min(_AT_MOST, _OTHER_LOSS * by_size)
        others = [_losses(_coarse_loss(problem, rule)) for rule in rules[1:]]
        reference = _losses(found)
    for other in others:
        by_nodes = max(abs(a / b - 1) for a, b in zip(other, reference, strict=True) if b)
    parts: list[tuple[float, LossSolution]] = [(1.0, found)]
    signs: tuple[float, ...] = (math.nan, math.nan)
    if theory.finite_size and not theory.draft:
        parts = _over_surplus(problem, geometry, fine, found)
    if problem.labels_binary:
        looked = _sign_rule(problem, geometry, neurons, coupling)
        signs = _mean((p, _signs(problem, looked, one.nodes)) for p, one in parts)
    test_loss, train_loss, *errors = _mean(
        (p, (one.test_loss, one.train_loss, *one.nodes.errors)) for p, one in parts
    )
    return LayerErrors(
        MatrixErrors(*errors), by_nodes, by_size, basis.shape[1], len(fine), test_loss, train_loss,
        *signs,
    )  # fmt: skip


def _mean(parts: Iterable[tuple[float, tuple[float, ...]]]) -> tuple[float, ...]:
    """Of some numbers, each time with a probability."""
    weights, rows = zip(*parts, strict=True)
    return tuple(np.asarray(weights) @ np.asarray(rows, float)) if len(rows) > 1 else rows[0]


def _over_surplus(
    problem: Problem, geometry: Geometry, rule: Quadratics, found: LossSolution
) -> list[tuple[float, LossSolution]]:
    """Training sets with more labels of one sign or of the other, and their probabilities."""
    deviation = surplus_deviation(problem, geometry)
    if deviation == 0:
        return [(1.0, found)]
    parts = []
    for z, probability in zip(*gauss_hermite(3), strict=True):
        one = found
        if abs(z) > _LEFT_OUT:
            weights, y = with_surplus(rule.weights, rule.y, problem.samples, deviation * z)
            drawn = Quadratics(rule.couplings, rule.blocks, weights, y, 1 - y**2)
            one = _with_loss(problem, drawn, found.nodes)
            one = on_fresh_samples(one, rule, problem.loss, binary=True)
        parts.append((float(probability), one))
    return parts


def _by_size(problem: Problem, degrees: Degrees) -> float:
    """What finite sizes leave open: the bound of the theory of types, and the share of the samples'
    degrees of freedom that go to the special directions."""
    used, unfitted, left = degrees
    if used > _MOST_SPENT * left:
        raise AssumptionError(
            f"the readout spends {used:.0f} degrees of freedom on the special directions, of "
            f"{left:.0f} that it leaves: no theory of large sizes holds. Use fewer spikes, a "
            "smaller spread or rate, a larger ridge, or more samples."
        )
    size = min(left, problem.dim, problem.width)
    return min(_AT_MOST, used / unfitted + bound_of(used, size, unfitted))


def _common(problem: Problem, rule: Quadratics) -> tuple[MatrixErrors, float]:
    return common_errors(rule.moments(), problem.samples, problem.effective_ridge)


def _losses(found: LossSolution) -> tuple[float, ...]:
    return *found.nodes.errors[:2], found.test_loss, found.train_loss


def _coarse_loss(problem: Problem, rule: Quadratics) -> LossSolution:
    chi = _common(problem, rule)[1]
    begin = solve_nodes(rule, problem.samples, problem.effective_ridge, chi, 1e-2)
    return _with_loss(problem, rule, begin)


def _with_loss(problem: Problem, rule: Quadratics, begin: NodeSolution) -> LossSolution:
    numbers = problem.samples, problem.effective_ridge
    return solve_matrix_loss(rule, *numbers, problem.loss, begin, problem.labels_binary)


def _sign_rule(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, coupling: Array
) -> Quadratics:
    """Nodes for signs, which vary faster with κ than moments do."""
    level = QuadratureLevel.at(1)
    where = quasi_nodes(geometry, _SIGN_NODES, neurons.vectors.shape[1], level)
    return _quadratics(problem, geometry, neurons, coupling, where)


def _signs(problem: Problem, rule: Quadratics, found: NodeSolution) -> tuple[float, float]:
    """Misclassification and calibration."""
    outputs = (rule.weights, rule.y, *found.at(rule, problem.samples))
    logistic = problem.loss.name == "logistic"
    return misclassified(*outputs), calibration_error(*outputs) if logistic else math.nan


def _nodes(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, level: QuadratureLevel
) -> Nodes:
    return data_nodes(problem, geometry, neurons.spread, level_for(problem, geometry, level))


def _quadratics(
    problem: Problem, geometry: Geometry, neurons: NeuronTypes, coupling: Array, where: Nodes
) -> Quadratics:
    f = features_at(problem, geometry, neurons, where)
    variance = f.extra + (f.bulk[:, None] * f.slope) ** 2
    left_out = _LEFT_OUT * problem.effective_ridge
    mean = table_of(f.mean, f.weights, left_out)
    slope = table_of(f.slope, f.weights, left_out / max(float(np.mean(f.bulk**2)), 1e-300))
    block = NodeBlock(0, mean, slope, variance)
    return Quadratics([coupling], [block], f.weights, f.labels, f.noise)
