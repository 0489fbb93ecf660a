"""Rows are found by what their numbers depend on: content and versions, not names."""

import json
from dataclasses import replace

import numpy as np
import pytest

from onegrad.gaussian.activation import (
    Activation,
    get_activation,
    hermite_activation,
    names,
    register_activation,
)
from onegrad.runs.run import run_experiment
from onegrad.runs.store import point_spec, version_of
from onegrad.simulate.models import MODELS
from onegrad.spec.experiment import Experiment


def spec(**network):
    return {
        "data": {"model": "isotropic", "dim": 20},
        "network": {"width": 15, **network},
        "training": {"samples": 30, "rate": 1.0},
        "compare": {"models": ["network"], "seeds": 2},
    }


def errors(tables, folder):
    return [row.test_error for row in run_experiment(Experiment.read(tables), folder).rows]


def key(activation, **labels):
    tables = spec(activation=activation) | ({"labels": labels} if labels else {})
    return json.dumps(point_spec(Experiment.read(tables).points[0]))


def cube(x):
    return x**3


def cube_slope(x):
    return 3 * x**2


def tanh_slope(x):
    return 1 - np.tanh(x) ** 2


@pytest.fixture
def mine():
    yield lambda function, slope: register_activation(Activation("mine", function, slope))
    from onegrad.gaussian import activation

    activation._registry.pop("mine", None)


def test_a_name_that_is_registered_again_gets_rows_of_its_own(tmp_path, mine):
    mine(cube, cube_slope)
    cubes = errors(spec(activation="mine"), tmp_path)
    mine(np.tanh, tanh_slope)
    tanhs = errors(spec(activation="mine"), tmp_path)
    assert tanhs == errors(spec(activation="mine"), tmp_path / "fresh") != cubes
    mine(cube, cube_slope)
    assert errors(spec(activation="mine"), tmp_path) == cubes


def test_a_borrowed_name_finds_no_rows_of_the_real_one(tmp_path):
    relu = errors(spec(activation="relu"), tmp_path)
    false = Activation("relu", np.tanh, tanh_slope)
    assert errors(spec(activation=false), tmp_path) != relu
    assert errors(spec(activation="relu"), tmp_path) == relu


def test_every_digit_of_a_hermite_coefficient_counts():
    close = [hermite_activation(0, 1, 1 / 3), hermite_activation(0, 1, 0.333333333333)]
    assert len({key(a) for a in close}) == 2
    assert len({key("relu", model="single-index", link=a) for a in close}) == 2
    # the name says it all, and says it as before where that was unambiguous
    assert [get_activation(a.name) == a for a in close] == [True, True]
    assert hermite_activation(0, 1, 0.5).name == "hermite(0, 1, 0.5)"
    assert key("hermite(0, 1, 0.5)") == key(hermite_activation(0, 1, 0.5))


def test_content_tells_functions_apart_and_nothing_else_does():
    def power(p):
        return Activation("power", lambda x: x**p, lambda x: p * x ** (p - 1))

    assert power(2).identity == power(2).identity != power(3).identity
    kinked = replace(power(2), breakpoints=(0.0,))
    assert kinked.identity != power(2).identity
    ours = ("relu", "tanh", "sigmoid", "erf", "gelu", "softplus", "elu")
    assert set(ours) <= set(names())
    assert all(get_activation(name).identity == name for name in ours)
    # a function that has no value on the grid is told by its source
    broken = Activation("broken", lambda x: 1 / 0, lambda x: x)
    assert broken.identity == Activation("broken", broken.function, broken.derivative).identity


def test_links_stand_in_the_key_by_content_too():
    mine = Activation("relu", cube, cube_slope)
    keys = {key("relu", model="single-index", link=link) for link in ("relu", mine, [mine])}
    assert len(keys) == 3
    shown = point_spec(Experiment.read(spec(activation="erf")).points[0])
    assert shown["network"]["activation"] == "erf"


def test_every_model_has_a_version():
    for name, record in MODELS.items():
        assert version_of(name) == version_of(f"{name}:2") == record.version >= 1
