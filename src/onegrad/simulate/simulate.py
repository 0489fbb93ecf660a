"""Monte Carlo: every model on every repetition, on common random numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onegrad.compute.backend import Backend, get_backend
from onegrad.compute.memory import keep_freed_arrays
from onegrad.compute.randomness import DATA_PURPOSES, Seed, Streams, root_seed
from onegrad.compute.threads import blas_threads, threads_for
from onegrad.errors import AssumptionError, ConvergenceError, SpecError, verb
from onegrad.problem import Problem, as_problem
from onegrad.results.estimates import Estimate
from onegrad.results.results import Results
from onegrad.results.rows import Row, possible
from onegrad.results.summaries import Summary
from onegrad.simulate.control_variates import Controls, ControlVariates
from onegrad.simulate.memory import check_memory
from onegrad.simulate.models import MODELS, SIMULATED, VARIANTS
from onegrad.simulate.models.base import Fitted, exact_risks, with_linear_part
from onegrad.simulate.network.rounding import check_rounding
from onegrad.simulate.network.trial import Draw, Reuse, Trial, draw_key
from onegrad.simulate.risk.exact import ExactRisk
from onegrad.simulate.risk.sampled import SampledRisk, class_risk, sampled_risk, samples_worth
from onegrad.spec.experiment import Compare, Point
from onegrad.spec.presets import Spec
from onegrad.text.display import count_of, html_table, text_table

Fit = tuple[Point, str, Fitted | str, float]  # the fit, or why there is none; its seconds

_COLUMNS = ("model", "test error", "train error", "train objective")


def group_points(points: Sequence[Point]) -> list[list[Point]]:
    """Points that share their draws, in the order of their first member."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        c = point.compare
        how = f"{c.seed} {c.device} {c.dtype} {point.precision} {c.redraw}"
        key = f"{draw_key(point.problem)} {how}"
        groups.setdefault(key, []).append(point)
    return list(groups.values())


def run_group(
    points: Sequence[Point],
    models: Sequence[str],
    seed: int,
    threads: int | None = None,
    controlled: bool = False,
) -> list[Row]:
    """One repetition of points with the same draw: a row per point and model.

    Draws and the products with the initial weights are shared by all, the trained layer, its
    features and their Gram matrix by points that differ in the ridge alone. A model whose
    assumptions do not hold, or whose numbers do not settle, gives a failed row; the others go on.
    threads : of the linear algebra library, `threads_for` the problem by default
    controlled : whether rows get control variates

    With compare.dtype = "auto", rows in which single precision may show are made again in double
    (`network.rounding`): those alone, so that a row depends on its own point and model only.
    """
    first = points[0]
    backend = get_backend(first.compare.device, first.precision)
    careful = first.compare.dtype == "auto" and first.precision == "float32"
    how = (seed, threads, controlled)
    rows = [possible(r) for r in _run_draw(points, models, replace(backend, careful=careful), *how)]
    doubted = {(row.number, row.model) for row in rows if row.status != "ok"} if careful else set()
    if doubted:
        numbers, names = ({cell[i] for cell in doubted} for i in (0, 1))
        again = _run_draw(
            [p for p in points if p.number in numbers], [m for m in models if m in names],
            backend.double, *how,
        )  # fmt: skip
        better = {(row.number, row.model): possible(row) for row in again}
        rows = [
            better[row.number, row.model] if (row.number, row.model) in doubted else row
            for row in rows
        ]
    return rows


def _run_draw(
    points: Sequence[Point],
    models: Sequence[str],
    backend: Backend,
    seed: int,
    threads: int | None,
    controlled: bool,
) -> list[Row]:
    problem, compare = points[0].problem, points[0].compare
    keep_freed_arrays()
    streams = Streams(compare.seed, seed, DATA_PURPOSES if compare.redraw == "network" else ())
    rows: list[Row] = []
    layers = by_layer(points).values()
    reuse = reuse_of(models, len(layers), max(len(members) for members in layers), controlled)
    check_memory(problem, models, reuse, backend)
    with blas_threads(threads or threads_for(problem.operations), backend):
        draw = Draw(problem, streams, reuse, backend)
        variates = ControlVariates(draw)
        for members in layers:
            first = members[0]
            trial = Trial(first.problem, streams, first.degree, draw, len(members) > 1)
            found = _run_layer(trial, members, models, seed)
            if controlled:
                controls = {m: _controls(variates, trial, members, m) for m in models}
                found = [
                    replace(row, controls=controls[row.model].get(row.number, ())) for row in found
                ]
            rows += found
            if reuse.layers:
                draw.train.keep_only(draw.weights)
            del trial  # and its trained layer, before the next one is made
    order = {point.number: i for i, point in enumerate(points)}
    return sorted(rows, key=lambda row: order[row.number])


def reuse_of(
    models: Sequence[str], layers: int = 1, ridges: int = 1, controlled: bool = False
) -> Reuse:
    """What these models share. Models of the trained layer alone need no initial weights after the
    step."""
    asked = [MODELS[name] for name in models]
    # control variates ask for the products with the initial weights once in each layer
    shared = sum(m.products != "none" for m in asked) > 1 or (controlled and layers > 1)
    initial = controlled or any(m.initial for m in asked)
    noise = tuple(dict.fromkeys(m.noise for m in asked if m.noise))
    return Reuse(layers > 1, shared, initial, ridges > 1, controlled, noise)


def by_layer(points: Sequence[Point]) -> dict[Hashable, list[Point]]:
    """Points whose trained first layer and loss are the same: they differ in the ridge alone."""
    layers: dict[Hashable, list[Point]] = {}
    for point in points:
        p = point.problem
        t = p.training
        how = (t.gradient, t.optimiser, t.batch, t.damping)
        key = (p.network.activation, p.rates, how, point.degree, p.loss)
        layers.setdefault(key, []).append(point)
    return layers


def _run_layer(
    trial: Trial, points: Sequence[Point], models: Sequence[str], seed: int
) -> list[Row]:
    rows: list[Row] = []
    sampled: dict[int, tuple[Point, str, Fitted, float]] = {}
    signs: dict[int, Fitted] = {}  # fits by row number; the risk of these rows is known already
    for batch in _fits(trial, points, models):
        start = time.process_time()
        batch_risks = _risks_of(trial, batch)
        share = (time.process_time() - start) / len(batch)
        for (point, name, fitted, seconds), risk in zip(batch, batch_risks, strict=True):
            if isinstance(fitted, str) or isinstance(risk, str):
                why = fitted if isinstance(fitted, str) else str(risk)
                rows.append(failed_row(point, name, seed, why))
            elif risk is None:
                sampled[len(sampled)] = (point, name, fitted, seconds + share)
            else:
                other = trial.problem.loss.name != "squared" or trial.problem.outputs > 1
                if trial.problem.labels_binary or other:
                    signs[len(rows)] = fitted
                rows.append(_row(point, name, seed, fitted, risk, seconds + share))
    if sampled:
        start = time.process_time()
        count = max(point.test_samples for point, *_ in sampled.values())
        risks, errors = _sampled(trial, {i: entry[2] for i, entry in sampled.items()}, count)
        share = (time.process_time() - start) / len(sampled)
        for i, (point, name, fitted, seconds) in sampled.items():
            if i in errors:
                rows.append(failed_row(point, name, seed, errors[i]))
            else:
                row = _row(point, name, seed, fitted, risks[i].value, seconds + share)
                rows.append(_with_sampled(row, risks[i]))
    if signs:
        risks, _ = _sampled(trial, signs, samples_worth(trial))
        for i, found in risks.items():
            rows[i] = replace(
                _with_sampled(rows[i], found), test_loss=found.loss_given(rows[i].test_error)
            )
    if trial.problem.data.known:
        variance = trial.instance.label_variance
        rows = [replace(row, label_variance=variance) for row in rows]
    # models in the order asked for, whichever way their risk was computed
    return sorted(rows, key=lambda row: models.index(row.model))


def _fits(trial: Trial, points: Sequence[Point], models: Sequence[str]) -> Iterator[list[Fit]]:
    """The fitted models whose risks are taken together: all of one point. Those of several ridges
    come one by one, so that one model's features are there at a time."""
    batch: list[Fit] = []
    for name in models:
        fitted: Fitted | None = None
        why = ""
        for point in points:
            start = time.process_time()
            found: Fitted | str
            try:
                fit = MODELS[name].fit
                assert fit is not None, f"{name} is not simulated"
                ridge = point.problem.effective_ridge
                if point is points[0]:
                    fitted = with_linear_part(fit(trial), trial.draw.linear_part)
                elif fitted is not None:
                    fitted = fitted.at_ridge(ridge)
                found = why if fitted is None else fitted
            except (AssumptionError, ConvergenceError) as error:
                found = why = str(error)
            batch.append((point, name, found, time.process_time() - start))
            if len(points) > 1:
                yield batch
                batch = []
    if batch:
        yield batch


def _risks_of(trial: Trial, batch: Sequence[Fit]) -> list[float | str | None]:
    """The risks without a test set; None where they have to be sampled, or why there is none."""
    asked = {
        i: fitted
        for i, (point, _, fitted, _) in enumerate(batch)
        if point.compare.risk != "sampled" and not isinstance(fitted, str)
    }
    found = dict(zip(asked, exact_risks(trial, list(asked.values())), strict=True))
    risks: list[float | str | None] = []
    for i, (point, _, fitted, _) in enumerate(batch):
        risk = found.get(i)
        value = risk.value if isinstance(risk, ExactRisk) else None
        if isinstance(risk, Exception) and point.compare.risk == "exact":
            risks.append(str(risk))
            continue
        try:
            if trial.draw.backend.careful and not isinstance(fitted, str):
                known = math.inf if value is None else value
                check_rounding(fitted.readout, known, trial.instance.label_variance)
            risks.append(value)
        except ConvergenceError as error:
            risks.append(str(error))
    return risks


def _with_sampled(row: Row, risk: SampledRisk) -> Row:
    return replace(
        row, label_variance=risk.label_variance, misclassification=risk.misclassification,
        test_loss=risk.test_loss, calibration=risk.calibration,
    )  # fmt: skip


def _controls(
    variates: ControlVariates, trial: Trial, points: Sequence[Point], model: str
) -> dict[int, Controls]:
    """A model's control variates at each point of a layer; none where they cannot be computed."""
    try:
        found = variates.controls(trial, [p.problem.effective_ridge for p in points], model)
    except (AssumptionError, ConvergenceError):
        return {}
    return {point.number: controls for point, controls in zip(points, found, strict=True)}


def _sampled(
    trial: Trial, models: dict[int, Fitted], count: int
) -> tuple[dict[int, SampledRisk], dict[int, str]]:
    """Risks on one test set; if a model cannot predict there, the others on their own."""
    sample = sampled_risk if trial.problem.outputs == 1 else class_risk
    try:
        return sample(trial, models, count), {}
    except (AssumptionError, ConvergenceError) as error:
        if len(models) == 1:
            return {}, dict.fromkeys(models, str(error))
    risks: dict[int, SampledRisk] = {}
    errors: dict[int, str] = {}
    for i, model in models.items():
        alone, failed = _sampled(trial, {i: model}, count)
        risks |= alone
        errors |= failed
    return risks, errors


def _row(point: Point, name: str, seed: int, fitted: Fitted, risk: float, seconds: float) -> Row:
    errors = (risk, fitted.readout.train_error, fitted.readout.train_objective)
    squared = point.problem.loss.name == "squared"
    return Row(
        point.settings, name, seed, *errors, seconds, number=point.number,
        test_loss=risk if squared else math.nan, train_loss=fitted.readout.loss,
    )  # fmt: skip


def failed_row(point: Point, name: str, seed: int, error: str) -> Row:
    """No numbers, and the advice why."""
    failed = {"status": "failed", "error": error, "number": point.number}
    return Row(point.settings, name, seed, **failed)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Simulation:
    """The outcome of `simulate`: estimates of each model; attributes are the first model's."""

    results: Results

    def __repr__(self) -> str:
        return f"Simulation, {self._seeds}\n{text_table(_COLUMNS, self._lines())}"

    def _repr_html_(self) -> str:
        return html_table(f"Simulation, {self._seeds}", _COLUMNS, self._lines())

    @property
    def _seeds(self) -> str:
        count = max(summary.seeds for summary in self.estimates.values())
        return f"{count_of(count, 'repetition')}: mean ± standard error"

    def _lines(self) -> list[list[str]]:
        return [
            [s.model, *(str(e) for e in (s.test_error, s.train_error, s.train_objective))]
            for s in self.estimates.values()
        ]

    @property
    def estimates(self) -> dict[str, Summary]:
        return {summary.model: summary for summary in self.results.summaries()}

    @property
    def _first(self) -> Summary:
        return self.results.summaries()[0]

    @property
    def test_error(self) -> Estimate:
        return self._first.test_error

    @property
    def train_error(self) -> Estimate:
        return self._first.train_error

    @property
    def train_objective(self) -> Estimate:
        return self._first.train_objective

    @property
    def relative_error(self) -> Estimate:
        """Mean test error / mean Var y."""
        return self._first.relative_error

    @property
    def misclassification(self) -> Estimate:
        """P(sign f(x) ≠ y) where labels are ±1; NaN elsewhere."""
        return self._first.misclassification

    @property
    def test_loss(self) -> Estimate:
        """Mean of the readout's own loss (training.loss) on fresh samples."""
        return self._first.test_loss

    @property
    def train_loss(self) -> Estimate:
        """Mean of the readout's own loss (training.loss) on training samples, no penalty."""
        return self._first.train_loss

    @property
    def calibration(self) -> Estimate:
        """Expected calibration error of the logistic loss; NaN elsewhere."""
        return self._first.calibration

    def plot(self, *quantities: str, ax: Any = None) -> Any:
        """Draw the errors of all models with error bars; arguments as in `Results.plot`."""
        return self.results.plot(*quantities, ax=ax)

    def difference(self, model: str) -> Estimate:
        """Test error of `model` minus the network's, relative to it, paired seed by seed."""
        return self.estimates[model].test_difference


@verb
def simulate(
    problem: Problem | Spec,
    models: str | Sequence[str] = ("network",),
    seeds: int = 20,
    rng: Seed = 0,
    throw: bool = True,
    **options: Any,
) -> Simulation:
    """Repeat a problem `seeds` times and estimate the errors of each model.

    The models share all random numbers, so that their differences are paired.

    rng : root of all random numbers: an int, a SeedSequence or a Generator
    throw : raise where a model cannot be computed; else its rows have the status "failed"
    options : further keys of the table [compare]: degree, risk ("exact", "sampled" on
        `test_samples` samples, or "auto": exact where it is known), device, dtype,
        control_variates (True: means corrected, smaller error bars)
    """
    models = (models,) if isinstance(models, str) else tuple(models)
    for name in models:
        if name not in MODELS or MODELS[name].fit is None:
            raise SpecError.choice("models", name, (*SIMULATED, *VARIANTS))
    compare = Compare(models=models, seeds=seeds, seed=root_seed(rng), **options)
    point = Point({}, as_problem(problem), compare)
    rows: list[Row] = []
    for seed in range(seeds):
        rows += run_group([point], models, seed, None, compare.control_variates is True)
        for row in rows[-len(models) :]:
            if throw and row.status != "ok":
                raise AssumptionError(f"{row.model}: {row.error}")
    return Simulation(Results("simulation", tuple(rows)))
