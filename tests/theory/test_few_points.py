"""Smooth curves are computed at a few points; what lies between agrees with computing them all."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from onegrad.errors import AssumptionError, Failure
from onegrad.predict import curves as along_curves
from onegrad.predict.curves import Looks, with_points_between
from onegrad.predict.predict import predict, predict_curve
from onegrad.predict.prediction import Prediction
from onegrad.problem import Problem
from onegrad.theory import few_points
from onegrad.theory.curves import along, curves, interpolated
from onegrad.theory.few_points import DRAFT, FEWEST, RATIOS, misfit, misfits
from onegrad.theory.options import Theory

COUNT = 20
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_points, "FEWEST", 10**6)
        return predict_curve(problems_of(name), **SWEEPS[name][3])


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


def test_without_the_check_the_peak_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: at next to no ridge errors rise by a factor at k = m, between points."""
    monkeypatch.setattr("onegrad.predict.curves.DRAFT", DRAFT._replace(misfit=np.inf))
    few = predict_curve(problems_of("peak"), accuracy=0.03)
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_points, "FEWEST", 10**6)
        return predict_curve(steep())


def largest_gap(few: Sequence[Prediction]) -> float:
    names = ("test_loss", "train_loss", "test_error", "train_error")
    pairs = zip(few, logistic_point_by_point(), strict=True)
    return max(abs(getattr(a, x) / getattr(b, x) - 1) for a, b in pairs for x in names)


def test_a_curve_of_logistic_losses_is_computed_at_eleven_points() -> None:
    few, every = predict_curve(steep()), logistic_point_by_point()
    assert computed(every) == COUNT and computed(few) <= 11
    assert largest_gap(few) < 0.005
    for one, own in zip(few, every, strict=True):
        for name in ("test_loss", "train_loss", "test_error", "train_error"):
            off = abs(getattr(one, name) / getattr(own, name) - 1)
            assert off <= max(0.0, one.error_estimate - own.error_estimate) + 5e-3
        assert one.misclassification == pytest.approx(own.misclassification, rel=0.02)
        assert one.calibration == pytest.approx(own.calibration, abs=0.01)


def test_without_ratios_so_few_points_are_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the numbers themselves, interpolated without a check."""
    rule = RATIOS._replace(nodes=9, misfit=np.inf)
    monkeypatch.setattr("onegrad.predict.curves.RATIOS", rule)
    monkeypatch.setattr(Looks, "reference", lambda self, point, sparsity: np.zeros(10))
    assert largest_gap(predict_curve(steep())) > 0.02


def test_ratios_need_the_same_rules_at_every_point() -> None:
    """Along rates the coarsest resolution jumps where a rule gets longer: 3 % off by ratios."""
    ridges, looks = steep(), Looks([], Theory(), lambda problem: [])

    def changed(section: str, **numbers: float) -> list[Problem]:
        part = getattr(ridges[0], section).model_copy(update=numbers)
        return [ridges[0], ridges[0].model_copy(update={section: part})]

    assert looks.sparsity(ridges).relative
    assert not looks.sparsity(changed("training", rate=50.0)).relative
    assert not looks.sparsity(changed("data", mean=1.0)).relative
    assert not looks.sparsity(problems_of("ridge")).relative


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
    assert misfit(places, rows) < 1e-12
    assert misfit(places, [None, *rows[1:]]) == np.inf
    assert misfit(places, [np.array([np.nan, 1.0]), *rows[1:]]) == np.inf
    assert misfit(places, [np.array([np.inf, 1.0]), *rows[1:]]) == np.inf


def test_answers_that_are_not_smooth_are_computed() -> None:
    """The coarsest resolution may be smooth where means over draws or corrections are not."""
    problems, every = problems_of("width"), point_by_point("width")
    asked: list[int] = []

    def compute(points: Sequence[int]) -> list[Prediction | Failure]:
        asked.extend(points)
        return [every[i] for i in points]

    known: dict[int, Prediction | Failure] = {i: every[i] for i in range(0, COUNT, 2)}
    known[COUNT - 1], known[10] = every[COUNT - 1], Failure(AssumptionError("no"))
    found = with_points_between(
        Looks(problems, Theory(), lambda problem: []), known, compute, lambda problem: every[0]
    )
    assert asked == [i for i in range(COUNT) if i not in known]
    assert [found[i] for i in asked] == [every[i] for i in asked]


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


@pytest.mark.parametrize(("bump", "most"), [(0.0, 4), (0.5, 13)])
def test_what_hardly_varies_is_looked_at_four_times(bump: float, most: int) -> None:
    """Ratios of means over draws, and corrections: unless the fourth point tells otherwise."""
    places, asked = np.linspace(0.0, 1.0, 13), []

    def value(x: float) -> float:
        return 1.0 + 1e-4 * x + bump * float(np.exp(-(((x - 0.75) / 0.1) ** 2)))

    def compute(points: list[int]) -> dict[int, Any]:
        asked.extend(points)
        return {j: np.array([value(places[j])]) for j in points}

    found = along(places, compute, 1e-3)
    assert len(asked) == len(set(asked)) <= most and len(asked) + len(found) == 13
    assert (len(asked) == 4) == (bump == 0)
    for j, between in found.items():
        assert between.numbers[0] == pytest.approx(value(places[j]), abs=1e-3)


def test_short_curves_are_computed() -> None:
    found = predict_curve(problems_of("width")[: FEWEST - 1], accuracy=0.03)
    assert computed(found) == FEWEST - 1


def _classes(ridge: float) -> list[Problem]:
    data = {"model": "mixture", "dim": 60, "mean": 2.0, "weights": [0.4, 0.3, 0.3], "rank": 0}
    return [
        Problem.from_spec({
            "data": {**data, "spread": 1.0}, "labels": {"model": "component"},
            "network": {"width": width}, "training": {"samples": 120, "ridge": ridge, "rate": 30.0},
        })
        for width in np.geomspace(12, 360, COUNT).round().astype(int).tolist()
    ]  # fmt: skip


@pytest.mark.parametrize(("ridge", "smooth"), [(1e-3, True), (1e-8, False)])
def test_drafts_with_drawn_layers_lie_on_a_smooth_curve(ridge: float, smooth: bool) -> None:
    """A peak at k = m is no such curve: all points are computed."""
    problems = _classes(ridge)
    found = predict_curve(problems, accuracy=0.03)
    each = [predict(one, accuracy=0.03) for one in problems]
    fit, own = (np.log([one.test_error for one in some]) for some in (found, each))
    assert (found[3].assumptions[0] == along_curves._SMOOTHED) == smooth
    if smooth:
        assert np.abs(fit - own).max() < 0.08
        bend = [np.abs(np.diff(x, 2)).max() for x in (fit, own)]
        assert bend[0] < 0.3 * bend[1]
        assert all(one.status == "draft" and np.isnan(one.error_estimate) for one in found)
    else:
        assert fit == pytest.approx(own, rel=1e-9)


def zipped(pairs: list[tuple[int, float]]) -> list[tuple[list[int], np.ndarray]]:
    tables = {"data": {"model": "isotropic", "dim": 100}}
    problems = {
        i: Problem.from_spec(
            tables | {"network": {"width": width}, "training": {"samples": 200, "rate": rate}}
        )
        for i, (width, rate) in enumerate(pairs)
    }
    return list(curves(problems))


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
