"""One repetition: its draws, its step, and that they are the same whenever they are made."""

import numpy as np

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.simulate import simulate


def problem(**changes):
    settings = {
        "data": {"model": "mixture", "dim": 30},
        "labels": {"model": "single-index", "noise": 0.1},
        "network": {"width": 25, "activation": "tanh"},
        "training": {"samples": 40, "ridge": 1e-3},
        "scaling": {"strength": 0.6, "weighting": 0.5},
    }
    for table, values in changes.items():
        settings[table] = {**settings[table], **values}
    return og.Problem.from_spec(settings)


def test_step_is_the_gradient_step():
    trial = Trial(problem(), Streams(0, 0))
    p, batch = trial.problem, trial.step_batch
    change = (trial.updated_weights - trial.weights) / p.rate
    pre = batch.x @ trial.weights.T
    error = batch.y - np.tanh(pre) @ trial.readout
    want = (error[:, None] * (1 - np.tanh(pre) ** 2) * trial.readout).T @ batch.x / len(batch)
    np.testing.assert_allclose(change, want, atol=1e-13)


def test_no_step_leaves_the_weights():
    trial = Trial(
        og.Problem.from_spec(
            {
                "data": {"model": "isotropic", "dim": 10},
                "network": {"width": 8},
                "training": {"samples": 12, "rate": 0.0},
            }
        ),
        Streams(0, 0),
    )
    assert trial.updated_weights is trial.weights


def test_gradient_kinds_differ_by_the_initial_output():
    kinds = {}
    for kind in ("exact", "labels-only"):
        trial = Trial(problem(training={"gradient": kind}), Streams(0, 0))
        kinds[kind] = trial.step_error
    trial = Trial(problem(), Streams(0, 0))
    f0 = np.tanh(trial.step_batch.x @ trial.weights.T) @ trial.readout
    np.testing.assert_allclose(kinds["labels-only"] - kinds["exact"], f0, atol=1e-14)


def test_constant_readout():
    trial = Trial(problem(network={"readout": "constant"}), Streams(0, 0))
    np.testing.assert_array_equal(trial.readout, 1 / 25)


def test_wider_networks_extend_narrower_ones():
    narrow = Trial(problem(network={"width": 10}), Streams(0, 0))
    wide = Trial(problem(network={"width": 20}), Streams(0, 0))
    np.testing.assert_array_equal(wide.weights[:10], narrow.weights)


def test_fixed_directions_are_the_same_for_all_seeds():
    kinds = {}
    for directions in ("fixed", "random"):
        p = problem(data={"directions": directions})
        instances = [p.instance(Streams(0, seed)) for seed in (0, 1)]
        spikes = [w.population.spikes[0] for w in instances]
        kinds[directions] = np.array_equal(*spikes)
    assert kinds == {"fixed": True, "random": False}


def test_same_seed_gives_bit_identical_rows():
    models = ("network", "hermite", "conditional-gaussian", "linear", "kernel")
    first = simulate(problem(), models, seeds=2, rng=5).results.rows
    again = simulate(problem(), models, seeds=2, rng=5).results.rows
    alone = simulate(problem(), ("hermite",), seeds=2, rng=5).results.rows
    other = simulate(problem(), models, seeds=2, rng=6).results.rows

    def numbers(rows):
        return [(r.model, r.seed, r.test_error, r.train_error, r.train_objective) for r in rows]

    assert numbers(first) == numbers(again)
    assert set(numbers(alone)) <= set(numbers(first))
    assert not set(numbers(other)) & set(numbers(first))


def test_arrays_are_split_into_disjoint_parts():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((90, 4)), np.arange(90.0)
    p = og.Problem(
        data=og.Arrays(x=x, y=y),
        network=og.Network(width=10),
        training=og.Training(samples=30, step_samples=20, rate=1.0),
    )
    trial = Trial(p, Streams(0, 0))
    test = np.concatenate([b.y for b in trial.test_batches(10**6)])
    parts = [trial.step_batch.y, trial.train.batch.y, test]
    assert [len(part) for part in parts] == [20, 30, 40]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), y)
    outcome = simulate(p, ("network", "linear", "kernel"), seeds=3)
    assert outcome.test_error.mean > 0
