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
from contextlib import suppress
from dataclasses import replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.linalg import outlying_directions
from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.layers.given import GivenLayer, given_layer
from onegrad.theory.layers.losses import LossOnLayer, LossRatios, signs_of
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
    fewer_points,
    last_apart,
    level_of_correction,
    nodes_of,
    quadratics,
    quasi_level,
    rule_of,
    rules_tried,
)
from onegrad.theory.layers.samples import (
    affordable,
    draw_rows,
    response_spread,
    sampled_errors,
    sampled_nodes,
)
from onegrad.theory.layers.study import LayerErrors, Study
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.options import Theory
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
# If two ways to compute a part of the 1/n correction differ by more than this, none is made
_DISAGREE = 0.02
# Relative error at the correction's own coarse rule beyond which its ratio is not believed
_TOO_COARSE = 0.25
_PART = 0.1  # share of the difference between two rules with one χ that joins the estimate
# Relative 1/n correction up to which that of the first layer serves for the others of a problem
_SIMILAR = 0.02
# Relative error that special directions beside the axes leave, in units of their number over n'
_BESIDE = 0.7
_SIGN_LEVEL, _DRAFT = QuadratureLevel.at(1), QuadratureLevel.draft()
# Quasi-random points where the responses of nodes count, and the relative change of errors at which
# further ones are not tried
_TWICE, _MOVED = replace(SCATTERED, most=600), 0.02
_FINE = QuadratureLevel.at(2)  # rule of losses other than the squared one
# Share of the remaining degrees of freedom that the mean part may use: at 0.52 errors were off by a
# factor of three
_MOST_SPENT = 0.4
_SIGN_NODES = 1024  # nodes of the classification error, for each component
# Relative effect of cumulants, or variance of log(1 + χ) given κ, up to which features count as
# Gaussian; beyond it samples are drawn (layer_samples.py)
_NEARLY_GAUSSIAN = 0.02
_SOLVED = 3e-4  # relative tolerance of the responses of nodes: 0.06 % of the errors


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
    if study is not None and study.sampled:
        try:
            return _by_samples(problem, layer, study)
        except ConvergenceError:  # only this layer fails
            study = replace(study, sampled=False)
    if study is None:
        study, rule, solved = _on_first(problem, layer, theory)
        far = _far_from_gaussian(problem, layer, theory, study, solved)
        if far > _NEARLY_GAUSSIAN:
            with suppress(ConvergenceError):
                sampled = _by_samples(problem, layer, replace(study, sampled=True))
                if 2 * sampled.by_draws < far:
                    return sampled
    else:
        if study.correction and study.correction.size > _SIMILAR and not study.settled:
            mine = correction_at(problem, layer, study.sized)
            study = study if mine.left_out else replace(study, correction=mine)
        rule = rule_of(problem, layer, study.level)
        solved = _solved(problem, rule, study.chi, not study.corrected)
    correction, made = study.correction, study.corrected
    solved, by_size = _times(solved, study.finer), _by_size(problem, solved.degrees)
    if correction is not None:
        by_size = correction.remainder if study.counted else max(by_size, correction.remainder)
    if made and correction is not None:
        ratios = correction.test, correction.train, correction.objective
        solved, by_size = _times(solved, ratios), correction.remainder
    by_size = min(AT_MOST, by_size + _BESIDE * layer.beside + solved.left_out)
    signs = math.nan, math.nan
    if problem.labels_binary:  # the classification error depends on the 1/n part of χ
        seen = _solved(problem, rule, study.chi) if made else solved
        signs = signs_of(problem, _looked(problem, layer), seen)
    return LayerErrors(
        solved.errors, study.by_nodes, by_size, layer.special, len(rule), *solved.errors[:2],
        *signs, study,
    )  # fmt: skip


def _far_from_gaussian(
    problem: Problem, layer: GivenLayer, theory: Theory, study: Study, solved: NodeSolution
) -> float:
    """By how much features are: the part of cumulants in the 1/n correction, or how much the χ of
    samples with the same κ differ; unknown without a correction; 0 where samples are too dear."""
    correction = study.correction
    if theory.draft or correction is None or not affordable(problem):
        return 0.0
    if correction.left_out:
        return math.inf
    rows = draw_rows(problem, layer, nodes_of(problem, layer, study.level), study.number)
    spread = response_spread(rows, solved.inverse, problem.samples)
    return max(correction.cumulants, spread)


def _by_samples(problem: Problem, layer: GivenLayer, study: Study) -> LayerErrors:
    """What is open in 1/n is the bound without degrees of freedom of the mean part, which χ has,
    times the concentration of errors in few samples; its term of training errors is no larger than
    what a correction has beside cumulants."""
    where, same = sampled_nodes(problem, layer, study.level)
    found = sampled_errors(problem, draw_rows(problem, layer, where, study.number), study.chi)
    finer = study.finer if same else (1.0, 1.0, 1.0)
    errors = MatrixErrors(*(e * f for e, f in zip(found.errors, finer, strict=True)))
    size = min(found.left, problem.dim, problem.width)
    signs = math.nan, math.nan
    if problem.labels_binary:
        seen = _solved(problem, rule_of(problem, layer, study.level), study.chi)
        signs = signs_of(problem, _looked(problem, layer), seen)
    by_size = bound_of(0.0, size, found.unfitted)
    if study.correction is not None and study.corrected:
        by_size = min(by_size, bound_of(0.0, size, math.inf) + study.correction.others)
    by_size *= found.concentration
    return LayerErrors(
        errors, study.by_nodes, min(AT_MOST, by_size), layer.special, len(where.weights),
        *errors[:2], *signs, study, found.by_draws, found.rows,
    )  # fmt: skip


def _with_other_loss(
    problem: Problem, layer: GivenLayer, theory: Theory, study: Study | None
) -> LayerErrors:
    """On the first layer with a finer rule, and where labels are ±1 over their surplus; where these
    change little, the layers that follow have the ratios (layer_losses.py)."""
    first = study is None
    study = study or _study(problem, layer, theory)
    rule = rule_of(problem, layer, study.level)
    begin = _solved(problem, rule, study.chi)
    if begin.left_out:  # the loss is iterated on the same features
        rule = rule.without_squares()
    by_size = _by_size(problem, begin.degrees) + _BESIDE * layer.beside + begin.left_out
    by_size = min(AT_MOST, by_size)
    deviation = surplus_deviation(problem, layer.geometry) if theory.finite_size else None
    rules = rule, _looked(problem, layer) if problem.labels_binary else None
    solved = LossOnLayer.at(problem, rules, begin, deviation)
    if first and not theory.draft:
        fine = rule_of(problem, layer, _FINE)
        finer = solved.finer(fine, _solved(problem, fine, study.chi))
        by_nodes, ratios = solved.errors.apart(finer.errors), None
        if by_nodes > RESOLVED:
            solved, study = finer, replace(study, level=_FINE)
        study = replace(study, by_nodes=by_nodes)
        ratios = LossRatios.between(solved.errors, finer.errors)
        if deviation:
            shifted = LossRatios.between(solved.errors, solved.over_surplus)
            study = replace(study, surplus=not shifted.little)
            if shifted.little:
                ratios = ratios.after(shifted)
        study = replace(study, ratios=ratios)
    found = solved.over_surplus if study.surplus else solved.errors
    found = found if study.ratios is None else study.ratios.times(found)
    by_size = min(AT_MOST, theory.policy.bound_of_losses * by_size)
    return LayerErrors(
        found.errors, study.by_nodes, by_size, layer.special,
        len(solved.rule), found.test_loss, found.train_loss, found.misclassification,
        found.calibration, study,
    )  # fmt: skip


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
    return common(problem, rule_of(problem, layer, study.level, lengths=False))[0]


def _on_first(
    problem: Problem, layer: GivenLayer, theory: Theory
) -> tuple[Study, Quadratics, NodeSolution]:
    """The study of a first layer, its rule and the solution there, which the study looks at, too.

    Products of rules give weak axes two or three nodes each, on which κ² hardly varies. Where the
    responses of nodes count, so do their tails: then the rule is one of quasi-random points.

    The correction has special directions beside the axes as blocks with random coefficients. Where
    it disagrees with what counting ν_sν_sᵀ in χ_s does, the larger part of it, there is none, nor
    where errors are far off at its coarse rule.
    """
    study = _study(problem, layer, theory)
    rule = rule_of(problem, layer, study.level)
    solved = _solved(problem, rule, study.chi, not study.corrected)
    if theory.draft:
        return study, rule, solved
    rank, shifted = layer.geometry.rank, apart(study.rough[:2], solved.errors[:2])
    short = not study.level.quasi or study.level == SCATTERED
    if rank > _FEW_AXES and short and shifted > RESOLVED:
        for level in (_TWICE, quasi_level(0)):
            rough = common(problem, rule_of(problem, layer, level, lengths=False))[0]
            rule = rule_of(problem, layer, level)
            again = _solved(problem, rule, study.chi, not study.corrected)
            moved = _ratios(_ratios(again.errors, rough), _ratios(solved.errors, study.rough))
            ratios = _ratios(rough, study.rough)
            finer = tuple(f / r for f, r in zip(study.finer, ratios, strict=True))
            by_nodes = study.by_nodes + _PART * apart(moved[:2], (1.0, 1.0))
            study = replace(study, level=level, rough=rough, finer=finer, by_nodes=by_nodes)
            solved = again
            if apart(moved[:2], (1.0, 1.0)) <= _MOVED:
                break
    doubtful = layer.special > rank or study.sized_off > 0
    if study.correction is not None and study.corrected and doubtful:
        counted, correction = _solved(problem, rule, study.chi), study.correction
        means = _ratios(counted.errors, solved.errors)[:2]
        off = apart(means, (correction.test, correction.train))
        if off > max(_DISAGREE, correction.remainder) or study.sized_off:
            reason = f"it leaves out {100 * off:.0f} % that directions beside the axes make"
            reason = _too_coarse(study.sized_off) if study.sized_off else reason
            left_out = Correction(left_out=(reason,), remainder=off + correction.remainder)
            study, solved = replace(study, correction=left_out, counted=True), counted
    return study, rule, solved


def _too_coarse(off: float) -> str:
    return f"errors are {100 * off:.0f} % off at the resolution that it can have"


def _ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    return tuple(a / b if b else 1.0 for a, b in zip(above, below, strict=True))


def _study(problem: Problem, layer: GivenLayer, theory: Theory) -> Study:
    """How fine the rule for κ has to be, and the 1/n correction.

    With one χ for all nodes rules get finer until one more changes little. Responses χ_s are those
    of the coarsest that is close to the finest, or of few quasi-random points, and the ratio of
    the two with one χ multiplies its errors.
    """
    level = QuadratureLevel.at(1)
    rule = rule_of(problem, layer, level, lengths=False)
    first, chi = common(problem, rule)
    if theory.draft:
        return Study(level, math.nan, chi, first)
    # check before anything slow; one χ underestimates the degrees of freedom by 1 to 6 %
    _check_spent(rough_degrees(rule, problem.samples, problem.effective_ridge, chi))
    if problem.loss.name != "squared":
        return Study(level, math.nan, chi, first)
    tried = rules_tried(problem, layer, Tried(level, first, chi))
    finest, chi, sized, correction, off = tried[-1].errors, tried[-1].chi, _DRAFT, None, 0.0
    if theory.finite_size:
        sized, off = level_of_correction(problem, layer, finest)
        correction = correction_at(problem, layer, sized)
        if off > _TOO_COARSE and not correction.left_out:
            correction = Correction(left_out=(_too_coarse(off),))
        elif not correction.left_out:
            open_ratio = correction.remainder + off * correction.size
            correction = replace(correction, remainder=open_ratio)
    coarse = next(one for one in tried if apart(one.errors[:2], finest[:2]) <= RESOLVED)
    if layer.geometry.rank > _FEW_AXES:
        coarse = fewer_points(problem, layer, coarse, finest)
    by_nodes = last_apart(tried) + _PART * apart(coarse.errors[:2], finest[:2])
    finer, off = _ratios(finest, coarse.errors), 0.0 if off <= RESOLVED else off
    return Study(
        coarse.level, by_nodes, chi, coarse.errors, correction, finer, sized=sized, sized_off=off
    )


def _times(solved: NodeSolution, ratios: Sequence[float]) -> NodeSolution:
    errors = MatrixErrors(*(e * r for e, r in zip(solved.errors, ratios, strict=True)))
    return replace(solved, errors=errors)


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


def _by_size(problem: Problem, degrees: Degrees) -> float:
    """What finite sizes leave open: the bound of the theory of types, and the share of the samples'
    degrees of freedom that go to the special directions."""
    used, unfitted, left = degrees
    _check_spent(degrees)
    size = min(left, problem.dim, problem.width)
    return min(AT_MOST, used / unfitted + bound_of(used, size, unfitted))


def _check_spent(degrees: Degrees) -> None:
    if degrees.used > _MOST_SPENT * degrees.left:
        raise AssumptionError(
            f"the readout spends {degrees.used:.0f} degrees of freedom on the special directions, "
            f"of {degrees.left:.0f} that it leaves: no theory of large sizes holds. Use fewer "
            "spikes, a smaller spread or rate, a larger ridge, or more samples."
        )
