"""Spectra of given matrices: decompositions, planted spikes, distance to the polynomial model."""

import math

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import get_activation
from onegrad.theory.isotropic.bulk import feature_bulk, weight_bulk
from onegrad.theory.isotropic.measured import (
    all_singular_values,
    count_spikes,
    leading_singular,
    measure_features,
    measure_weights,
    polynomial_distance,
    polynomial_features,
    projections,
)
from tests.theory.isotropic.common import RELU, first_step


def test_iterative_and_full_decompositions_agree():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((900, 700)) / 30
    matrix += np.outer(rng.standard_normal(900), rng.standard_normal(700)) / 100
    u, s, vt = leading_singular(matrix, 4)
    assert s == pytest.approx(all_singular_values(matrix)[:4], rel=1e-10)
    assert matrix @ vt.T == pytest.approx(u * s, abs=1e-9)
    with pytest.raises(AssumptionError):
        leading_singular(matrix, 0)


def test_planted_spikes_are_counted_and_aligned():
    n, d, width = 800, 400, 500
    rng = np.random.default_rng(4)
    f = RELU
    x = rng.standard_normal((n, d))
    beta = rng.standard_normal(d)
    w = rng.standard_normal((width, d)) / math.sqrt(d)
    f0 = f.c1 * x @ w.T + math.sqrt(f.rest) * rng.standard_normal((n, width))
    z = projections(x, beta)
    v = np.linalg.qr(rng.standard_normal((width, 2)))[0]
    features = f0 + 20 * np.outer(z, v[:, 0]) + 6 * np.outer(z**2 - 1, v[:, 1])
    bulk = feature_bulk(f.c1, f.rest, d / n, d / width)
    m = measure_features(features, bulk, z)
    assert m.spikes == 2
    assert m.hermite_cosines[0, 1] > 0.99 and m.hermite_cosines[1, 2] > 0.97
    assert m.power_cosines[1, 2] < m.hermite_cosines[1, 2]
    assert measure_features(f0, bulk).spikes == 0
    plain = measure_weights(w, weight_bulk(d / width))
    assert plain.spikes == 0 == count_spikes(plain.singular_values, weight_bulk(d / width), width)
    with pytest.raises(AssumptionError):
        projections(x, np.zeros(d))


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "right"), [(0.15, 1), (0.3, 2)])
def test_the_polynomial_model_is_close_for_the_right_degree_only(alpha, right):
    sizes, draws = (300, 600, 1200), (32, 16, 8)
    activation = get_activation("relu").centred()
    means, errors = [], []
    for n, count in zip(sizes, draws, strict=True):
        d, width, rate = n // 2, 5 * n // 8, n**alpha
        rows = []
        for seed in range(count):
            rng = np.random.default_rng([n, seed])
            w, a, beta, step = first_step(activation, n, d, width, "labels-only", rng, [0.0, 1.0])
            x = rng.standard_normal((n, d))
            before, after = activation(x @ w.T), activation(x @ (w + rate * step).T)
            moved = RELU.c1 * rate * (x @ beta)
            models = [polynomial_features(before, moved, a, RELU.coefficients, k)
                      for k in range(right + 1)]  # fmt: skip
            rows.append([polynomial_distance(after, model) for model in models])
        logs = np.log(rows)
        means.append(logs.mean(0))
        errors.append(logs.std(0, ddof=1) / math.sqrt(count))
    slopes, spreads = [], []
    for column, spread in zip(np.transpose(means), np.transpose(errors), strict=True):
        design = np.column_stack([np.ones(len(sizes)), np.log(sizes)]) / spread[:, None]
        covariance = np.linalg.inv(design.T @ design)
        slopes.append(covariance[1] @ design.T @ (column / spread))
        spreads.append(math.sqrt(covariance[1, 1]))
    assert slopes[right] < -4 * spreads[right]
    # the first missing spike k = ℓ + 1 grows as n^(k(α − ½) + ½)
    for degree in range(right):
        grows = (degree + 1) * (alpha - 0.5) + 0.5
        assert slopes[degree] > 0
        assert abs(slopes[degree] - grows) <= 4 * spreads[degree]
