"""Test error over Var y, misclassification and error estimates: in rows, JSON, frames, figures."""

import json
import math

import numpy as np
import pytest

import onegrad as og
from onegrad.figures.curves import draw_curves
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment

SPEC = {
    "name": "signs",
    "data": {"model": "mixture", "dim": 120, "mean": 2.0},
    "labels": {"model": "component"},
    "network": {"width": 60},
    "training": {"samples": 150, "ridge": 1e-2},
    "scaling": {"strength": 0.5, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 12},
}


def rows(tests, powers, model="network"):
    return [
        Row({}, model, s, t, t, t, label_variance=v)
        for s, (t, v) in enumerate(zip(tests, powers, strict=True))
    ]


def summary(found):
    (only,) = Results("", tuple(found)).summaries()
    return only


def test_it_is_the_ratio_of_means_with_the_error_of_a_ratio():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(400):
        power = rng.uniform(0.5, 1.5, 24)
        test = 0.4 * power + 0.02 * rng.standard_normal(24)
        found = summary(rows(test, power)).relative_error
        assert found.mean == pytest.approx(test.mean() / power.mean(), rel=1e-12)
        ratios.append(found)
    means, errors = np.array(ratios).T
    assert np.std(means) == pytest.approx(np.mean(errors), rel=0.1)
    plain = np.std([rng.uniform(0.5, 1.5, 24).mean() for _ in range(400)]) * 0.4
    assert plain > 3 * np.std(means)  # negative control: the scale of the labels has gone


def test_what_is_not_known_is_not_said():
    assert math.isnan(summary(rows([1.0, 2.0], [math.nan, 1.0])).relative_error.mean)
    assert math.isnan(summary(rows([1.0, 2.0], [0.0, 0.0])).relative_error.mean)
    record = summary(rows([1.0, 2.0], [math.nan, 1.0])).as_json()
    assert not {"relative_error", "misclassification", "error_estimate"} & set(record)
    theory = summary(rows([1.0], [2.0], "theory"))
    assert theory.relative_error == (0.5, 0.0) and theory.as_json()["error_estimate"] is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    experiment = Experiment.read(SPEC)
    folder = tmp_path_factory.mktemp("run")
    return experiment, folder, run_experiment(experiment, folder, Local(1))


def test_every_result_has_it(run):
    _, folder, results = run
    network, hermite, theory = results.as_json()["rows"]
    for record in (network, hermite, theory):
        assert record["relative_error"] == pytest.approx(record["test_error"], rel=1e-12)  # Var 1
        assert 0 < record["misclassification"] < 0.5
    assert network["relative_error_se"] > 0 and network["misclassification_se"] > 0
    assert theory["relative_error_se"] == theory["misclassification_se"] == 0
    assert theory["error_estimate"] < 0.03 and "error_estimate" not in network
    assert json.loads((folder / "results.json").read_text())["rows"][2] == theory
    frame = results.to_pandas()
    assert (frame.relative_error == frame.test_error).all()
    assert frame.error_estimate.notna().sum() == 1 and frame.misclassification.notna().all()


def test_simulated_signs_agree_with_the_theory(run):
    network, hermite, theory = run[2].summaries()
    mean, error = network.misclassification
    assert abs(mean - theory.misclassification.mean) < 4 * error + 0.02  # what is left in 1/n
    assert abs(hermite.misclassification.mean - mean) < 0.02
    assert abs(network.test_error.mean / 2 - theory.misclassification.mean) > 4 * error + 0.02


def test_stored_rows_keep_it(run):
    loaded = og.load_results(run[1])
    by_seed = {(r.model, r.seed): r for r in run[2].rows}
    assert loaded.rows and all(
        row.relative_error == by_seed[row.model, row.seed].relative_error for row in loaded.rows
    )
    assert [r.error_estimate for r in loaded.rows if r.model == "theory"] == [
        by_seed["theory", 0].error_estimate
    ]


def test_predictions_have_it():
    tables = SPEC | {"labels": {"link": "tanh", "noise": 0.2}}
    problem = og.Problem.from_spec(tables)
    found = og.predict(problem)
    assert found.relative_error == pytest.approx(found.test_error / found.label_variance)
    simulated = og.simulate(problem, seeds=12)
    mean, error = simulated.relative_error
    assert abs(found.relative_error - mean) < 4 * error + 0.03 * mean
    assert math.isnan(simulated.misclassification.mean)


@pytest.mark.parametrize("power, drawn", [(0.9, True), (50.0, False)])
def test_the_best_constant_is_drawn_where_it_fits(power, drawn):
    experiment = Experiment.read(
        SPEC | {"sweep": {"network.width": [20, 40, 80]}, "compare": {"models": ["network"]}}
    )
    found = [
        Row(
            p.settings,
            "network",
            s,
            1 / (1 + i) + 0.01 * s,
            0.5,
            0.5,
            number=i,
            label_variance=power,
        )
        for i, p in enumerate(experiment.points)
        for s in range(3)
    ]
    figure = draw_curves(experiment, Results("", tuple(found)))
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() == 0.8]
    assert bool(lines) == drawn
    assert ("best constant, Var y" in [t.get_text() for t in figure.legends[0].texts]) == drawn
    high = figure.axes[0].get_ylim()[1]
    assert (high < 10 and not drawn) or list(lines[0].get_ydata()) == pytest.approx([power] * 3)
