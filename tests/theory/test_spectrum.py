"""Limiting spectra and spikes against their own algebra and simulated matrices."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from onegrad.activation import get_activation
from onegrad.errors import AssumptionError
from onegrad.hermite import gauss_hermite, hermite_series
from onegrad.theory.bulk import feature_bulk, weight_bulk
from onegrad.theory.expansions import (
    direction_norm2,
    features_of,
    link_of,
    slope_moment,
    swelling_of,
)
from onegrad.theory.feature_law import FeatureLaw
from onegrad.theory.measured_spectrum import (
    all_singular_values,
    count_spikes,
    leading_singular,
    measure_features,
    measure_weights,
    polynomial_alignments,
    polynomial_distance,
    polynomial_features,
    projections,
)
from onegrad.theory.spectrum import (
    feature_spikes,
    norm_outlier,
    predict_feature_spikes,
    spike_threshold,
    step_leak,
    weight_spike,
)
from onegrad.theory.spiked import polynomial_spikes, resummed_spikes
from onegrad.theory.traces import limiting_traces

COEFFICIENTS = [0.0, 1.0, 0.5, 0.2]
LINK, NOISE = link_of(COEFFICIENTS), 0.1
SHAPES = [(0.5, 0.8), (0.5, 1.0), (1.5, 0.7), (0.5, 0.5), (1.0, 1.0), (2.0, 0.1), (0.1, 2.0),
          (3.0, 3.001), (0.01, 5.0), (20.0, 0.05), (0.3, 0.01)]  # fmt: skip


def law_of(name, phi, psi):
    f = features_of(get_activation(name))
    return FeatureLaw(f.c1, f.rest, phi, psi)


# --- bulk -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["relu", "tanh", "erf"])
@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_the_feature_density_has_mass_one(name, phi, psi):
    f = features_of(get_activation(name))
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
    f = features_of(get_activation(name))
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


@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_the_quartic_agrees_with_the_real_solver(phi, psi):
    law = law_of("relu", phi, psi)
    for ridge in (1e-3, 0.1, 10.0):
        t = limiting_traces(law.c1, law.rest, phi, psi, ridge)
        just_above = law.stieltjes(complex(-ridge, 1e-9 * ridge))
        assert complex(just_above).real == pytest.approx(float(t.g), rel=1e-6)


@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_traces_beyond_the_edge(phi, psi):
    law = law_of("tanh", phi, psi)
    edge = law.top[1]
    for x in (1.05 * edge, 2 * edge, 50 * edge):
        t = law.beyond(x)
        g = complex(law.stieltjes(complex(x, 1e-10 * x)))
        assert float(t.g) == pytest.approx(g.real, rel=1e-6)
        step = 1e-5 * (x - edge)
        ahead, behind = law.beyond(x + step), law.beyond(x - step)
        # λ = −x
        assert float(t.dm1) == pytest.approx(float(behind.m1 - ahead.m1) / (2 * step), rel=1e-5)
        assert float(t.dm2) == pytest.approx(float(behind.m2 - ahead.m2) / (2 * step), rel=1e-5)
    with pytest.raises(AssumptionError):
        law.beyond(0.9 * edge)


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
    f = features_of(activation)
    features = activation(rng.standard_normal((n, d)) @ rng.standard_normal((d, width))
                          / math.sqrt(d))  # fmt: skip
    nonzero = np.linalg.eigvalsh(features.T @ features / n)
    bulk = feature_bulk(f.c1, f.rest, d / n, d / width)
    eigenvalues = np.concatenate([np.zeros(n - width), nonzero])
    assert kolmogorov(bulk, eigenvalues) < 0.02
    assert math.sqrt(nonzero[-1]) < spike_threshold(bulk, n)
    assert math.sqrt(nonzero[-1]) > math.sqrt(bulk.edge - bulk.margin(n))
    # negative control: the bulk of another activation is far away
    other = feature_bulk(*_constants("erf"), d / n, d / width)
    assert kolmogorov(other, eigenvalues) > 0.02


def test_the_margin_is_rarely_exceeded():
    d, width, draws = 100, 125, 600
    rng = np.random.default_rng(2)
    bulk = weight_bulk(d / width)
    threshold = spike_threshold(bulk, width)
    w = rng.standard_normal((draws, width, d)) / math.sqrt(d)
    top = np.linalg.norm(w, 2, axis=(1, 2))
    assert np.sum(top > threshold) <= 4  # 0.6 expected from the 99.9 % quantile
    assert np.mean(top > math.sqrt(bulk.edge)) > 0.02  # without the margin it would be common


# --- spikes -----------------------------------------------------------------------------


def first_step(activation, n, d, width, gradient, rng, link=COEFFICIENTS):
    """W₀, a, β = X̃ᵀr/n and the true (negative) gradient of one draw."""
    w = rng.standard_normal((width, d)) / math.sqrt(d)
    a = rng.standard_normal(width) / math.sqrt(width)
    x = rng.standard_normal((n, d))
    y = hermite_series(link, x[:, 0]) + math.sqrt(NOISE) * rng.standard_normal(n)
    u = x @ w.T
    r = y - activation(u) @ a if gradient == "exact" else y
    step = (activation.derivative(u) * np.outer(r, a)).T @ x / n
    return w, a, x.T @ r / n, step


@pytest.mark.parametrize("gradient", ["labels-only", "exact"])
def test_the_spike_of_the_weights(gradient):
    activation = get_activation("erf").centred()
    f = features_of(activation)
    link, rate, gaps = link_of([0.0, 1.0]), 3.0, []
    for n, draws in ((200, 80), (400, 40), (800, 16)):
        d, width = n // 2, 5 * n // 8
        p = weight_spike(f, link, psi=d / width, step_phi=d / n, rate=rate,
                         noise_variance=NOISE, gradient=gradient)  # fmt: skip
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
    s2 = float(direction_norm2(f, link, NOISE, 0.5, "exact"))
    theta2 = (rate * f.c1) ** 2 * s2
    naive = math.sqrt((1 + theta2) * (1.25 + theta2) / theta2)
    assert abs(theory[0] + value[0] - naive) > 4 * spread[0]


def extrapolate(sizes, values, errors):
    """(value, standard error) at infinite size of v + w/size, for each column."""
    design = np.column_stack([np.ones(len(sizes)), 1 / sizes])
    result = []
    for column, spread in zip(values.T, errors.T, strict=True):
        weighted = design / spread[:, None]
        covariance = np.linalg.inv(weighted.T @ weighted)
        result.append((covariance[0] @ weighted.T @ (column / spread), covariance[0, 0] ** 0.5))
    return np.array(result).T


def test_no_weight_spike_below_the_transition():
    f = features_of(get_activation("tanh"))
    p = weight_spike(f, LINK, psi=0.8, step_phi=0.5, rate=0.3, noise_variance=NOISE)
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
    model = polynomial_features(f0, x, beta, a, f.coefficients, rate, degree)
    u, s, _ = leading_singular(model / math.sqrt(n), 3)
    hermite, power = polynomial_alignments(u, projections(x, beta), degree)
    teacher, _ = polynomial_alignments(u, x[:, 0], degree)
    return s, hermite, power, teacher


@pytest.mark.parametrize("gradient", ["labels-only", "exact"])
def test_the_spikes_of_the_features(gradient):
    f = features_of(get_activation("softplus"))
    sizes, draws = np.array([300, 600, 1200]), (40, 20, 8)
    differences, errors = [], []
    for n, count in zip(sizes, draws, strict=True):
        rate = 1.5 * math.sqrt(n)  # strong enough for a quadratic spike to leave the bulk
        d, width = n // 2, 5 * n // 8
        spikes = polynomial_spikes(f, LINK, noise_variance=NOISE, step_phi=0.5, rate=rate,
                                   width=width, degree=2, gradient=gradient)  # fmt: skip
        theory = feature_spikes(FeatureLaw(f.c1, f.rest, d / n, d / width), spikes)
        assert theory.count == 2
        rng = np.random.default_rng(n)
        rows = []
        for _ in range(count):
            s, hermite, power, teacher = spiked_draw(f, n, rate, 2, gradient, rng)
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
    f = features_of(get_activation("softplus"))
    law = FeatureLaw(f.c1, f.rest, 0.5, 0.8)
    counts, seconds = [], []
    for rate in np.linspace(2.0, 60.0, 30):
        p = feature_spikes(law, polynomial_spikes(f, LINK, noise_variance=NOISE, step_phi=0.5,
                                                  rate=rate, width=1250, degree=2,
                                                  gradient="labels-only"))  # fmt: skip
        counts.append(p.count)
        seconds.append(p.singular_values[1] if p.count > 1 else p.edge)
    assert counts[-1] == 2 and counts[0] <= 1 and np.all(np.diff(counts) >= 0)
    assert np.all(np.diff(seconds) >= 0)
    assert seconds[counts.index(2)] < 1.1 * p.edge


def test_no_outlier_of_the_norms_for_common_activations():
    for name in ("relu", "softplus", "gelu", "sigmoid"):
        assert norm_outlier(features_of(get_activation(name)), 0.5, 0.8) is None


@pytest.mark.slow
def test_an_outlier_of_the_norms_without_any_step():
    # a nearly even activation: the norms of inputs and of weights make one spike each, at the
    # same place in the limit; at finite size the two repel, so their mean is what settles
    activation = get_activation("hermite(0, 0.2, 0.7)")
    f = features_of(activation)
    predicted = norm_outlier(f, 0.2, 1 / 3)
    bulk = feature_bulk(f.c1, f.rest, 0.2, 1 / 3)
    assert predicted > 1.2 * math.sqrt(bulk.edge)
    sizes, means, errors = np.array([500, 1000, 2000]), [], []
    for n, draws in zip(sizes, (48, 24, 12), strict=True):
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


def test_the_resummed_profile_is_the_smoothed_activation():
    # hermite[k, j] are coefficients of σ̄(τxα): put them together again
    activation = get_activation("sigmoid").centred()
    f = features_of(activation)
    width, rate = 400, 12.0
    spikes = resummed_spikes(activation, LINK, noise_variance=NOISE, step_phi=0.5, rate=rate,
                             width=width, gradient="exact")  # fmt: skip
    tau = f.c1 * rate * spikes.s / math.sqrt(width)
    x, w = gauss_hermite(30)
    order = [1, 0, *range(2, spikes.size)]
    neuron = np.array([hermite_series(np.eye(spikes.size)[j], x) / math.sqrt(math.factorial(j))
                       for j in order])  # fmt: skip
    sample = np.array([hermite_series(np.eye(spikes.size)[k], x) for k in range(spikes.size)])
    rebuilt = sample.T @ spikes.hermite @ neuron / math.sqrt(width)
    kappa = swelling_of(activation, LINK, NOISE, 0.5, "exact")
    noise = LINK.second_moment + NOISE + f.c1**2 + f.rest
    written_out = rate**2 / width * 0.5 * noise * (slope_moment(activation) - f.c1**2)
    assert kappa * tau**2 == pytest.approx(written_out, rel=1e-12)
    exact = activation.smoothed(tau * np.outer(x, x), np.sqrt(1 + kappa * (tau * x) ** 2)).value
    error = w @ (rebuilt - exact) ** 2 @ w
    assert error < 1e-8 * (w @ exact**2 @ w)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "alpha", "expected"), [("relu", 0.29, 1), ("relu", 0.4, 2),
                                                         ("tanh", 0.4, 1)])  # fmt: skip
def test_the_spikes_of_the_network(name, alpha, expected):
    activation = get_activation(name).centred()
    f = features_of(activation)
    n, draws = 2000, 4
    d, width, rate = n // 2, 5 * n // 8, n**alpha
    setting = {"dim": d, "width": width, "samples": n, "rate": rate, "noise_variance": NOISE}
    p = predict_feature_spikes(activation, COEFFICIENTS, **setting)
    leak = step_leak(activation, COEFFICIENTS, **setting)
    bulk = feature_bulk(f.c1, f.rest, d / n, d / width)
    assert p.count == expected
    rng = np.random.default_rng(5)
    tops, cosines = [], []
    for _ in range(draws):
        w, _, beta, step = first_step(activation, n, d, width, "exact", rng)
        x = rng.standard_normal((n, d))
        m = measure_features(activation(x @ (w + rate * step).T), bulk, inputs=x, direction=beta,
                             degree=2, count=4, leak=leak)  # fmt: skip
        assert m.spikes == expected
        tops.append(m.singular_values[0])
        cosines.append(m.hermite_cosines[0, 1])
    spread = np.std(tops, ddof=1) / math.sqrt(draws)
    # 5 %: the order η/√N of what the rank-one step leaves out
    assert abs(np.mean(tops) - p.singular_values[0]) <= 4 * spread + 0.05 * p.singular_values[0]
    assert np.mean(cosines) == pytest.approx(p.hermite_cosines[0, 1], abs=0.02)


# --- measured spectra -------------------------------------------------------------------


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
    f = features_of(get_activation("relu"))
    x = rng.standard_normal((n, d))
    beta = rng.standard_normal(d)
    w = rng.standard_normal((width, d)) / math.sqrt(d)
    f0 = f.c1 * x @ w.T + math.sqrt(f.rest) * rng.standard_normal((n, width))
    z = projections(x, beta)
    v = np.linalg.qr(rng.standard_normal((width, 2)))[0]
    features = f0 + 20 * np.outer(z, v[:, 0]) + 6 * np.outer(z**2 - 1, v[:, 1])
    bulk = feature_bulk(f.c1, f.rest, d / n, d / width)
    m = measure_features(features, bulk, inputs=x, direction=beta)
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
    sizes, draws = (500, 1000, 2000), (24, 12, 6)
    activation = get_activation("relu").centred()
    f = features_of(activation)
    means, errors = [], []
    for n, count in zip(sizes, draws, strict=True):
        d, width, rate = n // 2, 5 * n // 8, n**alpha
        rows = []
        for seed in range(count):
            rng = np.random.default_rng([n, seed])
            w, a, beta, step = first_step(activation, n, d, width, "labels-only", rng, [0.0, 1.0])
            x = rng.standard_normal((n, d))
            before, after = activation(x @ w.T), activation(x @ (w + rate * step).T)
            rows.append([polynomial_distance(after, before, x, beta, a, f.coefficients, rate, k)
                         for k in range(right + 1)])  # fmt: skip
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
