"""A bulk covariance that is not flat: its eigenvalues, samples and norms, and what is refused."""

import numpy as np
import pytest

import onegrad as og
from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import SingleIndex
from onegrad.data.mixture import Mixture
from onegrad.errors import SpecError

TWO = {"spectrum": "two-level", "levels": [4.0, 0.25], "share": 0.2}


def test_eigenvalues_have_mean_one():
    power = Isotropic(dim=50, spectrum="power-law", exponent=0.8).bulk_eigenvalues
    assert power.mean() == pytest.approx(1)
    assert power[0] / power[7] == pytest.approx(8**0.8)
    two = Isotropic(dim=50, **TWO).bulk_eigenvalues
    assert (two == two[0]).sum() == 10 and two[0] / two[-1] == pytest.approx(16)
    listed = Isotropic(dim=5, spectrum=[1.0, 2.0, 3.0, 4.0, 5.0]).bulk_eigenvalues
    np.testing.assert_allclose(listed, np.array([5, 4, 3, 2, 1]) / 3)
    fewer = Isotropic(dim=6, spectrum=[3.0, 1.0]).bulk_eigenvalues
    np.testing.assert_allclose(fewer, [1.5] * 3 + [0.5] * 3)


@pytest.mark.parametrize("flat", [{}, {"spectrum": "power-law", "exponent": 0.0},
                                  {"spectrum": [2.0, 2.0]}])  # fmt: skip
def test_equal_eigenvalues_are_the_identity(flat):
    data = Isotropic(dim=8, **flat)
    assert data.bulk_eigenvalues is None and data.isotropic
    rng = np.random.default_rng
    ((x, _),) = data.population(0.0, rng(0)).sample(5, rng(1))
    ((same, _),) = Isotropic(dim=8).population(0.0, rng(0)).sample(5, rng(1))
    np.testing.assert_array_equal(x, same)


def test_covariance_is_bulk_plus_spikes():
    data = Mixture(dim=6, weights=(0.3, 0.7), mean=1.5, spectrum="power-law", exponent=1.0)
    population = data.population(4.0, np.random.default_rng(0))
    ((x, c),) = population.sample(400_000, np.random.default_rng(1))
    dense = np.zeros((6, 6))
    for j in (0, 1):
        gamma = population.spikes[j]
        want = np.diag(data.bulk_eigenvalues) + 4.0 * gamma @ gamma.T
        dense += population.weights[j] * want
        np.testing.assert_allclose(np.cov(x[c == j].T), want, atol=0.1)
        np.testing.assert_allclose(x[c == j].mean(axis=0), population.means[j], atol=0.04)
    assert population.mean_trace == pytest.approx(np.trace(dense)) == data.mean_trace(4.0)
    assert population.mean_covariance_norm == pytest.approx(np.linalg.eigvalsh(dense)[-1])
    weak = data.population(1e-9, np.random.default_rng(0))
    assert weak.mean_covariance_norm == pytest.approx(data.bulk_eigenvalues[0])


def test_whitened_inputs_see_the_same_projections():
    population = Mixture(dim=7, mean=1.0, **TWO).population(3.0, np.random.default_rng(0))
    w = np.random.default_rng(1).standard_normal((2, 7))
    seen, white = population.seen(w), population.whitened
    for c in (0, 1):
        g, s = population.spikes[c], population.strengths[c]
        sigma = np.diag(population.bulk) + (g * s) @ g.T
        h = white.spikes[c]
        np.testing.assert_allclose(seen @ (np.eye(7) + (h * s) @ h.T) @ seen.T, w @ sigma @ w.T)
    np.testing.assert_allclose(seen @ white.means.T, w @ population.means.T)


def test_labels_are_scaled_by_the_norm_and_their_power_is_exact():
    problem = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": 40, **TWO}, "labels": {"noise": 0.3},
        "network": {"width": 10}, "training": {"samples": 20, "rate": 0.0},
    })  # fmt: skip
    instance = problem.instance(0)
    population = instance.population
    assert np.linalg.norm(instance.teacher.direction) == pytest.approx(population.bulk[0] ** -0.5)
    y = instance.sample(400_000, np.random.default_rng(0)).y
    assert instance.label_variance == pytest.approx(y.var(), rel=0.01)
    assert problem.bulk_scale == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"spectrum": "power-law"}, "data.exponent"),
        ({"spectrum": "two-level", "levels": [1.0, 2.0]}, "data.share"),
        ({"spectrum": "two-level", "levels": [1.0], "share": 0.5}, "data.levels"),
        ({"exponent": 0.5}, "data.exponent"),
        ({"share": 0.5}, "data.share"),
        ({"spectrum": "power-law", "exponent": 0.5, "levels": [1.0, 2.0]}, "data.levels"),
        ({"spectrum": [1.0] * 9}, "data.spectrum"),
        ({"spectrum": [1.0, 0.0]}, "data.spectrum"),
        ({"spectrum": [1e9, 1e-9]}, "data.spectrum"),
        ({"spectrum": []}, "data.spectrum"),
        ({"spectrum": "powerlaw", "exponent": 0.5}, "data.spectrum"),
    ],
)
@pytest.mark.parametrize("model", [Isotropic, Mixture])
def test_keys_that_do_not_fit_are_refused(model, keys, named):
    with pytest.raises(SpecError) as refused:
        model(dim=8, **keys)
    assert named in str(refused.value)


def test_the_spiked_model_and_types_of_neurons_refuse():
    spec = {
        "data": {"model": "isotropic", "dim": 40, **TWO},
        "network": {"width": 10, "convention": "isotropic"},
        "training": {"samples": 20}, "scaling": {"exponent": 0.2},
    }  # fmt: skip
    problem = og.Problem.from_spec(spec)
    for method in ("isotropic", "isotropic-limit"):
        with pytest.raises(og.OnegradError, match=r"data\.spectrum|isotropic data"):
            og.predict(problem, method)
    with pytest.raises(og.OnegradError, match="without a spectrum"):
        og.simulate(problem, seeds=1, models=["spiked"])


def test_a_teacher_of_the_right_length():
    population = Isotropic(dim=9, spectrum="power-law", exponent=0.5).population(0.0, None)
    teacher = SingleIndex().teacher(population, np.random.default_rng(0), orthogonal=False)
    assert teacher.direction @ teacher.direction == pytest.approx(1 / population.bulk[0])


def test_no_theory_of_flat_bulks_is_asked():
    """One output for each class goes to drawn layers too: another bulk, another number."""

    def predicted(**bulk):
        return og.predict({
            "data": {"model": "mixture", "dim": 60, "weights": [0.4, 0.3, 0.3], "spread": 2.0,
                     "mean": 2.0, **bulk},
            "labels": {"model": "component"}, "network": {"width": 40, "activation": "tanh"},
            "training": {"samples": 90, "rate": 0.0, "ridge": 1e-2},
        })  # fmt: skip

    found = predicted(**TWO)
    assert abs(found.test_error / predicted().test_error - 1) > 0.02
    assert "matrix" in found.method and found.test_error_se > 0
