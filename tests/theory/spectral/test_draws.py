"""Outliers that pass each other by chance, and rules along saturated axes."""

import math

import numpy as np
import pytest

import onegrad as og
from onegrad.theory.layers import types
from onegrad.theory.nodes.rules import Rule
from onegrad.theory.spectral.draws import (
    Found,
    Outlier,
    OutlierLimit,
    alignment_doubts,
    in_draws,
    in_draws_by_chance,
    mean_outliers,
)
from onegrad.theory.spectral.structured import structured_limit

SIZES = np.full(1, 1e12), np.full(1, 1e12)  # nothing fluctuates


def found(moving, still=3.2):
    """Two outliers along axes of their own, the larger one first."""
    both = [(moving, np.array([1.0, 0.0])), (still, np.array([0.0, 1.0]))]
    both.sort(key=lambda one: -one[0])
    limits = [
        OutlierLimit(value**2, 1.0, shape, shape, np.ones(1), np.ones(1)) for value, shape in both
    ]
    return Found(limits, SIZES, ["moving", "still"], np.array([5.0, 4.0]))


def test_outliers_pass_each_other():
    """s = 3.2 + 0.3ζ beside 3.2: the larger one has the mean 3.2 + 0.3/√(2π)."""
    up, down = found(3.5), found(2.9)
    exact = 3.2 + 0.3 / math.sqrt(2 * math.pi)
    first, second = in_draws_by_chance(up, down, 1.0)
    assert first.singular_value == pytest.approx(exact, abs=2e-3)
    assert second.singular_value == pytest.approx(6.4 - exact, abs=2e-3)
    assert first.alignments["moving"] == pytest.approx(0.5, abs=0.01)
    assert first.deviation == pytest.approx(0.3 * math.sqrt(0.5 - 0.5 / math.pi) / exact, rel=0.05)
    # negative control: the mean of two lists
    wrong = mean_outliers([in_draws(up), in_draws(down)], np.full(2, 0.5), 1.0)
    assert wrong[0].singular_value - exact > 0.02


def test_what_is_an_outlier_of_one_sign_only():
    up, down = found(3.5), found(2.9)
    down = Found(down.limits[:1], SIZES, down.names, down.strengths)
    first, second = in_draws_by_chance(up, down, 2.9)
    assert first.singular_value > second.singular_value > 2.9


def test_rules_on_both_sides_of_the_bend(monkeypatch):
    """After a large step features are steep functions of the readout: the outlier of degree three,
    a small one, is missed by long Gauss–Hermite rules."""
    n = 300
    problem = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": n}, "labels": {"link": "tanh"},
        "network": {"width": n, "activation": "tanh"},
        "training": {"samples": n * 5 // 4, "step_samples": 4 * n, "rate": 5.0 * n,
                     "gradient": "labels-only"},
    })  # fmt: skip

    def second(rule):
        with monkeypatch.context() as patch:
            if rule is not None:
                patch.setattr(types, "halves", rule)
            return structured_limit(problem, "drawn", 0).features.outliers[1].singular_value

    fine = second(lambda order: Rule(14, (0.0,)))
    assert second(None) == pytest.approx(fine, rel=0.005)
    assert second(Rule) / fine - 1 > 0.04


def test_cosines_that_draws_do_not_share():
    def doubts(*values):
        return alignment_doubts([Outlier(v, 1.5, {}, 0.05) for v in values], threshold=2.0)

    assert doubts(3.0) == ("",) and doubts(4.0, 3.0) == ("", "")  # far from each other and the bulk
    assert doubts(2.05) == ("close to the bulk",)
    assert doubts(3.2, 3.0, 2.05) == ("close to another outlier",) * 2 + ("close to the bulk",)
