"""The theory of a problem: which one applies, and what it says."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import SingleIndex
from onegrad.errors import AssumptionError, ConvergenceError, SpecError, did_you_mean
from onegrad.experiments.real_data import is_real, predict_real
from onegrad.experiments.results import THEORIES, Results, Row
from onegrad.experiments.spec import Experiment, Point
from onegrad.experiments.translate import drawn_neurons, geometry_of, labels_of, training_of
from onegrad.hermite import Array
from onegrad.problem import Problem
from onegrad.theory.conditional import predict_mixtures
from onegrad.theory.geometry import Labels, Training
from onegrad.theory.isotropic import predict_isotropic
from onegrad.theory.learned import LearnedFunction, learned_function
from onegrad.theory.resolution import Refusal, Solution, Task

METHODS = (
    "auto", "conditional", "hybrid", "isotropic", "isotropic-limit", "semi-parametric", "surrogate",
)  # fmt: skip
_CLOSE = 0.02  # how near the two theories must be for the simpler one to be taken
_FINITE_SIZE = "What is left at finite size is of order 1/n."
OVERLAPS = ("auto", "typical", "drawn")


@dataclass(frozen=True)
class Prediction:
    """Deterministic errors of a problem, how they were obtained and how far to trust them.

    `error_estimate` is relative, and NaN for a draft; `component_test` and `component_train` are
    the errors within each component and `classification_error` that of sign(f), where the theory
    knows them.
    """

    test_error: float
    train_error: float
    train_objective: float
    method: str
    assumptions: tuple[str, ...]
    status: str = "ok"
    error_estimate: float = 0.0
    component_test: tuple[float, ...] | None = None
    component_train: tuple[float, ...] | None = None
    classification_error: float | None = None
    solution: Solution | None = None
    _parts: tuple[Labels, Training] | None = None

    def learned(
        self, direction: str = "teacher", component: int = 0, degree: int = 6
    ) -> LearnedFunction:
        """E[f(x)|û·x] along "teacher" or a spike ("spike 1.1"), and its Hermite coefficients."""
        if self.solution is None or self._parts is None:
            raise AssumptionError(
                'the learned function comes with the conditional theory: method = "conditional"'
            )
        return learned_function(*self._parts, self.solution, direction, component, degree=degree)

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that `learned` knows here; none without the conditional theory."""
        return () if self.solution is None else tuple(self.solution.geometry.directions)

    def by_projection(self) -> dict[str, Array]:
        """Errors node by node over the projections κ of a sample on the few directions.

        Columns: weight, component, kappa (S × r, in the solution's own basis; lengths along the
        last axes where `solution.geometry` has groups of directions that are alike), prediction
        E[f|κ], variance Var[f|κ], test_error and train_error given κ.
        """
        if self.solution is None:
            raise AssumptionError(
                'errors by projection come with the conditional theory: method = "conditional"'
            )
        where, errors = self.solution.where, self.solution.by_node
        return {
            "weight": where.weights,
            "component": where.component,
            "kappa": where.kappa,
            "prediction": errors.prediction,
            "variance": errors.variance,
            "test_error": errors.node_test,
            "train_error": errors.node_train,
        }

    def as_json(self, by_projection: bool = False) -> dict[str, Any]:
        extra = {
            "component_test": self.component_test,
            "component_train": self.component_train,
            "classification_error": self.classification_error,
        }
        nodes: dict[str, Any] = {}
        if by_projection and self.solution is not None:
            nodes["by_projection"] = {k: v.tolist() for k, v in self.by_projection().items()}
        return (
            {
                "method": self.method,
                "error_estimate": None if math.isnan(self.error_estimate) else self.error_estimate,
                "assumptions": list(self.assumptions),
            }
            | {key: value for key, value in extra.items() if value is not None}
            | nodes
        )


def predict(
    problem: Problem,
    method: str = "auto",
    accuracy: float = 0.01,
    overlaps: str = "auto",
    rng: int = 0,
    finite_size: bool = False,
) -> Prediction:
    """Training and test error without sampling.

    Parameters
    ----------
    method : "isotropic" (closed form at this step, Moniri et al.), "isotropic-limit" (its limit of
        large n), "conditional" (mixtures with structure, any step), "hybrid" (the same, with the
        neurons of one first step that is drawn and made), "semi-parametric" (images, arrays and
        files: first steps that are drawn, features given the data's own projections),
        "surrogate" (the theory of a Gaussian mixture fitted to such data), or "auto":
        semi-parametric for such data, else the closed form where its assumptions hold and the
        conditional theory agrees to 2 %, else the conditional theory
    accuracy : relative accuracy asked of the theory's numerics; from 0.03 on a draft for a
        first look: some milliseconds without an error estimate in the conditional theory, fewer
        nodes and draws in the semi-parametric one
    overlaps : "drawn": spikes, means and teacher of the draw with seed `rng`; "typical": their
        typical chance overlaps at this n; "auto": drawn where directions are fixed or orthogonal.
        The hybrid theory always takes those of its draw
    rng : seed of what is drawn, if anything: the same draws as the simulation's first repetition
    finite_size : of the conditional and the hybrid theory: count the degrees of freedom of the
        mean part. The test error of small problems (n of some hundreds) comes out closer to the
        network's, the training error further from it (docs/theory.md, section 7)
    """
    (said,) = predict_curve([problem], method, accuracy, overlaps, rng, finite_size)
    if isinstance(said, Prediction):
        return said
    raise said


def predict_curve(
    problems: Iterable[Problem],
    method: str = "auto",
    accuracy: float = 0.01,
    overlaps: str = "auto",
    rng: int = 0,
    finite_size: bool = False,
) -> list[Prediction | Refusal]:
    """`predict` of all points of a curve together; the same numbers up to rounding, sooner.

    A point that the theory refuses gets its error, not raised. With accuracy = 0.03 a curve of
    20 points takes about 0.1 s.
    """
    _known("method", method, METHODS)
    _known("overlaps", overlaps, OVERLAPS)
    ask = _Question(accuracy, overlaps, rng, method == "hybrid", finite_size)
    said: list[Prediction | Refusal | None] = []
    first: list[tuple[Problem, Prediction | None, str]] = []
    for problem in problems:
        try:
            if is_real(problem, method):
                said.append(_of_real_data(problem, method, ask))
                first.append((problem, None, ""))
                continue
            closed, left_aside = _without_conditional(problem, method, ask)
        except (AssumptionError, ConvergenceError) as refusal:
            closed, left_aside = None, ""
            said.append(refusal)
        else:
            done = closed is not None and method != "auto"
            said.append(closed if done else None)
        first.append((problem, closed, left_aside))
    rest = [i for i, one in enumerate(said) if one is None]
    for i, answer in zip(rest, _conditional([first[i][0] for i in rest], ask), strict=True):
        _, closed, left_aside = first[i]
        if closed is not None:
            said[i] = _cross_checked(closed, answer)
        elif left_aside and isinstance(answer, Prediction):
            said[i] = replace(answer, assumptions=(left_aside, *answer.assumptions))
        else:
            said[i] = answer
    return [one for one in said if one is not None]


@dataclass(frozen=True)
class _Question:
    """What is asked of the conditional theory, the same for every point."""

    accuracy: float
    overlaps: str
    rng: int
    hybrid: bool
    finite_size: bool


def _without_conditional(
    problem: Problem, method: str, ask: _Question
) -> tuple[Prediction | None, str]:
    """The closed form where it is asked for or holds, or why it was left aside."""
    if method == "auto":
        closed, left_aside = _closed_form_if_it_holds(problem)
        return (None if ask.finite_size else closed), left_aside
    if method == "hybrid" and ask.overlaps == "typical":
        raise AssumptionError(
            'the hybrid theory draws a first step and takes its overlaps: use overlaps = "auto"'
        )
    if method in ("conditional", "hybrid"):
        return None, ""
    if ask.finite_size:
        raise AssumptionError(
            'the closed form has no finite-size correction; use method = "conditional"'
        )
    if reason := _why_not_isotropic(problem):
        raise AssumptionError(f'the isotropic closed form {reason}. Use method = "conditional"')
    return _isotropic(problem, "limit" if method == "isotropic-limit" else "finite-step"), ""


def predict_experiment(
    experiment: Experiment,
    method: str = "auto",
    accuracy: float | None = None,
    overlaps: str = "auto",
    finite_size: bool = False,
) -> tuple[Results, list[Prediction | None]]:
    """A row per point; a point whose theory is refused gets a failed row and no prediction."""
    results, details = Results(experiment.name), []
    for point in experiment.points:
        row, detail = theory_row(point, "theory", method, accuracy, overlaps, finite_size)
        results.rows.append(row)
        details.append(detail)
    return results, details


def theory_row(
    point: Point,
    model: str = "theory",
    method: str | None = None,
    accuracy: float | None = None,
    overlaps: str = "auto",
    finite_size: bool = False,
) -> tuple[Row, Prediction | None]:
    """The row of a theory among the models, by its own method and the spec's accuracy unless others
    are given."""
    start = time.perf_counter()
    method = method or THEORIES[model]
    accuracy = point.compare.accuracy if accuracy is None else accuracy
    try:
        seed = point.compare.seed
        said = predict(point.problem, method, accuracy, overlaps, seed, finite_size)
    except (AssumptionError, ConvergenceError) as error:
        seconds = time.perf_counter() - start
        row = Row(point.settings, model, 0, seconds=seconds, status="failed", error=str(error))
        return row, None
    seconds = time.perf_counter() - start
    errors = (said.test_error, said.train_error, said.train_objective)
    return Row(point.settings, model, 0, *errors, seconds), said


def _known(key: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise SpecError.of(
            key, value, f"must be one of {', '.join(options)}", did_you_mean(value, options)
        )


def _why_not_isotropic(problem: Problem) -> str:
    """The first assumption of the closed form that does not hold, or nothing."""
    if not isinstance(problem.data, Isotropic):
        return "assumes isotropic data"
    if problem.network.convention != "isotropic":
        return 'assumes convention = "isotropic"'
    if not isinstance(problem.labels, SingleIndex):
        return "assumes single-index labels"
    if problem.network.readout != "gaussian":
        return "assumes a Gaussian initial readout"
    c1 = problem.activation.coefficients(1)[1]
    if problem.rate > 0 and abs(c1) < 1e-9:
        return "needs an activation with c₁ ≠ 0: the step learns nothing at first order here"
    beta = problem.strength
    if beta is None and problem.rate > 0 and problem.samples > 1:
        beta = 2 * float(np.log(problem.rate) / np.log(problem.samples))
    if beta is not None and beta >= 1:
        return "needs a step below √m (exponent < 1/2)"
    return ""


def _closed_form_if_it_holds(problem: Problem) -> tuple[Prediction | None, str]:
    """The closed form, or a sentence why isotropic data need the conditional theory."""
    reason = _why_not_isotropic(problem)
    if not reason:
        try:
            return _isotropic(problem, "finite-step"), ""
        except AssumptionError as error:
            reason = f"does not reach so far ({error})"
    if not isinstance(problem.data, Isotropic):
        return None, ""
    return None, f"The isotropic closed form was left aside: it {reason}."


def _cross_checked(closed: Prediction, said: Prediction | Refusal) -> Prediction:
    """The closed form if the conditional theory, which assumes less, agrees; else that one.

    The closed form keeps the slopes of the features fixed along the learned direction and knows
    nothing of the nonlinear spread of norms: at strong steps, or where m is many times n, it can
    be far off, and simulations then side with the conditional theory (docs/theory.md, section 6).
    """
    if not isinstance(said, Prediction):
        unchecked = f"Not cross-checked: the conditional theory is not available here ({said})."
        return replace(closed, assumptions=(*closed.assumptions, unchecked))
    gap = max(
        abs(closed.test_error / said.test_error - 1),
        abs(closed.train_error / said.train_error - 1) if said.train_error else 0.0,
    )
    if gap <= _CLOSE:
        agreed = f"The conditional theory agrees to {100 * gap:.2g} %."
        return replace(closed, error_estimate=gap, assumptions=(*closed.assumptions, agreed))
    why = (
        f"The isotropic closed form (test {closed.test_error:.4g}, train {closed.train_error:.4g}) "
        f"was left aside: it is {100 * gap:.2g} % off here."
    )
    return replace(said, assumptions=(why, *said.assumptions))


def _isotropic(problem: Problem, method: str) -> Prediction:
    assert isinstance(problem.labels, SingleIndex)
    said = predict_isotropic(
        problem.network.activation,
        problem.labels.links[0],
        dim=problem.dim,
        width=problem.width,
        samples=problem.samples,
        ridge=problem.effective_ridge,
        noise_variance=problem.labels.noise**2,
        rate=problem.rate,
        exponent=problem.scaling.exponent,
        step_samples=problem.step_samples,
        gradient=problem.training.gradient,
        method="random-features" if problem.rate == 0 else method,
    )
    name = f"isotropic closed form, {said.method}, regime ℓ = {said.regime}"
    return Prediction(
        said.test_error, said.train_error, said.train_objective, name,
        (*said.assumptions, _FINITE_SIZE),
    )  # fmt: skip


def _conditional(problems: Sequence[Problem], ask: _Question) -> list[Prediction | Refusal]:
    """The conditional theory of all problems together."""
    said: dict[int, Prediction | Refusal] = {}
    tasks: dict[int, tuple[Task, bool]] = {}
    for i, problem in enumerate(problems):
        try:
            geometry, drawn = geometry_of(problem, "drawn" if ask.hybrid else ask.overlaps, ask.rng)
            parts = (geometry, labels_of(problem), training_of(problem))
            neurons = drawn_neurons(problem, parts, ask.rng) if ask.hybrid else None
            tasks[i] = Task(*parts, neurons), drawn
        except AssumptionError as refusal:
            said[i] = refusal
    solutions = predict_mixtures(
        [task for task, _ in tasks.values()], accuracy=ask.accuracy, finite_size=ask.finite_size
    )
    for (i, (task, drawn)), one in zip(tasks.items(), solutions, strict=True):
        if isinstance(one, Solution):
            said[i] = _described(problems[i], task, one, drawn, ask)
        else:
            said[i] = one
    return [said[i] for i in range(len(problems))]


def _described(
    problem: Problem, task: Task, solution: Solution, drawn: bool, ask: _Question
) -> Prediction:
    seed = ask.rng
    where = f"the overlaps of the draw with seed {seed}" if drawn else "typical overlaps at this n"
    source = f"neurons of the first step drawn with seed {seed}" if ask.hybrid else "any step"
    draft = solution.status == "draft"
    resolutions = "one coarse resolution" if draft else "two resolutions compared"
    spiked = "Gaussian mixture with spiked covariances"
    data = "Isotropic Gaussian data" if isinstance(problem.data, Isotropic) else spiked
    assumptions = (
        f"{data}; n, k, m large with fixed ratios. {_FINITE_SIZE}",
        f"Conditional Gaussian equivalence, {source}; {where}.",
        f"{solution.types} types of neurons, {solution.nodes} nodes, {resolutions}.",
    )
    return Prediction(
        solution.test_error,
        solution.train_error,
        solution.train_objective,
        "conditional Gaussian theory" + (", hybrid" if ask.hybrid else ""),
        assumptions,
        solution.status,
        solution.error_estimate,
        _floats(solution.component_test),
        _floats(solution.component_train),
        solution.classification_error,
        solution,
        (task.labels, task.training),
    )


def _of_real_data(problem: Problem, method: str, ask: _Question) -> Prediction:
    """Images, arrays and files: the semi-parametric theory, or that of a fitted mixture."""
    if ask.finite_size or ask.overlaps == "typical":
        raise AssumptionError("real data have no finite-size option and no typical overlaps")
    said = predict_real(problem, method, ask.accuracy, ask.rng)
    status = "ok" if said.result.settled else "not settled"
    return Prediction(
        *said.result.errors, said.name, said.assumptions, status, said.result.error_estimate
    )


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
