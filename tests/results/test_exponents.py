"""Exponents of scaling laws: exact on power laws, and the theory's beside the networks'."""

import numpy as np
import pytest

import onegrad as og
from onegrad.results.results import Results
from onegrad.results.rows import Row

VALUES = [10, 20, 40, 80]


def rows(model, exponent, seeds, noise=0.0):
    rng = np.random.default_rng(0)
    return [
        Row({"training.samples": v}, model, seed, float(v**-exponent * np.exp(noise * z)), 0.1, 0.1,
            0.0, "ok", "", number=i)
        for i, v in enumerate(VALUES)
        for seed, z in enumerate(rng.standard_normal(seeds))
    ]  # fmt: skip


def test_a_power_law_has_its_exponent():
    found = Results("x", (*rows("theory", 0.5, 1), *rows("network", 0.7, 50, 0.1)))
    theory, network = og.scaling_exponents(found, "training.samples")
    assert theory.exponent.mean == pytest.approx(0.5)
    assert theory.local == pytest.approx([0.5] * 3)
    assert abs(network.exponent.mean - 0.7) < 4 * network.exponent.standard_error + 1e-9
    assert "training.samples" in repr(network)


@pytest.mark.parametrize("key", ["training.sample", "network.width"])
def test_keys_that_were_not_swept_are_refused(key):
    with pytest.raises(og.SpecError, match=r"along .*must be from"):
        og.scaling_exponents(Results("x", tuple(rows("theory", 0.5, 1))), key)


def test_two_values_are_no_law():
    with pytest.raises(og.SpecError, match="three different"):
        og.scaling_exponents(Results("x", tuple(rows("theory", 0.5, 1))[:2]), "training.samples")


def test_the_theory_beside_networks():
    """A power-law bulk j^−1.5, a linear target: the exponent of the samples near one half."""
    tables = {
        "data": {"model": "isotropic", "dim": 400, "spectrum": "power-law", "exponent": 1.5},
        "labels": {"link": "identity"}, "network": {"width": 400, "activation": "tanh"},
        "training": {"samples": 50, "rate": 0.0, "ridge": 1e-6},
    }  # fmt: skip
    found = og.sweep(tables, {"training.samples": [20, 40, 80]}, seeds=30, accuracy=0.03)
    laws = {law.model: law.exponent for law in og.scaling_exponents(found, "training.samples")}
    network, theory = laws["network"], laws["theory"]
    assert abs(theory.mean - network.mean) < 4 * network.standard_error + 0.03
    assert 0.3 < theory.mean < 0.7
