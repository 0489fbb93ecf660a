"""Rules along saturated axes, and cosines that draws do not share."""

import pytest

import onegrad as og
from onegrad.theory.spectra.limits import spectral_limit
from onegrad.theory.spectra.outliers import Outlier, alignment_doubts

SECOND = 1.34797  # with fourteen nodes on each side of the bend; Gauss–Hermite rules: 4 % more


def test_rules_on_both_sides_of_the_bend():
    """After a large step features are steep functions of the readout: the outlier of degree three,
    a small one, is missed by long Gauss–Hermite rules."""
    n = 300
    problem = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": n}, "labels": {"link": "tanh"},
        "network": {"width": n, "activation": "tanh"},
        "training": {"samples": n * 5 // 4, "step_samples": 4 * n, "rate": 5.0 * n,
                     "gradient": "labels-only"},
    })  # fmt: skip

    second = spectral_limit(problem, "drawn", 0).features.outliers[1].singular_value
    assert second == pytest.approx(SECOND, rel=0.005)


def test_cosines_that_draws_do_not_share():
    def doubts(*values):
        return alignment_doubts([Outlier(v, 1.5, {}, 0.05) for v in values], threshold=2.0)

    assert doubts(3.0) == ("",) and doubts(4.0, 3.0) == ("", "")  # far from each other and the bulk
    assert doubts(2.05) == ("close to the bulk",)
    assert doubts(3.2, 3.0, 2.05) == ("close to another outlier",) * 2 + ("close to the bulk",)
