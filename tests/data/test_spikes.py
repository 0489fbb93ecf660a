"""Spikes found in samples of a known population, and none in noise."""

import numpy as np
import pytest

from onegrad.data.mixture_fit import find_spikes

SHAPES = [(2000, 100), (1000, 1000), (300, 900), (500, 50)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_strengths_are_found(rows, columns):
    """Mean over ten samples: a strength's relative error is of order √(2/N), plus 5 % of bias."""
    true = np.array([20.0, 8.0])
    found, naive = [], []
    for seed in range(10):
        rng = np.random.default_rng([seed, rows, columns])
        directions = np.linalg.qr(rng.standard_normal((columns, 2)))[0]
        along = rng.standard_normal((rows, 2)) * np.sqrt(true)
        x = 3.0 * (rng.standard_normal((rows, columns)) + along @ directions.T)
        spikes = find_spikes(x)
        assert spikes.count == 2
        assert spikes.noise == pytest.approx(9.0, rel=0.05)
        found.append(spikes.strengths)
        naive.append(spikes.eigenvalues[1] / spikes.noise - 1)
    error = 4 * np.sqrt(2 / rows / 10) + 0.05
    np.testing.assert_allclose(np.mean(found, axis=0), true, rtol=error)
    if columns >= rows:  # negative control: the sample eigenvalues themselves are too large
        assert np.mean(naive) > true[1] * (1 + error)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_noise_has_no_spike(rows, columns):
    false = 0
    for seed in range(20):
        x = np.random.default_rng([seed, rows]).standard_normal((rows, columns))
        false += find_spikes(x).count
    assert false <= 1


def test_few_columns_claim_nothing():
    x = np.random.default_rng(0).standard_normal((100, 3)) * [10, 1, 1]
    assert find_spikes(x).count == 0
