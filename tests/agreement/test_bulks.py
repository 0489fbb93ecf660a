"""Data whose bulk is not flat: theory against networks, and a theory that forgets the bulk."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import onegrad as og
from onegrad.data.isotropic import Isotropic
from onegrad.theory.directions.closed import Closure, closed_geometry
from onegrad.theory.directions.geometry import drawn_geometry
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.layers.any_layer import layer_errors
from onegrad.theory.neurons.block_types import output_noise
from onegrad.theory.neurons.step import output_loss
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.resolution import solve_tasks
from onegrad.theory.task import Task

from .first_layers import gaps, problem, trained

N = 300
TWO = {"spectrum": "two-level", "levels": [4.0, 0.25], "share": 0.2}
POWER = {"spectrum": "power-law", "exponent": 0.8}
DATA = {
    "two levels": {"model": "isotropic", **TWO},
    "power law": {"model": "isotropic", **POWER},
    "power law, spikes and means": {"model": "mixture", "spread": 8.0, "mean": 1.0, **POWER},
}
_known = {}


def layers_of(name, rate):
    key = name, rate
    if key not in _known:
        p = problem(
            N, "tanh" if rate else "relu", {"dim": N, **DATA[name]}, N, samples=(5 * N) // 4,
            rate=rate * N, ridge=1e-3,
        )  # fmt: skip
        _known[key] = [trained(p, draw, sets=8) for draw in range(2)]
    return _known[key]


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(("rate", "room"), [(0.0, 0.015), (4.0, 0.025)])
def test_the_matrix_engine_knows_the_bulk(name, rate, room):
    layers = layers_of(name, rate)
    (test, train), se = gaps(layers, [layer.predicted() for layer in layers])
    assert abs(test) <= 4 * se[0] + room
    assert abs(train) <= 4 * se[1] + 2 * room


@pytest.mark.parametrize("name", ["two levels", "power law"])
def test_directions_must_be_closed_under_the_bulk(name):
    """Negative control: κ = ξᵀx as if the rest of x were independent of it."""
    layers = layers_of(name, 0.0)
    (test, _), se = gaps(layers, [_not_closed(layer) for layer in layers])
    assert abs(test) > 4 * se[0] + 0.015


def _not_closed(layer):
    """The rest ŵ_⊥ᵀx of a preactivation in n coordinates of its own, ŵ·ξ̂ in one more."""
    p, bulk = layer.trial.problem, layer.trial.instance.population.bulk
    xi = layer.trial.instance.teacher.direction
    unit = xi / np.linalg.norm(xi)
    along, scale = layer.weights @ unit, np.sqrt(unit @ (bulk * unit))
    rest = (layer.weights - np.outer(along, unit)) * np.sqrt(bulk)
    wider, last = np.column_stack([rest, along * scale]), np.eye(N + 1)[-1]
    data = Isotropic(dim=N + 1)
    kept = {name: getattr(p, name) for name in ("labels", "network", "training", "scaling")}
    p = og.Problem(data=data, **kept)
    population = data.population(0.0, np.random.default_rng(0))
    geometry = drawn_geometry(population, last)
    geometry = replace(geometry, teacher=geometry.teacher * np.linalg.norm(xi) * scale)
    return np.array(layer_errors(p, geometry, wider, np.zeros((N + 1, 0))).errors[:2])


SMALL = 200
STEPS = [("two levels", "relu", 0.0), ("two levels", "tanh", 1.0), ("power law", "tanh", 0.0),
         ("power law", "relu", 1.0)]  # fmt: skip


@cache
def small(name, activation, rate):
    return og.Problem.from_spec({
        "data": {"dim": SMALL, **DATA[name]}, "labels": {"link": "tanh"},
        "network": {"width": SMALL, "activation": activation},
        "training": {"samples": 250, "step_samples": 400, "rate": rate * SMALL, "ridge": 1e-3},
    })  # fmt: skip


@cache
def networks(name, activation, rate):
    return og.simulate(small(name, activation, rate), seeds=48, rng=0)


@pytest.mark.parametrize(("name", "activation", "rate"), STEPS)
def test_blocks_without_a_draw(name, activation, rate):
    found = og.predict(small(name, activation, rate), "conditional")
    sim = networks(name, activation, rate)
    assert "conditional" in found.method and found.test_error_se == 0
    room = 0.025 if rate else 0.015
    for key in ("test_error", "train_error"):
        mean, se = getattr(sim, key)
        assert abs(getattr(found, key) / mean - 1) <= 4 * se / mean + room, key
        assert abs(getattr(found, key) / mean - 1) <= 4 * se / mean + found.error_estimate, key


@pytest.mark.parametrize("case", [STEPS[0], STEPS[2]])
def test_blocks_that_are_not_closed_are_wrong(case):
    """Negative control: the teacher's direction alone, the rest of a neuron free of it."""
    p, sim = small(*case), networks(*case)
    population, teacher = p.instance(0).population, np.ones(SMALL)
    errors = []
    for order in (1, 4):
        geometry = closed_geometry(population, teacher, Closure(order))
        (found,) = solve_tasks([Task(p, geometry)], QuadratureLevel.at(1), 1e-5)
        errors.append(found.test_error)
    mean, se = sim.test_error
    assert -0.8 < errors[0] / errors[1] - 1 < -0.09
    assert abs(errors[0] / mean - 1) > 4 * se / mean + 0.015


def test_what_the_exact_gradient_does_to_the_initial_layer_is_in_the_estimate():
    """The same draws with the gradient of the labels alone: types leave the difference out."""
    spec = {
        "data": {"model": "isotropic", "dim": 150, "spectrum": "two-level", "levels": [3.0, 0.6],
                 "share": 0.3},
        "labels": {"link": "tanh"}, "network": {"width": 130, "activation": "erf"},
        "training": {"samples": 170, "step_samples": 300, "rate": 60.0, "ridge": 1e-3},
    }  # fmt: skip
    alone = {**spec, "training": {**spec["training"], "gradient": "labels-only"}}
    errors = []
    for one in (spec, alone):
        rows = og.simulate(og.Problem.from_spec(one), seeds=60, rng=0).results.rows
        errors.append(np.array([row.test_error for row in rows]))
    change = (errors[0] - errors[1]) / errors[1].mean()
    effect, se = change.mean(), change.std(ddof=1) / np.sqrt(len(change))
    p = og.Problem.from_spec(spec)
    geometry = geometry_of(p, "auto", 0)
    assert -output_noise(p, geometry) - 4 * se < effect < -0.01
    # negative control: half of what f₀ takes from the labels does not cover it
    assert effect < -0.5 * output_loss(p, geometry) - 4 * se
    found = og.predict(p, "conditional")
    plain = og.predict(og.Problem.from_spec(alone), "conditional")
    assert abs(effect) < found.error_estimate + 4 * se
    assert found.error_estimate > plain.error_estimate + 0.8 * abs(effect)


@pytest.mark.parametrize(("link", "least"), [("hermite(-0.213, 0, 0.919)", 0.003), ("relu", 0.0)])
def test_the_chance_of_the_labels_scale_is_stated(link, least):
    """ξᵀΛξ differs between teachers: what that does to E y² is in the estimate, and no more."""
    p = og.Problem(
        data={"model": "isotropic", "dim": 307, "spectrum": "two-level", "levels": [4.81, 0.354],
              "share": 0.472},
        labels={"model": "single-index", "link": link},
        training={"samples": 203, "ridge": 1.65, "rate": 0.0},
        network={"convention": "isotropic", "activation": "sigmoid", "width": 84},
    )  # fmt: skip
    xi = np.random.default_rng(0).standard_normal((20_000, 307))
    scale = (xi**2 @ p.data.bulk_eigenvalues) / (xi**2).sum(axis=1) / p.data.bulk_eigenvalues.max()
    z, weights = np.polynomial.hermite_e.hermegauss(40)
    squares = p.links[0](np.sqrt(np.append(scale, scale.mean()))[:, None] * z) ** 2 @ weights
    off = squares[:-1].mean() / squares[-1] - 1
    assert off >= least
    assert off < og.predict(p, "conditional").error_estimate < off + 0.005
