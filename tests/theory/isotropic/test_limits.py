"""Drops of the losses: the source's formulas, their algebra, and a spiked Gaussian model."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.linalg import cho_factor, cho_solve

from onegrad.gaussian.polynomials import power_to_hermite, sqrt_factorial
from onegrad.theory.isotropic.limits import (
    finite_step_losses,
    loss_drops,
    random_features_losses,
    regression_losses,
)
from onegrad.theory.isotropic.setting import LinkSeries
from tests.theory.isotropic.common import (
    COEFFICIENTS,
    FULL,
    LINK,
    NOISE,
    PHI,
    PSI,
    RELU,
    RIDGE,
    polynomial_spikes,
    setting,
)

REFERENCE = setting(features=FULL)


def polynomial_gain(link, cosine, degree, inflation=0.0):
    """T_ℓ of the book, eqs. polynomial-gain and inflated-gain: none of c₁, …, c_ℓ vanishes."""
    t = link.padded(degree) * cosine ** np.arange(degree + 1)
    at_zero = np.zeros(degree + 1)  # H_k(0)/√k!
    at_zero[0] = 1.0
    for k in range(2, degree + 1, 2):
        at_zero[k] = -at_zero[k - 2] * math.sqrt((k - 1) / k) * (1.0 + inflation)
    kept = np.where(np.arange(degree + 1) == 1, 0.0, sqrt_factorial(degree) * t)
    return np.sum(kept**2) - (kept @ at_zero) ** 2 / (at_zero @ at_zero)


def drops_of_the_book(here, degree, inflation=0.0):
    cosine = here.link.linear / here.direction_norm
    first = (here.link.linear * cosine) ** 2 if degree else 0.0
    gain = polynomial_gain(here.link, cosine, degree, inflation)
    train, _, test = regression_losses(here, first, gain)
    return float(train), float(test)


def test_reference_drops():
    drops = [loss_drops(REFERENCE, k) for k in (1, 2, 3)]
    assert [f"{d:.5f}" for d, _ in drops] == ["0.18188", "0.23889", "0.26027"]
    assert [f"{t:.5f}" for _, t in drops] == ["0.29648", "0.41518", "0.45969"]


def slides_drop(link, phi, psi, ridge, noise, degree, m1, m2):
    """Δ_ℓ of the slides' general theorem, its sums read as Σ_{p,q} Σ_{i,j}; mpmath."""
    mp = mpmath.mpf
    c = [mp(v) for v in link.padded(degree)]
    s2 = c[1] ** 2 + mp(phi) * (mp(link.second_moment) + mp(noise))
    s = mpmath.sqrt(s2)
    xi = power_to_hermite(degree)
    ratio = mp(psi) / mp(phi)
    inverse = mpmath.matrix(degree, degree)
    for i in range(1, degree + 1):
        for j in range(1, degree + 1):
            total = m2 * mp(xi[i, 1]) * mp(xi[j, 1])
            for k in range(min(i, j) + 1):
                if k != 1:
                    total += m1 * math.factorial(k) * mp(xi[i, k]) * mp(xi[j, k])
            inverse[i - 1, j - 1] = s ** (i + j) * ratio * total
    omega = inverse**-1
    r = [math.factorial(p) * ratio * (m2 if p == 1 else m1) * (c[1] / s) ** p
         for p in range(degree + 1)]  # fmt: skip
    total = mp(0)
    for p in range(1, degree + 1):
        for q in range(1, degree + 1):
            inner = sum(
                omega[i - 1, j - 1] * s ** (i + j) * mp(xi[i, p]) * mp(xi[j, q])
                for i in range(1, degree + 1)
                for j in range(1, degree + 1)
            )
            total += c[p] * c[q] * r[p] * r[q] * inner
    return mp(ridge) * total


def random_link(rng, degree):
    c = [0.0, *(rng.standard_normal(degree) / sqrt_factorial(degree)[1:])]
    square = sum(math.factorial(k) * v**2 for k, v in enumerate(c))
    return LinkSeries(tuple(c), square + rng.uniform(0, 0.5))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6, 8])
def test_general_training_formula_of_the_source(degree):
    rng = np.random.default_rng(degree)
    for _ in range(5):
        phi, psi, ridge = 10 ** rng.uniform(-1, 1, 3)
        link, noise = random_link(rng, 8), rng.uniform(0, 1)
        here = setting(features=FULL, link=link, phi=phi, psi=psi, ridge=ridge,
                       noise_variance=noise)  # fmt: skip
        t = here.traces
        with mpmath.workdps(40):
            m1, m2 = mpmath.mpf(float(t.m1)), mpmath.mpf(float(t.m2))
            printed = slides_drop(link, phi, psi, ridge, noise, degree, m1, m2)
        assert drops_of_the_book(here, degree)[0] == pytest.approx(float(printed), rel=1e-12)
        assert loss_drops(here, degree)[0] == pytest.approx(float(printed), rel=1e-10)


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
def test_the_projection_is_the_formula_of_the_book(gradient):
    rng = np.random.default_rng(2)
    for degree in range(8):
        link = random_link(rng, 7)
        here = setting(features=FULL, link=link, phi=0.7, psi=1.3, ridge=0.05,
                       noise_variance=0.2, gradient=gradient)  # fmt: skip
        assert loss_drops(here, degree) == pytest.approx(
            drops_of_the_book(here, degree), rel=1e-10, abs=1e-14
        )


def test_an_odd_activation_learns_the_odd_part_only():
    assert setting("tanh").features.active(5) == (1, 3, 5)
    rng = np.random.default_rng(4)
    link = random_link(rng, 5)
    odd = setting("tanh", link=link)
    coefficients = tuple(c if k % 2 else 0.0 for k, c in enumerate(link.coefficients))
    without = replace(odd, link=LinkSeries(coefficients, link.second_moment))
    for degree in (1, 2, 3, 5):
        got = loss_drops(odd, degree)
        # the odd powers span all odd polynomials: nothing is lost at zero
        full = drops_of_the_book(without, degree)
        assert got == pytest.approx(full, rel=1e-11)
    first, second = (loss_drops(odd, k) for k in (1, 2))
    assert second == pytest.approx(first, rel=1e-13)


def test_relu_has_no_cubic_spike():
    assert RELU.active(4) == (1, 2, 4)
    second = loss_drops(setting(), 2)
    assert loss_drops(setting(), 3) == pytest.approx(second, rel=1e-12)


def test_degree_one_misses_what_degree_two_learns():
    drops = [loss_drops(REFERENCE, k) for k in range(7)]
    train, test = np.array(drops, float).T
    assert train[0] == test[0] == 0
    assert np.all(np.diff(train[:4]) > 0) and np.all(np.diff(test[:4]) > 0)


def theta_form(here, degree):
    """The same minimisation in the coordinates θ_k = c₁ᵏ c_k ηᵏ (aᵏ)ᵀw, for labels only."""
    features, link, noise, t = here.features, here.link, here.noise_variance, here.traces
    phi, psi, ridge, rate, width = here.phi, here.psi, here.ridge, here.rate, here.width
    m1, m2 = float(t.m1), float(t.m2)
    active = list(features.active(degree))
    top = max(active)
    s = here.direction_norm
    rho = link.linear / s
    c, c1 = link.padded(top), features.c1
    size = np.diag([c1**k * features.coefficients[k] * rate**k for k in active])
    double = {m: math.prod(range(m - 1, 0, -2)) for m in range(2, 2 * top + 1, 2)}
    gram = np.array([[width ** (1 - (i + j) / 2) * double.get(i + j, 0) for j in active]
                     for i in active])  # fmt: skip
    weight = np.linalg.inv(size @ gram @ size)
    to_h = power_to_hermite(top)[active].T * np.array([s**k for k in active])
    factorial = np.array([math.factorial(k) for k in range(top + 1)], float)

    def losses(theta):
        h = to_h @ theta
        w2 = theta @ weight @ theta
        b2 = c[1] ** 2 - 2 * c[1] * rho * h[1] + h[1] ** 2 + c1**2 * w2
        k = np.arange(top + 1) != 1
        gain = np.sum((factorial * (h**2 - 2 * c * rho ** np.arange(top + 1) * h))[k])
        tau2 = noise + link.second_moment - c[1] ** 2 + features.rest * w2 + gain
        train = ridge * psi / phi * (m2 * b2 + m1 * tau2) + ridge * w2
        return train, phi / (psi * m1**2) * (-float(t.dm2) * b2 - float(t.dm1) * tau2)

    # a quadratic: its minimum from values at unit vectors and their pairs
    p = len(active)
    base = losses(np.zeros(p))[0]
    unit = np.diag(1 / np.sqrt(np.diag(weight)))
    single = np.array([losses(u)[0] - base for u in unit])
    minus = np.array([losses(-u)[0] - base for u in unit])
    hessian = np.array([[losses(u + v)[0] - losses(u)[0] - losses(v)[0] + base for v in unit]
                        for u in unit])  # fmt: skip
    return losses(-np.linalg.solve(hessian, (single - minus) / 2) @ unit)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_finite_step_equals_the_minimum_over_theta(degree):
    here = setting(features=FULL, rate=12.0, width=1250)
    got = finite_step_losses(here, polynomial_spikes(here, degree))
    train, test = theta_form(here, degree)
    assert got.train_objective == pytest.approx(train, rel=1e-9)
    assert got.test_error == pytest.approx(test, rel=1e-7)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_inflation_changes_the_constant_only(degree):
    plain = loss_drops(REFERENCE, degree)
    for kappa in (0.0, 0.3):
        closed = loss_drops(REFERENCE, degree, kappa)
        assert closed == pytest.approx(drops_of_the_book(REFERENCE, degree, kappa), rel=1e-11)
    # a longer neuron spoils the fit of H₂ by (X̃β)² + constant
    assert closed[0] <= plain[0] * (1 + 1e-14)


def spiked_gaussian_drops(n, rng, strength=300.0):
    """Δ_ℓ, Λ_ℓ for ℓ = 1, 2, 3 of one draw of the Gaussian-equivalent spiked model.

    F = c₁X̃W₀ᵀ + √C Z + strength·√n·Σ_k (normalised (X̃β)ᵏ) v_kᵀ, v_k orthonormal; the risk is
    exact given the readout, so no test set is drawn.
    """
    d, width = round(PHI * n), round(PHI / PSI * n)
    c1, rest = RELU.c1, RELU.rest
    c = np.array(COEFFICIENTS)
    factorial = np.array([1.0, 1.0, 2.0, 6.0])
    s = setting().direction_norm
    beta = np.zeros(d)
    beta[0] = 1 / s
    beta[1] = math.sqrt(1 - beta[0] ** 2)
    x = rng.standard_normal((n, d))
    w0 = rng.standard_normal((width, d)) / math.sqrt(d)
    v = np.linalg.qr(rng.standard_normal((width, 3)))[0]
    y = hermeval(x[:, 0], c) + math.sqrt(NOISE) * rng.standard_normal(n)
    f0 = c1 * x @ w0.T + math.sqrt(rest) * rng.standard_normal((n, width))
    along = x @ beta
    xi = power_to_hermite(3)
    scale = np.sqrt([1.0, 1.0, 3.0, 15.0])

    def losses(degree):
        f = f0.copy()
        for k in range(1, degree + 1):
            f += np.outer(strength * along**k / scale[k], v[:, k - 1])
        gram = f @ f.T
        gram[np.diag_indices(n)] += RIDGE * n
        dual = cho_solve(cho_factor(gram), y)
        a = f.T @ dual
        h = np.zeros(4)
        for k in range(1, degree + 1):
            h += strength / scale[k] * (v[:, k - 1] @ a) * xi[k]
        b = -c1 * w0.T @ a - h[1] * beta
        b[0] += c[1]
        cross = factorial * (c**2 - 2 * c * beta[0] ** np.arange(4) * h + h**2)
        test = NOISE + b @ b + cross.sum() - cross[1] + rest * a @ a
        return RIDGE * y @ dual, test

    base = losses(0)
    drops = [[base[0] - train, base[1] - test] for train, test in map(losses, (1, 2, 3))]
    return drops, control_variates(y, along, beta[0], s)


def control_variates(y, along, rho, s):
    """Sample moments of labels and spikes minus their known means: most of the fluctuation."""
    h = [hermeval(along, np.eye(4)[k]) for k in range(4)]
    second = LINK.second_moment + NOISE
    pairs = [np.mean(h[j] * h[k]) - (math.factorial(j) if j == k else 0)
             for j in range(4) for k in range(max(j, 1), 4)]  # fmt: skip
    with_y = [np.mean(y * h[k]) - math.factorial(k) * COEFFICIENTS[k] * rho**k for k in range(4)]
    return [np.mean(y**2) - second, *with_y, *pairs]


@pytest.fixture(scope="module")
def spiked_limit():
    """Value at n = ∞ and its standard error: sizes × seeds, fitted by v + w/n."""
    sizes, seeds = (160, 320, 640), (400, 200, 120)
    rng = np.random.default_rng(7)
    means, errors = [], []
    for n, count in zip(sizes, seeds, strict=True):
        drops, controls = zip(*(spiked_gaussian_drops(n, rng) for _ in range(count)), strict=True)
        design = np.column_stack([np.ones(count), np.array(controls)])
        values = np.array(drops).reshape(count, 6)
        fitted = np.linalg.lstsq(design, values)[0]
        spread = np.sum((values - design @ fitted) ** 2, 0) / (count - design.shape[1])
        inflation = np.linalg.inv(design.T @ design)[0, 0]
        means.append(fitted[0].reshape(3, 2))
        errors.append(np.sqrt(spread * inflation).reshape(3, 2))
    means, errors = np.array(means), np.array(errors)
    value, error, slope = np.empty((3, 2)), np.empty((3, 2)), np.empty((3, 2))
    for i in np.ndindex(3, 2):
        weights = 1 / errors[(slice(None), *i)]
        design = np.column_stack([np.ones(3), 1 / np.array(sizes)])
        covariance = np.linalg.inv((design.T * weights**2) @ design)
        fit = covariance @ (design.T * weights**2) @ means[(slice(None), *i)]
        value[i], slope[i], error[i] = fit[0], fit[1], math.sqrt(covariance[0, 0])
    return value, error, slope


def test_drops_against_the_spiked_gaussian_model(spiked_limit):
    value, error, _ = spiked_limit
    theory = np.array([drops_of_the_book(setting(), k) for k in (1, 2, 3)])
    assert np.all(error / theory < 0.03)  # the simulation is sharp enough to decide
    assert np.all(np.abs(value - theory) <= 4 * error)


def test_the_printed_test_formulas_fail_it(spiked_limit):
    value, error, _ = spiked_limit
    t, s2 = setting().traces, setting().direction_norm2
    first = 1 / s2 * -t.dm2
    second = 4 * 0.5**2 / (3 * s2**2 * t.m1**2) * -t.dm1
    assert abs(value[0, 1] - first) > 4 * error[0, 1]
    # with formula (3) repaired, the second term of (4) alone still fails
    repaired = loss_drops(setting(), 1)[1]
    assert abs(value[1, 1] - (repaired + second)) > 4 * error[1, 1]


def test_arrays_broadcast():
    phi, psi, ridge = np.array([[0.5], [1.5]]), 0.7, np.array([0.01, 0.1, 1.0])
    together = setting(features=FULL, phi=phi, psi=psi, ridge=ridge)
    alone = setting(features=FULL, phi=1.5, psi=psi, ridge=0.1)
    for many, one in zip(
        random_features_losses(together), random_features_losses(alone), strict=True
    ):
        assert many.shape == (2, 3) and many[1, 1] == pytest.approx(float(one), rel=1e-13)
