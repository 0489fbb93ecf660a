"""A problem as the isotropic theory sees it, and the size of the first step."""

import math
from dataclasses import replace

import numpy as np
import pytest

from onegrad.errors import AssumptionError
from onegrad.gaussian.activation import get_activation
from onegrad.problem import Problem
from onegrad.theory.isotropic.setting import IsotropicSetting
from tests.theory.isotropic.common import NOISE, link_of, problem, setting


def test_a_problem_becomes_its_proportions():
    given = problem(exponent=0.2, constant=3.0, training={"step_samples": 250})
    here = IsotropicSetting.of(given)
    assert (here.phi, here.psi, here.step_phi) == (0.5, 0.8, 2.0)
    assert (here.ridge, here.width, here.gradient) == (0.1, 625, "exact")
    assert here.noise_variance == pytest.approx(NOISE)
    assert here.rate == given.rate and here.exponent == 0.2
    # the theory takes the mean off by itself
    assert here.activation is get_activation("relu") and here.features.coefficients[0] == 0
    assert here.features.mean == pytest.approx(1 / math.sqrt(2 * math.pi))


def test_a_rate_by_hand_has_the_exponent_that_gives_it():
    assert IsotropicSetting.of(problem(rate=10.0)).exponent == pytest.approx(1 / 3)
    assert IsotropicSetting.of(problem(rate=0.0)).exponent == -math.inf


@pytest.mark.parametrize(
    "changes",
    [
        {"data": {"model": "mixture", "dim": 500, "spread": 3.0}},
        {"network": {"convention": "mixture", "width": 625}, "training": {"samples": 9, "rate": 1}},
        {"labels": {"model": "component", "values": [1.0]}},
    ],
)
def test_other_problems_are_refused(changes):
    tables = problem(rate=1.0).model_dump(mode="json", exclude_none=True) | changes
    with pytest.raises(AssumptionError, match="limiting spectra are known"):
        IsotropicSetting.of(Problem.from_spec(tables))


def test_labels_that_vanish_have_no_direction():
    nothing = setting(link=link_of([0.0]), noise_variance=0.0)
    with pytest.raises(AssumptionError, match="labels vanish"):
        _ = nothing.direction_norm2
    assert replace(nothing, gradient="exact").direction_norm2 > 0


def test_the_direction_of_the_exact_gradient():
    n, d, width = 800, 400, 500
    rng = np.random.default_rng(1)
    activation = get_activation("relu").centred()
    squares = []
    for _ in range(40):
        w = rng.standard_normal((width, d)) / math.sqrt(d)
        a = rng.standard_normal(width) / math.sqrt(width)
        x = rng.standard_normal((n, d))
        y = x[:, 0] + rng.standard_normal(n)
        residuals = (y, y - activation(x @ w.T) @ a)
        squares.append([np.sum((x.T @ r / n) ** 2) for r in residuals])
    mean, error = np.mean(squares, 0), np.std(squares, 0, ddof=1) / math.sqrt(len(squares))
    labels, exact = (
        setting(link=link_of([0, 1]), noise_variance=1.0, phi=d / n, gradient=g).direction_norm2
        for g in ("labels-only", "exact")
    )
    # at finite n the squared linear part adds O(1/n): E|β|² is s² + c²(1/n) here
    assert abs(mean[0] - labels) <= 4 * error[0] + labels / n
    assert abs(mean[1] - exact) <= 4 * error[1] + exact / n
    assert abs(mean[1] - labels) > 4 * error[1] + exact / n
