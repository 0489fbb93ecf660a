"""`learning_curve` on tables whose errors with more rows are known; what it says and refuses."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import onegrad as og
from onegrad.tabular.learning.curve import LAW, THEORY
from onegrad.tabular.learning.forecast import Curve, Forecast, laws
from onegrad.tabular.learning.measure import splits_of


def table(rows, seed=0, classes=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 15))
    t = x[:, 0] + 0.5 * x[:, 1]
    y = t + 0.5 * t**2 + 0.6 * rng.standard_normal(rows)
    return x, np.where(y > 0, "high", "low") if classes else y


def ours(classes):
    kind = og.OneStepClassifier if classes else og.OneStepRegressor
    return make_pipeline(StandardScaler(), kind(120, random_state=0))


@pytest.fixture(scope="module")
def curve():
    return og.learning_curve(*table(400), estimator=ours(False))


@pytest.fixture(scope="module")
def of_classes():
    return og.learning_curve(*table(400, classes=True), estimator=ours(True))


@pytest.mark.parametrize("classes", [False, True])
def test_four_times_the_rows(curve, of_classes, classes):
    """Measured on fresh rows: inside the bar that holds 95 %."""
    one = of_classes if classes else curve
    x, y = table(3200, seed=9, classes=classes)
    truth = ours(classes).fit(x[:1600], y[:1600]).score(x[1600:], y[1600:])
    point = one.at(rows=1600)
    assert point.low < truth < point.high and point.checked
    assert point.low < point.inner[0] < point.score < point.inner[1] < point.high
    assert truth > one.score.of(one.measured.errors[-1])  # there was something to predict


def test_what_it_says(curve):
    text = repr(curve)
    assert "400 rows: OneStepRegressor, R²" in text and text.count("measured") == 5
    assert "unchecked" in repr(curve.at(100_000)) and not curve.at(100_000).checked
    assert "unchecked" not in repr(curve.at(1600))
    assert [p.rows for p in curve.ahead()] == [400, 800, 1600, 3200]
    assert curve.fitted == 320 and curve.methods == (THEORY, LAW)
    axes = curve.plot()
    assert axes.get_xlabel() == "rows" and axes.get_ylabel() == "R²"


def test_the_forecast_is_the_one_that_did_best_in_the_back_tests(curve):
    assert len(curve.backtests) == 4
    missed = {name: curve.missed(name) for name in curve.methods}
    assert missed[curve.method] == min(missed.values())
    assert curve.backtest.method == curve.method


def test_any_estimator():
    x, y = table(300)
    trees = og.learning_curve(x, y, KNeighborsRegressor(), scoring="neg_mean_absolute_error")
    assert trees.methods == (LAW,) and trees.at(1200).score < 0
    assert trees.at(1200).score > -trees.measured.errors[0]
    named = og.learning_curve(x, y, "linear")
    assert named.model == "linear" and named.at(1200).score > 0.2


def test_log_loss_and_callables():
    x, y = table(300, classes=True)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    loss = og.learning_curve(x, y, tree, scoring="neg_log_loss")
    assert loss.score.best == 0 and loss.score.family == "log_loss"
    own = og.learning_curve(x, y, tree, scoring=lambda model, x, y: model.score(x, y))
    usual = og.learning_curve(x, y, tree)
    assert own.score.best == 1 and own.score.family == "other"
    np.testing.assert_allclose(own.measured.errors, usual.measured.errors)
    with pytest.raises(og.SpecError, match="at most 1"):
        og.learning_curve(x, y, tree, scoring=lambda model, x, y: 40.0)


def test_groups_are_held_out_whole():
    """A label that is its group's own number: known of other rows of the group, or not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 5)
    places = rng.standard_normal((60, 3))
    x = places[groups] + 0.01 * rng.standard_normal((300, 3))
    y = rng.standard_normal(60)[groups]
    near = KNeighborsRegressor(1)
    random = og.learning_curve(x, y, near)
    whole = og.learning_curve(x, y, near, groups=groups)
    assert random.measured.errors[-1] < 0.3 < 1 < whole.measured.errors[-1]
    assert whole.kind == "groups"
    splits = splits_of(x, y, False, GroupKFold(4), groups, 0)
    for rows, test in zip(splits.ordered, splits.tests, strict=True):
        assert not set(groups[rows]) & set(groups[test])
        cut = groups[rows[: len(rows) // 2]]
        assert len(set(cut)) < 0.6 * len(set(groups[rows]))


@pytest.mark.parametrize("cv", ["time", TimeSeriesSplit(4, test_size=15)])
def test_later_rows_are_judged_by_earlier_ones(cv):
    x, y = table(300)
    found = og.learning_curve(x, y, Ridge(), cv=cv)
    assert found.kind == "time"
    splits = splits_of(x, y, False, cv, None, 0)
    for rows, test in zip(splits.ordered, splits.tests, strict=True):
        assert rows.max() < test.min() and np.all(np.diff(rows) == -1)  # the latest come first


def test_one_seed_one_curve():
    x, y = table(120)
    one, two = (og.learning_curve(x, y, "linear", seed=3) for _ in range(2))
    assert one.at(480) == two.at(480)
    assert og.learning_curve(x, y, "linear", seed=4).at(480) != one.at(480)


def test_learning_curve_and_estimator_have_one_default_for_clip():
    """R² .32 was once forecast of a model whose R² was .72: the curve had cut the inputs."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(1.5, (300, 1))
    found = og.learning_curve(x, x[:, 0])
    assert found.measured.errors[-1] < 0.05


def test_a_data_frame_with_categories_and_gaps():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.standard_normal(150)
    kind = rng.choice(["a", "b", "c"], 150)
    frame = pandas.DataFrame({"x": np.where(x > 2, np.nan, x), "kind": kind})
    curve = og.learning_curve(frame, x + (kind == "b"))
    assert curve.at(600).score > 0.4
    given = og.learning_curve(frame[["x"]].fillna(0), x + (kind == "b"), Ridge())
    assert given.at(600).score > 0.4


@pytest.mark.parametrize(("change", "said"), [
    ({"X": np.ones((119, 3))}, "y"), ({"y": np.ones(120)}, "single value"),
    ({"y": np.full(120, np.nan)}, "y"), ({"estimator": "trees"}, "must be one-step"),
    ({"scoring": "positive_likelihood_ratio"}, "best value"), ({"cv": "date"}, "time"),
    ({"y": np.array(["a"] * 117 + ["b"] * 3)}, "3 rows outside its largest class"),
])  # fmt: skip
def test_bad_input_is_advice(change, said):
    x, y = table(120)
    given = {"X": x, "y": y} | change
    with pytest.raises(og.SpecError, match=said):
        og.learning_curve(given.pop("X"), given.pop("y"), **given)
    with pytest.raises(og.SpecError, match="rows"):
        og.learning_curve(x[:40], y[:40])


def test_bad_rows_are_advice(curve):
    for rows in (5, 2.5, True, "many"):
        with pytest.raises(og.SpecError, match="whole number"):
            curve.at(rows)
    assert curve.at(1e4).rows == 10_000


def test_perfect_scores():
    x, _ = table(200)
    found = og.learning_curve(x, np.where(x[:, 0] > 0, 1, 0), DecisionTreeClassifier(max_depth=1))
    assert 0.95 < found.at(800).score < 1


@pytest.mark.parametrize("family", laws())
def test_the_law(family):
    """A steady fall goes on, more slowly; bars grow, with the noise too; a failure widens them."""
    law = replace(laws()[family], follows=0.0)
    rows = 40.0 * 2 ** np.arange(5)
    steady = Curve(rows, rows**-0.3, np.full(5, 0.01))
    one = Forecast(law, steady)
    assert one.log_error(640) == pytest.approx(-0.3 * np.log(640))
    assert one.log_error(160) == pytest.approx(-0.3 * np.log(160))  # as measured
    assert 2 ** (-0.3 * 3) * 0.95 < one.change(640, 5120)[0] < 0.85
    bars = np.array([one.bars(n) for n in (640, 1280, 5120)])
    assert np.all(np.diff(bars, axis=0) >= 0) and np.all(bars[:, 1] > bars[:, 0])
    noisy = Forecast(law, replace(steady, noise=np.full(5, 0.3)))
    assert noisy.bars(1280)[1] > 1.5 * one.bars(1280)[1]
    assert replace(one, wider=2.0).bars(1280)[1] == pytest.approx(2 * one.bars(1280)[1])
    level = Forecast(law, replace(steady, errors=np.linspace(0.90, 0.91, 5)))
    assert level.change(640, 5120)[0] > one.change(640, 5120)[0]


def test_a_theory_is_followed_by_its_share():
    law = replace(laws()["r2+theory"], weights=(0.0, 0.0), follows=0.5)
    rows = 40.0 * 2 ** np.arange(5)
    found = Forecast(law, Curve(rows, rows**-0.3, np.full(5, 0.01)), lambda n: -np.log(n))
    assert found.log_error(1280) - found.log_error(640) == pytest.approx(-0.5 * np.log(2))
