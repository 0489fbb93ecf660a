"""The step of the estimators against definitions that are written out."""

import numpy as np
import pytest

import onegrad.tabular.estimators.first_layer as first_layer
from onegrad.compute.randomness import Streams
from onegrad.gaussian.activation import get_activation
from onegrad.tabular.estimators.first_layer import Covariance, prepare_step
from onegrad.tabular.estimators.rows import Rows


def drawn(m=60, n=5, outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((m, n)) * np.array([3.0, 1.0, 0.5, 0.2, 0.1])[:n] + 2.0
    y = rng.standard_normal((m, outputs)) + x[:, :1]
    weight = rng.uniform(0.0, 2.0, m)
    weight[:4] = 0.0
    return x, y, Rows(x, lambda rows: y[rows], weight, np.random.default_rng(1), 8, 16)


def test_covariance_and_whitening():
    x, _, rows = drawn()
    covariance = Covariance.of(rows)
    expected = np.cov(x.T, aweights=rows.weight, ddof=0)
    assert covariance.mean == pytest.approx(np.average(x, axis=0, weights=rows.weight))
    assert (covariance.vectors * covariance.values) @ covariance.vectors.T == pytest.approx(
        expected
    )
    directions = np.random.default_rng(2).standard_normal((4, 5))
    floor = 0.3 * np.trace(expected) / 5
    inverse = np.linalg.inv(expected + floor * np.eye(5))
    assert covariance.whiten(directions, 0.3) == pytest.approx(floor * directions @ inverse)
    assert covariance.whiten(directions, np.inf) is directions
    unit = covariance.unit(directions)
    assert np.average(
        ((x - covariance.mean) @ unit.T) ** 2, axis=0, weights=rows.weight
    ).mean() == (pytest.approx(1.0))


def test_many_inputs_are_whitened_by_a_sample(monkeypatch):
    x, _, rows = drawn(m=40)
    exact = Covariance.of(rows)
    monkeypatch.setattr(first_layer, "_DENSE", 4)
    few = Covariance.of(rows)
    assert few.vectors.shape == (5, 4)
    inputs = x[rows.numbered(0, 4)] - exact.mean
    weight = rows.weight[rows.numbered(0, 4)]
    expected = (inputs.T * weight) @ inputs / weight.sum()
    assert (few.vectors * few.values) @ few.vectors.T == pytest.approx(expected)


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_the_step_follows_the_gradient(name):
    """G = −∂/∂W ½Σω|E − εσ(XWᵀ)A|²/ε at ε → 0: with the initial output left out of the error."""
    x, y, rows = drawn()
    chosen = rows.numbered(0, rows.distinct // 2)
    scale = np.array([1.0, 2.0, 0.5])
    activation, streams, width = get_activation(name), Streams(5, 0), 6
    step = prepare_step(rows, scale, activation, width, np.inf, chosen, streams)
    a = streams.rng("readout").standard_normal((width, 3))
    weight = rows.weight[chosen]
    error = (y - np.average(y[chosen], axis=0, weights=weight))[chosen]
    inputs = x[chosen] - step.mean
    floor = np.trace(np.cov(x.T, aweights=rows.weight, ddof=0)) / chosen.sum()
    covariance = np.cov(x.T, aweights=rows.weight, ddof=0) + floor * np.eye(5)
    linear = np.linalg.solve(covariance, (inputs.T * weight) @ error / weight.sum())
    targets = [error] * 3 + [error - inputs @ linear] * 3

    def agreement(weights, neuron):
        """Σω E·f of one neuron: its derivative is the gradient."""
        output = activation(inputs @ weights + step.bias[neuron])[:, None] * a[neuron]
        return float(weight @ (targets[neuron] / scale * output).sum(axis=1))

    slopes = np.empty((width, 5))
    for i in range(width):
        for j in range(5):
            shift = 1e-6 * np.eye(5)[j]
            up, down = (agreement(step.initial[i] + s, i) for s in (shift, -shift))
            slopes[i, j] = (up - down) / 2e-6
    for half in (slice(3), slice(3, 6)):
        got, want = step.direction[half], slopes[half]
        ratio = (got * want).sum() / (want * want).sum()
        assert got == pytest.approx(ratio * want, abs=1e-6 * np.abs(got).max())
        assert ratio > 0


def test_the_rate_moves_preactivations_but_not_their_size():
    rows = drawn(m=400)[2]
    chosen = rows.numbered(0, rows.distinct // 2)
    step = prepare_step(rows, np.ones(3), get_activation("relu"), 400, 1.0, chosen, Streams(0, 0))
    assert np.array_equal(step.at(0.0).weights, step.initial)
    covariance = Covariance.of(rows)
    squares = [
        (((w @ covariance.vectors) ** 2) @ covariance.values).mean()
        for w in (step.initial, step.direction, step.at(3.0).weights)
    ]
    assert squares[1] == pytest.approx(1.0)
    assert squares[0] == pytest.approx(1.0, rel=0.2)
    assert squares[2] == pytest.approx(1.0, rel=0.3)
    assert step.at(1e9).weights == pytest.approx(step.direction, abs=1e-6)
