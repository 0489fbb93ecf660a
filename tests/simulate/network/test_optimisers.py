"""Several steps, any optimiser: against a plain rewriting, on every device."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.errors import SpecError
from onegrad.simulate import memory
from onegrad.simulate.memory import peak_bytes
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment

NAMES = ("gd", "sign", "adam", "muon", "kfac")


def tables(n=40, k=30, **training):
    given = {"samples": 50, "step_samples": 60, "rate": 20.0}
    return {
        "data": {"model": "mixture", "dim": n, "spread": 3.0},
        "network": {"width": k, "activation": "tanh"},
        "training": given | training,
    }


def problem(n=40, k=30, **training):
    return og.Problem.from_spec(tables(n, k, **training))


def plain(p, trial):
    """The same training, written down anew."""
    w, a = trial.weights.copy(), trial.readout
    rng, batches = trial.streams.rng("later-step-data"), [trial.step_batch]
    for _ in range(p.training.steps - 1):
        fresh = p.training.batch == "fresh"
        batches.append(trial.instance.sample(p.step_samples, rng) if fresh else batches[0])
    first, second = np.zeros_like(w), np.zeros_like(w)
    for t, (batch, rate) in enumerate(zip(batches, p.rates, strict=True), start=1):
        x, y, z = batch.x, batch.y, batch.x @ w.T
        m, (k, n) = len(y), w.shape
        error = y if p.training.gradient == "labels-only" else y - np.tanh(z) @ a
        g = k * ((error[:, None] * a * (1 - np.tanh(z) ** 2)).T @ x) / m
        if p.training.optimiser == "gd":
            w += rate / k * g
        elif p.training.optimiser == "sign":
            w += rate * np.sign(g) / np.sqrt(n)
        elif p.training.optimiser == "muon":
            u, _, v = np.linalg.svd(g, full_matrices=False)
            w += rate * u @ v
        elif p.training.optimiser == "kfac":
            metric = x.T @ x / m + (p.training.damping or 0.1) * np.eye(n)
            w += rate / k * g @ np.linalg.inv(metric)
        else:
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            root = np.sqrt(second / (1 - 0.999**t)) + 1e-8
            w += rate / np.sqrt(n) * first / (1 - 0.9**t) / root
    return w


@pytest.mark.parametrize("batch", ["fresh", "same"])
@pytest.mark.parametrize("optimiser", NAMES)
def test_three_steps_are_those_of_the_formulas(optimiser, batch):
    rate = [30.0, 10.0, 20.0] if optimiser in ("gd", "kfac") else [0.5, 0.2, 0.4]
    p = problem(optimiser=optimiser, batch=batch, steps=3, rate=rate)
    trial = Trial(p, Streams(3, 1))
    want, got = plain(p, trial), trial.updated_weights
    np.testing.assert_allclose(got, want, atol=1e-9)
    # negative control: the rates in another order
    other = Trial(
        problem(optimiser=optimiser, batch=batch, steps=3, rate=rate[::-1]), trial.streams
    )
    assert np.abs(other.updated_weights - want).max() > 1e-4


def test_labels_only_leaves_the_output_out_of_every_step():
    p = problem(steps=2, gradient="labels-only", rate=60.0)
    trial = Trial(p, Streams(0, 0))
    np.testing.assert_allclose(trial.updated_weights, plain(p, trial), atol=1e-10)
    exact = Trial(problem(steps=2, rate=60.0), Streams(0, 0)).updated_weights
    assert np.abs(exact - trial.updated_weights).max() > 1e-4


def test_later_steps_begin_where_the_first_ends():
    """A rate of zero from the second step on is one step; fresh and same batches differ."""
    streams = Streams(5, 0)
    one = Trial(problem(), streams).updated_weights
    two = Trial(problem(steps=2, rate=[20.0, 0.0]), streams).updated_weights
    np.testing.assert_array_equal(one, two)
    fresh, same = (
        Trial(problem(steps=2, batch=batch), streams).updated_weights for batch in ("fresh", "same")
    )
    assert np.abs(fresh - same).max() > 1e-4


def test_orthogonalised_gradients_are_orthogonal():
    p = problem(optimiser="muon", rate=2.0)
    trial = Trial(p, Streams(0, 0))
    values = np.linalg.svd(trial.updated_weights - trial.weights, compute_uv=False)
    np.testing.assert_allclose(values, 2.0, atol=1e-9)
    few = problem(optimiser="muon", rate=2.0, step_samples=10)
    trial = Trial(few, Streams(0, 0))
    values = np.linalg.svd(trial.updated_weights - trial.weights, compute_uv=False)
    np.testing.assert_allclose(values[:10], 2.0, atol=1e-9)
    assert values[10] < 1e-9  # rounding is no direction


@pytest.mark.parametrize("optimiser", NAMES)
def test_devices_agree(optimiser):
    pytest.importorskip("torch")
    spec = tables(steps=2, optimiser=optimiser, rate=0.3) | {"compare": {"models": ["network"]}}
    rows = {}
    for device, dtype in (("cpu", "float64"), ("torch", "float64"), ("torch", "float32")):
        changes = [f"compare.device={device}", f"compare.dtype={dtype}"]
        (row,) = run_group(Experiment.read(spec, changes).points, ["network"], 0)
        rows[device, dtype] = row.test_error
    want = rows["cpu", "float64"]
    assert rows["torch", "float64"] == pytest.approx(want, rel=1e-8)
    # single precision may turn the sign of a gradient that is next to nothing
    loose = 1e-2 if optimiser in ("sign", "adam", "muon") else 1e-3
    assert rows["torch", "float32"] == pytest.approx(want, rel=loose)


def test_points_that_differ_in_training_alone_share_their_draw():
    spec = tables() | {
        "compare": {"models": ["network", "random-features"], "seeds": 1},
        "sweep": {"training.steps": [1, 2], "training.batch": ["fresh", "same"]},
    }
    points = Experiment.from_tables(spec).points
    rows = run_group(points, ["network", "random-features"], 0)
    alone = [run_group([point], ["network"], 0)[0].test_error for point in points]
    together = [row.test_error for row in rows if row.model == "network"]
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    assert together[0] == pytest.approx(together[1]) and together[2] != pytest.approx(together[3])
    untrained = {row.test_error for row in rows if row.model == "random-features"}
    assert len(untrained) == 1


def test_models_of_one_step_say_so():
    spec = tables(steps=2) | {"compare": {"models": ["network", "spiked", "hermite"], "seeds": 1}}
    spec["data"] = {"model": "isotropic", "dim": 40}
    points = Experiment.from_tables(spec).points
    rows = {row.model: row for row in run_group(points, ["network", "spiked", "hermite"], 0)}
    assert rows["network"].status == "ok"
    assert "one step" in rows["spiked"].error
    assert "compare.degree" in rows["hermite"].error
    degree = Experiment.read(spec, ["compare.degree=3"]).points
    assert run_group(degree, ["hermite"], 0)[0].status == "ok"


@pytest.mark.parametrize(("training", "message"), [
    ({"steps": 3, "rate": [1.0, 2.0]}, r"training\.rate.*one value for each of the 3 steps"),
    ({"optimiser": "adamw"}, r"training\.optimiser.*adam"),
    ({"steps": 0}, r"training\.steps"),
    ({"damping": 0.1}, r"training\.damping.*kfac"),
    ({"batch": "old"}, r"training\.batch.*fresh.*same"),
    ({"rate": [1.0, -2.0], "steps": 2}, r"training\.rate\[1\]"),
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(training, message):
    with pytest.raises(SpecError, match=message):
        problem(**training)


def test_finite_data_must_have_rows_for_every_fresh_step():
    x, y = np.random.default_rng(0).standard_normal((300, 5)), np.ones(300)
    y[::2] = -1
    given = {"data": og.Arrays(x=x, y=y), "network": {"width": 20}}
    training = {"samples": 100, "step_samples": 60, "rate": 1.0, "steps": 4}
    with pytest.raises(SpecError, match="240"):
        og.Problem(**given, training=training)
    p = og.Problem(**given, training=training | {"batch": "same"})
    assert p.rows_left == 140
    fresh = og.Problem(**given, training=training | {"steps": 2})
    trial = Trial(fresh, Streams(0, 0))
    assert trial.updated_weights.shape == (20, 5) and len(trial.train.batch) == 100


def test_optimisers_count_in_the_memory_estimate():
    sizes = {name: peak_bytes(problem(optimiser=name, n=4000, k=2000)) for name in NAMES}
    assert sizes["gd"] < sizes["sign"] < sizes["adam"] and sizes["gd"] < sizes["kfac"]
    assert memory.peak_bytes(problem(n=4000, k=2000)) == sizes["gd"]
