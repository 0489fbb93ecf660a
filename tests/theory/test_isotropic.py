"""The isotropic theory against mpmath, its own algebra, and simulations."""

import math
import time

import mpmath
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.linalg import cho_factor, cho_solve

from onegrad.activation import get_activation
from onegrad.errors import AssumptionError
from onegrad.hermite import power_to_hermite, sqrt_factorial
from onegrad.theory.expansions import swelling_of
from onegrad.theory.isotropic import (
    Features,
    Link,
    active_set_drops,
    closed_form_drops,
    direction_norm2,
    features_of,
    finite_step_losses,
    limiting_traces,
    link_of,
    loss_drops,
    on_border,
    polynomial_spikes,
    predict_isotropic,
    random_features_losses,
    regime_of,
    resummed_spikes,
)

PHI, PSI, RIDGE, NOISE = 0.5, 0.8, 0.1, 0.1
COEFFICIENTS = [0.0, 1.0, 0.5, 0.2]
LINK = link_of(COEFFICIENTS)
RELU = features_of(get_activation("relu"))
# relu's c₁ and C with a cubic part: relu itself has c₃ = 0 and makes no third spike
FULL = Features((0.0, RELU.c1, RELU.coefficients[2], 0.05, 0.02, 0.01, 0.005, 0.002), RELU.rest)


# --- traces -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "phi", "psi", "ridge", "printed"),
    [
        ("tanh", 0.5, 1.0, 0.1, ("3.520193849", "1.713779733", "-31.17227545", "-10.86200982")),
        ("relu", 0.5, 0.8, 0.1, ("3.940857344", "2.182540578", "-32.61804040", "-14.14499506")),
        ("relu", 1.5, 0.7, 0.01, ("7.308021239", "4.378717444", "-51.63277366", "-23.26259779")),
        ("erf", 0.5, 1.0, 0.1, ("3.436374711", "1.642219036", "-30.35181615", "-10.60541871")),
    ],
)
def test_reference_table(name, phi, psi, ridge, printed):
    f = features_of(get_activation(name))
    t = limiting_traces(f.c1, f.rest, phi, psi, ridge)
    for value, text in zip((t.m1, t.m2, t.dm1, t.dm2), printed, strict=True):
        assert f"{float(value):.{len(text.partition('.')[2])}f}" == text


def exact_traces(c1, rest, phi, psi, ridge, near):
    """The source's two equations at 60 digits, from the root nearest to `near`."""
    c1, rest, phi, psi, lam = map(mpmath.mpf, (c1, rest, phi, psi, ridge))

    def equations(a, b):
        joint = c1**2 * a * b * (lam * psi * a / phi - 1)
        return [
            phi * (a - b) * (rest * a + c1**2 * b) + joint,
            phi / psi * (c1**2 * a * b + phi * (b - a)) + joint,
        ]

    a, b = mpmath.findroot(equations, near, tol=mpmath.mpf(10) ** -70, maxsteps=60, verify=False)
    da = c1**2 * b * (2 * lam * psi * a / phi - 1)
    db = c1**2 * a * (lam * psi * a / phi - 1)
    dl = c1**2 * a**2 * b * psi / phi
    jacobian = mpmath.matrix(
        [
            [phi * (rest * (2 * a - b) + c1**2 * b) + da,
             phi * (c1**2 * (a - 2 * b) - rest * a) + db],
            [phi / psi * (c1**2 * b - phi) + da, phi / psi * (c1**2 * a + phi) + db],
        ]
    )  # fmt: skip
    slope = mpmath.lu_solve(jacobian, mpmath.matrix([-dl, -dl]))
    return a, b, slope[0], slope[1]


def trace_cases():
    rng = np.random.default_rng(5)
    for i in range(150):
        phi, psi = 10 ** rng.uniform(-3, 3, 2)
        ridge = 10 ** rng.uniform(-8, 4)
        psi = phi if i % 5 == 1 else psi
        phi = 1.0 if i % 5 == 2 else phi
        psi = 1.0 if i % 5 == 3 else psi
        c1, rest = 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-6, 0.5)
        yield c1, 0.0 if i % 15 == 4 else rest, phi, psi, ridge
    for phi in (1e-3, 1e3):
        for psi in (1e-3, 1e3):
            for ridge in (1e-8, 1e4):
                yield 0.6, 0.1, phi, psi, ridge


def test_traces_to_a_billionth_over_the_whole_range():
    worst = 0.0
    with mpmath.workdps(60):
        for case in trace_cases():
            t = limiting_traces(*case)
            got = [float(v) for v in (t.m1, t.m2, t.dm1, t.dm2)]
            assert got[0] > 0 and got[1] > 0 and got[2] < 0 and got[3] < 0
            exact = exact_traces(*case, near=(mpmath.mpf(got[0]), mpmath.mpf(got[1])))
            worst = max(worst, *(abs(float(e / g) - 1) for e, g in zip(exact, got, strict=True)))
    assert worst < 1e-12


def test_traces_broadcast():
    ridges = np.logspace(-6, 2, 9)
    together = limiting_traces(RELU.c1, RELU.rest, 0.5, np.array([[0.5], [2.0]]), ridges)
    assert together.m1.shape == (2, 9)
    alone = limiting_traces(RELU.c1, RELU.rest, 0.5, 2.0, ridges[3])
    assert together.dm2[1, 3] == pytest.approx(float(alone.dm2), rel=1e-13)


@pytest.mark.parametrize(("name", "n", "width"), [("relu", 1600, 1000), ("tanh", 700, 1000)])
def test_traces_of_simulated_matrices(name, n, width):
    d, ridge = 800, 0.1
    rng = np.random.default_rng(11)
    activation = get_activation(name).centred()
    f = features_of(activation)
    x = rng.standard_normal((n, d))
    features = activation(x @ (rng.standard_normal((d, width)) / math.sqrt(d)))
    inverse = np.linalg.inv(features @ features.T + ridge * n * np.eye(n))
    t = limiting_traces(f.c1, f.rest, d / n, d / width, ridge)
    scale = width / n  # φ/ψ
    assert scale * np.trace(inverse) == pytest.approx(float(t.m1), rel=3e-3)
    assert scale * np.sum(x * (inverse @ x)) / d == pytest.approx(float(t.m2), rel=3e-3)


@pytest.mark.parametrize(
    ("c1", "rest", "phi", "psi", "ridge"),
    [(0.0, 0.0, 1, 1, 1), (0.5, -0.1, 1, 1, 1), (0.5, 0.1, 0, 1, 1), (0.5, 0.1, 1, 1, 0)],
)
def test_traces_refuse_what_has_no_limit(c1, rest, phi, psi, ridge):
    with pytest.raises(AssumptionError):
        limiting_traces(c1, rest, phi, psi, ridge)


# --- Δ and Λ: algebra -------------------------------------------------------------------


def test_reference_drops():
    drops = [loss_drops(FULL, LINK, PHI, PSI, RIDGE, NOISE, k) for k in (1, 2, 3)]
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
    return Link(tuple(c), square + rng.uniform(0, 0.5))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6, 8])
def test_general_training_formula_of_the_source(degree):
    rng = np.random.default_rng(degree)
    for _ in range(5):
        phi, psi, ridge = 10 ** rng.uniform(-1, 1, 3)
        link, noise = random_link(rng, 8), rng.uniform(0, 1)
        t = limiting_traces(FULL.c1, FULL.rest, phi, psi, ridge)
        with mpmath.workdps(40):
            m1, m2 = mpmath.mpf(float(t.m1)), mpmath.mpf(float(t.m2))
            printed = slides_drop(link, phi, psi, ridge, noise, degree, m1, m2)
        ours, _ = closed_form_drops(FULL, link, phi, psi, ridge, noise, degree)
        assert float(ours) == pytest.approx(float(printed), rel=1e-12)


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
def test_active_set_form_reduces_to_the_closed_one(gradient):
    rng = np.random.default_rng(2)
    for degree in range(8):
        link = random_link(rng, 7)
        arguments = (FULL, link, 0.7, 1.3, 0.05, 0.2, degree)
        closed = closed_form_drops(*arguments, gradient=gradient)
        active = active_set_drops(*arguments, gradient=gradient)
        assert active == pytest.approx([float(v) for v in closed], rel=1e-10, abs=1e-14)


def test_an_odd_activation_learns_the_odd_part_only():
    odd = features_of(get_activation("tanh"))
    assert odd.active(5) == (1, 3, 5)
    rng = np.random.default_rng(4)
    link = random_link(rng, 5)
    without = Link(tuple(c if k % 2 else 0.0 for k, c in enumerate(link.coefficients)),
                   link.second_moment)  # fmt: skip
    for degree in (1, 2, 3, 5):
        got = loss_drops(odd, link, PHI, PSI, RIDGE, NOISE, degree)
        # the odd powers span all odd polynomials: nothing is lost at zero
        full = closed_form_drops(odd, without, PHI, PSI, RIDGE, NOISE, degree)
        assert got == pytest.approx([float(v) for v in full], rel=1e-11)
    first, second = (loss_drops(odd, link, PHI, PSI, RIDGE, NOISE, k) for k in (1, 2))
    assert second == pytest.approx(first, rel=1e-13)


def test_relu_has_no_cubic_spike():
    assert RELU.active(4) == (1, 2, 4)
    second = loss_drops(RELU, LINK, PHI, PSI, RIDGE, NOISE, 2)
    assert loss_drops(RELU, LINK, PHI, PSI, RIDGE, NOISE, 3) == pytest.approx(second, rel=1e-12)


def test_degree_one_misses_what_degree_two_learns():
    drops = [closed_form_drops(FULL, LINK, PHI, PSI, RIDGE, NOISE, k) for k in range(7)]
    train, test = np.array(drops, float).T
    assert train[0] == test[0] == 0
    assert np.all(np.diff(train[:4]) > 0) and np.all(np.diff(test[:4]) > 0)


# --- finite step: algebra ---------------------------------------------------------------


def theta_form(features, link, phi, psi, ridge, noise, rate, width, degree):
    """The same minimisation in the coordinates θ_k = c₁ᵏ c_k ηᵏ (aᵏ)ᵀw, for labels only."""
    t = limiting_traces(features.c1, features.rest, phi, psi, ridge)
    m1, m2 = float(t.m1), float(t.m2)
    active = list(features.active(degree))
    top = max(active)
    s = math.sqrt(direction_norm2(features, link, noise, phi, "labels-only"))
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
    n, rate = 2000, 12.0
    width = n * PHI / PSI
    spikes = polynomial_spikes(FULL, LINK, noise_variance=NOISE, step_phi=PHI, rate=rate,
                               width=width, degree=degree, gradient="labels-only")  # fmt: skip
    traces = limiting_traces(FULL.c1, FULL.rest, PHI, PSI, RIDGE)
    got = finite_step_losses(spikes, LINK, traces, PHI, PSI, RIDGE, NOISE)
    train, test = theta_form(FULL, LINK, PHI, PSI, RIDGE, NOISE, rate, width, degree)
    assert got.train_objective == pytest.approx(train, rel=1e-9)
    assert got.test_error == pytest.approx(test, rel=1e-7)


@pytest.mark.parametrize("gradient", ["exact", "labels-only"])
@pytest.mark.parametrize(("name", "exponent"), [("relu", 0.2), ("relu", 0.29), ("softplus", 0.3),
                                                ("tanh", 0.2), ("sigmoid", 0.35)])  # fmt: skip
def test_the_finite_step_tends_to_the_limit(name, exponent, gradient):
    activation = get_activation(name)
    # spike k has strength n^(k(α − ½) + ½) against the bulk, and only its square counts
    active = features_of(activation).active(8)
    expected = min(2 * abs(k * (exponent - 0.5) + 0.5) for k in active)
    if gradient == "exact":  # the initial output shortens the old row along a: relative 1/η
        expected = min(expected, exponent)
    powers = [round(p / expected) for p in (7, 8, 9)]
    gaps = []
    for power in powers:
        n = 10**power
        common = {"dim": n // 2, "width": 5 * n // 8, "samples": n, "ridge": 0.1,
                  "noise_variance": 0.1, "exponent": exponent, "gradient": gradient}  # fmt: skip
        finite = predict_isotropic(activation, COEFFICIENTS, **common, degree=8)
        limit = predict_isotropic(activation, COEFFICIENTS, **common, method="limit")
        gaps.append(abs(finite.train_objective / limit.train_objective - 1))
    decay = -np.polyfit(powers, np.log10(gaps), 1)[0]
    assert gaps[-1] < 1e-3
    assert decay == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_swelling_changes_the_constant_only(degree):
    plain = closed_form_drops(FULL, LINK, PHI, PSI, RIDGE, NOISE, degree)
    for kappa in (0.0, 0.3):
        arguments = (FULL, LINK, PHI, PSI, RIDGE, NOISE, degree)
        closed = closed_form_drops(*arguments, swelling=kappa)
        active = active_set_drops(*arguments, swelling=kappa)
        assert active == pytest.approx([float(v) for v in closed], rel=1e-11)
    # a longer neuron spoils the fit of H₂ by (X̃β)² + constant
    assert float(closed[0]) <= float(plain[0]) * (1 + 1e-14)


def test_the_resummed_spikes_tend_to_the_swollen_limit():
    activation = get_activation("softplus").centred()
    f, alpha, n = features_of(activation), 0.3, 10.0**80
    kappa = swelling_of(activation, LINK, NOISE, PHI, "labels-only")
    spikes = resummed_spikes(activation, LINK, noise_variance=NOISE, step_phi=PHI, rate=n**alpha,
                             width=n * PHI / PSI, gradient="labels-only")  # fmt: skip
    traces = limiting_traces(f.c1, f.rest, PHI, PSI, RIDGE)
    got = finite_step_losses(spikes, LINK, traces, PHI, PSI, RIDGE, NOISE)
    base = random_features_losses(f, LINK, PHI, PSI, RIDGE, NOISE)
    swollen = loss_drops(f, LINK, PHI, PSI, RIDGE, NOISE, 2, swelling=kappa)
    source = loss_drops(f, LINK, PHI, PSI, RIDGE, NOISE, 2)
    drop = float(base[0]) - got.train_objective
    assert drop == pytest.approx(swollen[0], rel=1e-5)
    assert abs(drop / source[0] - 1) > 1e-3


def test_resummed_and_polynomial_spikes_agree_for_small_steps():
    activation = get_activation("softplus").centred()
    f = features_of(activation)
    common = {
        "noise_variance": NOISE,
        "step_phi": PHI,
        "rate": 3.0,
        "width": 1e7,
        "gradient": "exact",
    }
    traces = limiting_traces(f.c1, f.rest, PHI, PSI, RIDGE)
    all_degrees = resummed_spikes(activation, LINK, **common)
    kappa = swelling_of(activation, LINK, NOISE, PHI, "exact")
    three = polynomial_spikes(f, LINK, **common, degree=3, swelling=kappa)
    a, b = (finite_step_losses(s, LINK, traces, PHI, PSI, RIDGE, NOISE)
            for s in (all_degrees, three))  # fmt: skip
    assert a.test_error == pytest.approx(b.test_error, rel=1e-6)
    assert a.train_objective == pytest.approx(b.train_objective, rel=1e-6)


@pytest.mark.parametrize("method", ["finite-step", "limit", "random-features"])
def test_training_error_is_the_objective_without_its_penalty(method):
    # ∂L/∂λ = ‖a‖² at fixed features
    def at(ridge):
        return predict_isotropic(
            get_activation("relu"), COEFFICIENTS, dim=500, width=625, samples=1000, ridge=ridge,
            noise_variance=0.1, exponent=0.29, method=method,
        )  # fmt: skip

    step = 1e-4
    slope = (at(0.1 + step).train_objective - at(0.1 - step).train_objective) / (2 * step)
    middle = at(0.1)
    assert middle.train_error == pytest.approx(middle.train_objective - 0.1 * slope, rel=1e-6)


def test_zero_rate_is_random_features():
    common = {"dim": 500, "width": 625, "samples": 1000, "ridge": 0.1, "noise_variance": 0.1}
    still = predict_isotropic(get_activation("relu"), COEFFICIENTS, rate=0.0, **common)
    plain = predict_isotropic(get_activation("relu"), COEFFICIENTS, method="random-features",
                              **common)  # fmt: skip
    tiny = predict_isotropic(get_activation("relu"), COEFFICIENTS, rate=1e-6, **common)
    assert still.test_error == plain.test_error
    # one neuron direction out of N is treated apart, at no change
    assert tiny.test_error == pytest.approx(plain.test_error, rel=1e-5)
    objective, residual, test = random_features_losses(RELU, LINK, 0.5, 0.8, 0.1, 0.1)
    assert (plain.train_objective, plain.train_error, plain.test_error) == pytest.approx(
        (float(objective), float(residual), float(test)), rel=1e-14
    )


def test_more_first_step_samples_give_a_better_direction():
    common = {
        "dim": 500,
        "width": 625,
        "samples": 1000,
        "ridge": 0.1,
        "noise_variance": 0.1,
        "exponent": 0.2,
    }
    few, many = (predict_isotropic(get_activation("relu"), COEFFICIENTS, step_samples=m, **common)
                 for m in (1000, 100_000))  # fmt: skip
    assert many.cosine > few.cosine and many.test_error < few.test_error


# --- assumptions ------------------------------------------------------------------------


def test_regimes_and_borders():
    assert [regime_of(a) for a in (-0.1, 0.0, 0.1, 0.25, 0.3, 1 / 3, 0.34, 0.4)] == [
        0, 1, 1, 2, 2, 3, 3, 5,
    ]  # fmt: skip
    assert on_border(0.25) and on_border(1 / 3) and on_border(0.0) and not on_border(0.3)
    with pytest.raises(AssumptionError, match="conditional Gaussian"):
        regime_of(0.5)
    with pytest.raises(AssumptionError, match="too near"):
        regime_of(0.499)


def test_refusals_say_what_to_use_instead():
    common = {"dim": 500, "width": 625, "samples": 1000, "ridge": 0.1}
    relu = get_activation("relu")
    even = get_activation("hermite(0, 0, 1)")
    with pytest.raises(AssumptionError, match="conditional Gaussian"):
        predict_isotropic(even, COEFFICIENTS, exponent=0.2, **common)
    predict_isotropic(even, COEFFICIENTS, method="random-features", **common)
    with pytest.raises(AssumptionError, match="any step"):
        predict_isotropic(relu, COEFFICIENTS, rate=40.0, **common)
    with pytest.raises(AssumptionError, match="finite-step"):
        predict_isotropic(relu, COEFFICIENTS, exponent=0.25, method="limit", **common)
    with pytest.raises(AssumptionError, match="mean off the labels"):
        predict_isotropic(relu, [0.5, 1.0], exponent=0.2, method="limit", **common)
    # an odd activation learns no constant, so there the limit stands
    predict_isotropic(get_activation("tanh"), [0.5, 1.0], exponent=0.2, method="limit", **common)
    with pytest.raises(AssumptionError, match="labels vanish"):
        predict_isotropic(relu, [0.0], exponent=0.2, gradient="labels-only", **common)
    for wrong in ({"gradient": "none"}, {"method": "guess"}, {"noise_variance": -1.0},
                  {"rate": -1.0}, {"degree": 99}):  # fmt: skip
        with pytest.raises(AssumptionError):
            predict_isotropic(relu, COEFFICIENTS, **{"exponent": 0.2, **common, **wrong})
    with pytest.raises(AssumptionError, match="give the step"):
        predict_isotropic(relu, COEFFICIENTS, **common)
    with pytest.raises(AssumptionError, match="second moment"):
        Link((0.0, 1.0), 0.5)


def test_a_prediction_says_what_it_assumed():
    p = predict_isotropic(get_activation("tanh"), COEFFICIENTS, dim=500, width=625, samples=1000,
                          ridge=0.1, exponent=0.29, method="limit")  # fmt: skip
    text = " ".join(p.assumptions)
    assert p.regime == 2 and p.spikes == (1,)
    assert "ℓ = 2" in text and "no spike of degree 2" in text and "residual y − f₀" in text


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_a_prediction_is_fast(name):
    activation = get_activation(name)

    def once(i):
        start = time.process_time()  # other processes do not count
        predict_isotropic(activation, COEFFICIENTS, dim=500, width=625 + i, samples=1000,
                          ridge=0.1, exponent=0.29)  # fmt: skip
        return time.process_time() - start

    once(0)  # the activation's coefficients are computed once
    assert np.median([once(i) for i in range(15)]) < 5e-3


# --- simulations ------------------------------------------------------------------------


def spiked_gaussian_drops(n, rng, strength=300.0):
    """Δ_ℓ, Λ_ℓ for ℓ = 1, 2, 3 of one draw of the Gaussian-equivalent spiked model.

    F = c₁X̃W₀ᵀ + √C Z + strength·√n·Σ_k (normalised (X̃β)ᵏ) v_kᵀ, v_k orthonormal; the risk is
    exact given the readout, so no test set is drawn.
    """
    d, width = round(PHI * n), round(PHI / PSI * n)
    c1, rest = RELU.c1, RELU.rest
    c = np.array(COEFFICIENTS)
    factorial = np.array([1.0, 1.0, 2.0, 6.0])
    s = math.sqrt(direction_norm2(RELU, LINK, NOISE, PHI, "labels-only"))
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
    theory = np.array([closed_form_drops(RELU, LINK, PHI, PSI, RIDGE, NOISE, k) for k in (1, 2, 3)])
    assert np.all(error / theory < 0.03)  # the simulation is sharp enough to decide
    assert np.all(np.abs(value - theory) <= 4 * error)


def test_the_printed_test_formulas_fail_it(spiked_limit):
    value, error, _ = spiked_limit
    t = limiting_traces(RELU.c1, RELU.rest, PHI, PSI, RIDGE)
    s2 = direction_norm2(RELU, LINK, NOISE, PHI, "labels-only")
    first = 1 / s2 * -t.dm2
    second = 4 * 0.5**2 / (3 * s2**2 * t.m1**2) * -t.dm1
    assert abs(value[0, 1] - first) > 4 * error[0, 1]
    # with formula (3) repaired, the second term of (4) alone still fails
    repaired = closed_form_drops(RELU, LINK, PHI, PSI, RIDGE, NOISE, 1)[1]
    assert abs(value[1, 1] - (repaired + second)) > 4 * error[1, 1]


def test_random_features_errors_of_a_simulation():
    n, d, width, ridge = 800, 400, 500, 0.1
    rng = np.random.default_rng(3)
    activation = get_activation("relu").centred()
    rows = []
    for _ in range(12):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        x, fresh = rng.standard_normal((n, d)), rng.standard_normal((4 * n, d))
        y = x[:, 0] + rng.standard_normal(n)
        rows.append(fit(activation(x @ w.T), y, activation(fresh @ w.T), fresh[:, 0], ridge, 1.0))
    rows = np.array(rows)
    theory = random_features_losses(RELU, link_of([0, 1]), d / n, d / width, ridge, 1.0)
    error = rows.std(0, ddof=1) / math.sqrt(len(rows))
    assert np.all(np.abs(rows.mean(0) - np.array(theory)) <= 4 * error)


def fit(features, y, fresh, target, ridge, noise):
    """Objective, mean squared residual, mean squared test error of the ridge readout."""
    n, width = features.shape
    gram = features.T @ features / n
    gram[np.diag_indices(width)] += ridge
    a = cho_solve(cho_factor(gram), features.T @ y / n)
    residual = np.mean((y - features @ a) ** 2)
    return residual + ridge * a @ a, residual, np.mean((target - fresh @ a) ** 2) + noise


def test_the_direction_of_the_exact_gradient():
    n, d, width = 800, 400, 500
    rng = np.random.default_rng(1)
    activation = get_activation("relu").centred()
    link = link_of([0, 1])
    squares = []
    for _ in range(40):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        a = rng.standard_normal(width) / math.sqrt(width)
        x = rng.standard_normal((n, d))
        y = x[:, 0] + rng.standard_normal(n)
        residuals = (y, y - activation(x @ w.T) @ a)
        squares.append([np.sum((x.T @ r / n) ** 2) for r in residuals])
    mean, error = np.mean(squares, 0), np.std(squares, 0, ddof=1) / math.sqrt(len(squares))
    labels, exact = (float(direction_norm2(RELU, link, 1.0, d / n, g))
                     for g in ("labels-only", "exact"))  # fmt: skip
    # at finite n the squared linear part adds O(1/n): E|β|² is s² + c²(1/n) here
    assert abs(mean[0] - labels) <= 4 * error[0] + labels / n
    assert abs(mean[1] - exact) <= 4 * error[1] + exact / n
    assert abs(mean[1] - labels) > 4 * error[1] + exact / n


def one_step_runs(name, n, seeds, exponents, rng, link=COEFFICIENTS):
    """[seed, run, loss]: run 0 without a step, then both gradients at every exponent."""
    d, width = round(PHI * n), round(PHI / PSI * n)
    activation = get_activation(name).centred()
    runs = []
    for _ in range(seeds):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        a = rng.standard_normal(width) / math.sqrt(width)
        x, x2, x3 = (rng.standard_normal((m, d)) for m in (n, n, 3000))
        y, y2 = (hermeval(z[:, 0], link) + math.sqrt(NOISE) * rng.standard_normal(n)
                 for z in (x, x2))  # fmt: skip
        target = hermeval(x3[:, 0], link)

        def losses(w, x2=x2, x3=x3, y2=y2, target=target):
            return fit(activation(x2 @ w.T), y2, activation(x3 @ w.T), target, RIDGE, NOISE)

        u = x @ w.T
        row = [losses(w)]
        for gradient in ("labels-only", "exact"):
            r = y - activation(u) @ a if gradient == "exact" else y
            step = (activation.derivative(u) * np.outer(r, a)).T @ x / n
            row += [losses(w + n**alpha * step) for alpha in exponents]
        runs.append(row)
    return np.array(runs)


def compare_with_network(name, n, seeds, link):
    """(predicted/simulated − 1, relative standard error) for [gradient × exponent, loss]."""
    exponents = (0.2, 0.29)
    runs = one_step_runs(name, n, seeds, exponents, np.random.default_rng(1), link)
    common = {"dim": n // 2, "width": 5 * n // 8, "samples": n, "ridge": RIDGE,
              "noise_variance": NOISE}  # fmt: skip
    activation = get_activation(name)
    plain = predict_isotropic(activation, link, method="random-features", **common)
    base = np.array([plain.train_objective, plain.train_error, plain.test_error])
    # the labels' own fluctuation (heavy tails: 4 % at n = 2000) cancels against the run without
    # a step, whose limit is known
    ratio = runs.mean(0) / runs[:, 0].mean(0)
    spread = (runs - ratio * runs[:, :1]).std(0, ddof=1) / math.sqrt(len(runs))
    simulated = ratio * base
    predicted = []
    for gradient in ("labels-only", "exact"):
        for alpha in exponents:
            p = predict_isotropic(activation, link, exponent=alpha, gradient=gradient, **common)
            predicted.append([p.train_objective, p.train_error, p.test_error])
    relative = spread / runs[:, 0].mean(0) * base / simulated
    return np.array(predicted) / simulated[1:] - 1, relative[1:], runs[:, 0].mean(0) / base - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_the_finite_step_against_the_network(name):
    gap, error, _ = compare_with_network(name, 2000, 6, COEFFICIENTS)
    assert np.all(error < 0.02)
    assert np.all(np.abs(gap) < 0.05)


@pytest.mark.slow
def test_labels_with_a_mean():
    gap, error, base = compare_with_network("softplus", 2000, 6, [1.0, 1.0])
    assert np.all(error < 0.02)
    assert np.all(np.abs(gap) < 0.05)
    # the untrained network fits a part of the mean by the spread of its neurons' norms
    assert np.all(np.abs(base) < 0.05)
    softplus = features_of(get_activation("softplus"))
    without = random_features_losses(softplus, link_of([1.0, 1.0]), PHI, PSI, RIDGE, NOISE)
    plain = predict_isotropic(get_activation("softplus"), [1.0, 1.0], dim=500, width=625,
                              samples=1000, ridge=RIDGE, noise_variance=NOISE,
                              method="random-features")  # fmt: skip
    assert float(without[2]) > 1.08 * plain.test_error
