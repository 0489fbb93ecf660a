"""The answers of the theories as predictions, with what they assume in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.errors import Failure
from onegrad.predict.layer_means import LayerMeans
from onegrad.predict.prediction import LAYERS, Prediction
from onegrad.problem import Problem
from onegrad.theory.draws import OverDraws
from onegrad.theory.isotropic.closed_form import IsotropicPrediction
from onegrad.theory.layers.any_layer import LayerErrors
from onegrad.theory.layers.semi_parametric import SemiParametric
from onegrad.theory.open import Decision, Open
from onegrad.theory.options import Theory
from onegrad.theory.readout.errors import Correction
from onegrad.theory.resolution import TOO_LONG
from onegrad.theory.task import Solution

_LIMIT = (
    "Finite size: the limit of large n, k and m without correction; expect deviations of order 1/n."
)
_UNSETTLED = (
    "The numerics did not reach the accuracy asked for; a finer resolution would take long."
)


def of_failure(failure: Failure, theory: Theory) -> Prediction:
    """No numbers, and the advice why."""
    nan = math.nan
    return Prediction(nan, nan, nan, theory.method, (), "failed", nan, str(failure))


def interpolated_to(misfit: float) -> str:
    """Of a point of a curve between others."""
    return (
        "Interpolated between points of the same curve that were computed, to "
        f"{100 * misfit:.1g} %. The next sentences are about the nearest of these."
    )


def of_a_curve(types: Prediction) -> Prediction:
    """Of a point that `predict` would draw layers for, too."""
    reason = (
        "A curve keeps the theory without a draw, which is uncertain here; predict() of this point "
        "alone draws first layers, too, and may differ by what this estimate states."
    )
    return replace(types, assumptions=(*types.assumptions, reason))


def because_refused(layers: Prediction, refused: Failure) -> Prediction:
    """Drawn layers in the place of types."""
    reason = f"First layers were drawn, because the theory without a draw refuses: {refused.error}"
    if refused.kind == TOO_LONG:
        reason = (
            "First layers were drawn, because the theory without a draw would take long here; "
            'method = "conditional" waits for it.'
        )
    return replace(layers, assumptions=(*layers.assumptions, reason))


def because_uncertain(layers: Prediction, types: Prediction) -> Prediction:
    """The same where types have an answer."""
    estimate = types.error_estimate
    much = f"{100 * estimate:.2g} %" if estimate < 1 else "more than 100 %"
    reason = f"First layers were drawn, because the theory without a draw is uncertain by {much}."
    return replace(layers, assumptions=(*layers.assumptions, reason))


def of_closed_form(result: IsotropicPrediction, checked: Prediction | None) -> Prediction:
    """The isotropic closed form's errors and regime.

    checked : the conditional theory's answer, which assumes less: the difference is the error
        estimate. Without it the closed form is a draft
    """
    name = f"isotropic closed form, {result.method}, regime ℓ = {result.regime}"
    errors = (result.test_error, result.train_error, result.train_objective)
    closed = Prediction(*errors, name, (*result.assumptions, _LIMIT), "draft")
    if checked is None:
        return closed
    apart = difference(closed, checked)
    compared = (
        f"The conditional Gaussian equivalence (Demir & Dogan 2025) gives test error "
        f"{checked.test_error:.4g} and training error {checked.train_error:.4g}."
    )
    known = replace(checked.open, physics=checked.open.physics + apart)
    return replace(
        closed, status="ok", error_estimate=known.total, open=known,
        assumptions=(*closed.assumptions, compared),
    )  # fmt: skip


def difference(one: Prediction, other: Prediction) -> float:
    """Relative, the larger of test and train."""
    pairs = (one.test_error, other.test_error), (one.train_error, other.train_error)
    return max(abs(a - b) / max(abs(b), 1e-300) for a, b in pairs)


def of_rows(found: SemiParametric, name: str, said: tuple[str, ...]) -> Prediction:
    """Errors with the data's own rows as nodes."""
    status = "ok" if found.settled else "not settled"
    numerics = f"Numerics: rank {found.rank}, extrapolated (Richardson) in the number of nodes."
    return Prediction(
        *found.errors, name, said, status, found.open.total, numerics=(numerics,), open=found.open,
    )  # fmt: skip


def of_drawn_rows(
    found: SemiParametric, problem: Problem, theory: Theory, seed: int
) -> tuple[str, ...]:
    """Of layers that were drawn for rows of data."""
    given = (
        "Features are Gaussian given the projections on "
        f"{found.rank} principal directions of each class and on the gradient."
    )
    if found.rank >= problem.dim:
        given = "Features are taken as they are."
    share = 100 * theory.policy.mean_known * theory.accuracy
    moves = f" Taking more directions moves the answer by more than {share:g} %."
    return (
        f"Method: {found.nodes} rows of {problem.data.source} stand for the law of the data; "
        f"first layers are drawn and trained (seed {seed}), and errors are means over "
        f"{found.draws} of them, in the limit of large k and m.",
        given + ("" if found.settled else moves),
    )


def of_layers(means: LayerMeans, theory: Theory, seed: int | None) -> Prediction:
    """The mean over first layers, with what rule, size and draws leave open.

    seed : from which layers are drawn; None for one that was given
    """
    found, policy = means.found, theory.policy
    mean, se, draws = means.mean, means.standard_error, means.layers
    scatter = means.scatter(policy.stated)
    size = float(np.mean([one.by_size for one in found]))
    by_nodes = max(one.by_nodes for one in found)
    numerics = (
        f"Features are Gaussian given their projections on {found[0].directions} directions; "
    )
    numerics += f"{found[0].nodes} quadrature nodes, "
    numerics += "one coarse rule." if theory.draft else "two rules compared."
    if means.controlled:
        numerics += " The label power of the draws is a control variate of the mean."
    left_out = max(one.left_out for one in found)
    known = Open(rules=by_nodes, sizes=size, draws=scatter, physics=left_out)
    wanted, reached = policy.mean_known * theory.accuracy, means.settled(theory.accuracy)
    outcome = f"{draws} first layers" + (" are enough" if reached else ", and more would take long")
    what = "The standard error of the mean over first layers"
    decision = Decision("layers", means.scatter(), wanted, what, outcome)
    return Prediction(
        float(mean[0]), float(mean[1]), float(mean[2]), LAYERS,
        (_source_of(draws, seed), _at_size_of(found), *_left_out_of(left_out)),
        "draft" if theory.draft else "ok",
        known.total,
        test_error_se=float(se[0]), train_error_se=float(se[1]),
        misclassification=_mean_of(found, "misclassification"),
        calibration=_mean_of(found, "calibration"),
        test_loss=float(mean[3]), train_loss=float(mean[4]), numerics=(numerics,), open=known,
        decisions=(decision,) if draws > 1 and not theory.draft else (),
    )  # fmt: skip


def _source_of(draws: int, seed: int | None) -> str:
    if seed is None:
        return "Method: the errors of a readout on the first layer as given "
        "(docs/book/any-first-layer.md)."
    layers = "One first layer was" if draws == 1 else f"{draws} first layers were"
    mean = "" if draws == 1 else ", and the results are averaged"
    return (
        f"Method: {layers} drawn and trained (seed {seed}); the errors of a readout on such "
        f"features are computed without sampling{mean}."
    )


def of_outputs(outputs: Sequence[Prediction], wrong: float) -> Prediction:
    """Of a network with several outputs, one for each class: errors add up.

    wrong : how often the largest output is that of another class
    """
    total = np.sum([(o.test_error, o.train_error, o.train_objective) for o in outputs], axis=0)
    statuses = {one.status for one in outputs}
    status = next((s for s in ("not settled", "draft") if s in statuses), "ok")
    first = outputs[0]
    note = (
        f"Errors are summed over {len(outputs)} outputs, one for each class; the class is that of "
        "the largest output."
    )
    return Prediction(
        float(total[0]), float(total[1]), float(total[2]), first.method,
        (*first.assumptions, note), status, max(one.error_estimate for one in outputs),
        misclassification=wrong, label_variance=sum(one.label_variance for one in outputs),
        open=max((one.open for one in outputs), key=lambda known: known.total),
        decisions=tuple(decision for one in outputs for decision in one.decisions),
    )  # fmt: skip


def _left_out_of(share: float) -> tuple[str, ...]:
    if not share:
        return ()
    return (
        f"Quadratic parts of the features, {100 * share:.2g} % of their covariance, are left out: "
        "features are so large that less the lengths of samples these are not positive.",
    )


def _at_size_of(found: Sequence[LayerErrors]) -> str:
    """The mean correction of first layers, or why there is none."""
    given = [one.study.correction for one in found if one.study is not None]
    made = [one for one in given if one is not None and not one.left_out]
    if not made:
        why = [f" It is not corrected because {one.left_out[0]}." for one in given if one]
        return f"{_LIMIT}{''.join(why[:1])}"
    mean = np.mean([(one.test, one.train, one.objective, one.remainder) for one in made], axis=0)
    return _at_this_size(Correction(*mean.tolist()))


def _mean_of(found: Sequence[LayerErrors], name: str) -> float | None:
    mean = float(np.mean([getattr(one, name) for one in found]))
    return None if math.isnan(mean) else mean


def of_solution(
    solution: Solution, theory: Theory, seed: int, draws: OverDraws | None = None
) -> Prediction:
    """The conditional theory's solution, with what was drawn for it or averaged over."""
    numerics = f"{solution.types} types of neurons on {solution.nodes} nodes"
    numerics += ", one coarse resolution." if solution.status == "draft" else ", two compared."
    if solution.task.geometry.levels is not None:
        numerics += " The bulk of the covariance is treated in blocks of equal eigenvalues."
    if draws is not None:
        numerics += f" The mean over chance overlaps takes {draws.points} points of their law."
    left = 0.0 if solution.status == "draft" or solution.correction else solution.open.sizes
    return Prediction(
        solution.test_error,
        solution.train_error,
        solution.train_objective,
        "conditional Gaussian theory",
        (
            _method_of(solution, theory, seed, draws),
            *_size_of(solution, theory, left),
            *_draws_in_words(draws),
            *([_UNSETTLED] if solution.status == "not settled" else []),
        ),
        solution.status,
        solution.error_estimate,
        misclassification=solution.misclassification,
        misclassification_se=_half_width(solution, draws),
        test_loss=solution.test_loss if not solution.squared else math.nan,
        train_loss=solution.train_loss if not solution.squared else math.nan,
        calibration=solution.calibration,
        median_test_error=None if draws is None else draws.median,
        spread_over_draws=None if draws is None else draws.spread,
        label_variance=solution.label_variance,
        solution=solution,
        numerics=(f"Numerics: {numerics}",),
        open=solution.open,
        decisions=solution.decisions,
    )


def _half_width(solution: Solution, draws: OverDraws | None) -> float:
    """Half of the 95 % interval of the mean misclassification over chance; 0 in a draft."""
    wrong = solution.misclassification
    if wrong is None or draws is None or solution.status == "draft":
        return 0.0
    return wrong * draws.wrong / 2


def _method_of(solution: Solution, theory: Theory, seed: int, draws: OverDraws | None) -> str:
    """By which theory, and where its directions come from."""
    problem, geometry = solution.task.problem, solution.task.geometry
    steps = problem.training.steps
    text = "Method: conditional Gaussian equivalence (Demir & Dogan 2025), "
    if steps > 1:
        text += f"step by step through {steps} fresh batches."
    else:
        text += "which holds for steps of any size."
    if geometry.basis is not None:
        text += f" Directions are those that a simulation with seed {seed} draws first."
    elif draws is None and problem.data.structured and problem.directions == "random":
        text += f" Random directions have their typical overlaps at n = {problem.dim}."
    return text


def _size_of(solution: Solution, theory: Theory, left: float) -> tuple[str, ...]:
    """What was done about terms of order 1/n.

    left : relative size of what may be missing where there is no correction
    """
    correction = solution.correction
    if correction is not None:
        return (_at_this_size(correction), *correction.left_out)
    if solution.status == "draft":
        return (_LIMIT,)
    return (f"{_LIMIT[:-1]}, here about {100 * left:.2g} %.",)


def _at_this_size(found: Correction | None) -> str:
    """What was done about terms of order 1/n."""
    if found is None or found.size == 0:
        return _LIMIT
    test, train = (f"{100 * (ratio - 1):+.2g} %" for ratio in (found.test, found.train))
    return (
        f"Finite size: {test} (test) and {train} (training) are added to the limit n → ∞; terms "
        f"beyond 1/n are estimated at {100 * found.remainder:.2g} %."
    )


def _draws_in_words(draws: OverDraws | None) -> tuple[str, ...]:
    """What was averaged over, where it makes a difference of more than a percent."""
    if draws is None or not draws.spread > 0.01 * draws.mean:
        return ()
    overlaps = f"{draws.variables} chance overlaps" if draws.variables > 1 else "a chance overlap"
    return (
        f"Directions are random, so the error depends on {overlaps}. Given is the average; the "
        f"test error of one draw differs from it by ±{draws.spread:.2g} (one standard deviation; "
        f"median {draws.median:.4g}).",
    )
