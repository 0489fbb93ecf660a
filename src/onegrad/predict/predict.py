"""Predicting errors without sampling: choose the theory for a problem and ask it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onegrad.compute.deadline import SECONDS, within
from onegrad.compute.randomness import Seed, root_seed
from onegrad.errors import (
    AssumptionError,
    ConvergenceError,
    Failure,
    OnegradError,
    ours,
    quiet,
    verb,
)
from onegrad.predict.closed_form import closed_form, why_not_isotropic
from onegrad.predict.curves import along_curves
from onegrad.predict.engines import choose, conditional
from onegrad.predict.layers import predict_layers
from onegrad.predict.prediction import Prediction
from onegrad.predict.real_data import predict_real
from onegrad.predict.wording import of_failure, of_outputs
from onegrad.problem import Problem, as_problem
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.simulate.models import MODELS
from onegrad.spec.experiment import Compare, Experiment, Point
from onegrad.spec.presets import Spec
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.recursion import recursion_holds
from onegrad.theory.options import OF_DATA, Theory
from onegrad.theory.readout.classes import argmax_error, class_problems, rough_classes

_MOST_TOLD = 1000.0  # larger factors are reported in words, not as numbers
_ROUNDING = 1e-12  # negative errors down to this share of max(test error, Var y) are set to 0


@verb
def predict(
    problem: Problem | Spec,
    theory: Theory | str = Theory(),
    *,
    rng: Seed = 0,
    throw: bool = True,
    **options: Any,
) -> Prediction:
    """Training and test error without sampling.

    problem : a Problem, or a spec that states one: a preset's name, a TOML file, a nested mapping
    theory : a Theory, or the name of a method. Its fields `method`, `accuracy`, `overlaps` and
        `finite_size` may also be given by name: predict(problem, accuracy=0.03)
    rng : seed of what is drawn, if anything, from streams that no simulation uses; directions that
        are fixed are those of the simulation with this seed
    throw : raise where the theory fails; False gives a Prediction with status "failed", NaN
        errors, and the advice in `error`

    >>> tables = {"data": {"model": "mixture", "dim": 300}, "network": {"width": 200},
    ...     "training": {"samples": 400}, "scaling": {"strength": 0.6, "weighting": 0.5}}
    >>> found = predict(Problem.from_spec(tables))
    >>> 0 < found.train_error < found.test_error
    True
    """
    theory = Theory.of(theory, options)
    (found,) = _all_answers([as_problem(problem)], theory, root_seed(rng), alone=True)
    return _told([found], theory, throw)[0]


@verb
def predict_curve(
    problems: Iterable[Problem | Spec],
    theory: Theory | str = Theory(),
    *,
    rng: Seed = 0,
    throw: bool = False,
    **options: Any,
) -> list[Prediction]:
    """`predict` for all points of a curve together, in less time.

    The same numbers up to rounding; of seven points or more that differ in one number, or in
    several that rise or fall together, up to what interpolating means over draws and 1/n
    corrections costs, which the error estimate contains. Smooth curves of 16 points or more are
    computed at 11 of them (drafts at 9) and interpolated between, to 0.1 % (drafts, and losses
    other than the squared one, to 1 %; docs/book/fixed-point.md); such points say so, and have no
    `solution`.
    Points keep the theory without a draw, however uncertain, where `predict` would rather draw
    first layers: a curve shall not jump. Options as of `predict`. A point at which the theory fails
    gets a Prediction with status "failed"; with `throw` the first such failure is raised. With
    accuracy = 0.03 a curve of 20 points takes about 0.04 s.
    """
    theory = Theory.of(theory, options)
    answers = _all_answers([as_problem(problem) for problem in problems], theory, root_seed(rng))
    return _told(answers, theory, throw)


def _told(answers: Sequence[Prediction | Failure], theory: Theory, throw: bool) -> list[Prediction]:
    """Failures as predictions without numbers, or raised."""
    if throw:
        for answer in answers:
            if isinstance(answer, Failure):
                raise answer.error
    return [of_failure(one, theory) if isinstance(one, Failure) else one for one in answers]


def predict_experiment(
    experiment: Experiment, theory: Theory | None = None
) -> tuple[Results, list[Prediction]]:
    """The predictions of all points, and a row of results for each; failed ones too.

    theory : by default the automatic choice with the spec's own `compare.accuracy` and
        `compare.finite_size`
    """
    start = time.process_time()
    experiment.check_data()
    compare, points = experiment.compare, experiment.points
    theory = theory or Theory(accuracy=compare.accuracy, finite_size=compare.finite_size)
    answers = _all_answers([p.problem for p in points], theory, root_seed(compare.seed), alone=True)
    found = _told(answers, theory, throw=False)
    seconds = (time.process_time() - start) / len(points)
    rows = [_row(p, "theory", one, seconds) for p, one in zip(points, found, strict=True)]
    return Results(experiment.name, tuple(rows)), found


def theory_of(model: str, compare: Compare) -> Theory:
    """What a theory among the models stands for: its method, the spec's accuracy and size."""
    record = MODELS[model]
    finite_size = compare.finite_size and record.finite_size
    return Theory(record.theory or "auto", compare.accuracy, finite_size=finite_size)


def theory_row(point: Point, model: str = "theory") -> Row:
    """The row of a theory among the models: by that model's method, at the spec's accuracy."""
    start = time.process_time()
    theory = theory_of(model, point.compare)
    found = predict(point.problem, theory, rng=point.compare.seed, throw=False)
    return _row(point, model, found, time.process_time() - start)


def _row(point: Point, model: str, found: Prediction, seconds: float) -> Row:
    errors = (found.test_error, found.train_error, found.train_objective)
    status = "failed" if found.status == "failed" else "ok"
    return Row(
        point.settings, model, 0, *errors, seconds, status, found.error, number=point.number,
        label_variance=found.label_variance, error_estimate=found.error_estimate,
        misclassification=math.nan if found.misclassification is None else found.misclassification,
        test_loss=found.test_loss, train_loss=found.train_loss,
        calibration=math.nan if found.calibration is None else found.calibration,
    )  # fmt: skip


# --- which theory --------------------------------------------------------------------------


def _all_answers(
    problems: Sequence[Problem], theory: Theory, seed: int, alone: bool = False
) -> list[Prediction | Failure]:
    """An unforeseen error at one point is a failure of this point only, not of the others."""
    try:
        with quiet(), within(SECONDS * len(problems)):
            return _answers(problems, theory, seed, alone)
    except Exception as error:
        if len(problems) == 1:
            return [Failure(_of_numerics(error, problems[0]))]
        return [_all_answers([one], theory, seed, alone)[0] for one in problems]


def _of_numerics(error: Exception, problem: Problem) -> OnegradError:
    """Linear algebra and arithmetic end in different ways where scales are extreme."""
    if isinstance(error, OnegradError) or not isinstance(error, ArithmeticError | ValueError):
        return ours(error)
    return ConvergenceError(
        f"the numerics of the theory fail at these scales ({error}): η = {problem.rate:.2g} "
        f"(training.rate), θ = {problem.spread:.2g} (data.spread) or the means (data.mean) are "
        "too far from the bulk's 1 for double precision. Take smaller ones, or a larger ridge"
    )


def _answers(
    problems: Sequence[Problem], theory: Theory, seed: int, alone: bool = False
) -> list[Prediction | Failure]:
    """Some theories take problems one by one; all others go to the conditional theory together.

    alone : points need not lie on a smooth curve, so that each may have the theory that knows most
    """
    answers = [_alone(one, theory, seed) for one in problems]
    rest = [i for i, answer in enumerate(answers) if answer is None]
    left = [problems[i] for i in rest]
    together = conditional(left, theory, seed) if alone else _curve(left, theory, seed)
    for i, answer in zip(rest, together, strict=True):
        answers[i] = choose(problems[i], theory, seed, answer, alone)
    pairs = zip(problems, answers, strict=True)
    refused = theory.policy.refused
    return [_worth_telling(one, answer, refused) for one, answer in pairs if answer is not None]


def _without_rounding(answer: Prediction) -> Prediction:
    """Zero for errors of −1e-17."""
    size = max(abs(answer.test_error), answer.label_variance, 0.0)
    names = ("test_error", "train_error", "train_objective", "test_loss", "train_loss")
    negative = [name for name in names if -_ROUNDING * size < getattr(answer, name) < 0]
    zeros: dict[str, Any] = dict.fromkeys(negative, 0.0)
    return replace(answer, **zeros) if zeros else answer


def _can_be(answer: Prediction) -> bool:
    errors = (answer.test_error, answer.train_error)
    known = (*errors, answer.train_objective, answer.test_loss, answer.train_loss)
    return all(0 <= error < math.inf for error in errors) and not any(map(math.isinf, known))


def _worth_telling(
    problem: Problem, answer: Prediction | Failure, refused: float
) -> Prediction | Failure:
    """An answer that may be wrong by a factor of two or more is none, nor is one that cannot be."""
    if isinstance(answer, Prediction):
        answer = _without_rounding(answer)
    if isinstance(answer, Prediction) and not _can_be(answer):
        return Failure(ConvergenceError(
            "the theory gives no finite errors here: the scales of this problem are beyond double "
            "precision. Use a larger training.ridge or a smaller step"
        ))  # fmt: skip
    if isinstance(answer, Failure) or not answer.error_estimate > refused:
        return answer
    factor = 1 + answer.error_estimate
    size = f"a factor of {factor:.2g}" if factor < _MOST_TOLD else "orders of magnitude"
    if answer.method.startswith("isotropic"):
        return Failure(ConvergenceError(
            f"the closed form is {size} away from the conditional theory here, which assumes less. "
            'Use method = "conditional"'
        ))  # fmt: skip
    smaller = "larger sizes or a smaller step" if problem.trained else "or larger sizes"
    return Failure(ConvergenceError(
        f"finite sizes, or the rules of the theory, leave its errors open by {size} here: that is "
        f"no answer. Use a larger training.ridge, {smaller}, or simulate."
    ))  # fmt: skip


def _alone(problem: Problem, theory: Theory, seed: int) -> Prediction | Failure | None:
    """Real data, classes, many steps and the closed form; None where types are to be asked."""
    if problem.beyond_theory:
        return Failure(AssumptionError(problem.beyond_theory))
    try:
        return _by_its_own_theory(problem, theory, seed)
    except OnegradError as error:
        return Failure(error)
    except np.linalg.LinAlgError as error:
        return Failure(_of_numerics(error, problem))


def _by_its_own_theory(problem: Problem, theory: Theory, seed: int) -> Prediction | None:
    _check_loss(problem, theory)
    if problem.outputs > 1:
        return _classes(problem, theory, seed)
    if _is_real(problem, theory.method):
        return predict_real(problem, theory, seed)
    bulk, by_types = problem.data.bulk_eigenvalues is not None, ("auto", "conditional")
    several = problem.trained and not problem.one_step
    beyond_types = several and (bulk or not recursion_holds(problem))
    if theory.method == "layer" or (theory.method == "auto" and beyond_types):
        return predict_layers(problem, theory, seed)
    if bulk and theory.method not in by_types:
        raise AssumptionError(
            f"the {theory.method} theory assumes a bulk covariance that is the identity, and "
            'data.spectrum sets another one; use method = "conditional" or "layer"'
        )
    if beyond_types or (several and theory.method not in by_types):
        raise AssumptionError(
            f"the {theory.method} theory does not reach so far (training.optimiser = "
            f'"{problem.training.optimiser}", {problem.training.steps} steps, '
            f'batch = "{problem.training.batch}"); use method = "layer"'
        )
    if theory.method in by_types:
        return None
    if reason := why_not_isotropic(problem):
        raise AssumptionError(f'the isotropic closed form {reason}. Use method = "conditional"')
    return closed_form(problem, theory, seed)


def _is_real(problem: Problem, method: str) -> bool:
    """Whether `predict_real` is to answer: it takes or refuses the problem."""
    by_default = problem.data.own_nodes and method == "auto"
    return not problem.data.known or by_default or method in OF_DATA


def _check_loss(problem: Problem, theory: Theory) -> None:
    """Refuse losses other than the squared one where no theory of them is known."""
    real = _is_real(problem, theory.method)
    if problem.loss.name == "squared" or not (real or theory.method.startswith("isotropic")):
        return
    raise AssumptionError(
        f"the {'theory of real data' if real else 'isotropic closed form'} is that of the squared "
        f'loss, not of training.loss = "{problem.loss.name}". '
        + ('Simulate it, or use loss = "squared"' if real else 'Use method = "conditional"')
    )


def _classes(problem: Problem, theory: Theory, seed: int) -> Prediction:
    """One output for each class: without a step outputs are problems of their own, with one the
    first layer is drawn, because neurons have as many initial readouts as there are outputs."""
    if _is_real(problem, theory.method):
        raise AssumptionError(
            "the theory of several classes is that of known mixtures. Take two classes of these "
            "data at a time, give labels.values, or simulate"
        )
    alone = class_problems(problem)
    drawn = problem.trained or problem.data.bulk_eigenvalues is not None
    if theory.method == "layer" or (theory.method == "auto" and drawn):
        return predict_layers(problem, theory, seed, 1 if theory.draft else theory.policy.layers)
    if problem.trained or theory.method not in ("auto", "conditional"):
        raise AssumptionError(
            f"the {theory.method} theory knows no networks of {problem.outputs} outputs"
            f'{" after a step" * problem.trained}; use method = "layer"'
        )
    outputs = []
    for one in conditional(alone, replace(theory, method="conditional"), seed):
        if isinstance(one, Failure):
            raise one.error
        outputs.append(one)
    geometry = geometry_of(problem, theory.overlaps, seed)
    if theory.draft:
        return of_outputs(outputs, rough_classes(problem, geometry)[1])
    wrong = argmax_error(problem, geometry, sum(one.test_error for one in outputs))
    return of_outputs(outputs, wrong)


def _curve(problems: Sequence[Problem], theory: Theory, seed: int) -> list[Prediction | Failure]:
    """`conditional`, of smooth curves at as many points as are needed."""
    compute = partial(conditional, theory=theory, seed=seed, together=True)
    return along_curves(problems, theory, compute, partial(_point, theory=theory, seed=seed))


def _point(problem: Problem, theory: Theory, seed: int) -> Prediction:
    """As of a curve, alone."""
    return predict_curve([problem], theory, rng=seed, throw=True)[0]
