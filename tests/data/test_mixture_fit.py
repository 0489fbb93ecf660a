"""A structured mixture fitted to samples of one: it must come back."""

import numpy as np
import pytest

import onegrad as og
from onegrad.data.mixture import Mixture
from onegrad.data.mixture_fit import find_spikes, fit_mixture
from onegrad.errors import AssumptionError, SpecError
from onegrad.problem import Problem
from onegrad.spec.experiment import Compare, Point
from tests.keys import key_of

rng = np.random.default_rng


def drawn(count=4000, dim=100, seed=0, **changes):
    keys = {"weights": (0.3, 0.7), "rank": 2, "strengths": (1.0, 0.4), "mean": 2.0, **changes}
    population = Mixture(dim=dim, **keys).population(25.0, rng(seed))
    ((x, c),) = population.sample(count, rng(seed + 1))
    return population, x, c


def test_everything_comes_back():
    population, x, c = drawn(count=8000)
    fit = fit_mixture(3.0 * x, np.where(c == 0, -1.0, 2.0))
    mixture = fit.mixture
    assert fit.labels == (-1.0, 2.0) and fit.scale == pytest.approx(3.0, rel=0.01)
    np.testing.assert_array_equal(fit.group, c)
    assert mixture.weights == pytest.approx([0.3, 0.7], abs=4 * np.sqrt(0.21 / 8000))
    assert mixture.ranks == (2, 2)
    found = mixture.population(1.0, rng())
    for j, size in enumerate(np.bincount(c)):
        wanted = population.strengths[j]
        # strengths of 25 and 10: sample noise √(2/N) of 1 + θ, and the growth taken off
        error = 4 * np.sqrt(2 / size) * (1 + wanted)
        np.testing.assert_array_less(np.abs(found.strengths[j] - wanted), error)
        overlap = np.abs(np.diag(population.spikes[j].T @ found.spikes[j]))
        assert np.all(overlap > 0.97)
        assert np.linalg.norm(found.means[j] - population.means[j]) < 0.5
    assert found.mean_trace == pytest.approx(population.mean_trace, rel=0.03)


def test_strengths_are_shrunken():
    """Negative control: the plain eigenvalues are too large when samples are few."""
    _, x, _ = drawn(count=150, dim=300, weights=(1.0,), mean=0.0, rank=1, strengths=(1.0,))
    fit = fit_mixture(x, components=1)
    (strength,) = fit.mixture.own_strengths[0]
    plain = np.linalg.eigvalsh(np.cov(x.T))[-1] - 1
    assert abs(strength - 25) < 4 * np.sqrt(2 / 150) * 26
    assert plain - strength == pytest.approx(2 * (1 + 1 / 25), rel=0.15)  # λ = (1 + θ)(1 + γ/θ)


def test_means_that_are_not_there_stay_small():
    _, x, c = drawn(mean=0.0)
    assert np.linalg.norm(fit_mixture(x, c.astype(float)).mixture.means, axis=1).max() < 0.3


def test_components_without_labels():
    _, x, c = drawn(count=3000, mean=4.0)
    fit = fit_mixture(x, components=2)
    assert fit.labels is None
    same = np.mean(fit.group == c)
    assert max(same, 1 - same) > 0.97
    assert sorted(fit.mixture.weights) == pytest.approx([0.3, 0.7], abs=0.03)
    again = fit_mixture(x, components=2)
    np.testing.assert_array_equal(fit.group, again.group)


def test_a_fit_is_a_problem_like_any_other():
    _, x, c = drawn()
    fit = fit_mixture(x, 1.0 - 2.0 * c)
    problem = Problem(
        data=fit.mixture, labels={"model": "component", "values": fit.labels},
        network={"width": 80, "activation": "tanh"}, training={"samples": 300, "rate": 1.0},
    )  # fmt: skip
    assert problem.spread == 1.0
    population = fit.mixture.population(1.0, rng())
    assert problem.mean_trace == pytest.approx(population.mean_trace)
    done = og.simulate(problem, ["network", "conditional-gaussian"], seeds=20)
    mean, error = done.test_error
    assert abs(done.difference("conditional-gaussian").mean) < 0.05
    said = og.predict(problem)
    assert said.method == "semi-parametric theory"
    assert said.test_error == pytest.approx(mean, abs=3 * error + 0.02 * mean)
    other = fit_mixture(x[:2000], 1.0 - 2.0 * c[:2000])
    compare = Compare(models=("network",))
    moved = problem.model_copy(update={"data": other.mixture})
    assert key_of(Point({}, problem, compare)) != key_of(Point({}, moved, compare))


def test_refusals():
    _, x, c = drawn(count=50)
    with pytest.raises(SpecError, match=r"one row per sample"):
        fit_mixture(x, c[:-1].astype(float))
    with pytest.raises(SpecError, match="components = 40"):
        fit_mixture(x, components=40)
    with pytest.raises(AssumptionError, match="at least 3"):
        fit_mixture(x, np.array([0.0] * 48 + [1.0] * 2))
    with pytest.raises(AssumptionError, match="numbers, not classes"):
        fit_mixture(rng(0).standard_normal((200, 3)), rng(1).standard_normal(200))
    with pytest.raises(AssumptionError, match="no noise"):
        fit_mixture(np.ones((30, 20)), components=1)


def test_a_whole_covariance():
    """Every eigenvalue of every component, not only what leaves a flat bulk."""
    rng = np.random.default_rng(0)
    levels = np.arange(1, 21) ** -0.8
    y = np.repeat([1.0, -1.0], 4000)
    x = rng.standard_normal((8000, 20)) * np.sqrt(levels)
    x[:4000] = x[:4000, ::-1]
    fit = fit_mixture(x, y, covariance="whole")
    population = fit.mixture.population(1.0, rng)
    for c, want in enumerate((levels, levels[::-1])):
        g, s = population.spikes[c], population.strengths[c]
        found = fit.scale**2 * (np.eye(20) + (g * s) @ g.T)
        np.testing.assert_allclose(np.diag(found), want, rtol=0.15)
        assert np.linalg.norm(found - np.diag(want)) < 0.1 * np.linalg.norm(want)
    assert fit.mixture.mean_trace(1.0) * fit.scale**2 == pytest.approx(levels.sum(), rel=0.02)
    with pytest.raises(SpecError, match="whole"):
        fit_mixture(x, y, covariance="hole")


SHAPES = [(2000, 100), (1000, 1000), (300, 900), (500, 50)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_strengths_are_found(rows, columns):
    """Mean over ten samples: a strength's relative error is of order √(2/N), plus 5 % of bias."""
    true = np.array([20.0, 8.0])
    found, naive = [], []
    for seed in range(10):
        draw = np.random.default_rng([seed, rows, columns])
        directions = np.linalg.qr(draw.standard_normal((columns, 2)))[0]
        along = draw.standard_normal((rows, 2)) * np.sqrt(true)
        x = 3.0 * (draw.standard_normal((rows, columns)) + along @ directions.T)
        spikes = find_spikes(x)
        assert len(spikes.strengths) == 2
        assert spikes.noise == pytest.approx(9.0, rel=0.05)
        found.append(spikes.strengths)
        naive.append(spikes.eigenvalues[1] / spikes.noise - 1)
    error = 4 * np.sqrt(2 / rows / 10) + 0.05
    np.testing.assert_allclose(np.mean(found, axis=0), true, rtol=error)
    if columns >= rows:  # negative control: the sample eigenvalues themselves are too large
        assert np.mean(naive) > true[1] * (1 + error)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_noise_has_no_spike(rows, columns):
    false = 0
    for seed in range(20):
        x = np.random.default_rng([seed, rows]).standard_normal((rows, columns))
        false += len(find_spikes(x).strengths)
    assert false <= 1


def test_few_columns_claim_nothing():
    x = np.random.default_rng(0).standard_normal((100, 3)) * [10, 1, 1]
    assert len(find_spikes(x).strengths) == 0
