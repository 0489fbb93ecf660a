"""Every sentence of the report where it must be said, and where it must not."""

from dataclasses import replace

import numpy as np
import pytest

from onegrad.tabular.learning.curve import LAW, LearningCurve
from onegrad.tabular.learning.measure import Score, Splits, Subset
from onegrad.tabular.reading.table import Table
from onegrad.tabular.report import page, words
from onegrad.tabular.report.analysis import CONSTANT, CUT, Analysis, Compared, unequal

R2 = Score("R²", lambda model, x, y: 0.0, 1.0, "r2")
ACCURACY = Score("accuracy", lambda model, x, y: 0.0, 1.0, "accuracy")


def curve(errors=(0.9, 0.72, 0.58, 0.46, 0.37), rows=None, score=R2, noise=0.01, start=60):
    """Five splits at each size, of which neither noise nor mean is left to chance."""
    scatter = 1 + noise * np.array([-1.4, -0.7, 0.0, 0.7, 1.4])
    subsets = tuple(
        Subset(start * 2**j, {score.name: error * scatter}, 5000) for j, error in enumerate(errors)
    )
    return LearningCurve(rows or subsets[-1].rows * 5 // 4, "one-step", score, subsets)


def table(classes=None, count=500):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 3))
    names = ("sensor_0", "sensor_1", "other")
    if classes is None:
        return Table(x, x[:, 0], names, "y", "regression", (), count)
    y = np.array(["a"] * int(count * classes) + ["b"] * (count - int(count * classes)))
    return Table(x, y, names, "y", "classification", (), count)


def models(**means):
    """Ten splits that scatter by 0.02 together and by 0.004 on their own."""
    rng = np.random.default_rng(1)
    common = 0.02 * rng.standard_normal(10)
    given = {"one-step": 0.8, "linear": 0.7, CONSTANT: 0.0} | means
    order = sorted(given, key=lambda name: (name == CONSTANT, -given[name]))
    return {n: Compared(given[n] + common + 0.004 * rng.standard_normal(10), 0.1) for n in order}


ROWS = tuple(np.arange(400) for _ in range(10))
PLAIN = Analysis(
    table(), R2, models(), Splits(ROWS, tuple(np.arange(100) for _ in ROWS), "random"), "one-step",
    curve(), (), (), (0, 0.0), False,
)  # fmt: skip


def test_rows():
    text = words.rows_sentence(PLAIN.curve)
    assert "with all 1,200 rows we expect R² = 0." in text
    assert "2 times as many" in text and "8 times as many" in text
    assert "accuracy" in words.rows_sentence(curve(score=ACCURACY))


def test_the_rows_at_hand_are_those_of_the_file():
    """Also where a part of them was looked at: 20,000 of 50,000 were once called all."""
    text = words.rows_sentence(curve(start=250, rows=50_000))
    assert "with all 50,000 rows" in text and "4,000" not in text
    assert "2 times as many" not in text  # 100,000 is beyond 16 times what was fitted
    far = words.rows_sentence(curve(rows=500_000))
    assert "never checked" in far and "we expect" not in far


def test_few_held_out_rows_have_wide_bars():
    """92.7 % (92.1 to 93.3 %) was once said of 14 held-out rows, of which one was wrong."""
    subsets = tuple(
        Subset(14 * 2**j, {"accuracy": np.full(5, error)}, 14)
        for j, error in enumerate((0.21, 0.14, 0.071))
    )
    point = LearningCurve(73, "one-step", ACCURACY, subsets).at(73)
    assert point.high - point.low > 0.1


def test_verdict():
    """Only where much is expected and the forecast did not fail."""
    falling = words.verdict_sentence(curve())
    assert falling.startswith("More rows are likely to help: 8 times as many would take about")
    assert words.helps(curve(), 8) and not words.helps(curve((0.7, 0.69, 0.68, 0.67, 0.66)), 8)
    assert not words.helps(curve((0.9, 0.72, 0.58, 0.46, 0.8)), 8)
    noisy = words.verdict_sentence(curve((0.6, 0.62, 0.58, 0.6, 0.56), noise=0.5))
    assert noisy.startswith("How much more rows help is uncertain")
    assert words.verdict_sentence(curve(rows=500_000)) == ""


def test_a_failed_back_test_comes_first_and_widens():
    """The last measured error is twice what the curve before it promised."""
    failed, fine = curve((0.9, 0.72, 0.58, 0.46, 0.8)), curve()
    assert words.failed_sentence(fine) == "" and not fine.backtest.failed
    text = words.failed_sentence(failed)
    assert text.startswith("The forecast failed on your own rows: from 480 of them")
    assert "do not rely on it" in text
    shown = page.page(replace(PLAIN, curve=failed), "t")
    assert shown.index("The forecast failed") < shown.index("with all 1,200 rows")
    wide, narrow = failed.at(1920), fine.at(1920)
    spans = [np.log((1 - one.low) / (1 - one.high)) for one in (wide, narrow)]
    assert spans[0] > 2 * spans[1]


def test_method():
    text = words.method_sentence(PLAIN.curve)
    assert LAW in text and "was off by" in text and "the theory" not in text
    short = words.method_sentence(curve((0.6, 0.5)))
    assert "too few rows" in short


def test_best():
    assert "Best on held-out rows: one-step" in words.best_sentence(PLAIN)
    assert "all others are worse" in words.best_sentence(PLAIN)
    trees = replace(PLAIN, models=models(**{"hist-gradient-boosting": 0.9, "random-forest": 0.899}))
    text = words.best_sentence(trees)
    assert "hist-gradient-boosting" in text and "not worse beyond the noise: random-forest" in text
    alike = replace(PLAIN, models=models(linear=0.8005))
    assert "no other model is worse beyond the noise" in words.best_sentence(alike)


def test_constant():
    """Not said of .81 against .48, which three splits once could not tell apart."""
    assert words.constant_sentence(PLAIN) == ""
    found = models(**{"one-step": 0.81, "linear": 0.6, CONSTANT: 0.476})
    assert words.constant_sentence(replace(PLAIN, models=found)) == ""
    nothing = models(**{"one-step": 0.001, "linear": -0.01})
    text = words.constant_sentence(replace(PLAIN, models=nothing))
    assert text.startswith("No model is better than the best constant")


def test_differences_of_splits_that_share_rows():
    """Of two equal models, at most 5 % of differences are taken for one (three overlapping splits
    at three standard errors: 9.5 % and more). Splits of linear models of noise."""
    rng, false = np.random.default_rng(0), 0
    splits = PLAIN.splits
    for _ in range(200):
        values = []
        for _ in range(2):  # rows in common carry most of what splits say
            common = rng.standard_normal() * 0.02
            values.append(common + 0.04 * rng.standard_normal(10))
        one, other = (replace(PLAIN.models["linear"], values=v) for v in values)
        pair = replace(PLAIN, models={"one": one, "other": other}, splits=splits)
        lead = pair.lead("one", "other")
        false += abs(lead.mean) > lead.half
    assert false <= 12


@pytest.mark.parametrize("share", [0.5, 0.55, 0.9])
def test_unequal(share):
    analysis = replace(PLAIN, table=table(share))
    assert bool(words.unequal_sentence(analysis)) == (share == 0.9) == unequal(analysis.table)
    assert words.unequal_sentence(PLAIN) == ""


def test_tails():
    assert words.tails_sentence(PLAIN) == ""
    heavy = replace(PLAIN, tails=("other",))

    def with_cut(mean, scatter=0.0):
        cut = models(**{CUT: mean})
        values = cut[CUT].values + scatter * np.array([1, -3, 1, -1, 0, 2, -2, 1, 0, 1])
        return replace(heavy, models=cut | {CUT: replace(cut[CUT], values=values)})

    assert "helps one-step: +0." in words.tails_sentence(with_cut(0.9))
    assert "harms one-step: -0." in words.tails_sentence(with_cut(0.7))
    assert "makes no difference" in words.tails_sentence(with_cut(0.8))
    blown = words.tails_sentence(with_cut(-0.4, 1.0))  # −1.190 ± 1.089 was once no difference
    assert "Splits do not agree" in blown and "no difference" not in blown


def test_the_tail_of_the_label():
    assert words.label_tail_sentence(PLAIN) == ""
    text = words.label_tail_sentence(replace(PLAIN, label_tail=(7, 0.45)))
    assert "7 of 500 rows have 45% of its variance" in text


def test_found():
    """Only where a step was taken: `found` is empty at rate 0."""
    assert words.found_sentence(PLAIN) == ""
    assert "What the step found" not in page.page(PLAIN, "t")
    found = (("sensor_0", 0.9, 0.02), ("kind = g", -0.4, 0.02))
    text = words.found_sentence(replace(PLAIN, found=found))
    assert "0.90 (± 0.02)·“sensor_0” − 0.40 (± 0.02)·“kind = g”" in text


def test_notes_and_cautions_are_shown_if_there_are_any():
    shown = page.page(PLAIN, "t")
    assert "Before you believe it" not in shown and "<li>" not in shown
    noted = replace(PLAIN.table, notes=("1 row <left> out.",), cautions=("y is a sum of a, b",))
    shown = page.page(replace(PLAIN, table=noted), "t")
    assert "<li>1 row &lt;left&gt; out.</li>" in shown and "<li>y is a sum of a, b</li>" in shown


def test_quick_is_told():
    assert "--quick" not in page.page(PLAIN, "t")
    assert "--quick" in page.page(replace(PLAIN, quick=True), "t")


def test_headline_and_table_are_of_the_same_fits():
    """The table's splits have the curve's rows, and say how many."""
    assert "400 rows fitted" in page.page(PLAIN, "t")


def test_small_subsets_do_not_rule_the_axis():
    """R² of −30 at 60 rows once hid everything else."""
    axes = curve((31.0, 0.72, 0.58, 0.46, 0.37)).plot()
    low, high = axes.get_ylim()
    assert low > -0.5 and high <= 1.05
    assert any("outside" in text.get_text() for text in axes.texts)


def test_data():
    assert "is to be predicted" in words.data_sentence(PLAIN)
    text = words.data_sentence(replace(PLAIN, table=table(0.5)))
    assert "2 classes" in text and "predicted" not in text
