"""The bench's price of a standard error."""

import pytest

from benchmarks.speed.precision import cost_alone, cost_together, relative_variance, seeds_for


def test_seeds_follow_the_variance_down_to_the_floor():
    assert seeds_for(0.04**2, 0.01) == pytest.approx(16)
    assert seeds_for(0.01**2, 0.01) == 8
    # fewer with control variates, as cautious as `seeds = "auto"`
    assert seeds_for(0.005**2, 0.01, 4) == 4
    assert seeds_for(0.014**2, 0.01, 4) == 5
    assert seeds_for(0.027**2, 0.01, 4) == 8
    values = [1.0, 3.0] * 10
    assert relative_variance(values) == pytest.approx(20 / 19 / 4)
    assert relative_variance(values, [[-1.0, 1.0] * 10, [0.0] * 20]) == 0


def test_a_shared_seed_is_paid_once_and_settled_activations_drop_out():
    variances = {
        ("relu", "network"): 0.06**2, ("relu", "hermite"): 0.05**2,
        ("tanh", "network"): 0.02**2, ("tanh", "hermite"): 0.04**2,
    }  # fmt: skip
    asked = []

    def cpu(activations):
        asked.append(tuple(activations))
        return float(len(activations))

    # 16 seeds of both, then 20 more of relu alone
    assert cost_together(variances, 0.01, cpu) == pytest.approx(16 * 2 + 20)
    assert asked == [("tanh", "relu"), ("relu",)]
    alone = cost_alone(variances, 0.01, dict.fromkeys(variances, 1.0))
    assert alone == pytest.approx(36 + 25 + 8 + 16)
