"""The readout on any first layer: its errors, given the law of the data and nothing else.

With up to six special directions of data and layer in V, features given κ = Vᵀx are Gaussian, and
their covariance is that of the actual weights (docs/book/any-first-layer.md):

    A = Ŵ_⊥Ŵ_⊥ᵀ (k × k),  Q_s = ν_sν_sᵀ + D_sAD_s + E_s,  χ_s = tr(Q_sM)/m,
    M = (λ + Σ_s ω_sQ_s/(1 + χ_s))⁻¹

ν_s, D_s, E_s as for types of neurons (docs/book/equivalent-models.md), M as for real data
(docs/book/real-data.md): the same engine, with the nodes of a known population. Where the bulk of
the data is Λ instead of the identity, x stands for Λ^{−½}x and Ŵ for ŴΛ^{½}
(docs/book/structure.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import outlying_directions
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.given import GivenLayer, given_layer
from onegrad.theory.layers.losses import LossOnLayer, MatrixStage, carried, signs_of
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.layers.matrix_responses import (
    Degrees,
    NodeSolution,
    Quadratics,
    rough_degrees,
    solve_nodes,
)
from onegrad.theory.layers.rules import (
    RESOLVED,
    SCATTERED,
    Tried,
    apart,
    common,
    last_apart,
    level_of_correction,
    quadratics,
    rule_of,
    rules_tried,
    shortest,
    tried_at,
)
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
from onegrad.theory.policy import Policy
from onegrad.theory.readout.classes import joint_law, with_values, wrong_class
from onegrad.theory.readout.errors import Correction
from onegrad.theory.readout.label_surplus import surplus_deviation
from onegrad.theory.size.finite_size import bound_of
from onegrad.theory.size.layer_size import correction_at
from onegrad.theory.size.ratio import AT_MOST

# Most learned directions that get axes, in addition to the population's
_MOST_DIRECTIONS = 4
# Share of a preactivation's variance from which on a learned direction gets an axis; weaker ones
# are as good as linear and are in the coupling of neurons already
_VISIBLE = 0.01
_NODES = 2400  # typical number of nodes, for the estimate of memory
_FEW_AXES = 3  # most axes for which products of Gauss rules resolve the tails of κ
_SIGN_LEVEL = QuadratureLevel.at(1)
_FINE = QuadratureLevel.at(2)  # rule of losses other than the squared one
_SIGN_NODES = 1024  # nodes of the classification error, for each component
_CLASS_NODES = 512  # quasi-random ones of each class
_SOLVED = 3e-4  # relative tolerance of the responses of nodes: 0.06 % of the errors


@dataclass(frozen=True)
class Study:
    """What was found out on one first layer and is as good for others of the same problem.

    level : of the rule for κ; by_nodes : relative difference that a coarser one makes, with one χ
        for all nodes; NaN if it was not tried
    chi : mean response, to start from
    by_size : a bound for what is open in 1/n, relative
    finer : errors of a finer rule over those of this one, times the correction; of other losses
        theirs, too
    correction : of order 1/n; where none is made it says why, and ν_sν_sᵀ counts in χ_s
    """

    level: QuadratureLevel
    by_nodes: float
    chi: float
    by_size: float = math.nan
    finer: tuple[float, ...] = (1.0, 1.0, 1.0)
    correction: Correction | None = None

    @property
    def corrected(self) -> bool:
        return self.correction is not None and not self.correction.left_out


@dataclass(frozen=True)
class LayerErrors:
    """Errors of the readout on one first layer.

    by_nodes, by_size : see `Study`
    directions, nodes : special ones altogether, and of the finer rule
    test_loss, train_loss : of the readout's own loss
    misclassification, calibration : of labels ±1, and of the logistic loss; else NaN
    study : for other layers of the same problem
    outputs : of several outputs, whose sum this is, those of each
    left_out : relative size of the features' quadratic parts where they had to be left out
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
    study: Study | None = None
    outputs: tuple[LayerErrors, ...] = ()
    left_out: float = 0.0

    @property
    def open(self) -> float:
        """What rules, sizes and physics leave open together, as of types (`Open.total`)."""
        return self.by_nodes + self.by_size + self.left_out


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
    """Memory of `layer_errors`, to about 30 %: twelve matrices k × k, the tables of the nodes, and
    the weights twice."""
    k = problem.width
    return 8 * (12 * k * k + 8 * _NODES * k + 3 * k * problem.dim)


def layer_errors(
    problem: Problem,
    geometry: Geometry,
    weights: Array,
    own: Array,
    theory: Theory = Theory(),
    study: Study | None = None,
) -> LayerErrors:
    """Errors on fresh samples of the readout that is trained on `weights` (k × n). Eqs.
    second-moment, matrix-response, matrix-readout, matrix-variance and test-and-train.

    geometry : with its basis; own : (n, q) orthonormal directions beside it (`own_directions`)
    theory : a draft has one rule for κ and no comparison; with finite_size errors of the squared
        loss are corrected for terms of order 1/n, and losses of labels ±1 are means over training
        sets with more labels of one sign
    study : another layer's study of the same problem, which saves comparing rules

    Cost O(k²(n + k)): some inverses and about ten products of k × k matrices, two eigenvalue
    problems without a `study`. Memory: `needed_bytes`.
    """
    layer = given_layer(problem.activation, geometry, weights, own, problem.data.bulk_eigenvalues)
    if problem.loss.name != "squared":
        return _with_other_loss(problem, layer, theory, study)
    if study is None:
        study, rule, solved = _on_first(problem, layer, theory)
    else:
        rule = rule_of(problem, layer, study.level)
        solved = _solved(problem, rule, study.chi, not study.corrected)
    found = np.array(solved.errors) * study.finer
    signs = math.nan, math.nan
    if problem.labels_binary:  # the classification error depends on the 1/n part of χ
        seen = _solved(problem, rule, study.chi) if study.corrected else solved
        signs = signs_of(problem, _looked(problem, layer), seen)
    by_size = min(AT_MOST, study.by_size + theory.policy.layer_beside * layer.beside)
    errors = MatrixErrors(*found.tolist())
    return LayerErrors(
        errors, study.by_nodes, by_size, layer.special, len(rule), *errors[:2], *signs, study,
        left_out=solved.left_out,
    )  # fmt: skip


def _with_other_loss(
    problem: Problem, layer: GivenLayer, theory: Theory, study: Study | None
) -> LayerErrors:
    """On the first layer with a finer rule, whose ratio of errors the layers that follow have.
    Where labels are ±1 over their surplus."""
    first, policy = study is None, theory.policy
    known = study or _study(problem, layer, theory)[0]
    looked = _looked(problem, layer) if problem.labels_binary else None
    deviation = surplus_deviation(problem, layer.geometry) if theory.finite_size else None

    def at(level: QuadratureLevel) -> LossOnLayer:
        rule = rule_of(problem, layer, level)
        begin = _solved(problem, rule, known.chi)
        if begin.left_out:  # the loss is iterated on the same features
            rule = rule.without_squares()
        stage = MatrixStage(rule, problem.samples, problem.effective_ridge, begin)
        return LossOnLayer(problem, stage, looked, deviation)

    on = at(known.level)
    begin, state = on.stage.begin, on.solved()
    by_size = _by_size(problem, begin.degrees, policy) + policy.layer_beside * layer.beside
    if first and not theory.draft:
        fine, coarse = at(_FINE), on.numbers(state, signs=False)
        there = fine.solved(carried(state.inner, fine.stage.rule, problem.samples))
        finer = fine.numbers(there, signs=False)
        by_nodes = apart(_compared(coarse), _compared(finer))
        if by_nodes > RESOLVED:
            on, state, coarse = fine, there, finer
            known = replace(known, level=_FINE)
        known = replace(known, by_nodes=by_nodes, finer=_ratios(finer.tolist(), coarse.tolist()))
    found = on.numbers(state) if theory.draft else on.over_surplus(state)
    found[: len(known.finer)] *= known.finer
    test_loss, train_loss, wrong, calibration = found[3:].tolist()
    return LayerErrors(
        MatrixErrors(*found[:3].tolist()), known.by_nodes,
        min(AT_MOST, policy.bound_of_losses * min(AT_MOST, by_size)), layer.special,
        len(on.stage.rule), test_loss, train_loss, wrong, calibration, known,
        left_out=begin.left_out,
    )  # fmt: skip


def _compared(numbers: Array) -> list[float]:
    """Errors and losses, without the objective."""
    return [float(numbers[i]) for i in (0, 1, 3, 4)]


def _looked(problem: Problem, layer: GivenLayer) -> Quadratics:
    """At the nodes of signs, which vary faster with κ than moments do."""
    where = quasi_nodes(layer.geometry, _SIGN_NODES, layer.geometry.rank, _SIGN_LEVEL)
    return quadratics(problem, layer, where)


def rough_errors(
    problem: Problem, geometry: Geometry, weights: Array, own: Array, study: Study
) -> MatrixErrors:
    """With one χ for all nodes, in the limit of large sizes: not the errors of `layer_errors`, but
    they differ between layers of a problem as those do. study : of one of them"""
    layer = given_layer(problem.activation, geometry, weights, own, problem.data.bulk_eigenvalues)
    return tried_at(problem, layer, study.level).errors


def _on_first(
    problem: Problem, layer: GivenLayer, theory: Theory
) -> tuple[Study, Quadratics, NodeSolution]:
    """The study of a first layer, its rule and the solution there.

    With one χ for all nodes rules get finer until one more changes little. Responses χ_s are those
    of the shortest that is close to the finest, and the ratio of the two with one χ multiplies its
    errors. Products of rules give weak axes two or three nodes each, on which κ² hardly varies;
    where the responses of nodes count, so do their tails: many axes have quasi-random points.

    The correction has special directions beside the axes as blocks with random coefficients. Where
    it disagrees with what counting ν_sν_sᵀ in χ_s does, the larger part of it, there is none.
    """
    policy = theory.policy
    study, tried = _study(problem, layer, theory)
    if not tried:
        rule = rule_of(problem, layer, study.level)
        solved = _solved(problem, rule, study.chi)
        return replace(study, by_size=_by_size(problem, solved.degrees, policy)), rule, solved
    finest = tried[-1]
    correction = _correction(problem, layer, finest.errors, policy) if theory.finite_size else None
    made = None if correction is None or correction.left_out else correction
    levels = [one.level for one in tried]
    if layer.geometry.rank > _FEW_AXES:
        levels = [SCATTERED, finest.level]
    coarse, off = shortest(problem, layer, levels, finest.errors)
    rule = rule_of(problem, layer, coarse.level)
    solved = _solved(problem, rule, finest.chi, made is None)
    if made is not None and layer.special > layer.geometry.rank:
        counted = _solved(problem, rule, finest.chi)
        means = _ratios(counted.errors, solved.errors)[:2]
        apart_by = apart(means, (made.test, made.train))
        if apart_by > max(policy.layer_disagree, made.remainder):
            reason = f"it leaves out {100 * apart_by:.0f} % that directions beside the axes make"
            correction = Correction(left_out=(reason,), remainder=apart_by + made.remainder)
            made, solved = None, counted
    by_size = _by_size(problem, solved.degrees, policy) if made is None else 0.0
    finer = np.array(_ratios(finest.errors, coarse.errors))
    if correction is not None:
        by_size = max(by_size, correction.remainder)
        finer *= (correction.test, correction.train, correction.objective)
    return Study(
        coarse.level, last_apart(tried) + policy.layer_rule * off, finest.chi, by_size,
        tuple(finer.tolist()), correction,
    ), rule, solved  # fmt: skip


def _ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(a / b) if b else 1.0 for a, b in zip(above, below, strict=True))


def _study(problem: Problem, layer: GivenLayer, theory: Theory) -> tuple[Study, list[Tried]]:
    """Of the coarsest rule, and the finer ones that were tried: none of other losses or of a draft.
    Refuses before anything that takes long; with one χ 1 to 6 % fewer degrees are spent than in
    the end."""
    first = tried_at(problem, layer, QuadratureLevel.at(1))
    study = Study(first.level, math.nan, first.chi)
    if theory.draft:
        return study, []
    rule = rule_of(problem, layer, first.level, lengths=False)
    _check_spent(
        rough_degrees(rule, problem.samples, problem.effective_ridge, first.chi), theory.policy
    )
    if problem.loss.name != "squared":
        return study, []
    return study, rules_tried(problem, layer, first)


def _correction(
    problem: Problem, layer: GivenLayer, finest: MatrixErrors, policy: Policy
) -> Correction:
    """Of order 1/n, or why there is none: not where errors are far off at its coarse rule."""
    tried, off = level_of_correction(problem, layer, finest)
    found = correction_at(problem, layer, tried.level, policy)
    if found.left_out:
        return found
    if off > RESOLVED:
        reason = f"errors are {100 * off:.0f} % off at the resolution that it can have"
        return Correction(left_out=(reason,), remainder=found.remainder)
    return replace(found, remainder=found.remainder + off * found.size)


def _solved(problem: Problem, rule: Quadratics, chi: float, mean: bool = True) -> NodeSolution:
    """The covariance of quadratic parts, less that of lengths, need not be positive: where features
    are so large that it matters, without them, and their share is what that leaves open."""
    numbers = problem.samples, problem.effective_ridge, chi, _SOLVED, mean
    try:
        return solve_nodes(rule, *numbers)
    except ConvergenceError:
        if not rule.squares:
            raise
    plain = rule.without_squares()
    whole, linear = rule.total(rule.weights), plain.total(rule.weights)
    share = float(np.linalg.norm(whole - linear) / np.linalg.norm(whole))
    return replace(solve_nodes(plain, *numbers), left_out=share)


def _by_size(problem: Problem, degrees: Degrees, policy: Policy) -> float:
    """What finite sizes leave open: the bound of the theory of types, and the share of the samples'
    degrees of freedom that go to the special directions."""
    used, unfitted, left = degrees
    _check_spent(degrees, policy)
    size = min(left, problem.dim, problem.width)
    return min(AT_MOST, used / unfitted + bound_of(used, size, unfitted, policy=policy))


def _check_spent(degrees: Degrees, policy: Policy) -> None:
    if degrees.used > policy.layer_spent * degrees.left:
        raise AssumptionError(
            f"the readout spends {degrees.used:.0f} degrees of freedom on the special directions, "
            f"of {degrees.left:.0f} that it leaves: no theory of large sizes holds. Use fewer "
            "spikes, a smaller spread or rate, a larger ridge, or more samples."
        )


def wrong_class_on(problem: Problem, layer: GivenLayer) -> float:
    """P(argmax_c f_c(x) ≠ class of x) of the squared loss, by quasi-random points: products of
    rules along many axes are cut short, and it was 4 to 13 % too high with them
    (eq. largest-output).

    Each of K(K + 1)/2 labels costs the conjugate gradients of `solve_nodes`.
    """
    count = problem.outputs
    classes = with_values(problem, range(count))  # the label of a node is then its class
    rule = rule_of(classes, layer, SCATTERED)
    chi = common(classes, rule)[1]
    where = quasi_nodes(layer.geometry, _CLASS_NODES, layer.geometry.rank, SCATTERED)
    looked, noise = quadratics(classes, layer, where), problem.label_noise_variance
    like: NodeSolution | None = None

    def solved(group: tuple[int, ...]) -> tuple[Array, Array]:
        nonlocal like
        labels = np.eye(count)[list(group)].sum(axis=0)[rule.y.astype(int)]
        own = rule.with_labels(labels, len(group) * noise)
        like = solve_nodes(own, problem.samples, problem.effective_ridge, chi, like=like)
        return like.at(looked, problem.samples)

    law = joint_law(count, solved)
    return wrong_class(*law, looked.y.astype(int), looked.weights)
