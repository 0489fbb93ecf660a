"""Single precision where it cannot be seen: the default against double precision, row by row."""

import numpy as np
import pytest

from onegrad.simulate.network import rounding
from onegrad.simulate.network.refine import ROUNDED
from onegrad.simulate.simulate import group_points, run_group
from onegrad.spec.experiment import Compare, Experiment, Point

MODELS = ("network", "hermite", "random-features")


def point(dtype="auto", ridge=1e-4, number=0, **tables):
    spec = {
        "data": {"model": "mixture", "dim": 300, **tables.get("data", {})},
        "network": {"width": 530, "activation": "tanh", **tables.get("network", {})},
        "training": {"samples": 530, "ridge": ridge, **tables.get("training", {})},
        "scaling": tables.get("scaling", {"strength": 0.74, "weighting": 0.5}),
        "compare": {"dtype": dtype, "models": list(MODELS)},
    }
    if "labels" in tables:
        spec["labels"] = tables["labels"]
    (made,) = Experiment.from_tables(spec).points
    return Point({}, made.problem, made.compare, number)


def numbers(rows):
    assert all(row.status == "ok" for row in rows), [row.error for row in rows]
    return np.array([[r.test_error, r.train_error, r.train_objective] for r in rows])


CASES = {
    "tanh at the peak": {},
    "relu, large step": {
        "network": {"activation": "relu"}, "scaling": {"strength": 1.0, "weighting": 0.5},
    },
    "sin": {"network": {"activation": "sin"}, "scaling": {"strength": 0.97, "weighting": 0.6}},
    "wide, means": {"network": {"width": 900}, "data": {"mean": 2.0, "rank": 2}},
    "more samples, elu": {"network": {"activation": "elu"}, "training": {"samples": 900}},
    "isotropic": {
        "data": {"model": "isotropic"}, "network": {"convention": "isotropic"}, "ridge": 2e-3,
        "scaling": {"exponent": 0.4},
    },
    "noise": {"labels": {"link": "relu", "noise": 0.5}, "ridge": 1e-5},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_double_precision(name):
    """To 1e-6; 4.4e-7 was the largest difference in 210 rows of random problems."""
    single, double = point(**CASES[name]), point("float64", **CASES[name])
    assert (single.precision, double.precision) == ("float32", "float64")
    found, wanted = (numbers(run_group([p], MODELS, 1)) for p in (single, double))
    assert not np.array_equal(found, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_rounding_could_show_in_is_made_again_in_double(monkeypatch):
    """One model of two, at one ridge of two; the others stay as they were."""
    monkeypatch.setattr(rounding, "_MAGNIFIED", 1.0)
    points = [point(ridge=r, number=i) for i, r in enumerate((1e-3, 1e-6))]
    assert len(group_points(points)) == 1
    before = run_group(points, MODELS[:2], 2)
    bounds = [
        ROUNDED * 530 * rounding._second_moment(p.problem.activation, p.problem.bulk_scale)
        / p.problem.effective_ridge
        for p in points
    ]  # fmt: skip
    monkeypatch.setattr(rounding, "_MAGNIFIED", float(np.sqrt(bounds[0] * bounds[1])))
    after = run_group(points, MODELS[:2], 2)
    double = [run_group([point("float64", ridge=1e-6)], MODELS[:2], 2)]
    assert np.array_equal(numbers(after)[:2], numbers(before)[:2])
    np.testing.assert_allclose(numbers(after)[2:], numbers(double[0]), rtol=1e-11)
    assert not np.allclose(numbers(before)[2:], numbers(double[0]), rtol=1e-11)


def test_a_test_error_far_below_the_labels_is_made_in_double(monkeypatch):
    wanted = numbers(run_group([point("float64")], ("network",), 0))
    monkeypatch.setattr(rounding, "_LEAST_ERROR", 10.0)
    found = numbers(run_group([point()], ("network",), 0))
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("tables", [
    {"network": {"width": 511}}, {"training": {"samples": 511}}, {"ridge": 1e-9},
    {"training": {"optimiser": "adam"}}, {"training": {"steps": 2}},
    {"training": {"loss": "huber"}},
])  # fmt: skip
def test_double_where_it_would_not_pay_or_may_show(tables):
    assert point(**tables).precision == "float64"
    assert point("float32", **tables).precision == "float32"


def test_other_devices_keep_double_unless_told():
    plain = point()
    moved = Compare(models=MODELS, device="torch")
    assert Point({}, plain.problem, moved).precision == "float64"
