"""Arrays that are used again: never while somebody has them, and without a trace in the results."""

import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.compute import array_pool as pools
from onegrad.compute.array_pool import Pool
from onegrad.compute.backend import read_only
from onegrad.simulate import simulate
from onegrad.simulate.models import SIMULATED
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment

SHAPE = (256, 256)


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_once_the_last_view_is_gone():
    pool = Pool()
    array = pool.empty(SHAPE)
    first = address(array)
    view = array.T[3:, ::2][1]
    del array
    other = pool.empty(SHAPE)
    assert not np.shares_memory(other, view)
    del view
    again = pool.empty(SHAPE)
    assert address(again) == first
    assert not np.shares_memory(other, again)


def test_marks_do_not_stick():
    pool = Pool()
    array = read_only(pool.empty(SHAPE))
    first = address(array)
    del array
    again = pool.empty(SHAPE)
    assert address(again) == first
    assert again.flags.writeable
    assert again.flags.c_contiguous
    assert again.flags.aligned


def test_other_shapes_and_precisions_fit_in_or_take_the_place():
    pool = Pool()
    first = address(pool.empty(SHAPE))
    assert address(pool.empty((512, 200), np.float32)) == first
    larger = pool.empty((300, 300))
    assert larger.shape == (300, 300)
    assert len(pool._kept) == 1
    assert pool._kept[0].size == larger.nbytes


@pytest.mark.parametrize("shape", [(4,), (1 << 14, 1 << 11)])
def test_small_and_very_large_arrays_are_not_kept(shape):
    pool = Pool()
    assert pool.empty(shape).shape == shape
    assert not pool._kept


# --- in a repetition ------------------------------------------------------------------------


TABLES = {
    "data": {"model": "isotropic", "dim": 40},
    "network": {"width": 30},
    "training": {"samples": 50, "ridge": 1e-2, "rate": 2.0},
    "labels": {"link": "relu", "noise": 0.1},
    "compare": {"degree": 2, "seed": 3},
}
NAMES = {"network.activation": ["relu", "tanh", "sigmoid"]}


def groups():
    """Points that differ in everything that gives the arrays their shapes and their order."""
    mixture = {
        "data": {"model": "mixture", "dim": 45},
        "scaling": {"strength": 0.74, "weighting": 0.5},
    }
    mixture |= {"network": {"width": 60}, "training": {"samples": 40, "step_samples": 70}}
    every = list(SIMULATED)
    ridges = {"training.ridge": [1e-3, 1e-2, 1e-1]}
    for wanted, models in [
        (TABLES, every),
        (TABLES | {"sweep": NAMES}, ["network", "hermite"]),
        (mixture | {"sweep": NAMES}, ["network", "conditional-gaussian", "hermite", "gaussian"]),
        (TABLES | {"sweep": ridges}, every[::-1]),
        (TABLES | {"sweep": NAMES | ridges}, every),
        (mixture, ["network"]),
        (mixture | {"compare": {"risk": "sampled"}}, ["hermite", "network", "kernel"]),
        (mixture | {"compare": {"dtype": "float32"}, "sweep": NAMES}, ["network", "hermite"]),
        (TABLES | {"training": {"samples": 50, "rate": 0.0}}, ["network", "random-features"]),
    ]:
        yield Experiment.from_tables(wanted).points, models


def everything(pool=None):
    """Every row of every group, twice over, without the seconds; as texts, for NaN is not NaN."""
    return [
        str(sorted(vars(replace(row, seconds=0.0)).items()))
        for seed in (0, 1)
        for points, models in groups()
        for row in run_group(points, models, seed, pool=pool)
    ]


@pytest.fixture
def fresh(monkeypatch):
    """The rows where every array is a new one; afterwards small arrays are kept too."""
    rows = everything()
    assert all("('status', 'ok')" in row for row in rows)
    monkeypatch.setattr(pools, "_SMALLEST", 1)
    return rows


def test_one_pool_for_different_problems_changes_no_bit(fresh):
    pool = Pool()
    assert everything(pool) == fresh
    held = len(pool._kept)
    assert everything(pool) == fresh
    assert len(pool._kept) == held > 5
    assert all(kept.idle for kept in pool._kept)


def test_nobody_reads_what_was_there_before(fresh, monkeypatch):
    lend = pools._Kept.lend

    def poisoned(self, count, dtype):
        array = lend(self, count, dtype)
        array[...] = np.nan
        return array

    monkeypatch.setattr(pools._Kept, "lend", poisoned)
    assert everything(Pool()) == fresh


def test_control_arrays_in_use_would_be_seen(monkeypatch):
    """Negative control: a pool that hands out what somebody has spoils the numbers."""
    points, models = (
        Experiment.from_tables(TABLES | {"sweep": NAMES}).points,
        ["network", "hermite"],
    )
    right = run_group(points, models, 0)
    monkeypatch.setattr(pools, "_SMALLEST", 1)
    monkeypatch.setattr(pools._Kept, "idle", True)
    with warnings.catch_warnings(action="ignore"):
        wrong = run_group(points, models, 0, pool=Pool())
    assert not {row.test_error for row in right} & {row.test_error for row in wrong}


def test_nothing_is_kept_after_a_simulation(monkeypatch):
    made = []

    class Seen(Pool):
        def __init__(self):
            super().__init__()
            made.append(weakref.ref(self))

    monkeypatch.setattr(simulate, "Pool", Seen)
    problem = next(groups())[0][0].problem
    og.simulate(problem, ["network", "hermite"], seeds=2, degree=2)
    assert len(made) == 1
    assert made[0]() is None
