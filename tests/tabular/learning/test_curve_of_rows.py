"""`learning_curve` on tables whose errors with more rows are known; what it says and refuses."""

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.tabular.learning.forecast import Forecast, back_test
from onegrad.tabular.learning.more_rows import LevelPath
from onegrad.tabular.learning.subsets import Plan, Subset, Targets, fit, sizes_of


def table(rows, seed=0, classes=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 15))
    t = x[:, 0] + 0.5 * x[:, 1]
    y = t + 0.5 * t**2 + 0.6 * rng.standard_normal(rows)
    return x, np.where(y > 0, "high", "low") if classes else y


@pytest.fixture(scope="module")
def curve():
    return og.learning_curve(*table(400), width=120, repeats=2)


@pytest.fixture(scope="module")
def of_classes():
    return og.learning_curve(*table(400, classes=True), width=120, repeats=2)


@pytest.mark.parametrize("classes", [False, True])
def test_four_times_the_rows(curve, of_classes, classes):
    """Measured on fresh rows: inside the bar of two standard deviations; no change is not."""
    one = of_classes if classes else curve
    x, y = table(3200, seed=9, classes=classes)
    targets = Targets.of(y, None)
    fits = [
        fit(x, targets, np.arange(1600), np.arange(1600, 3200), (Plan(120), Streams(5, i)))
        for i in range(2)
    ]
    truth, wrong = np.mean([f[0] for f in fits]), np.mean([f[2] for f in fits])
    point = one.at(rows=1600)
    assert point.low < truth < point.high
    assert point.low < point.error < point.high and point.checked
    assert truth < 0.93 * one.subsets[-1].mean  # there was something to predict
    if classes:
        assert point.accuracy == pytest.approx(1 - wrong, abs=0.05)
        assert point.accuracy_low < point.accuracy < point.accuracy_high
    else:
        assert np.isnan(point.accuracy) and point.r2 == 1 - point.error


def test_what_it_says(curve, of_classes):
    text = repr(curve)
    assert "400 rows (regression)" in text and "back-test: from 80 rows" in text
    assert "%" not in text and "%" in repr(of_classes)
    assert "unchecked" in repr(curve.at(100_000)) and not curve.at(100_000).checked
    assert "unchecked" not in repr(curve.at(1600))
    assert [p.rows for p in curve.ahead()] == [400, 800, 1600, 3200]
    assert curve.backtest is curve.backtests[-1] and curve.backtest.rows == curve.fitted == 320
    axes = curve.plot()
    assert axes.get_xlabel() == "rows"
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"theory, anchored", "theory as it is", "power law"} <= labels


def test_one_seed_one_curve():
    x, y = table(120)
    one, two = (og.learning_curve(x, y, width=30, repeats=1, seed=3) for _ in range(2))
    assert one.at(480).error == two.at(480).error
    other = og.learning_curve(x, y, width=30, repeats=1, seed=4)
    assert other.at(480).error != one.at(480).error


def test_a_data_frame_with_categories_and_gaps():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.standard_normal(150)
    kind = rng.choice(["a", "b", "c"], 150)
    frame = pandas.DataFrame({"x": np.where(x > 2, np.nan, x), "kind": kind})
    curve = og.learning_curve(frame, x + (kind == "b"), width=30, repeats=1)
    assert curve.at(600).error < 0.6


@pytest.mark.parametrize(("change", "said"), [
    ({"X": np.ones((120, 3)) * np.nan}, "X"), ({"X": np.ones((119, 3))}, "X"),
    ({"X": np.full((120, 2), "text")}, "numbers"), ({"y": np.ones(120)}, "single value"),
    ({"y": np.full(120, np.nan)}, "y"), ({"width": 0}, "width"), ({"repeats": 0}, "repeats"),
    ({"task": "regresion"}, "task"), ({"clip": 0}, "clip"), ({"clip": "far"}, "clip"),
    ({"X": np.full((120, 2), 1e200)}, "another unit"),
    ({"y": np.array(["a"] * 117 + ["b"] * 3)}, "3 rows outside its largest class"),
])  # fmt: skip
def test_bad_input_is_advice(change, said):
    x, y = table(120)
    given = {"X": x, "y": y, "width": 20, "repeats": 1} | change
    with pytest.raises(og.SpecError, match=said):
        og.learning_curve(given.pop("X"), given.pop("y"), **given)
    with pytest.raises(og.SpecError, match="rows"):
        og.learning_curve(x[:40], y[:40])


def test_bad_rows_are_advice(curve):
    for rows in (5, 2.5, True, "many"):
        with pytest.raises(og.SpecError, match="whole number"):
            curve.at(rows)


def subset(rows, error, spread=0.0):
    path = LevelPath(np.ones(2), np.array([2.0, 1.0]), np.array([1.0, 0.5]), np.full(2, 0.4))
    return Subset(rows, np.full(2, error), spread, np.full(2, 0.1), np.zeros(2), ((path,),) * 2)


def test_the_anchor_goes_through_the_largest_subset():
    """And what the step's own noise adds at few rows is taken off at more."""
    falling = Forecast((subset(50, 0.8), subset(100, 0.6), subset(200, 0.5)))
    assert falling.error(200) == pytest.approx(0.5)
    level = Forecast((subset(50, 0.5), subset(100, 0.5), subset(200, 0.5)))
    assert falling.error(800) < 0.97 * level.error(800)
    assert falling.power_law(200) == pytest.approx(0.5, rel=0.05)
    assert falling.spread(1600) > falling.spread(400) > 0
    assert falling.spread(1600, [0.3, 0.3]) > falling.spread(1600) > falling.spread(1600, [0.0])


def test_few_distinct_rows():
    """Leave-one-out leaves out all equal rows together and is far off; the forecast is not."""
    rng = np.random.default_rng(0)
    x = (rng.random((300, 1)) > 0.5) * 1.0
    curve = og.learning_curve(x, x[:, 0] + 0.5 * rng.standard_normal(300), width=40, repeats=2)
    assert curve.forecast.theory(240) > 2 * curve.subsets[-1].mean
    assert curve.at(1200).error == pytest.approx(0.5, abs=0.12)


def test_an_error_of_zero():
    zero = Forecast((subset(50, 0.0), subset(100, 0.0), subset(200, 0.0)))
    assert 0 < zero.error(400) < 1e-9 and np.isfinite(zero.power_law(400))


def test_back_tests_need_subsets():
    assert back_test((subset(100, 0.6), subset(200, 0.5)), 2) is None
    test = back_test(tuple(subset(25 * 2**j, 0.9 - 0.1 * j) for j in range(4)), 2)
    assert test is not None and (test.from_rows, test.rows) == (50, 200)


def test_sizes():
    held_out, sizes = sizes_of(60)
    assert held_out == 12 and sizes[-1] == 48 and sizes[0] == 16
    assert sizes_of(100_000) == (4000, (625, 1250, 2500, 5000, 10_000))
