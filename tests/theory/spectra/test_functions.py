"""What singular vectors are compared with: products of polynomials that nodes know roughly."""

import math

import numpy as np
import pytest

from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.nodes.population import quasi_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.spectra.functions import (
    sample_functions,
    strong_axis_nodes,
    unit_functions,
)

AXES, POINTS, LEVEL = 8, 512, QuadratureLevel.at(2)
STEEP = np.diag([50.0] + [0.1] * (AXES - 1))
NAMED = {"step": np.eye(AXES)[0], "spike 1.1": np.full(AXES, AXES**-0.5)}
SIGN = {1: math.sqrt(2 / math.pi), 3: -math.sqrt(2 / math.pi / 6)}  # cosines of sign(z) and H_d(z)


def geometry(means=((0.0,) * AXES,), weights=(1.0,)):
    return Geometry(
        300, np.array(weights), np.array(means), np.tile(np.eye(AXES), (len(weights), 1, 1)),
        np.zeros(AXES),
    )  # fmt: skip


def cosines(given, where, values):
    names, unit = unit_functions(given, NAMED, where)
    return dict(zip(names, unit @ (np.sqrt(where.weights) * values), strict=True))


def test_a_sign_along_the_steep_axis():
    given = geometry()
    where = strong_axis_nodes(given, STEEP, LEVEL, POINTS)
    found = cosines(given, where, np.sign(where.kappa[:, 0]))
    along = AXES**-0.5
    for degree, value in SIGN.items():
        name = "" if degree == 1 else f" H{degree}"
        assert found["step" + name] == pytest.approx(value, abs=0.003)
        assert found["spike 1.1" + name] == pytest.approx(value * along**degree, abs=0.02)
    # negative control: quasi-random points, and products as they have them
    where = quasi_nodes(given, POINTS, AXES, LEVEL)
    functions = sample_functions({"step": where.kappa[:, 1]}, {"": where.weights}, where.weights)
    h1, h3 = functions["step"], functions["step H3"]
    assert abs(where.weights @ (h1 * h3)) / np.linalg.norm(h3) * math.sqrt(len(h3)) > 0.03


def test_polynomials_of_a_mixture():
    """Exact wherever the nodes are: H₁ and H₃ of two components are not orthogonal."""
    given = geometry(means=np.outer([1.5, -1.5], np.eye(AXES)[0]), weights=(0.3, 0.7))
    where = strong_axis_nodes(given, STEEP, LEVEL, POINTS)
    t = where.kappa @ NAMED["step"]
    rng = np.random.default_rng(0)
    side = np.where(rng.random(400_000) < 0.3, 1.5, -1.5)
    drawn = side + rng.standard_normal(len(side))
    functions = sample_functions(
        {"step": drawn}, {"component 1": side > 0, "component 2": side < 0},
        np.full(len(side), 1 / len(side)),
    )  # fmt: skip
    target = functions["step"]
    found = cosines(given, where, (t - drawn.mean()) / drawn.std())
    for name in ("constant", "component 1", "step", "step H2", "step H3"):
        f = functions[name]
        assert found[name] == pytest.approx(f @ target / np.linalg.norm(f) / 400_000**0.5, abs=0.01)
    assert abs(found["step H3"]) > 0.1
