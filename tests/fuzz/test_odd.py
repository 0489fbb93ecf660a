"""The short form of tests/fuzz/odd.py, and what it once found."""

import pytest

from tests.fuzz.odd import faults, read


@pytest.mark.parametrize("number", range(12))
def test_odd_specs_give_numbers_or_advice(number):
    experiment = read(1, number)
    if experiment is not None:
        assert faults(experiment) == []


@pytest.mark.parametrize("seed, number", [(0, 14), (0, 15), (77, 13), (401, 120)])
def test_what_was_once_found(seed, number):
    """Numbers beyond double precision in the theory; a quadrature of a gigabyte; spikes that are
    aligned where there are none; a bulk of two eigenvalues, both of which have axes."""
    assert faults(read(seed, number)) == []
