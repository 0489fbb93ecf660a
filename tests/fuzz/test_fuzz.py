"""A short run of both fuzzers, with what they once found; hypothesis makes the numbers smaller."""

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import files, specs

SHORT = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NUMBERS = st.integers(0, 10**9)


@pytest.fixture(autouse=True)
def no_warnings():
    """Those of NumPy and pyarrow about broken contents are no failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@settings(SHORT, max_examples=400)
@given(NUMBERS)
def test_mutated_specs(tmp_path, number):
    specs.check(1, number, tmp_path)


@settings(SHORT, max_examples=120)
@given(NUMBERS)
def test_mutated_files(tmp_path, number):
    files.check(1, number, tmp_path)


def test_what_was_once_found(tmp_path):
    for text in specs.KEPT:
        specs.check_text(tmp_path / "spec.toml", text)
    for seed, number in files.KEPT:
        files.check(seed, number, tmp_path)


def test_the_mutations_reach_both_sides(tmp_path):
    """Some are still valid: those that are not test the refusals, those that are the reading."""
    valid = [specs.check(0, number, tmp_path) for number in range(60)]
    assert 0 < sum(valid) < 60
    readable = [files.check(0, number, tmp_path) for number in range(40)]
    assert 0 < sum(readable) < 40
