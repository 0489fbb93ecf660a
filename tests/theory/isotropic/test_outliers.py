"""Predicted spikes of weights and features against simulated matrices."""

import math
from dataclasses import replace

import numpy as np
import pytest

from onegrad.gaussian.activation import get_activation
from onegrad.theory.isotropic.bulk import feature_bulk
from onegrad.theory.isotropic.measured import (
    leading_singular,
    measure_features,
    polynomial_alignments,
    polynomial_features,
    projections,
)
from onegrad.theory.isotropic.outliers import (
    law_of,
    norm_outlier,
    predict_feature_spikes,
    step_edge_margin,
    weight_spike,
)
from tests.theory.isotropic.common import (
    LINK,
    NOISE,
    extrapolate,
    first_step,
    link_of,
    setting,
)


@pytest.mark.parametrize("gradient", ["labels-only", "exact"])
def test_the_spike_of_the_weights(gradient):
    activation, rate, gaps = get_activation("erf").centred(), 3.0, []
    here = setting(activation, link=link_of([0.0, 1.0]), rate=rate, gradient=gradient)
    f, p = here.features, weight_spike(here)
    for n, draws in ((200, 80), (400, 40), (800, 16)):
        d, width = n // 2, 5 * n // 8
        rng = np.random.default_rng(n)
        measured = []
        for _ in range(draws):
            w, a, beta, _ = first_step(activation, n, d, width, gradient, rng, [0.0, 1.0])
            w += rate * f.c1 * np.outer(a, beta)
            u, s, vt = leading_singular(w, 1)
            measured.append([s[0], np.abs(u[:, 0] @ a) / np.linalg.norm(a), np.abs(vt[0, 0])])
        theory = np.array([p.singular_value, p.readout_cosine, p.teacher_cosine])
        spread = np.std(measured, 0, ddof=1) / math.sqrt(draws)
        gaps.append([np.mean(measured, 0) - theory, spread])
    difference, error = np.array(gaps)[:, 0], np.array(gaps)[:, 1]
    value, spread = extrapolate(np.array([200, 400, 800]), difference, error)
    assert p.present
    assert np.all(spread < 0.03 * theory)
    assert np.all(np.abs(value) <= 4 * spread)
    # negative control: |β| of the exact gradient as if β were independent of W₀
    s2 = replace(here, gradient="exact").direction_norm2
    theta2 = (rate * f.c1) ** 2 * s2
    naive = math.sqrt((1 + theta2) * (1.25 + theta2) / theta2)
    assert abs(theory[0] + value[0] - naive) > 4 * spread[0]


def test_no_weight_spike_below_the_transition():
    p = weight_spike(setting("tanh", rate=0.3, gradient="exact"))
    assert not p.present and p.singular_value == p.edge == pytest.approx(1 + math.sqrt(1.25))


def spiked_draw(f, n, rate, degree, gradient, rng):
    """Leading singular values and cosines of the Gaussian-equivalent F_ℓ/√n, ℓ = degree."""
    d, width = n // 2, 5 * n // 8
    w = rng.standard_normal((width, d)) / math.sqrt(d)
    a = rng.standard_normal(width) / math.sqrt(width)
    x = rng.standard_normal((n, d))
    p = np.sqrt(0.5 * (LINK.second_moment + NOISE + (f.c1**2 + f.rest) * (gradient == "exact")))
    beta = p * rng.standard_normal(d) / math.sqrt(d)
    beta[0] += 1.0
    if gradient == "exact":
        beta -= f.c1 * w.T @ a
    f0 = f.c1 * x @ w.T + math.sqrt(f.rest) * rng.standard_normal((n, width))
    model = polynomial_features(f0, f.c1 * rate * (x @ beta), a, f.coefficients, degree)
    u, s, _ = leading_singular(model / math.sqrt(n), 3)
    hermite, power = polynomial_alignments(u, projections(x, beta), degree)
    teacher, _ = polynomial_alignments(u, x[:, 0], degree)
    return s, hermite, power, teacher


@pytest.mark.parametrize("gradient", ["labels-only", "exact"])
def test_the_spikes_of_the_features(gradient):
    sizes, draws = np.array([300, 600, 1200]), (40, 20, 8)
    differences, errors = [], []
    for n, count in zip(sizes, draws, strict=True):
        rate = 1.5 * math.sqrt(n)  # strong enough for a quadratic spike to leave the bulk
        here = setting("softplus", rate=rate, width=5 * n // 8, gradient=gradient)
        theory = predict_feature_spikes(here, 2)
        assert theory.count == 2
        rng = np.random.default_rng(n)
        rows = []
        for _ in range(count):
            s, hermite, power, teacher = spiked_draw(here.features, n, rate, 2, gradient, rng)
            rows.append([s[0] / theory.singular_values[0], s[1] / theory.singular_values[1],
                         hermite[0, 1], hermite[1, 0], hermite[1, 2], power[1, 2],
                         teacher[0, 1]])  # fmt: skip
        expected = np.array([1.0, 1.0, theory.hermite_cosines[0, 1], theory.hermite_cosines[1, 0],
                             theory.hermite_cosines[1, 2], theory.power_cosines[1, 2],
                             theory.teacher_cosines[0, 1]])  # fmt: skip
        differences.append(np.mean(rows, 0) - expected)
        errors.append(np.std(rows, 0, ddof=1) / math.sqrt(count))
    value, spread = extrapolate(sizes, np.array(differences), np.array(errors))
    assert np.all(spread < 0.05)
    assert np.all(np.abs(value) <= 4 * spread)


def test_a_spike_appears_where_the_secular_equation_says():
    # softplus, η growing: the second spike leaves the edge continuously
    counts, seconds = [], []
    for rate in np.linspace(2.0, 60.0, 30):
        p = predict_feature_spikes(setting("softplus", rate=rate), 2)
        counts.append(p.count)
        seconds.append(p.singular_values[1] if p.count > 1 else p.edge)
    assert counts[-1] == 2 and counts[0] <= 1 and np.all(np.diff(counts) >= 0)
    assert np.all(np.diff(seconds) >= 0)
    assert seconds[counts.index(2)] < 1.1 * p.edge


def test_no_outlier_of_the_norms_for_common_activations():
    for name in ("relu", "softplus", "gelu", "sigmoid"):
        assert norm_outlier(setting(name)) is None


@pytest.mark.slow
def test_an_outlier_of_the_norms_without_any_step():
    # a nearly even activation: the norms of inputs and of weights make one spike each, at the
    # same place in the limit; at finite size the two repel, so their mean is what settles
    activation = get_activation("hermite(0, 0.2, 0.7)")
    here = setting(activation, phi=0.2, psi=1 / 3)
    predicted = norm_outlier(here)
    assert predicted > 1.2 * math.sqrt(law_of(here).top[1])
    sizes, means, errors = np.array([350, 700, 1400]), [], []
    for n, draws in zip(sizes, (68, 34, 17), strict=True):
        rng = np.random.default_rng(n)
        pairs = []
        for _ in range(draws):
            x, w = rng.standard_normal((n, n // 5)), rng.standard_normal((n // 5, 3 * n // 5))
            s = leading_singular(activation(x @ w / math.sqrt(n // 5)) / math.sqrt(n), 3)[1]
            pairs.append(s[:2].mean())
            assert s[1] > s[2]
        means.append([np.mean(pairs) - predicted])
        errors.append([np.std(pairs, ddof=1) / math.sqrt(draws)])
    value, spread = extrapolate(sizes, np.array(means), np.array(errors))
    assert spread[0] < 0.02 and abs(value[0]) <= 4 * spread[0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "alpha", "expected"), [("relu", 0.29, 1), ("relu", 0.4, 2),
                                                         ("tanh", 0.4, 1)])  # fmt: skip
def test_the_spikes_of_the_network(name, alpha, expected):
    activation = get_activation(name).centred()
    n, draws = 2000, 4
    d, width, rate = n // 2, 5 * n // 8, n**alpha
    here = setting(activation, rate=rate, width=width, gradient="exact")
    p, edge_margin = predict_feature_spikes(here), step_edge_margin(here)
    bulk = feature_bulk(here.features.c1, here.features.rest, here.phi, here.psi)
    assert p.count == expected
    rng = np.random.default_rng(5)
    tops, cosines = [], []
    for _ in range(draws):
        w, _, beta, step = first_step(activation, n, d, width, "exact", rng)
        x = rng.standard_normal((n, d))
        m = measure_features(activation(x @ (w + rate * step).T), bulk, projections(x, beta),
                             degree=2, count=4, edge_margin=edge_margin)  # fmt: skip
        assert m.spikes == expected
        tops.append(m.singular_values[0])
        cosines.append(m.hermite_cosines[0, 1])
    spread = np.std(tops, ddof=1) / math.sqrt(draws)
    # 5 %: the order η/√N of what the rank-one step leaves out
    assert abs(np.mean(tops) - p.singular_values[0]) <= 4 * spread + 0.05 * p.singular_values[0]
    assert np.mean(cosines) == pytest.approx(p.hermite_cosines[0, 1], abs=0.02)
