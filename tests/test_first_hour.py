"""What somebody tries in the first hour: Problem.replace, totals, arrays, provenance, steps."""

import json

import numpy as np
import pytest

import onegrad as og

PROBLEM = og.Problem(
    data=og.Mixture(dim=40, weights=[0.5, 0.5], rank=1),
    network=og.Network(width=30),
    training=og.Training(samples=50),
    scaling=og.Scaling(strength=0.7, weighting=0.5),
)


def test_a_rate_takes_the_place_of_the_scaling_and_the_spread_stays():
    changed = PROBLEM.replace(**{"training.rate": 3.0})
    assert changed.rate == 3.0 and changed.spread == PROBLEM.spread
    assert PROBLEM.replace(network=og.Network(width=7)).width == 7


def test_sweeps_take_arrays_and_need_no_dummy():
    found = og.sweep(
        PROBLEM, {"training.rate": np.array([1.0, 3.0])}, models="network", seeds=2, progress=False
    )
    assert [s.point["training.rate"] for s in found.summaries()] == [1.0, 3.0]
    tables = {"data": {"model": "isotropic", "dim": 20}, "network": {"width": 9},
              "training": {"samples": 30}}  # fmt: skip
    keys = {"training.rate": [0.0, 2.0]}
    assert len(og.sweep(tables, keys, models="network", seeds=1, progress=False).rows) == 2


@pytest.mark.parametrize("rate, samples, step", [(0.0, 100, None), (2.0, 50, 50)])
def test_a_total_is_shared_by_step_and_readout(rate, samples, step):
    training = og.Training(total=100, rate=rate)
    assert (training.samples, training.step_samples) == (samples, step)


def test_a_folder_says_how_it_was_made(tmp_path):
    og.run(PROBLEM.replace(**{"training.ridge": 0.1}), out=tmp_path, progress=False)
    made = json.loads((tmp_path / "results.json").read_text())["provenance"]
    assert made["seed"] == "0" and made["seeds"] == "10" and "network" in made["models"]
    again = og.Problem.from_spec(tmp_path / "spec.toml")
    assert again.training.ridge == 0.1 and again.spread == PROBLEM.spread
    assert og.load_results(tmp_path).to_xarray().attrs["seed"] == "0"


def test_the_step_size_is_that_of_a_real_step():
    """The change of preactivations by the mean gradient, over many samples."""
    problem = PROBLEM.replace(**{"training.rate": 30.0})
    rng, instance = np.random.default_rng(3), problem.instance(0)
    w = rng.standard_normal((400, 40)) * np.sqrt(problem.weight_variance)
    a = rng.standard_normal(400) * problem.readout_scale
    batch, fresh = instance.sample(50_000, 4), instance.sample(4000, 5).x
    slope = batch.x @ w.T > 0
    gradient = a[:, None] * ((batch.y[:, None] * slope).T @ batch.x / len(batch.x))
    moved = np.sqrt(np.mean((fresh @ (problem.rate * gradient).T).var(axis=0)))
    assert problem.step_size == pytest.approx(moved / problem.bulk_scale, rel=0.25)
