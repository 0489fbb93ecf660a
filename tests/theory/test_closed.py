"""Directions closed under a bulk: exact where they can be, Gauss rules, refusals."""

from functools import cache

import numpy as np
import pytest

import onegrad as og
from onegrad.data.isotropic import Isotropic
from onegrad.theory.directions import closed
from onegrad.theory.directions.closed import Closure, closed_geometry, typical_closed

POWER = Isotropic(dim=120, spectrum="power-law", exponent=0.8).population(0.0, None)
TWO = Isotropic(dim=120, spectrum="two-level", levels=[4.0, 0.25], share=0.2).population(0.0, None)


def test_two_levels_are_closed_by_two_axes():
    xi = np.random.default_rng(0).standard_normal(120)
    found = closed_geometry(TWO, xi)
    assert found.rank == 2
    np.testing.assert_allclose(found.levels.axes, np.sort(np.unique(TWO.bulk)))
    np.testing.assert_allclose(found.levels.values, np.unique(TWO.bulk)[::-1])
    np.testing.assert_allclose(found.levels.counts, [23, 95])
    assert np.abs(TWO.bulk[:, None] * found.basis - found.basis * found.levels.axes).max() < 1e-10


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_traces_and_labels_are_exact(order):
    """tr Λ splits into axes and blocks, and the teacher sees the variance that labels have."""
    xi = np.random.default_rng(1).standard_normal(120)
    found = closed_geometry(POWER, xi, Closure(order))
    levels = found.levels
    assert levels.trace + levels.axes.sum() == pytest.approx(120)
    assert levels.counts.sum() + found.rank == pytest.approx(120)
    along = xi @ (POWER.bulk * xi) / (xi @ xi) / POWER.bulk[0]
    assert found.teacher @ found.teacher == pytest.approx(along)
    axes, blocks = [one.rank for one in levels.coarser], len(levels.values)
    assert axes == ([order] if order == 1 else [order - 1, order])
    assert len(levels.coarser[-1].levels.values) < blocks


def steep(count):
    """λ_j ∝ j^−1.5 in 400 dimensions, by blocks."""
    bulk = Isotropic(dim=400, spectrum="power-law", exponent=1.5).population(0.0, None).bulk
    return bulk[2:], closed._blocks(bulk[2:], np.ones(398), count)


def worst(bulk, blocks):
    """Of tr Λ/(Λ + σ), relative, over four decades of σ."""
    values, counts = blocks
    shifts = np.geomspace(1e-3, 10, 9)
    exact, found = ([w @ (x / (x + s)) for s in shifts] for x, w in (
        (bulk, np.ones(len(bulk))), (values, counts)))  # fmt: skip
    return np.abs(np.array(found) / exact - 1).max()


def test_blocks_know_the_resolvents_of_a_steep_spectrum():
    bulk, blocks = steep(4)
    assert blocks[1] @ blocks[0] == pytest.approx(bulk.sum())
    assert blocks[1] @ blocks[0] ** 2 == pytest.approx((bulk**2).sum())
    assert worst(bulk, blocks) < 0.02 and worst(bulk, steep(6)[1]) < 0.002


def test_a_rule_in_the_eigenvalues_themselves_does_not():
    """Negative control: exact moments, which small eigenvalues have no part in."""
    bulk, _ = steep(4)
    assert worst(bulk, closed._gauss(bulk, np.ones(398), 6)) > 0.15


def test_leading_eigenvectors_become_axes():
    found = typical_closed(POWER, Closure(3, 6, 6))
    assert found.rank == 9 and found.basis is None
    assert {f"eigenvector {a}" for a in range(1, 7)} <= set(found.directions)
    vector = found.directions["eigenvector 1"]
    assert vector @ (found.levels.axes * vector) == pytest.approx(POWER.bulk[0], rel=1e-9)


def problem(**changes):
    tables = {"data": {"model": "isotropic", "dim": 120, "spectrum": "power-law", "exponent": 0.8},
              "network": {"width": 80, "activation": "tanh"},
              "training": {"samples": 200, "rate": 0.0, "ridge": 1e-2}}  # fmt: skip
    for key, value in changes.items():
        tables[key] = tables.get(key, {}) | value
    return og.Problem.from_spec(tables)


@cache
def typical():
    return og.predict(problem(), method="conditional")


def test_which_theory_is_asked():
    """Types, unless they leave more open than first layers that are drawn."""
    larger = {"data": {"dim": 240}, "network": {"width": 160}, "training": {"samples": 400}}
    assert og.predict(problem(**larger)).method.startswith("conditional")
    found = og.predict(problem(training={"rate": 8000.0}))
    assert "matrix" in found.method and found.test_error_se > 0


def test_a_draw_of_the_teacher():
    drawn = og.predict(problem(), overlaps="drawn")
    assert 0 < abs(drawn.test_error / typical().test_error - 1) < 0.3
    assert np.isfinite(typical().error_estimate)


def test_spikes_have_no_typical_places_on_it():
    mixed = problem(data={"model": "mixture", "spread": 4.0})
    with pytest.raises(og.OnegradError, match=r"data\.spectrum"):
        og.predict(mixed, method="conditional")
    assert "matrix" in og.predict(mixed).method
