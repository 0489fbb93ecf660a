"""The traces against mpmath and simulated matrices."""

import math

import mpmath
import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import get_activation
from onegrad.theory.isotropic.setting import ActivationSeries
from onegrad.theory.isotropic.traces import limiting_traces
from tests.theory.isotropic.common import RELU


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
    f = ActivationSeries.of(get_activation(name))
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
    f = ActivationSeries.of(activation)
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
