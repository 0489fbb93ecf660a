"""Rules along saturated axes, and cosines that draws do not share."""

import pytest

import onegrad as og
from onegrad.theory.neurons import types
from onegrad.theory.nodes.rules import Rule
from onegrad.theory.spectra.limits import spectral_limit
from onegrad.theory.spectra.outliers import Outlier, alignment_doubts


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
            return spectral_limit(problem, "drawn", 0).features.outliers[1].singular_value

    fine = second(lambda order: Rule(14, (0.0,)))
    assert second(None) == pytest.approx(fine, rel=0.005)
    assert second(Rule) / fine - 1 > 0.04


def test_cosines_that_draws_do_not_share():
    def doubts(*values):
        return alignment_doubts([Outlier(v, 1.5, {}, 0.05) for v in values], threshold=2.0)

    assert doubts(3.0) == ("",) and doubts(4.0, 3.0) == ("", "")  # far from each other and the bulk
    assert doubts(2.05) == ("close to the bulk",)
    assert doubts(3.2, 3.0, 2.05) == ("close to another outlier",) * 2 + ("close to the bulk",)
