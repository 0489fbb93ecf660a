"""The linear baseline where data can be separated: a fit that is not found at once."""

import onegrad as og


def test_a_squared_hinge_on_separable_data_is_fitted():
    problem = {
        "data": {"model": "mixture", "dim": 120, "mean": 2.0, "rank": 0, "spread": 1.0},
        "labels": {"model": "component"},
        "network": {"width": 150},
        "training": {"samples": 200, "ridge": 1e-3, "rate": 40.0, "loss": "squared-hinge"},
    }
    found = og.simulate(problem, models=("linear",), seeds=6)
    assert 0 < found.misclassification.mean < 0.1
