"""Smooth curves are computed at a few points; what lies between agrees with computing them all."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from onegrad.errors import AssumptionError, Failure
from onegrad.predict.curves import along_curves, curves, interpolated, misfits
from onegrad.predict.predict import predict_curve
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.theory.options import Theory
from onegrad.theory.policy import Policy

COUNT = 20
EVERY = replace(Policy(), curve_points=10**6)
UNCHECKED = replace(Policy(), curve_misfit=1e9)
WIDTHS = np.geomspace(40, 1200, COUNT).round().tolist()
BASE: dict[str, dict[str, Any]] = {
    "data": {"model": "mixture", "dim": 400},
    "network": {"width": 400, "activation": "relu"},
    "training": {"samples": 400, "ridge": 1e-3},
    "scaling": {"strength": 0.7, "weighting": 0.5},
}
RATE: dict[str, dict[str, Any]] = {"data": {"spread": 5.0}, "network": {"activation": "tanh"}}
COMPONENT: dict[str, dict[str, Any]] = {
    "labels": {"model": "component"}, "network": {"activation": "tanh"}
}  # fmt: skip
PEAK: dict[str, dict[str, Any]] = {"training": {"ridge": 1e-6}}
# what is changed, the key that varies, its values, options, and whether points are interpolated
SWEEPS: dict[str, tuple[dict[str, Any], str, list[float], dict[str, Any], bool]] = {
    "width": ({}, "network.width", WIDTHS, {"finite_size": False}, True),
    "width, drafts": ({}, "network.width", WIDTHS, {"accuracy": 0.03}, True),
    "width, corrected": ({}, "network.width", WIDTHS, {}, True),
    "width, signs": (COMPONENT, "network.width", WIDTHS, {"finite_size": False}, True),
    "samples": (
        {}, "training.samples", np.geomspace(400, 4000, COUNT).round().tolist(),
        {"finite_size": False}, True,
    ),
    "ridge": (
        {"network": {"width": 200}}, "training.ridge", np.geomspace(1e-3, 0.3, COUNT).tolist(),
        {"finite_size": False}, True,
    ),
    "rate": (
        RATE, "training.rate", np.geomspace(0.3, 10.0, COUNT).tolist(), {"finite_size": False},
        True,
    ),
    "peak": (PEAK, "network.width", WIDTHS, {"accuracy": 0.03}, False),
}  # fmt: skip


def problems_of(name: str) -> list[Problem]:
    changes, key, values, *_ = SWEEPS[name]
    table, entry = key.split(".")
    found = []
    for value in values:
        tables = {t: {**BASE.get(t, {}), **changes.get(t, {})} for t in {**BASE, **changes}}
        tables[table][entry] = int(value) if entry in ("width", "samples") else value
        if entry == "rate":
            del tables["scaling"]
        found.append(Problem.from_spec(tables))
    return found


@cache
def point_by_point(name: str) -> list[Prediction]:
    return predict_curve(problems_of(name), policy=EVERY, **SWEEPS[name][3])


def computed(found: Sequence[Prediction]) -> int:
    return sum(one.solution is not None for one in found)


@pytest.mark.parametrize("name", SWEEPS)
def test_a_curve_at_few_points_agrees_with_all_of_them(name: str) -> None:
    options, smooth = SWEEPS[name][3:]
    every, few = point_by_point(name), predict_curve(problems_of(name), **options)
    assert computed(every) == COUNT
    assert computed(few) <= 12 if smooth else computed(few) == COUNT
    for one, own in zip(few, every, strict=True):
        for error in ("test_error", "train_error", "train_objective"):
            assert getattr(one, error) == pytest.approx(getattr(own, error), rel=1e-3)
        assert one.label_variance == pytest.approx(own.label_variance, rel=1e-3)
        assert one.status == own.status and one.method == own.method
        if own.misclassification is not None:
            assert one.misclassification == pytest.approx(own.misclassification, rel=0.01)
        if own.spread_over_draws is not None:
            apart = abs((one.spread_over_draws or 0.0) - own.spread_over_draws)
            assert apart < 2e-3 * own.test_error
        if options.get("accuracy", 0.01) < 0.03:
            off = abs(one.test_error / own.test_error - 1)
            assert off < one.error_estimate
            if one.solution is None:
                assert one.error_estimate > 0.9 * own.error_estimate


def test_without_the_check_the_peak_is_missed() -> None:
    """Negative control: at next to no ridge errors rise by a factor at k = m, between points."""
    few = predict_curve(problems_of("peak"), accuracy=0.03, policy=UNCHECKED)
    assert computed(few) < COUNT
    every = point_by_point("peak")
    off = [abs(a.test_error / b.test_error - 1) for a, b in zip(few, every, strict=True)]
    assert max(off) > 0.1


def steep() -> list[Problem]:
    """Ridges over three decades: errors change by factors, at the coarsest resolution as well."""
    ridges = np.geomspace(1e-4, 0.1, COUNT)
    tables = {
        "data": {"model": "mixture", "dim": 200, "spread": 1.0, "rank": 0, "mean": 2.0},
        "labels": {"model": "component"},
        "network": {"width": 200, "activation": "relu"},
    }
    training = {"samples": 200, "rate": 100.0, "gradient": "labels-only", "loss": "logistic"}
    return [Problem.from_spec({**tables, "training": {**training, "ridge": x}}) for x in ridges]


@cache
def logistic_point_by_point() -> list[Prediction]:
    return predict_curve(steep(), policy=EVERY)


def largest_gap(few: Sequence[Prediction]) -> float:
    names = ("test_loss", "train_loss", "test_error", "train_error")
    pairs = zip(few, logistic_point_by_point(), strict=True)
    return max(abs(getattr(a, x) / getattr(b, x) - 1) for a, b in pairs for x in names)


def test_a_curve_of_logistic_losses_is_that_of_its_points() -> None:
    few, every = predict_curve(steep()), logistic_point_by_point()
    assert computed(every) == COUNT
    assert largest_gap(few) < 0.005
    for one, own in zip(few, every, strict=True):
        for name in ("test_loss", "train_loss", "test_error", "train_error"):
            off = abs(getattr(one, name) / getattr(own, name) - 1)
            assert off <= max(0.0, one.error_estimate - own.error_estimate) + 5e-3
        assert one.misclassification == pytest.approx(own.misclassification, rel=0.02)
        assert one.calibration == pytest.approx(own.calibration, abs=0.01)


def test_a_point_between_others_says_so_and_can_be_asked_more() -> None:
    name = "width, drafts"
    few = predict_curve(problems_of(name), **SWEEPS[name][3])
    between = next(i for i, one in enumerate(few) if one.solution is None)
    one, own = few[between], point_by_point(name)[between]
    assert one.assumptions[0].startswith("Interpolated between points of the same curve")
    assert not any(a.startswith("Interpolated") for a in few[0].assumptions)
    assert one.component_test == pytest.approx(own.component_test, rel=1e-9)
    assert one.learned().learned == pytest.approx(own.learned().learned, rel=1e-9)
    assert one.directions == own.directions and "component_test" in one.as_json()
    again = pickle.loads(pickle.dumps(one))
    assert again.test_error == one.test_error and again.by_projection().keys()


def test_a_failure_on_the_curve_leaves_nothing_to_interpolate() -> None:
    places = np.linspace(0.0, 1.0, 11)
    rows: list[Any] = [np.array([x, 1.0]) for x in places]
    assert misfits(places, rows).max() < 1e-12
    assert misfits(places, [None, *rows[1:]]).max() == np.inf
    assert misfits(places, [np.array([np.nan, 1.0]), *rows[1:]]).max() == np.inf
    assert misfits(places, [np.array([np.inf, 1.0]), *rows[1:]]).max() == np.inf


def test_answers_that_are_not_smooth_are_computed() -> None:
    """One point that failed, or jumps, leaves all of them to be computed; each is asked once."""
    problems, every = problems_of("width"), point_by_point("width")
    high = replace(every[0], test_error=2 * every[0].test_error)
    for odd in (Failure(AssumptionError("no")), high):
        asked: list[int] = []

        def compute(
            some: Sequence[Problem], odd: Any = odd, asked: list[int] = asked
        ) -> list[Prediction | Failure]:
            places = [problems.index(one) for one in some]
            asked.extend(places)
            return [odd if i == 9 else every[i] for i in places]

        found = along_curves(problems, Theory(), compute, lambda _: every[0])
        assert sorted(asked) == list(range(COUNT))
        assert found == [odd if i == 9 else every[i] for i in range(COUNT)]


def test_the_interpolation_is_of_fourth_order() -> None:
    """The slope of its error against the number of nodes, for a function with a peak."""

    def peak(x: Any) -> Any:
        return 1.0 / (1.0 + 4 * x**2)

    wanted, errors, counts = np.linspace(-0.983, 0.977, 101), [], np.array([11, 21, 41, 81])
    for count in counts:
        nodes = np.linspace(-1.0, 1.0, count)
        guess = interpolated(nodes, peak(nodes)[:, None], wanted)[:, 0]
        errors.append(np.abs(guess - peak(wanted)).max())
    assert np.polyfit(np.log(counts), np.log(errors), 1)[0] < -3.5
    cubic = np.linspace(0.0, 1.0, 9)
    assert interpolated(cubic, cubic[:, None] ** 3, wanted)[:, 0] == pytest.approx(wanted**3)


def test_short_curves_are_computed() -> None:
    few = Policy().curve_points - 1
    assert computed(predict_curve(problems_of("width")[:few], accuracy=0.03)) == few


def zipped(pairs: list[tuple[int, float]]) -> list[tuple[list[int], np.ndarray]]:
    tables = {"data": {"model": "isotropic", "dim": 100}}
    problems = [
        Problem.from_spec(
            tables | {"network": {"width": width}, "training": {"samples": 200, "rate": rate}}
        )
        for width, rate in pairs
    ]
    return list(curves(problems, 7))


def test_numbers_that_rise_or_fall_together_make_a_curve() -> None:
    widths = [80, 20, 40, 160, 320, 640, 10]
    for rates in ([0.5 * w for w in widths], [100.0 / w for w in widths]):
        ((points, places),) = zipped(list(zip(widths, rates, strict=True)))
        assert [widths[i] for i in points] == sorted(widths)
        assert places == pytest.approx(np.log(sorted(widths)))
    assert not zipped([(w, float(i % 3)) for i, w in enumerate(widths)])  # neither rises nor falls
    grid = zipped([(w, rate) for rate in (1.0, 2.0) for w in widths])
    assert [len(points) for points, _ in grid] == [7, 7]  # as before: along one of them


def test_misfits_are_told_where_they_are() -> None:
    places = np.linspace(0.0, 1.0, 9)
    rows = [np.array([x**2, x if i != 3 else x + 0.1]) for i, x in enumerate(places)]
    found = misfits(places, rows)
    assert found[:, 0].max() < 1e-12
    assert found[3, 1] > 0.09 and found[[0, -1]].max() == 0.0
