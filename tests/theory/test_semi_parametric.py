"""The semi-parametric theory: its pieces against dense sums, its identities, and networks."""

import numpy as np
import pytest

import onegrad as og
from onegrad.activation import get_activation
from onegrad.data.mixture import Mixture
from onegrad.errors import AssumptionError
from onegrad.experiments.real_data import label_groups
from onegrad.problem import Problem
from onegrad.theory.sample_nodes import Conditioned, GroupMoments, Prepared, Sample
from onegrad.theory.semi_parametric import Ridge, common_errors, feature_moments
from onegrad.theory.semi_parametric_nodes import Quadratics, node_errors
from onegrad.theory.semi_parametric_predict import Layer, predict_from_layers

rng = np.random.default_rng


def spiked_sample(count, dim=40, noise=0.0, seed=0):
    """Two Gaussian groups with a strong direction each and means apart."""
    generator = rng(seed)
    group = np.arange(count) % 2
    x = generator.standard_normal((count, dim))
    x[group == 0, 0] *= 4
    x[group == 1, 1] *= 3
    x[:, 2] += 1.5 * (1 - 2 * group)
    return Sample(x, 1.0 - 2.0 * group, group, noise)


def conditioned(sample, activation="tanh", width=15, rank=3, seed=1):
    weights = rng(seed).standard_normal((width, sample.x.shape[1])) / np.sqrt(sample.x.shape[1])
    prepared = Prepared.of(sample, rng(2))
    directions = np.eye(sample.x.shape[1])[:, 5:6]
    nodes = Conditioned.of(prepared, weights, get_activation(activation), directions, rank)
    return nodes, weights


# --- the pieces -------------------------------------------------------------------------


@pytest.mark.parametrize("dim, count", [(12, 50), (60, 20)])
def test_moments_of_a_group_with_more_samples_than_inputs_and_fewer(dim, count):
    x = rng(0).standard_normal((count, dim)) @ rng(1).standard_normal((dim, dim))
    moments = GroupMoments.of(x, noise=0.3)
    matrix = rng(2).standard_normal((dim, 4))
    dense = np.cov(x.T) + 0.3 * np.eye(dim)
    np.testing.assert_allclose(moments.times(matrix), dense @ matrix, atol=1e-9)
    assert np.all(np.diff(moments.values) <= 1e-9)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_features_of_gaussian_groups(activation, noise):
    """For truly Gaussian groups the conditioned moments are those of the features themselves."""
    # many inputs: what the remainders share beyond first order is of order 1/n
    sample = spiked_sample(20_000, dim=400, noise=noise)
    nodes, weights = conditioned(sample, activation)
    moments = feature_moments(nodes, np.arange(len(sample)))
    x = sample.x + np.sqrt(noise) * rng(9).standard_normal(sample.x.shape)
    phi = get_activation(activation)(x @ weights.T)
    products = phi[:, :, None] * phi[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(sample))
    # the nodes share the x of the check, so the difference is less than independent errors
    assert np.max(np.abs(products.mean(axis=0) - moments.second) / error) < 4
    crossed = phi * sample.y[:, None]
    error = crossed.std(axis=0) / np.sqrt(len(sample))
    assert np.max(np.abs(crossed.mean(axis=0) - moments.cross) / error) < 4


def test_the_coupling_counts():
    """Negative control: without the correlations of the remainders the moments are wrong."""
    sample = spiked_sample(20_000)
    nodes, weights = conditioned(sample)
    right = feature_moments(nodes, np.arange(len(sample))).second
    for part in nodes.parts:
        part.coupling[:] = 0.0
    wrong = feature_moments(nodes, np.arange(len(sample))).second
    phi = np.tanh(sample.x @ weights.T)
    true = phi.T @ phi / len(phi)
    assert np.linalg.norm(wrong - true) > 10 * np.linalg.norm(right - true)


def test_quadratics_against_dense_matrices():
    sample = spiked_sample(30)
    nodes, _ = conditioned(sample)
    q = Quadratics(nodes, np.arange(30))
    dense = []
    for block in nodes.blocks():
        coupling = nodes.parts[block.group].coupling
        for s in range(len(block.rows)):
            d = block.slope[:, s]
            inner = coupling * np.outer(d, d) + np.diag(block.variance[:, s])
            dense.append(np.outer(block.mean[:, s], block.mean[:, s]) + inner)
    dense = np.array(dense)
    u = rng(3).random(30)
    matrix = rng(4).standard_normal((15, 15))
    matrix = matrix + matrix.T
    np.testing.assert_allclose(q.total(u), np.einsum("s,sij->ij", u, dense), atol=1e-12)
    np.testing.assert_allclose(q.traces(matrix), np.einsum("sij,ji->s", dense, matrix), atol=1e-11)
    total = feature_moments(nodes, np.arange(30)).second
    np.testing.assert_allclose(total, dense.mean(axis=0), atol=1e-12)


# --- the equations ----------------------------------------------------------------------


@pytest.mark.parametrize("width, samples, ridge", [(30, 60, 0.01), (60, 40, 1e-3), (25, 25, 0.3)])
def test_training_error_is_the_derivative_of_the_objective(width, samples, ridge):
    """train = L − λ dL/dλ, whichever way χ is taken: L is a minimum over the readout."""
    sample = spiked_sample(300)
    nodes, _ = conditioned(sample, width=width)
    rows = np.arange(len(sample))
    moments, q = feature_moments(nodes, rows), Quadratics(nodes, rows)

    def common(level):
        return common_errors(moments, Ridge(samples, level))[0]

    def own(level):
        chi = common_errors(moments, Ridge(samples, level))[1]
        return node_errors(q, Ridge(samples, level), chi, 0.2, tolerance=1e-10)

    h = 1e-4
    for errors in (common, own):
        up, down = errors(ridge * (1 + h)), errors(ridge * (1 - h))
        slope = (up.train_objective - down.train_objective) / (2 * h)
        at = errors(ridge)
        assert at.train_objective - slope == pytest.approx(at.train_error, rel=1e-5)
        assert at.train_error < at.test_error and at.train_error < at.train_objective


def test_equal_nodes_have_equal_responses():
    """One node many times: χ_s is the common χ, and so are the errors."""
    nodes, _ = conditioned(spiked_sample(400), width=20)
    rows = np.zeros(50, dtype=int)
    moments = feature_moments(nodes, rows)
    problem = Ridge(30, 0.05)
    plain, chi, _ = common_errors(moments, problem)
    own = node_errors(Quadratics(nodes, rows), problem, chi, 0.0, tolerance=1e-11)
    np.testing.assert_allclose(own, plain, rtol=1e-8)


def test_ordinary_ridge_regression_of_gaussian_features():
    """Against ridge regressions themselves, with features that are Gaussian given the group."""
    sample = spiked_sample(4000)
    nodes, weights = conditioned(sample, "identity", width=30)
    moments = feature_moments(nodes, np.arange(len(sample)))
    problem = Ridge(60, 0.02)
    said, chi, _ = common_errors(moments, problem)
    own = node_errors(Quadratics(nodes, np.arange(4000)), problem, chi, 0.0)
    found = []
    for seed in range(200):
        train, test = (spiked_sample(c, seed=1000 + 2 * seed + i) for i, c in ((0, 60), (1, 400)))
        phi, fresh = train.x @ weights.T, test.x @ weights.T
        a = np.linalg.solve(phi.T @ phi / 60 + 0.02 * np.eye(30), phi.T @ train.y / 60)
        found.append(
            (np.mean((test.y - fresh @ a) ** 2), np.mean((train.y - phi @ a) ** 2),
             np.mean((train.y - phi @ a) ** 2) + 0.02 * a @ a)
        )  # fmt: skip
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(200)
    # the finite-size term is of order 1/m = 1/60
    assert np.all(np.abs(own - mean) < 4 * error + mean / 60)
    assert np.all(np.abs(said - mean) < 4 * error + 3 * mean / 60)
    wrong, _, _ = common_errors(moments, Ridge(60, 0.2))  # negative control: the wrong ridge
    assert np.any(np.abs(wrong - mean) > 4 * error + 3 * mean / 60)


# --- the driver -------------------------------------------------------------------------


def test_too_few_samples_are_refused():
    sample = spiked_sample(12)
    layer = Layer(np.ones((3, 40)), np.zeros((40, 0)), sample)
    with pytest.raises(AssumptionError, match=r"at least 20 samples.*there are 12"):
        predict_from_layers(lambda i: layer, get_activation("relu"), Ridge(10, 0.1))


def test_shapes_that_disagree():
    with pytest.raises(AssumptionError, match="disagree"):
        Sample(np.zeros((3, 2)), np.zeros(2), np.zeros(3, dtype=int))


def test_labels_as_classes_or_numbers():
    assert label_groups(np.repeat([3.0, 7.0], 10)).tolist() == [0] * 10 + [1] * 10
    assert not label_groups(rng(0).standard_normal(50)).any()
    assert not label_groups(np.array([1.0] * 30 + [2.0])).any()


def arrays(classes=True, count=5000, **network):
    """A table of numbers that is secretly a Gaussian mixture, so that there is a population."""
    population = Mixture(dim=60, rank=1, mean=1.0).population(20.0, rng(5))
    ((x, c),) = population.sample(count, rng(6))
    y = 1.0 - 2.0 * c
    if not classes:
        y = np.tanh(x @ rng(7).standard_normal(60) / 8) + 0.1 * rng(8).standard_normal(count)
    return Problem(
        data={"model": "arrays", "x": x, "y": y}, network={"width": 150, **network},
        training={"samples": 200, "ridge": 1e-3, "rate": 3.0},
    )  # fmt: skip


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("convention", ["mixture", "isotropic"])
def test_somebodys_arrays(classes, convention):
    """Network and theory on a user's table, classes or numbers, in both conventions."""
    problem = arrays(classes, convention=convention, activation="tanh")
    said = og.predict(problem)
    assert said.method == "semi-parametric theory" and 0 < said.error_estimate < 0.05
    done = og.simulate(problem, seeds=16, rng=3)
    for name in ("test_error", "train_error", "train_objective"):
        mean, error = getattr(done, name)
        assert getattr(said, name) == pytest.approx(mean, abs=3 * error + 0.02 * mean), name


def test_the_same_seed_gives_the_same_numbers():
    problem = arrays(count=800)
    first, again = (og.predict(problem, rng=1) for _ in range(2))
    assert first == again
    assert og.predict(problem, rng=2).test_error != first.test_error


def test_methods_that_do_not_fit():
    problem = arrays(count=800)
    with pytest.raises(AssumptionError, match=r"conditional theory needs a known population"):
        og.predict(problem, method="conditional")
    with pytest.raises(AssumptionError, match="no finite-size option"):
        og.predict(problem, finite_size=True)
    mixture = Problem(
        data={"model": "mixture", "dim": 50}, network={"width": 40},
        training={"samples": 60}, scaling={"strength": 0.5, "weighting": 0.5},
    )  # fmt: skip
    for method in ("semi-parametric", "surrogate"):
        with pytest.raises(AssumptionError, match='use method = "conditional"'):
            og.predict(mixture, method=method)
    with pytest.raises(AssumptionError, match="labels that are classes"):
        og.predict(arrays(classes=False, count=800), method="surrogate")


def test_the_surrogate_of_gaussian_classes_agrees():
    """Where the classes are Gaussian indeed, fitting them loses nothing."""
    problem = arrays()
    theory, fitted = og.predict(problem), og.predict(problem, method="surrogate")
    assert "1, 1 spikes" in fitted.assumptions[0]
    for name in ("test_error", "train_error"):
        assert getattr(fitted, name) == pytest.approx(getattr(theory, name), rel=0.03)


def test_digits():
    problem = Problem(
        data={"model": "digits", "classes": (3, 5)}, network={"width": 60},
        training={"samples": 100, "step_samples": 60}, scaling={"strength": 1.0, "weighting": 0.0},
    )  # fmt: skip
    said, done = og.predict(problem), og.simulate(problem, seeds=40, rng=2)
    mean, error = done.test_error
    # 300 nodes for 60 neurons: the theory says itself how far to trust it
    assert said.test_error == pytest.approx(mean, abs=3 * error + 2 * said.error_estimate * mean)
    assert said.error_estimate < 0.1
