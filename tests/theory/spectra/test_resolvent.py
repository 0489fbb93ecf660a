"""The resolvent of types and nodes against laws that are known in closed form."""

import math

import numpy as np
import pytest

from onegrad.theory.isotropic.traces import limiting_traces
from onegrad.theory.layers.features import Harmonic
from onegrad.theory.spectra.law import SpectralLaw
from onegrad.theory.spectra.outliers import FiniteRank, Seen, find_outliers, mean_outliers
from onegrad.theory.spectra.resolvent import Resolvent

N = 1000.0


def white(psi, variance=1.0):
    return Resolvent(np.full((1, 1), variance), (), np.array([N]), np.ones(1), psi * N)


@pytest.mark.parametrize("psi", [1.0, 1.5, 0.6])
def test_white_noise_is_marchenko_pastur(psi):
    """W of N rows with entries N(0, 1/d), d = psi N: the law of WWᵀ."""
    law, ratio = SpectralLaw.of(white(psi), max(0.0, 1 - psi)), 1 / psi
    low, high = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    assert law.edge == pytest.approx(high, rel=1e-3)
    s = np.linspace(0.3, 0.9, 5) * math.sqrt(high)
    s = s[s**2 > 1.1 * low]
    x = s**2
    want = np.sqrt((high - x) * (x - low)) / (math.pi * ratio * s * min(1.0, psi))
    np.testing.assert_allclose(law.singular_density(s), want, rtol=1e-2)
    alone = SpectralLaw.of(white(psi), 0.0, tail=True)
    assert (alone.edge, alone.edge_scale) == pytest.approx((law.edge, law.edge_scale), rel=1e-12)


@pytest.mark.parametrize("ridge", [0.02, 0.3])
def test_random_features_have_their_known_traces(ridge):
    """c₁²·linear part in n shared coordinates plus independent noise: Péché, Mei & Montanari."""
    c1, rest, phi, psi = 0.5, 0.09, 0.5, 0.8
    n, k, m = phi * N, phi * N / psi, N
    slopes = [Harmonic(1.0, n, np.full((1, 1), c1))]
    bulk = Resolvent(np.full((1, 1), rest), slopes, np.array([k]), np.ones(1), m)
    law = SpectralLaw.of(bulk, 0.0)
    s = np.linspace(0, math.sqrt(law.edge), 20_001)
    density = law.singular_density(s)
    trace = np.trapezoid(density / (s**2 + ridge), s) / np.trapezoid(density, s)  # (1/k) tr
    atom = 1 - k / m  # of the samples' matrix, at zero
    g = (k / m) * trace + atom / ridge
    assert g == pytest.approx(float(limiting_traces(c1, rest, phi, psi, ridge).g), rel=5e-3)


@pytest.mark.parametrize("strength", [0.9, 1.2, 3.0])
def test_a_spike_leaves_the_bulk_at_the_known_transition(strength):
    """W = G/√n + s·uvᵀ, square: σ = s + 1/s beyond s = 1, cos² = 1 − 1/s².

    The coordinate along v is s·u_i plus noise of variance 1/n like all others: |Wv|² = s² + 1.
    """
    bulk = white(1.0)
    length = math.sqrt((strength**2 + 1) / N)
    part = FiniteRank(np.full((1, 1), length), np.eye(1), fixed=True)
    edge = bulk.edge()
    limit = find_outliers(bulk, part, edge, Seen.directions({"v": np.ones(1)}))
    found = mean_outliers([limit], np.ones(1), edge)
    assert limit.strengths[0] == pytest.approx((strength**2 + 1) / 2, rel=0.07)
    assert len(found) == (strength > 1)
    if found:
        assert found[0].singular_value == pytest.approx(strength + 1 / strength, rel=1e-3)
        cosine = math.sqrt(1 - strength**-2)
        assert found[0].alignments["v"] == pytest.approx(cosine, abs=0.01)
