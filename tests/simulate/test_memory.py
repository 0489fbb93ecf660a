"""The estimate of a repetition's memory, and the refusal that is made of it."""

import tracemalloc

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.simulate import memory
from onegrad.simulate.network.trial import Draw, Reuse, Trial
from onegrad.simulate.simulate import reuse_of, run_group
from onegrad.spec.experiment import Experiment


def experiment(n=1000, k=1000, m=1000, sweep=None, dtype="float64"):
    return Experiment.from_tables(
        {
            "data": {"model": "mixture", "dim": n},
            "network": {"width": k},
            "training": {"samples": m},
            "scaling": {"strength": 0.74, "weighting": 0.5},
            "compare": {"dtype": dtype},
            "sweep": sweep or {},
        }
    )


def peak_and_estimate(points, models=("network",), layers=1, dtype="float64"):
    """Bytes of the second repetition as measured and as foreseen."""
    run_group(points, models, 0)
    tracemalloc.start()
    run_group(points, models, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, memory.peak_bytes(points[0].problem, models, reuse_of(models, layers), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("k", "models", "layers"), [
    (800, ["network"], 1), (800, ["network", "hermite"], 1), (300, ["network", "hermite"], 2),
    (2000, ["network"], 1), (800, ["network", "conditional-gaussian"], 1), (800, ["network"], 3),
])  # fmt: skip
def test_estimate_is_close_to_the_measured_peak(k, models, layers, dtype):
    names = ["relu", "erf", "sigmoid"][:layers]
    points = experiment(800, k, 800, {"network.activation": names}, dtype).points
    peak, estimate = peak_and_estimate(points, models, layers, dtype)
    assert 0.8 * peak < estimate < 1.25 * peak


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_wide_network_holds_the_products_of_its_neurons(dtype):
    peak, estimate = peak_and_estimate(experiment(200, 2500, 300, dtype=dtype).points, dtype=dtype)
    assert 0.85 * peak < estimate < 1.15 * peak
    assert estimate - 2 * 2500**2 < 0.85 * peak  # the control: as blocks they would take half


@pytest.mark.parametrize(("n", "k", "m"), [(500, 300, 600), (500, 900, 600), (60, 1000, 1200)])
def test_other_losses_keep_a_gram_matrix_and_sample_their_risk(n, k, m):
    tables = {
        "data": {"model": "isotropic", "dim": n}, "labels": {"link": "sign"},
        "network": {"width": k},
        "training": {"samples": m, "step_samples": 100, "loss": "logistic", "rate": 1.0},
    }  # fmt: skip
    peak, estimate = peak_and_estimate(Experiment.from_tables(tables).points)
    assert 0.8 * peak < estimate < 1.25 * peak


def test_ten_thousand_fit_in_six_gigabytes():
    problem = experiment(10_000, 10_000, 10_000).points[0].problem
    for layers in (1, 3):
        assert memory.peak_bytes(problem, ["network"], reuse_of(["network"], layers)) < 6e9


def test_a_problem_that_does_not_fit_is_refused_with_advice(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000_000_000)
    point = experiment(20_000, 20_000, 20_000).points[0]
    with pytest.raises(SpecError, match=r"12\.8 GB.*1\.0 GB are available.*[Mm]ultiply"):
        run_group([point], ["network"], 0)
    with pytest.raises(SpecError):
        og.simulate(point.problem, seeds=1)
    single = experiment(20_000, 20_000, 20_000, dtype="float32").points[0]
    with pytest.raises(SpecError, match=r"6\.4 GB"):
        run_group([single], ["network"], 0)


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    problem = experiment(20_000, 20_000, 20_000).points[0].problem
    memory.check_memory(problem, ["network"], Reuse())


@pytest.mark.parametrize("models", [["network"], ["hermite"], ["network", "hermite"]])
def test_what_is_freed_changes_no_number(models):
    point = experiment(60, 50, 70).points[0]
    rows = {row.model: row for row in run_group([point], models, 0)}
    everything = run_group([point], ["network", "hermite", "random-features"], 0)
    for row in everything:
        if row.model in models:
            assert rows[row.model].test_error == pytest.approx(row.test_error, rel=1e-12)
            assert rows[row.model].train_error == pytest.approx(row.train_error, rel=1e-12)


@pytest.mark.parametrize("training", [{}, {"steps": 3, "optimiser": "adam", "rate": 0.3}])
def test_what_was_freed_is_drawn_again(training):
    problem = experiment(60, 50, 70).points[0].problem
    if training:
        data = problem.data.model_copy(update={"spread": 3.0})
        training = {"samples": 70, **training}
        problem = og.Problem(data=data, network={"width": 50}, training=training)
    kept = Trial(problem, Streams(0, 0))
    frugal = Trial(problem, Streams(0, 0), draw=Draw(problem, Streams(0, 0), Reuse(*[False] * 4)))
    np.testing.assert_allclose(frugal.updated_weights, kept.updated_weights, atol=1e-13)
    np.testing.assert_array_equal(frugal.weights, kept.weights)
    np.testing.assert_array_equal(frugal.step_batch.x, kept.step_batch.x)
    np.testing.assert_allclose(frugal.step_error, kept.step_error, atol=1e-14)
