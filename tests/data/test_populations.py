"""Populations: the covariance that was asked for, at a cost linear in the dimension."""

import tracemalloc

import numpy as np
import pytest

from onegrad.data.isotropic import Isotropic
from onegrad.data.labels import SingleIndex
from onegrad.data.mixture import Mixture


def rng(seed=0):
    return np.random.default_rng(seed)


def draw(population, count, seed=1, **options):
    parts = list(population.sample(count, rng(seed), **options))
    return np.vstack([x for x, _ in parts]), np.concatenate([c for _, c in parts])


def test_covariance_is_identity_plus_spikes():
    population = Mixture(
        dim=6, weights=(0.3, 0.7), rank=2, strengths=(1.0, 0.5), mean=1.5
    ).population(8.0, rng())
    x, c = draw(population, 400_000)
    assert np.mean(c == 0) == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 400_000))
    for j in (0, 1):
        part = x[c == j]
        gamma = population.spikes[j]
        np.testing.assert_allclose(gamma.T @ gamma, np.eye(2), atol=1e-12)
        want = np.eye(6) + (gamma * [8.0, 4.0]) @ gamma.T
        np.testing.assert_allclose(np.cov(part.T), want, atol=0.12)
        np.testing.assert_allclose(part.mean(axis=0), population.means[j], atol=0.04)
    assert np.linalg.norm(population.means, axis=1) == pytest.approx([1.5, 1.5])
    np.testing.assert_allclose(population.means[0], -population.means[1])


def test_summaries_agree_with_dense_matrices():
    population = Mixture(dim=9, weights=(0.2, 0.5, 0.3), rank=2, alignment=0.4).population(
        5.0, rng()
    )
    dense = sum(
        w * (np.eye(9) + (g * s) @ g.T)
        for w, g, s in zip(population.weights, population.spikes, population.strengths, strict=True)
    )
    assert population.mean_trace == pytest.approx(np.trace(dense))
    assert population.mean_covariance_norm == pytest.approx(np.linalg.eigvalsh(dense)[-1])


@pytest.mark.parametrize("alignment", [-0.5, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("components", [2, 3])
def test_alignment(alignment, components):
    weights = tuple(np.full(components, 1 / components))
    spec = Mixture(dim=500, weights=weights, rank=2, alignment=alignment, directions="orthogonal")
    population = spec.population(3.0, rng())
    leading = np.stack([s[:, 0] for s in population.spikes])
    want = np.full((components, components), alignment)
    np.fill_diagonal(want, 1.0)
    np.testing.assert_allclose(leading @ leading.T, want, atol=1e-10)
    random = Mixture(dim=4000, weights=weights, alignment=alignment).population(3.0, rng())
    leading = np.stack([s[:, 0] for s in random.spikes])
    np.testing.assert_allclose(leading @ leading.T, want, atol=6 / np.sqrt(4000))


def test_orthogonal_directions_have_no_chance_overlaps():
    population = Mixture(dim=40, rank=3, mean=2.0, directions="orthogonal").population(4.0, rng())
    teacher = SingleIndex().teacher(population, rng(5), orthogonal=True)
    everything = np.hstack([*population.spikes, population.means[:1].T / 2])
    np.testing.assert_allclose(everything.T @ everything, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(everything.T @ teacher.direction, 0, atol=1e-12)


def test_blocks_do_not_change_the_numbers():
    population = Mixture(dim=7, mean=1.0).population(3.0, rng())
    whole, c = draw(population, 101)
    for block in (1, 10, 64):
        x, k = draw(population, 101, block=block)
        np.testing.assert_allclose(x, whole, rtol=0, atol=1e-14)  # products round by their size
        np.testing.assert_array_equal(k, c)


def test_proportional_counts():
    population = Mixture(dim=3, weights=(0.2, 0.3, 0.5), rank=1).population(1.0, rng())
    for count in (10, 11, 997):
        _, c = draw(population, count, fixed=True)
        counts = np.bincount(c, minlength=3)
        assert counts.sum() == count
        np.testing.assert_allclose(counts, count * population.weights, atol=1)


def test_weights_that_sum_to_one_only_in_exact_arithmetic():
    weights = (0.1,) * 10
    assert sum(weights) != 1.0
    population = Mixture(dim=4, weights=weights).population(1.0, rng())
    draw(population, 50)
    assert population.weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_one_component_and_no_spread():
    population = Mixture(dim=5, weights=(1.0,), rank=0).population(0.0, rng())
    assert population.mean_covariance_norm == 1.0
    same = Isotropic(dim=5).population(0.0, rng())
    np.testing.assert_array_equal(draw(population, 8)[0], draw(same, 8)[0])


def test_huge_dimension_needs_no_square_matrix():
    """1000 samples, dim 50,000, rank 5: the samples are 0.4 GB, and little more is ever held."""
    tracemalloc.start()
    population = Mixture(dim=50_000, rank=5).population(10.0, rng())
    for x, _ in population.sample(1000, rng(1)):
        assert x.shape == (1000, 50_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e9
