"""Limiting spectra on a bulk that is not flat, after a step: many axes, against networks."""

import math

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.simulate.network.trial import Trial
from onegrad.spectrum.report import report_of
from onegrad.theory.spectra.limits import spectral_limit

N, DRAWS = 300, 6
FARTHEST = 0.035  # Kolmogorov distance at this size; 0.012 and less at n = 2000
PROBLEM = og.Problem.from_spec({
    "data": {"model": "isotropic", "dim": N, "spectrum": "power-law", "exponent": 0.8},
    "labels": {"link": "tanh"}, "network": {"width": N, "activation": "tanh"},
    "training": {"samples": N * 5 // 4, "step_samples": 16 * N, "rate": 0.5 * N},
})  # fmt: skip


class SameDirections(Streams):
    """Draws that differ in everything but the teacher."""

    def rng(self, purpose):
        return Streams(0, 0).rng(purpose) if purpose == "structure" else super().rng(purpose)


@pytest.fixture(scope="module")
def limit():
    return spectral_limit(PROBLEM, "drawn", 0)


@pytest.fixture(scope="module")
def drawn(limit):
    return [report_of(Trial(PROBLEM, SameDirections(seed, 0)), limit) for seed in range(DRAWS)]


@pytest.mark.parametrize("matrix", ["weights", "features"])
def test_bulks_outliers_and_alignments(limit, drawn, matrix):
    expected, found = getattr(limit, matrix), [getattr(d, matrix) for d in drawn]
    assert np.mean([one.distance for one in found]) < FARTHEST
    for j, outlier in enumerate(expected.outliers[: 1 if matrix == "weights" else 2]):
        values = np.array([one.leading[j] for one in found])
        se = values.std(ddof=1) / math.sqrt(DRAWS)
        assert abs(values.mean() - outlier.singular_value) <= 4 * se + 0.02 * values.mean()
        for function, cosine in outlier.alignments.items():
            seen = np.array([one.alignments[j][function] for one in found])
            if cosine > 0.3:
                se = seen.std(ddof=1) / math.sqrt(DRAWS)
                assert seen.mean() == pytest.approx(cosine, abs=0.03 + 4 * se), function


def test_eigenvectors_have_outliers(limit):
    names = [max(one.alignments, key=one.alignments.get) for one in limit.features.outliers[:3]]
    assert "eigenvector 2" in names
