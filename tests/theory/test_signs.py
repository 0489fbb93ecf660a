"""Signs at strong ridges: what one first layer has more of than the next decides them."""

import pytest

import onegrad as og

FINITE = 0.03  # at this size, beside four standard errors


def problem(loss):
    return og.Problem(
        data={"model": "mixture", "dim": 60, "mean": 2.0, "rank": 0, "spread": 1.0,
              "directions": "orthogonal", "counts": "proportional"},
        labels={"model": "component"},
        network={"width": 60, "activation": "relu"},
        training={"samples": 60, "ridge": 1.0, "rate": 0.0, "loss": loss},
    )  # fmt: skip


def off(loss, found):
    wrong = og.predict(problem(loss)).misclassification
    return (wrong - found.mean) / (4 * found.standard_error + FINITE * found.mean)


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_networks_agree(loss):
    seeds = 400
    simulated = og.simulate(problem(loss), seeds=seeds, risk="sampled", test_samples=1000)
    found = simulated.misclassification
    assert abs(off(loss, found)) < 1
