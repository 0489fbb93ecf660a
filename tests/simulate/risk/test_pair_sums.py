"""Pair sums of the exact risk: series, closed forms and integration against brute force."""

import dataclasses
import math

import numpy as np
import pytest

from onegrad.compute.randomness import Streams
from onegrad.gaussian.activation import Activation, get_activation
from onegrad.gaussian.pair_moments import expand, pair_moments
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.problem import Problem
from onegrad.simulate.models import MODELS
from onegrad.simulate.models.base import exact_risk
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk import pairs, series
from onegrad.simulate.risk.pairs import PairSum
from onegrad.simulate.risk.series import Series, cross_sum

HARD = Activation(
    "hard-tanh", lambda x: np.clip(x, -1, 1), lambda x: (np.abs(x) < 1) * 1.0, (-1.0, 1.0)
)


def brute_force(activation, readout, weights, mean, covariance):
    """E(Σ a_iσ(z_i))² by a tensor Gauss–Hermite rule for each pair."""
    u, w = gauss_hermite(120)
    s, q = weights @ mean, weights @ covariance @ weights.T
    total = 0.0
    for i in range(len(readout)):
        for j in range(len(readout)):
            rho = np.clip(q[i, j] / math.sqrt(q[i, i] * q[j, j]), -1, 1)
            left = activation(s[i] + math.sqrt(q[i, i]) * u)
            v = rho * u[:, None] + math.sqrt(1 - rho**2) * u[None, :]
            right = activation(s[j] + math.sqrt(q[j, j]) * v) @ w
            total += readout[i] * readout[j] * float(w @ (left * right))
    return total


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "sin", "gelu", "hermite(0, 1, 0.5)"])
@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-9])
def test_network_energy_is_exact(name, mean, tolerance, monkeypatch):
    """With the label zero, the risk is E f²: as accurate as asked for, pair by pair."""
    monkeypatch.setattr(pairs, "_TOLERANCE", tolerance)
    activation = get_activation(name)
    trial = Trial(
        Problem(
            data={"model": "mixture", "dim": 30, "mean": mean, "weights": [1.0], "spread": 6.0},
            labels={"model": "component", "values": [0.0]},
            network={"width": 6, "activation": activation},
            training={"samples": 40, "rate": 5.0},
        ),
        Streams(3, 0),
    )
    fitted = MODELS["network"].fit(trial)
    readout = np.random.default_rng(1).standard_normal(6)
    fitted = dataclasses.replace(
        fitted, readout=dataclasses.replace(fitted.readout, coefficients=readout)
    )
    population = trial.instance.population
    structure = population.spikes[0] * np.sqrt(population.strengths[0])
    covariance = np.eye(30) + structure @ structure.T
    wanted = brute_force(
        activation, readout, trial.updated_weights, population.means[0], covariance
    )
    exact = exact_risk(trial, fitted)
    assert exact.value == pytest.approx(wanted, rel=tolerance + 1e-8)
    assert abs(exact.value - wanted) <= exact.error + 1e-9 * wanted


@pytest.mark.parametrize("name", ["relu", "erf"])
@pytest.mark.parametrize("along", [False, True])
def test_series_and_closed_form_agree(name, along, monkeypatch):
    rng = np.random.default_rng(0)
    weights, structure = rng.standard_normal((50, 40)) / 7, rng.standard_normal((50, 1))
    near = np.hstack([structure, weights[:, :1]]) if along else None
    gram = weights @ weights.T
    variance = np.diag(gram) + structure[:, 0] ** 2
    readout = rng.standard_normal(50)
    results = []
    for fewest in (0, 1000):
        monkeypatch.setattr(pairs, "_CLOSED_FROM", fewest)
        each = Series(get_activation(name), np.zeros(50), np.sqrt(variance))
        total = PairSum(each, readout, variance, structure, near, 0.0)
        total.add(0, gram)
        results.append(total.result())
    closed, summed = results
    assert closed.order == 0
    assert summed.order > 12
    assert summed.value == pytest.approx(closed.value, abs=summed.error + 1e-12)
    assert summed.error < 1e-3 * abs(closed.value)
    if not along:
        moments = pair_moments(
            get_activation(name), variance, variance, gram + structure @ structure.T
        )
        b = np.sqrt(variance)
        first = expand(get_activation(name), np.zeros(50), b, 1).coefficients
        correlation = (gram + structure @ structure.T) / np.outer(b, b)
        moments -= np.outer(first[0], first[0]) + np.outer(first[1], first[1]) * correlation
        np.fill_diagonal(moments, 0.0)
        assert closed.value == pytest.approx(readout @ moments @ readout, rel=1e-9)


@pytest.mark.parametrize("names", [("tanh", "hermite(0, 1, 0.5)"), ("relu", "tanh", "erf")])
def test_models_that_share_correlations_have_the_sums_that_each_has_alone(names, monkeypatch):
    monkeypatch.setattr(pairs, "_CACHED", 64)  # many pieces
    rng = np.random.default_rng(0)
    weights, structure = rng.standard_normal((50, 40)) / 7, rng.standard_normal((50, 1)) / 2
    gram = weights @ weights.T
    variance = np.diag(gram) + structure[:, 0] ** 2

    def sums():
        draws = np.random.default_rng(1)
        for name in names:
            each = Series(get_activation(name), np.zeros(50), np.sqrt(variance))
            readout = draws.standard_normal(50)
            yield PairSum(each, readout, variance.copy(), structure, None, 0.0)

    together, alone = list(sums()), list(sums())
    assert all(each.shares(together[0]) for each in together)
    pairs.add_block([together], 0, gram[:30])
    pairs.add_block([together], 30, gram[30:, 30:])
    for one in alone:
        one.add(0, gram[:30])
        one.add(30, gram[30:, 30:])
    assert [each.result() for each in together] == [one.result() for one in alone]
    assert len({each.result().order for each in together}) > 1
    # other correlations are not shared
    other = PairSum(alone[0].series, alone[0].readout, 2 * variance, structure, None, 0.0)
    assert not other.shares(together[0])


def test_a_polynomial_that_ends_needs_no_row_sums(monkeypatch):
    """Its rest is rounding, whatever the correlations: the same sum as with them, and its error."""
    rng = np.random.default_rng(0)
    weights, structure = rng.standard_normal((50, 40)) / 7, rng.standard_normal((50, 1)) / 2
    gram, readout = weights @ weights.T, rng.standard_normal(50)
    variance = np.diag(gram) + structure[:, 0] ** 2
    found = []
    for negligible, known in ((pairs._NEGLIGIBLE, 1.0), (-1.0, 1.0)):
        monkeypatch.setattr(pairs, "_NEGLIGIBLE", negligible)
        series = Series(get_activation("hermite(0, 1, 0.5)"), np.zeros(50), np.sqrt(variance))
        total = PairSum(series, readout, variance, structure, None, known)
        total.add(0, gram)
        assert (total._row_sums is None) == (negligible > 0)
        found.append(total.result())
    assert found[0].value == found[1].value and found[0].order == found[1].order
    assert found[0].error == pytest.approx(found[1].error, abs=1e-11)
    # a series that goes on has them
    monkeypatch.undo()
    endless = Series(get_activation("tanh"), np.zeros(50), np.sqrt(variance))
    total = PairSum(endless, readout, variance, structure, None, 1.0)
    total.add(0, gram)
    assert total._row_sums is not None


@pytest.mark.parametrize("name", ["relu", "erf", "sin", "identity"])
def test_closed_coefficients_agree_with_quadrature(name):
    known = get_activation(name)
    copy = Activation("copy", lambda x: known.function(x), known.derivative, known.breakpoints, 0.2)
    s, b = np.array([0.0, 0.7, -2.0, 0.3]), np.array([1.0, 0.4, 1.5, 3.0])
    got, wanted = (expand(a, s, b, 30) for a in (dataclasses.replace(known, offset=0.2), copy))
    np.testing.assert_allclose(got.coefficients, wanted.coefficients, atol=1e-10)
    np.testing.assert_allclose(got.energy, wanted.energy, rtol=1e-10)


@pytest.mark.parametrize("activation", [get_activation("tanh"), HARD], ids=lambda a: a.name)
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_interpolated_coefficients_agree_with_direct_ones(activation, spread):
    rng = np.random.default_rng(0)
    s, b = spread * rng.standard_normal(600), 1 + 0.05 * rng.standard_normal(600)
    many, few = expand(activation, s, b, 20), expand(activation, s[:5], b[:5], 20)
    np.testing.assert_allclose(many.coefficients[:, :5], few.coefficients, atol=1e-9)
    np.testing.assert_allclose(many.energy[:5], few.energy, rtol=1e-9)


@pytest.mark.parametrize("link", [HARD, get_activation("relu"), get_activation("tanh")])
@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_cross_terms_by_series_and_by_integration(link, name):
    """Correlations near one, where the series is slow and the integral takes over."""
    single = Series(link, np.array([0.3]), np.array([1.5]))
    scale, shift = np.full(3, 2.0), np.full(3, 0.4)
    x = np.array([0.2, 0.7, -0.97])
    many = Series(get_activation(name), shift, scale)
    integrated = series._integrated(single, many, x, np.arange(3))[0]
    for i in range(3):
        one = Series(get_activation(name), shift[:1], scale[:1])
        total = cross_sum(single, one, np.ones(1), x[i : i + 1], None, 1e-9)
        left, right = single.upto(1).coefficients, one.upto(1).coefficients
        whole = total.value + left[0, 0] * right[0, 0] + left[1, 0] * right[1, 0] * x[i]
        assert whole == pytest.approx(integrated[i], abs=2e-9 + total.error)
