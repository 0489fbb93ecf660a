"""The gradient, the readout and the draws of the network."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import onegrad as og
from onegrad.activation import get_activation
from onegrad.errors import ConvergenceError
from onegrad.experiments.simulate import simulate
from onegrad.network import readout, refine
from onegrad.network.readout import RidgeSolver, Spectrum, fit_dual, fit_readout
from onegrad.network.step import descent_direction, residual
from onegrad.network.trial import Trial
from onegrad.randomness import PURPOSES, Streams


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


@pytest.mark.parametrize("name", ["tanh", "relu", "erf", "gelu", "hermite(0.1, 1, 0.4)"])
def test_gradient_agrees_with_finite_differences(name):
    rng = np.random.default_rng(3)
    activation = get_activation(name)
    m, n, k = 17, 6, 5
    x, y = rng.standard_normal((m, n)), rng.standard_normal(m)
    weights, a = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k)

    def loss(w):
        return np.sum((y - activation(x @ w.T) @ a) ** 2) / (2 * m)

    pre = x @ weights.T
    direction = descent_direction(activation, pre, a, x, residual(activation, pre, a, y))
    step = 1e-5
    for i in range(k):
        for j in range(n):
            shift = np.zeros_like(weights)
            shift[i, j] = step
            slope = (loss(weights + shift) - loss(weights - shift)) / (2 * step)
            assert direction[i, j] == pytest.approx(-slope, abs=1e-7)
    # negative control: forgetting the ½ of the loss is seen by the same comparison
    assert not np.allclose(2 * direction, direction, atol=1e-7)


@pytest.mark.parametrize(("m", "k"), [(40, 15), (15, 40), (20, 20)])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 10.0])
def test_readout_forms_agree_with_scikit_learn(m, k, ridge):
    rng = np.random.default_rng(0)
    features, y = rng.standard_normal((m, k)), rng.standard_normal(m)
    ours = fit_readout(features, y, ridge)
    theirs = Ridge(alpha=m * ridge, fit_intercept=False, solver="cholesky", tol=1e-14)
    coefficients = theirs.fit(features, y).coef_
    dual = fit_dual(features @ features.T, y, ridge)
    primal = np.linalg.solve(features.T @ features + m * ridge * np.eye(k), features.T @ y)
    size = np.abs(primal).max()
    for other in (coefficients, features.T @ dual.coefficients, primal):
        np.testing.assert_allclose(ours.coefficients, other, atol=1e-10 * max(1, size) * 10)
    error = np.mean((y - features @ primal) ** 2)
    assert ours.train_error == pytest.approx(error, rel=1e-7, abs=1e-13)
    assert ours.train_objective == pytest.approx(error + ridge * primal @ primal, rel=1e-9)
    solver = RidgeSolver(features, y)
    for number in range(4):  # Cholesky twice, then the eigendecomposition
        again = solver.fit(ridge)
        np.testing.assert_allclose(again.coefficients, primal, atol=1e-9 * max(1, size))
        assert again.train_objective == pytest.approx(ours.train_objective, rel=1e-8), number


def test_wrong_ridge_scaling_is_seen():
    """Negative control: who divides by m matters at the tolerance above."""
    rng = np.random.default_rng(0)
    features, y = rng.standard_normal((30, 10)), rng.standard_normal(30)
    right, wrong = fit_readout(features, y, 0.1), fit_readout(features, y, 0.1 / 30)
    assert np.abs(right.coefficients - wrong.coefficients).max() > 1e-3


def large_features(m, k):
    rng = np.random.default_rng(5)
    features = np.tanh(rng.standard_normal((m, k))) + 0.3
    return features, features[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(m)


@pytest.mark.parametrize(("m", "k"), [(600, 520), (520, 600), (1200, 520), (520, 1200), (550, 550)])
def test_a_factor_of_single_precision_is_refined_to_double(m, k, monkeypatch):
    features, y = large_features(m, k)
    ridge = 1e-3 * k
    used = []
    monkeypatch.setattr(readout, "rounded_solution", _noting(used, refine.rounded_solution))
    ours = fit_readout(features, y, ridge)
    assert used == [True]
    exact = RidgeSolver(features, y).fit(ridge)  # other ridges may follow: double precision
    assert used == [True]
    size = np.linalg.norm(exact.coefficients)
    assert np.linalg.norm(ours.coefficients - exact.coefficients) < 1e-12 * size
    assert ours.train_error == pytest.approx(exact.train_error, rel=1e-12)
    assert ours.train_objective == pytest.approx(exact.train_objective, rel=1e-12)
    # negative control: without refinement the same comparison sees the single precision
    monkeypatch.setattr(refine, "_DOUBLE", 10.0)
    rough = fit_readout(features, y, ridge).coefficients
    assert np.linalg.norm(rough - exact.coefficients) > 1e-9 * size


@pytest.mark.parametrize("contraction", [1e-3, 1e9])
def test_a_small_ridge_is_solved_in_double_precision(contraction, monkeypatch):
    """Also where the estimate of the contraction is wrong: then the refinement gives up."""
    features, y = large_features(600, 600)
    used = []
    monkeypatch.setattr(readout, "rounded_solution", _noting(used, refine.rounded_solution))
    monkeypatch.setattr(refine, "_CONTRACTION", contraction)
    ours = fit_readout(features, y, 1e-8)
    assert used == [False]
    exact = RidgeSolver(features, y).fit(1e-8)
    np.testing.assert_array_equal(ours.coefficients, exact.coefficients)


def _noting(used, function):
    def noting(*arguments):
        solution = function(*arguments)
        used.append(solution is not None)
        return solution

    return noting


def test_leave_one_out_is_exact():
    rng = np.random.default_rng(1)
    features, y = rng.standard_normal((12, 5)), rng.standard_normal(12)
    error = Spectrum(features, y).leave_one_out(0.3)
    squares = []
    for i in range(12):
        rest = np.arange(12) != i
        gram = features[rest].T @ features[rest] + 12 * 0.3 * np.eye(5)
        a = np.linalg.solve(gram, features[rest].T @ y[rest])
        squares.append((y[i] - features[i] @ a) ** 2)
    assert error == pytest.approx(np.mean(squares), rel=1e-10)


def test_overflowing_features_are_refused():
    with pytest.raises(ConvergenceError, match="degree"):
        fit_readout(np.full((3, 2), np.inf), np.ones(3), 0.1)


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


class TestStreams:
    def test_streams_are_distinct(self):
        firsts = {
            (seed, purpose): Streams(0, seed).rng(purpose).integers(2**60)
            for seed in range(3)
            for purpose in PURPOSES
        }
        shared = {Streams(0, 0).shared_rng(p).integers(2**60) for p in PURPOSES}
        assert len(set(firsts.values()) | shared) == len(firsts) + len(shared)

    def test_wider_networks_extend_narrower_ones(self):
        narrow = Trial(problem(network={"width": 10}), Streams(0, 0))
        wide = Trial(problem(network={"width": 20}), Streams(0, 0))
        np.testing.assert_array_equal(wide.weights[:10], narrow.weights)

    def test_fixed_directions_are_the_same_for_all_seeds(self):
        kinds = {}
        for directions in ("fixed", "random"):
            p = problem(data={"directions": directions})
            worlds = [p.world(Streams(0, seed)) for seed in (0, 1)]
            spikes = [w.population.spikes[0] for w in worlds]
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


@pytest.mark.parametrize("bad", [np.array([[1.0, np.nan]]), np.array([["a", "b"]])])
def test_arrays_with_holes_are_refused(bad):
    with pytest.raises(og.SpecError, match="finite"):
        og.Arrays(x=bad, y=np.ones(1))
