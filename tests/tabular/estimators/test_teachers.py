"""What one step finds where random features, kernels and linear models do not."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width"), [("H₁(s) + H₂(s) + H₃(s)", 100), ("s + st + H₂(s)t", 250)]
)
def test_one_step_beats_features_of_the_same_number(name, width):
    """A single-index and a two-index teacher, n = 100, m = 10,000: by a factor of two at least."""
    compare = runpy.run_path(str(EXAMPLES / "one_step_regression.py"))["compare"]
    ((_, errors, rate),) = compare(10_000, 100, width, gammas=(0.1,), only=name)
    best = errors.pop("one step")
    assert set(errors) == {"random features", "linear", "RBF features", "Nyström"}
    assert rate > 0
    assert best < 0.5 * min(errors.values())


def test_what_one_step_cannot_see():
    """A pure H₃ has neither a linear nor a quadratic part: nothing is found, nothing is lost."""
    compare = runpy.run_path(str(EXAMPLES / "one_step_regression.py"))["compare"]
    ((_, errors, _),) = compare(rows=3000, inputs=50, width=100, only="H₃(s)")
    assert errors["one step"] == pytest.approx(1.0, abs=0.05)
    assert errors["one step"] < errors["random features"] + 0.03


def test_the_comparison_of_classifiers_runs():
    compare = runpy.run_path(str(EXAMPLES / "compare_classifiers.py"))["compare"]
    results = {name: accuracy for name, _, accuracy, _ in compare("digits", 100, 600, 300)}
    assert len(results) == 6
    assert results["OneStepClassifier (100)"] > results["random features (100), rate = 0"]
    assert min(results.values()) > 0.8
