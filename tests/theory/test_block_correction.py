"""The 1/n correction on a bulk in blocks: a flat one in two halves is the flat one."""

from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.theory.directions.overlaps import geometry_of
from onegrad.theory.neurons.recursion import trained_types
from onegrad.theory.nodes.population import data_nodes
from onegrad.theory.nodes.rules import QuadratureLevel
from onegrad.theory.size.free_energy import FreeEnergy, Resampling
from onegrad.theory.size.ratio import cumulants_of, errors_by_part, with_lengths


def errors(halves=False, known=True):
    """Test error, training error and objective; known : whether cumulants know the halves."""
    p = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": 120}, "network": {"width": 150, "activation": "relu"},
        "training": {"samples": 200, "rate": 0.0, "ridge": 1e-3},
    })  # fmt: skip
    geometry, level = geometry_of(p), QuadratureLevel.draft()
    neurons = trained_types(p, geometry, level)
    where = data_nodes(p, geometry, neurons.spread, level)
    if halves:
        neurons = replace(
            neurons, shares=np.full((len(neurons.bulk), 2), 0.5),
            coordinates=np.full(2, neurons.bulk_dim / 2),
        )  # fmt: skip
    features = with_lengths(p, geometry, neurons, where)
    beyond = cumulants_of(p, geometry, neurons, where)
    beyond = beyond if known else replace(beyond, shares=None)
    which = Resampling(np.zeros(len(features.weights), int))
    energy = FreeEnergy.of(features, float(p.samples), which, beyond)
    errors, added, _ = errors_by_part(energy, p.effective_ridge)
    return errors + added


def test_two_halves_are_the_whole():
    """Up to the truncation of tables: further blocks keep squared singular values above 1e-8."""
    assert errors(halves=True) == pytest.approx(errors(), rel=2e-5)


def test_slopes_of_one_half_alone_are_not():
    assert np.max(np.abs(errors(halves=True, known=False) / errors() - 1)) > 1e-4
