"""Every sentence of the report where it must be said, and where it must not."""

from dataclasses import replace

import numpy as np
import pytest

from onegrad.results.estimates import Estimate
from onegrad.tabular.learning.curve_of_rows import LearningCurve
from onegrad.tabular.learning.forecast import BackTest
from onegrad.tabular.learning.more_rows import LevelPath
from onegrad.tabular.learning.subsets import Subset
from onegrad.tabular.reading.table import Table
from onegrad.tabular.report import page, words
from onegrad.tabular.report.analysis import Analysis
from onegrad.tabular.report.findings import Found
from onegrad.tabular.report.number_texts import score_text
from onegrad.tabular.report.scores import (
    CONSTANT,
    CUT,
    LOGARITHM,
    NO_STEP,
    STEP,
    TREES,
    UNCUT,
    Score,
    Tails,
    unequal,
)


def subset(rows, error, rate=8.0, wrong=np.nan, noise=0.01, power=1.0):
    """The theory falls with the rows like a power of them."""
    level = np.geomspace(1.0, 1e-3, 60)
    used = np.geomspace(1.0, 3000.0, 60)
    path = LevelPath(level, used, used / 2, 2 / used**power)
    return Subset(rows, np.full(3, error), noise, np.full(3, wrong), np.full(3, rate),
                  ((path,),) * 3)  # fmt: skip


def curve(errors=(0.6, 0.5, 0.4), classes=False, backtest=True, rate=8.0, noise=0.01, power=1.0):
    parts = tuple(
        subset(100 * 2**j, e, rate, e / 4 if classes else np.nan, noise, power)
        for j, e in enumerate(errors)
    )
    tests = (BackTest(100, 400, 0.42, 0.05, 0.4, 0.5, 0.02),) if backtest else ()
    task = "classification" if classes else "regression"
    return LearningCurve(500, task, 100, parts, tests)


def table(classes=None):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3))
    if classes is None:
        return Table(x, x[:, 0], ("sensor_0", "sensor_1", "other"), "y", "regression", ())
    y = np.array(["a"] * int(500 * classes) + ["b"] * (500 - int(500 * classes)))
    return Table(x, y, ("sensor_0", "sensor_1", "other"), "y", "classification", ())


def scores(**changes):
    base = {STEP: (0.8, 0.81, 0.79), NO_STEP: (0.7, 0.71, 0.69), CONSTANT: (0.0, 0.0, 0.0),
            TREES: (0.7, 0.72, 0.69)} | changes  # fmt: skip
    return {name: Score(values, 0.1) for name, values in base.items()}


FOUND = Found(np.array([1.0, 0.5, 0.01]), np.full(3, 0.02), np.ones(3), 0.9)
PLAIN = Analysis(table(), curve(), scores(), {60: 1.0, 125: 0.995, 250: 0.99}, FOUND, Tails(), 5.0,
                 False)  # fmt: skip


def test_rows():
    text = words.rows_sentence(PLAIN)
    assert "R²" in text and "500 rows at hand" in text and "accuracy" not in text
    assert text.endswith("The best constant has R² = 0.") and "Always saying" not in text
    of_classes = replace(PLAIN, table=table(0.6), curve=curve(classes=True))
    text = words.rows_sentence(of_classes)
    assert "accuracy" in text and "R²" not in text
    assert text.endswith("Always saying “a” is right in 60.0% of the rows.")
    far = replace(PLAIN.curve, rows=5000)  # more rows than the bars reach
    assert words.rows_sentence(replace(PLAIN, curve=far)) == ""
    only_twice = replace(PLAIN.curve, rows=3000)
    text = words.rows_sentence(replace(PLAIN, curve=only_twice))
    assert "with twice as many. " in text and "times" not in text


def test_rows_of_a_target_without_noise():
    """Digits follow the error: never "1.000 (1.000 to 1.000)"."""
    tiny = replace(PLAIN, curve=curve((6e-5, 5e-5, 4e-5), noise=1e-6))
    text = words.rows_sentence(tiny)
    assert "1.000 " not in text and "0.99997" in text
    assert " 0.000" not in words.backtest_sentence(replace(tiny, curve=replace(
        tiny.curve, backtests=(BackTest(100, 400, 4e-5, 0.05, 4e-5, 5e-5, 0.02),))))  # fmt: skip


def test_verdict():
    """Three verdicts, each only where the bar of the change allows it."""
    falling = words.verdict_sentence(PLAIN)
    assert falling.startswith("More rows help this model, beyond the error bar: 8 times as many")
    level = words.verdict_sentence(replace(PLAIN, curve=curve((0.4,) * 3, power=0.01)))
    assert level.startswith("Twice as many rows would take less than a tenth")
    between = words.verdict_sentence(replace(PLAIN, curve=curve((0.4,) * 3, power=0.08)))
    assert between == "Whether more rows help by much is within the error bar."
    far = replace(PLAIN.curve, rows=5000)
    assert words.verdict_sentence(replace(PLAIN, curve=far)) == ""


def test_the_level_does_not_blur_the_verdict():
    """A noisy measurement makes the level uncertain, not the change."""
    noisy = replace(PLAIN, curve=curve(noise=0.3))
    assert words.verdict_sentence(noisy).startswith("More rows help")
    wide, narrow = noisy.curve.at(1000), PLAIN.curve.at(1000)
    assert wide.high / wide.low > narrow.high / narrow.low
    ratio, low, high = PLAIN.curve.change(2)
    assert low < ratio < high and ratio == pytest.approx(
        PLAIN.curve.at(1000).error / PLAIN.curve.at(500).error
    )


def test_backtest():
    text = words.backtest_sentence(PLAIN)
    assert "0.420 (0.380 to 0.464) for 400; measured: 0.400 ± 0.006" in text
    assert "off by 5%" in text and "a power law by 25%" in text
    without = replace(PLAIN, curve=curve(backtest=False))
    assert words.backtest_sentence(without) == ""
    assert words.unchecked_sentence(PLAIN) == ""
    assert "could not be tried" in words.unchecked_sentence(without)


def test_step():
    assert "helps: +0.100" in words.step_sentence(PLAIN)
    same = replace(PLAIN, scores=scores(**{NO_STEP: (0.79, 0.82, 0.8)}))
    assert "no difference" in words.step_sentence(same)
    harm = replace(PLAIN, scores=scores(**{NO_STEP: (0.9, 0.91, 0.89)}))
    assert "harm" in words.step_sentence(harm) and "helps" not in words.step_sentence(harm)
    assert words.step_sentence(replace(PLAIN, scores={})) == ""


def test_width():
    """ "Enough" is never said of the widest that was tried."""
    assert "60 neurons are enough: up to 250" in words.width_sentence(PLAIN)
    open_end = replace(PLAIN, widths={60: 1.0, 125: 0.9, 250: 0.8})
    text = words.width_sentence(open_end)
    assert "enough" not in text and "250 neurons or more" in text


def test_rate():
    assert "rate = 8 in 3 of 3" in words.rate_sentence(PLAIN)
    none = words.rate_sentence(replace(PLAIN, curve=curve(rate=0.0)))
    assert "without a step" in none and "rate = " not in none


def test_beaten():
    assert words.beaten_sentence(PLAIN) == ""
    trees = replace(PLAIN, scores=scores(**{TREES: (0.9, 0.92, 0.9)}))
    assert "boosted trees" in words.beaten_sentence(trees)
    assert words.beaten_sentence(replace(PLAIN, scores={})) == ""


def test_constant():
    assert (
        words.constant_sentence(PLAIN) == words.constant_sentence(replace(PLAIN, scores={})) == ""
    )
    nothing = replace(PLAIN, scores=scores(**{STEP: (0.0, -0.01, 0.01)}))
    assert "not better than the best constant" in words.constant_sentence(nothing)


@pytest.mark.parametrize("share", [0.5, 0.55, 0.9])
def test_unequal(share):
    analysis = replace(PLAIN, table=table(share), curve=curve(classes=True))
    text = words.unequal_sentence(analysis)
    assert bool(text) == (share == 0.9) == unequal(analysis.table)
    assert ("balanced" in text and "both classes" in text) or not text
    assert words.unequal_sentence(PLAIN) == ""
    assert ("balanced" in words.snippet(analysis)) == bool(text)


def test_tails():
    assert words.tails_sentence(PLAIN) == ""
    heavy = replace(PLAIN, tails=Tails((2,)), scores=scores(**{UNCUT: (0.7, 0.71, 0.69)}))
    assert "Heavy tails in other:" in words.tails_sentence(heavy)
    assert "Cutting them (clip=5) helps: +0.100" in words.tails_sentence(heavy)
    harm = replace(heavy, scores=scores(**{CUT: (0.7, 0.71, 0.69)}), clip=None)
    assert "does harm: -0.100" in words.tails_sentence(harm)
    assert "left as they are" in words.tails_sentence(harm)
    assert "left as they are" not in words.tails_sentence(heavy)
    assert "helps" not in words.tails_sentence(harm)
    same = replace(heavy, scores=scores(**{UNCUT: (0.79, 0.82, 0.8)}))
    text = words.tails_sentence(same)
    assert "no difference" in text and "helps" not in text and "harm" not in text
    untried = words.tails_sentence(replace(heavy, scores={}))
    assert untried.endswith("out.") and "Cutting" not in untried


def test_a_cut_is_advised_where_it_was_made():
    assert "clip=5" in words.snippet(PLAIN)
    assert "clip" not in words.snippet(replace(PLAIN, clip=None))
    assert "cut at 5" in page.page(PLAIN, "t") and "--quick" not in page.page(PLAIN, "t")
    bare = page.page(replace(PLAIN, clip=None, quick=True, scores={}), "t")
    assert "cut at" not in bare and "--quick" in bare and "Beside other models" not in bare


def test_the_tail_of_the_label():
    assert words.label_tail_sentence(PLAIN) == ""
    heavy = replace(PLAIN, tails=Tails((), 7, 0.45))
    text = words.label_tail_sentence(heavy)
    assert "7 of 500 rows have 45% of its variance" in text and "log" not in text
    tried = replace(heavy, scores=scores(**{LOGARITHM: (0.9, 0.91, 0.89)}))
    assert "Fitting log(y) instead helps: +0.100" in words.label_tail_sentence(tried)
    assert words.beaten_sentence(tried) == ""


def test_notes_are_shown_if_there_are_any():
    assert "What was done" not in page.page(PLAIN, "t")
    noted = replace(PLAIN, table=replace(PLAIN.table, notes=("1 row <left> out.",)))
    assert "<li>1 row &lt;left&gt; out.</li>" in page.page(noted, "t")


def test_accuracies_stand_beside_that_of_the_largest_class():
    shown = page.page(PLAIN, "t")
    assert "<th>accuracy</th>" not in shown and "<td>best constant</td><td>1</td>" in shown
    of_classes = page.page(replace(PLAIN, table=table(0.6), curve=curve(classes=True)), "t")
    assert "<td>best constant</td><td>1</td><td></td><td>60.0%</td>" in of_classes


def test_scores_are_not_longer_than_they_are_certain():
    assert score_text(Estimate(0.99999999999654, 1.5e-12)) == "1.00000 ± 0.00000"
    assert score_text(Estimate(0.8123456, 0.0123)) == "0.812 ± 0.012"
    assert score_text(Estimate(0.5, float("nan"))) == score_text(Estimate(0.5, 0.0)) == "0.500"


def test_found():
    assert words.found_sentence(PLAIN) == "What the step found: sensor_0 + 0.50 (± 0.02)·sensor_1."
    noise = replace(FOUND, errors=np.ones(3))
    text = words.found_sentence(replace(PLAIN, found=noise))
    assert "no direction" in text and "sensor" not in text
    units = replace(FOUND, spread=np.array([1.0, 100.0, 1.0]))
    assert "standard deviations" in words.found_sentence(replace(PLAIN, found=units))
    spread = replace(FOUND, share=0.2)
    assert "20% of the step" in words.found_sentence(replace(PLAIN, found=spread))
    assert "smaller terms" not in words.found_sentence(PLAIN)
    single = replace(PLAIN, found=Found(np.ones(1), np.zeros(1), np.ones(1), 1.0), table=replace(
        PLAIN.table, names=("x",), x=PLAIN.table.x[:, :1]))  # fmt: skip
    assert words.found_sentence(single) == "" and "What the step found" not in page.page(
        single, "t"
    )
    many = Found(np.ones(7), np.full(7, 0.02), np.ones(7), 0.9)
    named = replace(PLAIN.table, names=(*"abcdef", "kind = g"))
    text = words.found_sentence(replace(PLAIN, found=many, table=named))
    assert "and 2 smaller terms" in text
    last = replace(many, coefficients=np.array([0.0] * 6 + [1.0]))
    assert words.found_sentence(replace(PLAIN, found=last, table=named)).endswith(": “kind = g”.")


def test_data():
    assert "is to be predicted" in words.data_sentence(PLAIN)
    text = words.data_sentence(replace(PLAIN, table=table(0.5)))
    assert "2 classes" in text and "predicted" not in text


def test_snippet_runs():
    rng = np.random.default_rng(0)
    scope = {"X": rng.standard_normal((80, 3)), "y": rng.standard_normal(80)}
    exec(words.snippet(PLAIN), scope)
    assert scope["model"].predict(scope["X"]).shape == (80,)
