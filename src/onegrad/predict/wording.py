"""The answers of the theories as predictions, with what they assume in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onegrad.errors import Failure
from onegrad.predict.layer_means import STATED, LabelPower, over_layers, scatter_of
from onegrad.predict.prediction import LAYERS, Prediction
from onegrad.predict.real_data import RealPrediction
from onegrad.theory.draws import OverDraws
from onegrad.theory.errors import Correction
from onegrad.theory.isotropic.closed_form import IsotropicPrediction
from onegrad.theory.layer_study import LayerErrors
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.open import Open
from onegrad.theory.options import Theory
from onegrad.theory.task import Solution

_FINITE_SIZE = "What is left at finite size is of order 1/n."
_TWO_ERRORS = 2.0  # standard errors of what is drawn for one layer
_UNSETTLED = " A finer resolution would take long: the accuracy asked for was not reached."


def of_failure(failure: Failure, theory: Theory) -> Prediction:
    """No numbers, and the advice why."""
    nan = math.nan
    return Prediction(nan, nan, nan, theory.method, (), "failed", nan, str(failure))


def interpolated_to(misfit: float) -> str:
    """Of a point of a curve between others."""
    return (
        "Interpolated between points of the same curve that were computed, to "
        f"{100 * misfit:.1g} %; what follows is said of the nearest of them."
    )


def because_refused(layers: Prediction, refused: Failure) -> Prediction:
    """Drawn layers in the place of types."""
    reason = f"First layers are drawn, because the theory without a draw refuses: {refused.error}"
    return replace(layers, assumptions=(*layers.assumptions, reason))


def because_uncertain(layers: Prediction, types: Prediction) -> Prediction:
    """The same where types have an answer."""
    reason = (
        "First layers are drawn, because the theory without a draw is uncertain by "
        f"{100 * types.error_estimate:.3g} %."
    )
    return replace(layers, assumptions=(*layers.assumptions, reason))


def of_closed_form(result: IsotropicPrediction, checked: Prediction | None) -> Prediction:
    """The isotropic closed form's errors and regime.

    checked : the conditional theory's answer, which assumes less: the difference is the error
        estimate. Without it the closed form is a draft
    """
    name = f"isotropic closed form, {result.method}, regime ℓ = {result.regime}"
    errors = (result.test_error, result.train_error, result.train_objective)
    closed = Prediction(*errors, name, (*result.assumptions, _FINITE_SIZE), "draft")
    if checked is None:
        return closed
    apart = difference(closed, checked)
    compared = f"The conditional theory is {100 * apart:.2g} % apart."
    known = replace(checked.open, physics=checked.open.physics + apart)
    return replace(
        closed, status="ok", error_estimate=known.total, open=known,
        assumptions=(*closed.assumptions, compared),
    )  # fmt: skip


def difference(one: Prediction, other: Prediction) -> float:
    """Relative, the larger of test and train."""
    pairs = (one.test_error, other.test_error), (one.train_error, other.train_error)
    return max(abs(a - b) / max(abs(b), 1e-300) for a, b in pairs)


def of_real_data(result: RealPrediction) -> Prediction:
    """The semi-parametric theory's errors, or those of a fitted mixture."""
    found = result.result
    status = "ok" if found.settled else "not settled"
    return Prediction(
        *found.errors, result.name, result.assumptions, status, found.error_estimate,
        label_variance=result.label_variance, open=Open(rules=found.error_estimate),
    )  # fmt: skip


def of_layers(
    found: Sequence[LayerErrors],
    theory: Theory,
    source: str,
    rough: Sequence[MatrixErrors] = (),
    power: LabelPower | None = None,
) -> Prediction:
    """The mean over first layers, with what rule, size and draws leave open.

    source : where the layers come from
    rough : errors of these layers and of more, found in another way (`over_layers`)
    power : of the labels that the layers were drawn for, a control variate
    """
    mean, se = over_layers(found, rough, power)
    draws, scatter = max(len(found), len(rough)), scatter_of(found, rough, power, STATED)
    size = float(np.mean([one.by_size for one in found]))
    by_nodes = max(one.by_nodes for one in found)
    if draws == 1:
        by_nodes = math.hypot(by_nodes, _TWO_ERRORS * found[0].by_draws)
    layers = "One first layer" if draws == 1 else f"Mean over {draws} first layers"
    if not np.array_equal(mean, over_layers(found, rough)[0]):
        layers += " with their label power as a control variate"
    rules = "one coarse rule" if theory.draft else "two rules compared"
    known = Open(rules=by_nodes, sizes=size, draws=scatter)
    return Prediction(
        float(mean[0]), float(mean[1]), float(mean[2]), LAYERS,
        (
            f"{layers}, {source}; weights are taken as they are. {_at_size_of(found)}",
            f"{_features_of(found)} projections on {found[0].directions} directions, "
            f"{found[0].nodes} nodes, {rules}.",
        ),
        "draft" if theory.draft else "ok",
        known.total,
        test_error_se=float(se[0]), train_error_se=float(se[1]),
        misclassification=_mean_of(found, "misclassification"),
        calibration=_mean_of(found, "calibration"),
        test_loss=float(mean[3]), train_loss=float(mean[4]), open=known,
    )  # fmt: skip


def of_outputs(outputs: Sequence[Prediction], wrong: float) -> Prediction:
    """Of a network with several outputs, one for each class: errors add up.

    wrong : how often the largest output is that of another class
    """
    total = np.sum([(o.test_error, o.train_error, o.train_objective) for o in outputs], axis=0)
    statuses = {one.status for one in outputs}
    status = next((s for s in ("not settled", "draft") if s in statuses), "ok")
    first = outputs[0]
    note = (
        f"Errors are summed over {len(outputs)} outputs, one for each class; the largest output is "
        "the class, by the joint law of all of them given the projections, at large sizes."
    )
    return Prediction(
        float(total[0]), float(total[1]), float(total[2]), first.method,
        (*first.assumptions, note), status, max(one.error_estimate for one in outputs),
        misclassification=wrong, label_variance=sum(one.label_variance for one in outputs),
        open=max((one.open for one in outputs), key=lambda known: known.total),
        decisions=tuple(decision for one in outputs for decision in one.decisions),
    )  # fmt: skip


def _features_of(found: Sequence[LayerErrors]) -> str:
    rows = max(one.rows for one in found)
    if rows:
        return f"Features of up to {rows} samples of each layer, drawn given their"
    return "Features Gaussian given their"


def _at_size_of(found: Sequence[LayerErrors]) -> str:
    """The mean correction of first layers, or why there is none."""
    if any(one.rows for one in found):
        return _FINITE_SIZE
    given = [one.study.correction for one in found if one.study is not None]
    made = [one for one in given if one is not None and not one.left_out]
    if not made:
        why = [f" No finite-size correction: {one.left_out[0]}." for one in given if one]
        return f"{_FINITE_SIZE}{''.join(why[:1])}"
    mean = np.mean([(one.test, one.train, one.objective, one.remainder) for one in made], axis=0)
    return _at_this_size(Correction(*mean.tolist()))


def _mean_of(found: Sequence[LayerErrors], name: str) -> float | None:
    mean = float(np.mean([getattr(one, name) for one in found]))
    return None if math.isnan(mean) else mean


def of_solution(
    solution: Solution, theory: Theory, seed: int, draws: OverDraws | None = None
) -> Prediction:
    """The conditional theory's solution, with what was drawn for it or averaged over."""
    problem, drawn = solution.task.problem, solution.task.geometry.basis is not None
    data = (
        "Isotropic Gaussian data"
        if problem.data.isotropic
        else "Gaussian mixture with spiked covariances"
    )
    if solution.task.geometry.levels is not None:
        data = "Gaussian data with a bulk that is not flat, by blocks"
    where = f"the overlaps of the draw with seed {seed}" if drawn else "typical overlaps at this n"
    if draws is not None and not drawn:
        where = "chance overlaps at this n"
    steps = problem.training.steps
    source = "any step" if steps == 1 else f"{steps} steps on fresh samples"
    size = f"{solution.types} types of neurons, {solution.nodes} nodes"
    numerics = f"{size}, one coarse resolution."
    if solution.status != "draft":
        numerics = f"{size}, two resolutions compared."
        if solution.correction is None:
            numerics += f" What is left in 1/n may be {100 * solution.open.sizes:.2g} %."
            if theory.finite_size and not solution.squared:
                numerics += (
                    " Test errors contain what outputs differ by between training sets and first "
                    "layers; the rest of the 1/n correction is known of the squared loss alone."
                )
        if solution.status == "not settled":
            numerics += _UNSETTLED
    return Prediction(
        solution.test_error,
        solution.train_error,
        solution.train_objective,
        "conditional Gaussian theory",
        (
            f"{data}; n, k, m large with fixed ratios. {_at_this_size(solution.correction)}",
            f"Conditional Gaussian equivalence, {source}; {where}.",
            numerics,
            *(() if solution.correction is None else solution.correction.left_out),
            *_draws_in_words(draws),
        ),
        solution.status,
        solution.error_estimate,
        misclassification=solution.misclassification,
        test_loss=solution.test_loss if not solution.squared else math.nan,
        train_loss=solution.train_loss if not solution.squared else math.nan,
        calibration=solution.calibration,
        median_test_error=None if draws is None else draws.median,
        spread_over_draws=None if draws is None else draws.spread,
        label_variance=solution.label_variance,
        solution=solution,
        open=solution.open,
        decisions=solution.decisions,
    )


def _at_this_size(found: Correction | None) -> str:
    """What was done about terms of order 1/n."""
    if found is None or found.size == 0:
        return _FINITE_SIZE
    test, train = (f"{100 * (ratio - 1):+.2g} %" for ratio in (found.test, found.train))
    return (
        f"Corrected for terms of order 1/n (test {test}, train {train}); what is left is about "
        f"{100 * found.remainder:.2g} %."
    )


def _draws_in_words(draws: OverDraws | None) -> tuple[str, ...]:
    """What was averaged over, where it makes a difference of more than a percent."""
    if draws is None or not draws.spread > 0.01 * draws.mean:
        return ()
    return (
        f"Mean over {draws.points} points of the law of {draws.variables} chance quantities; from "
        "draw to draw of these alone the test error has a standard deviation of "
        f"{draws.spread:.2g} and a median of {draws.median:.4g}.",
    )
