"""Where the theory of types refuses, `auto` draws first layers; where neither holds it says why."""

import pytest

import onegrad as og
from onegrad.errors import AssumptionError

# 24 strong spikes, along which the step moves neurons by chance: too many to average over.
SPIKES = {
    "data": {"model": "mixture", "dim": 150, "rank": 12, "spread": 12.0},
    "labels": {"link": "sigmoid", "noise": 0.1},
    "network": {"convention": "isotropic", "activation": "softplus", "width": 60},
    "training": {"samples": 120, "ridge": 0.25},
    "scaling": {"exponent": 0.25},
}


@pytest.fixture(scope="module")
def found():
    return og.predict(SPIKES)


def test_drawn_layers_take_over(found):
    with pytest.raises(AssumptionError, match="by chance"):
        og.predict(SPIKES, "conditional")
    assert found.method == "matrix theory of the first layer" and found.status == "ok"
    assert "the theory without a draw refuses: the step moves" in found.assumptions[-1]
    assert 0 < found.test_error_se < 0.012 * found.test_error


def test_they_agree_with_the_network_and_cover_their_error(found):
    simulated = og.simulate(SPIKES, seeds=60, rng=5)
    for name in ("test_error", "train_error"):
        mean, error = getattr(simulated, name).mean, getattr(simulated, name).standard_error
        off, own = abs(getattr(found, name) - mean), getattr(found, f"{name}_se")
        assert off < 0.02 * mean + 4 * (error**2 + own**2) ** 0.5
        assert off < found.error_estimate * mean + 4 * error


def test_typical_overlaps_have_no_layers():
    with pytest.raises(AssumptionError, match="by chance"):
        og.predict(SPIKES, overlaps="typical")


def test_a_readout_that_spends_itself_on_the_directions_is_refused():
    many = {
        **SPIKES,
        "data": {"model": "mixture", "dim": 150, "rank": 3, "spread": 300.0, "mean": 2.0},
        "network": {"convention": "isotropic", "activation": "hermite(0, 0.2, 0.6, 0, -0.1)",
                    "width": 60},
        "training": {"samples": 100, "ridge": 1e-3},
    }  # fmt: skip
    with pytest.raises(AssumptionError, match="degrees of freedom"):
        og.predict(many, "layer")
