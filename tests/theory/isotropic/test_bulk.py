"""Limiting laws of features and weights: mass, moments, and simulated matrices."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from onegrad.gaussian.activation import get_activation
from onegrad.theory.isotropic.bulk import feature_bulk, weight_bulk
from onegrad.theory.isotropic.series import ActivationSeries

SHAPES = [(0.5, 0.8), (0.5, 1.0), (1.5, 0.7), (0.5, 0.5), (1.0, 1.0), (2.0, 0.1), (0.1, 2.0),
          (3.0, 3.001), (0.01, 5.0), (20.0, 0.05), (0.3, 0.01)]  # fmt: skip


@pytest.mark.parametrize("name", ["relu", "tanh", "erf"])
@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_the_feature_density_has_mass_one(name, phi, psi):
    f = ActivationSeries.of(get_activation(name))
    bulk = feature_bulk(f.c1, f.rest, phi, psi)
    assert bulk.mass() == pytest.approx(1.0, abs=1e-9)
    assert bulk.atom == pytest.approx(max(0.0, 1 - phi / psi))
    assert float(bulk.cdf(bulk.edge * 1.01)) == pytest.approx(1.0, abs=1e-9)


def test_mass_one_for_random_shapes_and_activations():
    rng = np.random.default_rng(3)
    for _ in range(60):
        phi, psi = 10 ** rng.uniform(-2.5, 2.5, 2)
        c1 = 10 ** rng.uniform(-1, 0.3)
        bulk = feature_bulk(c1, c1**2 * 10 ** rng.uniform(-4, 1.5), phi, psi)
        assert bulk.mass() == pytest.approx(1.0, abs=1e-6)


def test_mass_by_an_independent_quadrature():
    bulk = feature_bulk(*_constants("relu"), 0.5, 0.8)
    (low, high),  = bulk.intervals  # fmt: skip
    mass = quad(bulk.density, low, high, epsabs=1e-8, limit=400)[0]
    assert mass + bulk.atom == pytest.approx(1.0, abs=1e-6)
    middle = (low + high) / 2
    part = quad(bulk.density, low, middle, epsabs=1e-9, limit=400)[0]
    assert float(bulk.cdf(middle)) == pytest.approx(bulk.atom + part, abs=1e-7)


def _constants(name):
    f = ActivationSeries.of(get_activation(name))
    return f.c1, f.rest


@pytest.mark.parametrize("name", ["relu", "tanh", "identity"])
@pytest.mark.parametrize(("phi", "psi"), [(0.5, 0.8), (1.5, 0.7), (0.3, 0.02), (2.0, 5.0)])
def test_moments_of_the_feature_bulk(name, phi, psi):
    # (1/n) tr F₀F₀ᵀ/n = (N/n)(c₁² + C), and the second moment of c₁X̃W₀ᵀ + √C Z by hand
    c1, rest = _constants(name)
    bulk = feature_bulk(c1, rest, phi, psi)
    r, total = phi / psi, c1**2 + rest
    first = sum(quad(lambda s: 2 * s**3 * bulk.density(s**2), math.sqrt(a), math.sqrt(b),
                     limit=400)[0] for a, b in bulk.intervals)  # fmt: skip
    second = sum(quad(lambda s: 2 * s**5 * bulk.density(s**2), math.sqrt(a), math.sqrt(b),
                      limit=400)[0] for a, b in bulk.intervals)  # fmt: skip
    assert first == pytest.approx(r * total, rel=1e-6)
    population = total**2 + c1**4 / psi  # (1/N) tr (c₁²W₀W₀ᵀ + C)²
    assert second == pytest.approx(r * population + (r * total) ** 2, rel=1e-6)


@pytest.mark.parametrize("psi", [0.3, 1.0, 2.5])
def test_marchenko_pastur(psi):
    bulk = weight_bulk(psi)
    assert bulk.mass() == pytest.approx(1.0, abs=1e-12)
    assert bulk.atom == max(0.0, 1 - psi)
    # Tracy–Widom scale of a Wishart matrix [Johnstone], in our units
    y = 1 / psi
    assert bulk.edge_scale == pytest.approx(math.sqrt(y) * (1 + math.sqrt(y)) ** (4 / 3))


def kolmogorov(bulk, eigenvalues):
    """Largest distance of the two distribution functions, away from the atom's jump."""
    ordered = np.sort(eigenvalues)
    count = ordered.size
    inside = ordered > 0.5 * bulk.intervals[0][0] + 1e-12
    limit = bulk.cdf(ordered)
    after, before = np.arange(1, count + 1) / count, np.arange(count) / count
    return max(np.abs(limit - after)[inside].max(), np.abs(limit - before)[inside].max())


@pytest.mark.parametrize(("name", "d", "width"), [("relu", 1000, 1250), ("tanh", 400, 600)])
def test_the_bulk_of_simulated_features(name, d, width):
    n = 2000
    rng = np.random.default_rng(8)
    activation = get_activation(name).centred()
    f = ActivationSeries.of(activation)
    features = activation(rng.standard_normal((n, d)) @ rng.standard_normal((d, width))
                          / math.sqrt(d))  # fmt: skip
    nonzero = np.linalg.eigvalsh(features.T @ features / n)
    bulk = feature_bulk(f.c1, f.rest, d / n, d / width)
    eigenvalues = np.concatenate([np.zeros(n - width), nonzero])
    assert kolmogorov(bulk, eigenvalues) < 0.02
    assert math.sqrt(nonzero[-1]) < bulk.threshold(n)
    assert math.sqrt(nonzero[-1]) > math.sqrt(bulk.edge - bulk.margin(n))
    # negative control: the bulk of another activation is far away
    other = feature_bulk(*_constants("erf"), d / n, d / width)
    assert kolmogorov(other, eigenvalues) > 0.02


def test_the_margin_is_rarely_exceeded():
    d, width, draws = 100, 125, 600
    rng = np.random.default_rng(2)
    bulk = weight_bulk(d / width)
    threshold = bulk.threshold(width)
    w = rng.standard_normal((draws, width, d)) / math.sqrt(d)
    top = np.linalg.norm(w, 2, axis=(1, 2))
    assert np.sum(top > threshold) <= 4  # 0.6 expected from the 99.9 % quantile
    assert np.mean(top > math.sqrt(bulk.edge)) > 0.02  # without the margin it would be common


def test_the_density_of_singular_values_has_mass_one():
    bulk = feature_bulk(*_constants("relu"), 0.5, 0.8)
    (low, high),  = bulk.intervals  # fmt: skip
    mass = quad(bulk.singular_density, math.sqrt(low), math.sqrt(high), epsabs=1e-8, limit=400)[0]
    assert mass == pytest.approx(1.0, abs=1e-6)
