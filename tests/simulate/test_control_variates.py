"""Control variates of mean zero, and what they do to a mean."""

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import stdtrit

from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.problem import Problem
from onegrad.results.estimates import Estimate, _intercept, corrected_values
from onegrad.runs.engines import Local
from onegrad.runs.run import run, run_experiment
from onegrad.simulate.control_variates import CONTROLS, ControlVariates
from onegrad.simulate.network.trial import Draw, Trial
from onegrad.simulate.simulate import run_group, simulate
from onegrad.spec.experiment import Compare, Experiment, Point

MIXTURE = {
    "data": {"model": "mixture", "dim": 40},
    "network": {"width": 30, "activation": "relu"},
    "training": {"samples": 50, "ridge": 1e-2},
    "scaling": {"strength": 0.74, "weighting": 0.5},
}
ISOTROPIC = {
    "data": {"model": "isotropic", "dim": 40},
    "labels": {"link": "hermite(0, 1, 0.5)", "noise": 0.5},
    "network": {"width": 60, "activation": "tanh", "convention": "isotropic"},
    "training": {"samples": 50, "ridge": 1e-2, "rate": 1.0},
}
COMPONENT = {"model": "component", "noise": 0.3}


def changed(spec, **tables):
    return {**spec, **{name: {**spec.get(name, {}), **own} for name, own in tables.items()}}


SETTINGS = {
    "mixture": MIXTURE,
    "rank 3, one link each": changed(
        MIXTURE, data={"rank": 3}, labels={"link": ["relu", "tanh"], "noise": 0.1}
    ),
    "means": changed(MIXTURE, data={"mean": 2.0}, network={"activation": "sigmoid", "width": 80}),
    "orthogonal": changed(MIXTURE, data={"directions": "orthogonal"}),
    "isotropic": ISOTROPIC,
    "component labels": MIXTURE | {"labels": COMPONENT},
    "fixed directions": changed(MIXTURE, data={"directions": "fixed"}, labels={"noise": 0.5}),
}


@cache
def many_rows():
    """1200 repetitions of network and Hermite model."""
    return rows_of(changed(MIXTURE, training={"ridge": 1e-3}), 1200, ("network", "hermite"))


def columns(rows, model, quantity):
    """Values of a model and its controls beside them."""
    own = [row for row in rows if row.model == model]
    values = np.array([getattr(row, quantity) for row in own])
    controls = [
        np.array([getattr(row.controls[i], quantity) for row in own]) for i in range(CONTROLS)
    ]
    return values, controls


def rows_of(spec, seeds, models=("linear",)):
    point = Point({}, Problem.from_spec(spec), Compare())
    return [
        row for seed in range(seeds) for row in run_group([point], models, seed, controlled=True)
    ]


def sigmas(values):
    """The mean in its standard errors; 0 for a constant zero."""
    values = np.array(list(values))
    spread = values.std(ddof=1)
    return 0.0 if spread == 0 == values[0] else values.mean() / spread * math.sqrt(len(values))


@pytest.mark.parametrize("name", SETTINGS)
def test_controls_have_mean_zero(name):
    rows = rows_of(SETTINGS[name], 300, ("linear", "hermite"))
    for model in ("linear", "hermite"):  # the network's controls, and those of its own
        own = [row.controls for row in rows if row.model == model and row.status == "ok"]
        assert len(own) == 300 or (name, model) == ("isotropic", "hermite")  # not centred
        for control in range(CONTROLS if own else 0):
            for quantity in ("test_error", "train_error", "train_objective"):
                assert abs(sigmas(getattr(c[control], quantity) for c in own)) < 4
        assert not own or np.std([c[0].test_error for c in own]) > 0


def test_trained_features_would_not_have_mean_zero():
    """Negative control: features that know the teacher favour it over the others."""
    large_step = {"samples": 200, "rate": 30.0}
    problem = Problem.from_spec(changed(ISOTROPIC, network={"width": 30}, training=large_step))
    values = []
    for seed in range(100):
        streams = Streams(0, seed)
        draw = Draw(problem, streams)
        trial = Trial(problem, streams, draw=draw)
        parts = {"draw": draw, "train": trial.train, "problem": problem}
        wrong = SimpleNamespace(weights=trial.updated_weights, **parts)
        ridges = [problem.effective_ridge]
        ((control, _),) = ControlVariates(draw).controls(wrong, ridges, "network")
        values.append(control.train_error)
    assert sigmas(values) < -6


@pytest.mark.parametrize("model", ["network", "hermite"])
@pytest.mark.parametrize("quantity", ["test_error", "train_error"])
def test_corrected_means_are_right_and_their_error_bars_too(model, quantity):
    """Against 1200 plain repetitions: no bias, honest error bars, a third of their length."""
    values, controls = columns(many_rows(), model, quantity)
    every = Estimate.of(values, controls)
    plain = Estimate.of(values)
    # the plain mean's own noise is what the controls take away
    assert abs(every.mean - plain.mean) < 4 * plain.standard_error
    assert every.standard_error < 0.5 * plain.standard_error
    deviations = []
    for start in range(0, 1200, 12):
        part = slice(start, start + 12)
        few = Estimate.of(values[part], [c[part] for c in controls])
        deviations.append((few.mean - every.mean) / few.standard_error)
    # Student's law with 9 degrees of freedom: 1.13, known to 0.1 from 100 batches
    assert abs(np.mean(deviations)) < 4 * 1.13 / 10
    assert abs(np.std(deviations) - 1.13) < 4 * 0.1


@pytest.mark.parametrize("model", ["network", "hermite"])
@pytest.mark.parametrize("quantity", ["test_error", "train_error"])
def test_known_factors_need_few_seeds(model, quantity):
    """Batches of four: unbiased, and Student's quantiles of their error bars cover as they say."""
    values, controls = columns(many_rows(), model, quantity)
    parts = [slice(start, start + 4) for start in range(0, 1200, 4)]
    batches = [(values[part], [c[part] for c in controls]) for part in parts]
    truth = Estimate.of(values, controls)
    few = [Estimate.of(*batch, known=True) for batch in batches]
    plain = [Estimate.of(own) for own, _ in batches]
    means, errors = np.array(few).T
    # all batches together, each unbiased by itself
    error = math.hypot(np.std(means, ddof=1) / math.sqrt(len(means)), truth.standard_error)
    assert abs(means.mean() - truth.mean) < 4 * error
    assert np.mean(errors**2) < 0.25 * np.mean([e.standard_error**2 for e in plain])
    assert _outside(means, errors, truth.mean, 3) == pytest.approx(0.2, abs=4 * 0.023)
    # negative control: two factors fitted to four values, and error bars that do not count them
    wrong = np.array([_fitted_freely(*batch) for batch in batches])
    assert _outside(*wrong.T, truth.mean, 3) > 0.2 + 6 * 0.023


def _outside(means, errors, truth, freedom):
    """Share of means farther off than the 80 % interval of Student's law."""
    return np.mean(np.abs(means - truth) > stdtrit(freedom, 0.9) * errors)


def _fitted_freely(values, controls):
    design = np.column_stack([np.ones(len(values)), *controls])
    factors, *_ = np.linalg.lstsq(design, values)
    rest = values - design @ factors
    return factors[0], rest.std(ddof=1) / math.sqrt(len(values))


def test_the_factor_of_the_label_power_comes_from_the_other_values():
    values, first, power = np.array([1.0, 2.0, 4.0]), np.zeros(3), np.array([0.5, 0.0, -0.5])
    assert corrected_values(values, [first, power]) == pytest.approx(
        [1 - 0.5 * 3, 2, 4 + 0.5 * 1.5]
    )
    # of its own mean it would not be unbiased: the value in its own factor meets its own luck
    rng = np.random.default_rng(0)
    luck = 0.3 * rng.standard_normal((20_000, 4))
    drawn = 1 + luck
    right = np.array(
        [corrected_values(v, [0 * v, r]).mean() for v, r in zip(drawn, luck, strict=True)]
    )
    wrong = (drawn - luck * drawn.mean(axis=1, keepdims=True)).mean(axis=1)
    assert abs(sigmas(right - 1)) < 4
    assert sigmas(wrong - 1) < -6


def test_the_regression():
    c = np.array([-2.0, -1.0, 0.5, 1.0, 0.0, 2.5, -1.5, 0.3])
    mean, error = Estimate.of(2 + 3 * c, [c])
    assert mean == pytest.approx(2, abs=1e-12)
    assert error < 1e-12
    values = 2 + 3 * c + np.array([1, -1] * 4) / 10
    assert Estimate.of(values, [c, np.zeros(8)]) == Estimate.of(values, [c])  # says nothing
    assert Estimate.of(values, [np.zeros(8)]) == Estimate.of(values)
    assert Estimate.of(values, [1 + 1e-15 * c]) == Estimate.of(values)  # rounding
    assert Estimate.of(values[:6], [c[:6]]) == Estimate.of(values[:6])  # too few to fit a factor
    assert Estimate.of(values[:6], [c[:6]], True) == Estimate.of((values - c)[:6])  # it is known
    # the textbook's formula for one regressor
    centred = c - c.mean()
    slope = centred @ values / (centred @ centred)
    rest = values - values.mean() - slope * centred
    variance = rest @ rest / 6 * (1 / 8 + c.mean() ** 2 / (centred @ centred))
    mean, error = Estimate.of(values, [c])
    assert mean == pytest.approx(values.mean() - slope * c.mean(), rel=1e-12)
    assert error == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_controls_do_not_depend_on_what_else_is_computed():
    problems = [
        Problem.from_spec(changed(MIXTURE, network={"activation": a}, training={"ridge": ridge}))
        for a in ("relu", "tanh")
        for ridge in (1e-3, 1e-2, 1e-1)
    ]
    points = [Point({"i": i}, problem, Compare(), i) for i, problem in enumerate(problems)]
    together = run_group(points, ("network", "random-features"), 5, controlled=True)
    for point in points:
        (alone,) = run_group([point], ("linear",), 5, controlled=True)
        both = [r for r in together if r.number == point.number]
        assert both[0].controls == both[1].controls
        for one, other in zip(alone.controls, both[0].controls, strict=True):
            assert one.test_error == pytest.approx(other.test_error, rel=1e-9)
            assert one.train_objective == pytest.approx(other.train_objective, rel=1e-9)


@pytest.mark.parametrize("width", [30, 80])
def test_on_other_devices_and_in_single_precision(width):
    problem = Problem.from_spec(changed(MIXTURE, network={"width": width}))
    (row,) = run_group([Point({}, problem, Compare())], ("linear",), 3, controlled=True)
    here, norm = row.controls
    assert norm.test_error != 0
    for compare, accuracy in (
        (Compare(device="torch"), 1e-9),
        (Compare(dtype="float32"), 1e-3),
    ):
        (row,) = run_group([Point({}, problem, compare)], ("linear",), 3, controlled=True)
        there, _ = row.controls
        assert there.test_error == pytest.approx(here.test_error, rel=accuracy)
        assert there.train_error == pytest.approx(here.train_error, rel=accuracy)


def test_a_simulation_with_control_variates():
    problem = Problem.from_spec(MIXTURE)
    plain = simulate(problem, ["network", "hermite"], seeds=40)
    better = simulate(problem, ["network", "hermite"], seeds=40, control_variates=True)
    own = better.results.rows
    fields = ("model", "seed", "test_error", "train_error", "train_objective")
    assert [[getattr(r, f) for f in fields] for r in own] == [
        [getattr(r, f) for f in fields] for r in plain.results.rows
    ]
    assert better.test_error.standard_error < 0.75 * plain.test_error.standard_error
    assert set(better.estimates) == {"network", "hermite"}
    assert better.estimates["network"].corrected and not plain.estimates["network"].corrected
    difference = better.difference("hermite")
    assert difference.standard_error < plain.difference("hermite").standard_error
    assert abs(difference.mean - _gap(better)) < difference.standard_error


def _gap(simulation):
    """Of the corrected means, relative to the network's."""
    one, other = (simulation.estimates[m].test_error.mean for m in ("network", "hermite"))
    return other / one - 1


def test_differences_with_known_factors_are_those_of_the_means():
    few = simulate(MIXTURE, ["network", "hermite"], seeds=6, control_variates=True)
    assert few.difference("hermite").mean == pytest.approx(_gap(few), rel=1e-9)


@pytest.mark.parametrize(("model", "fewest"), [("network", 3), ("linear", 8)])
def test_too_few_seeds_are_not_called_corrected(model, fewest):
    """A model with features of its own has known factors; two are fitted for the others."""
    problem = Problem.from_spec(MIXTURE)
    few = simulate(problem, model, seeds=fewest - 1, control_variates=True)
    assert not few.estimates[model].corrected
    assert few.test_error == simulate(problem, model, seeds=fewest - 1).test_error
    enough = simulate(problem, model, seeds=fewest, control_variates=True)
    assert enough.estimates[model].corrected


def test_differences_to_baselines_are_corrected_too():
    """A kernel does not feel the weights as the network does: pairing alone is not enough."""
    problem = Problem.from_spec(MIXTURE)
    plain = simulate(problem, ["network", "kernel"], seeds=60, risk="sampled", test_samples=5000)
    better = simulate(
        problem,
        ["network", "kernel"],
        seeds=60,
        risk="sampled",
        test_samples=5000,
        control_variates=True,
    )
    before, after = plain.difference("kernel"), better.difference("kernel")
    assert after.standard_error < 0.8 * before.standard_error
    assert abs(after.mean - before.mean) < 4 * before.standard_error


AUTO = {"models": ["network"], "seeds": "auto", "precision": 0.02}


def test_auto_seeds_use_them(tmp_path):
    spec = MIXTURE | {"compare": AUTO, "sweep": {"network.width": [20, 40]}}
    with_them = run(spec, tmp_path / "with", Local(1))
    plain = changed(spec, compare={"control_variates": False})
    without = run(plain, tmp_path / "without", Local(1))
    assert all(row.controls for row in with_them.rows)
    assert not any(row.controls for row in without.rows)
    for fewer, more in zip(with_them.summaries(), without.summaries(), strict=True):
        assert fewer.seeds < 0.7 * more.seeds
        for summary in (fewer, more):
            assert summary.test_error.standard_error <= 0.02 * summary.test_error.mean
        error = math.hypot(fewer.test_error.standard_error, more.test_error.standard_error)
        assert abs(fewer.test_error.mean - more.test_error.mean) < 4 * error
    # what is stored is not computed again, and gives the same numbers
    computed = []

    def note(status):
        computed.append(status.computed)

    again = run_experiment(Experiment.read(spec), tmp_path / "with", progress=note)
    assert max(computed) == 0
    # rows without them get theirs: of each repetition one row is made again
    added = run_experiment(Experiment.read(spec), tmp_path / "without", progress=note)
    assert max(computed) == sum(summary.seeds for summary in with_them.summaries())
    assert [s.test_error for s in added.summaries()] == [
        s.test_error for s in with_them.summaries()
    ]
    assert not any(row.controls for row in run(plain, tmp_path / "without", Local(1)).rows)
    assert [s.as_json() for s in again.summaries()] == [s.as_json() for s in with_them.summaries()]


def test_where_labels_are_not_random():
    fixed = MIXTURE | {"labels": {"model": "component"}}
    with pytest.raises(SpecError, match=r"compare\.control_variates = True.*random teacher"):
        Experiment.read(fixed | {"compare": {"control_variates": True}})
    for wrong in ("yes", 1, "always"):
        with pytest.raises(SpecError, match=r'must be true, false or one of "auto"'):
            Experiment.read(MIXTURE | {"compare": {"control_variates": wrong}})
    assert not Experiment.read(fixed | {"compare": AUTO}).controlled
    assert Experiment.read(MIXTURE | {"compare": AUTO}).controlled
    three = {"models": ["network"], "seeds": 3}
    assert not Experiment.read(MIXTURE | {"compare": three}).controlled
    both = three | {"control_variates": True}
    assert Experiment.read(MIXTURE | {"compare": both}).controlled


def test_corrected_means_are_never_negative():
    """One value in a heavy tail makes the regression's intercept leave the range of the values."""
    values = [1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 60.0]
    control = [0.1, -0.2, 0.3, 0.0, 0.2, -0.1, 0.1, 0.4]
    for shift in (0.0, 3.0):
        moved = [c + shift for c in control]
        found = Estimate.of(values, [moved])
        assert found.mean > 0
    raw, _ = _intercept(np.array(values), np.array([c + 3.0 for c in control])[:, None])
    assert raw < 0  # what it would have said
    assert found == Estimate.of(values)
