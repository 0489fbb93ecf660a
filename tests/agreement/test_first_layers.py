"""The theory of any first layer against networks: several steps, every optimiser."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.linalg import leading_direction
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.theory.neurons.types import drawn_types
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Task

from .first_layers import cases, gaps, problem, trained

N = 500
ISOTROPIC = {"model": "isotropic", "dim": N}
TEST, TRAIN = 0.02, 0.05  # beside four standard errors; what is left in training is of order 1/n
CASES = cases(3 * N // 5)
_known = {}


def layers_of(name, activation):
    """Two trained layers of a case, kept for the controls."""
    key = name, activation
    if key not in _known:
        p = problem(N, activation, **CASES[name])
        _known[key] = [trained(p, draw) for draw in range(2)]
    return _known[key]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_engine_predicts_the_readout_on_any_layer(name, activation):
    layers = layers_of(name, activation)
    (test, train), se = gaps(layers, [layer.predicted() for layer in layers])
    assert abs(test) <= 4 * se[0] + TEST
    assert abs(train) <= 4 * se[1] + TRAIN


def test_types_do_not_know_an_orthogonalised_gradient():
    """Negative control: rows of Ŵ that are not independent given their lengths."""
    p = problem(300, "relu", width=300, samples=600, optimiser="muon", rate=6.0)
    layer = trained(p)
    (test, _), se = gaps([layer], [layer.predicted()])
    assert abs(test) <= 4 * se[0] + TEST
    geometry = layer.geometry
    task = Task(p, geometry, drawn_types(layer.weights, geometry.basis))
    (solution,) = solve_tasks([task], QuadratureLevel.at(1), 1e-6)
    (types, _), _ = gaps([layer], [np.array([solution.test_error, solution.train_error])])
    assert types > 4 * se[0] + TEST


def test_the_layers_own_directions_count():
    """Negative control: after large steps a preactivation is not Gaussian along them."""
    data = {"model": "isotropic", "dim": 300}
    layer = trained(problem(300, "tanh", data, 300, rate=3000.0), sets=10)
    (test, train), se = gaps([layer], [layer.predicted()])
    assert abs(test) <= 4 * se[0] + TEST and abs(train) <= 4 * se[1] + TRAIN
    (test, train), _ = gaps([layer], [layer.predicted(own=False)])
    assert test > 4 * se[0] + TEST


@pytest.mark.parametrize(("activation", "steps", "rate"), [
    ("tanh", 2, 0.8), ("tanh", 3, 0.5), ("relu", 2, 1.0), ("relu", 3, 0.6),
])  # fmt: skip
def test_the_recursion_needs_no_draw(activation, steps, rate):
    data = {"model": "mixture", "dim": N, "spread": 4.0, "directions": "orthogonal"}
    p = problem(N, activation, data, steps=steps, rate=rate * 300, step_samples=2 * N)
    found = og.predict(p, method="conditional")
    simulated = og.simulate(p, seeds=8)
    for name in ("test_error", "train_error"):
        estimate = getattr(simulated, name)
        gap = getattr(found, name) / estimate.mean - 1
        assert abs(gap) <= 4 * estimate.standard_error / estimate.mean + 0.03


def test_the_second_step_has_two_noise_directions():
    """With one, ReLU networks that move far are off by tens of percent."""
    data = {"model": "isotropic", "dim": 300}
    p = problem(300, "relu", data, 300, steps=2, rate=1200.0)
    simulated = og.simulate(p, seeds=12).test_error
    room = 4 * simulated.standard_error / simulated.mean + 0.03
    (found,) = solve_tasks([Task.of(p)], QuadratureLevel.at(1), 1e-6)
    assert abs(found.test_error / simulated.mean - 1) <= room


def hides_its_direction(t):
    """1, −1 for t > √(2 log 2), 0 for t < 0: E[yt] = 0 and E[yH₂(t)] ≠ 0, as for H₂ itself, but
    E[y²t] ≠ 0."""
    return np.where(t <= 0, 0.0, np.where(t < np.sqrt(2 * np.log(2)), 1.0, -1.0))


HIDDEN = og.Activation(
    "hidden", hides_its_direction, np.zeros_like, breakpoints=(0.0, float(np.sqrt(2 * np.log(2))))
)


def alignment(link, batch, n=400, draws=8):
    """Root mean square of cos(leading right singular vector of Ŵ − W₀, ξ) after two steps."""
    k = n // 4
    p = og.Problem(
        data={"model": "isotropic", "dim": n}, labels={"link": link},
        network={"activation": "hermite(0, 1, 0.7)", "width": k, "readout": "constant"},
        training={"samples": n, "step_samples": 2 * n, "rate": [10.0 * k, 100.0 * k], "steps": 2,
                  "batch": batch, "gradient": "labels-only"},
    )  # fmt: skip
    squares = []
    for draw in range(draws):
        trial = Trial(p, Streams(0, draw))
        xi = trial.instance.teacher.direction
        found = leading_direction(trial.updated_weights - trial.weights)
        squares.append((found @ xi) ** 2 / (xi @ xi))
    return np.sqrt(np.mean(squares))


def test_reused_samples_show_what_fresh_ones_hide():
    """The cosine stays where it is on reused samples and is that of chance, n^−½, on fresh ones."""
    small, large = (alignment(HIDDEN, "same", n) for n in (100, 400))
    assert small > 0.3 and large > 0.35
    assert alignment(HIDDEN, "fresh") < 2 / np.sqrt(400)


def test_an_even_link_stays_hidden():
    """H₂: a sample and its mirror image in ξ have one label, so that no function of labels tells
    the sign of ξ; the cosine falls on reused samples too."""
    even = "hermite(0, 0, 0.7071)"
    assert alignment(even, "same", 900, 6) < 0.75 * alignment(even, "same", 100, 24)
