"""`onegrad analyze` on the kinds of tables that people have."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from onegrad.cli.commands import app
from onegrad.tabular.estimators.directions import columns_found
from onegrad.tabular.models import named_model
from onegrad.tabular.reading.cautions import heavy_tails, label_tail
from onegrad.tabular.reading.reading import read_table


@pytest.fixture
def messy(tmp_path) -> Path:
    """Gaps, an index, many categories, "None" as a value, currency, dates, free text."""
    rng = np.random.default_rng(0)
    path = tmp_path / "messy.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        out = csv.writer(handle)
        out.writerow(["id", "town", "pool", "income", "joined", "size", "note", "price"])
        for i in range(150):
            size, income = rng.normal(100, 20), rng.lognormal(10, 0.5)
            day = np.datetime64("2015-01-01") + int(rng.integers(2000))
            pool = rng.choice(["None", "big"])
            price = 1000 * size * (1 + (pool == "big")) + income
            shown = "" if i % 17 == 0 else f"{size:.1f}"
            out.writerow([i, f"town {i % 30}", pool, f"${income:,.2f}", day, shown, f"text {i}",
                          f"€{price:,.0f}"])  # fmt: skip
    return path


def test_what_was_done_to_a_messy_table(messy):
    table = read_table(messy)
    assert table.task == "regression" and table.label == "price"
    assert "pool = big" in table.names and table.x.shape[1] == 1 + 19 + 1 + 1 + 1
    notes = " ".join(table.notes)
    for said in ("labels are amounts", "more than 20 categories", "amounts read as numbers: income",
                 "dates read as days: joined", "free text", "counts the rows: id",
                 "9 gaps filled"):  # fmt: skip
        assert said in notes
    days = table.x[:, table.names.index("joined")]
    assert 16_000 < days.min() < days.max() < 19_000


def test_none_is_a_gap_among_numbers_and_a_value_among_texts(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{'None' if i % 3 == 0 else i * i % 7},{'None' if i % 2 else 'yes'},{i % 2}"
             for i in range(90)]  # fmt: skip
    path.write_text("\n".join(["number,text,y", *lines]), encoding="utf-8")
    table = read_table(path)
    assert table.names == ("number", "text = yes")
    assert any("30 gaps filled" in note for note in table.notes)


def test_report_on_a_messy_table(messy, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["analyze", str(messy), "--quick", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "we expect R²" in done.output and "fitting linear" in done.output
    text = out.read_text(encoding="utf-8")
    assert text.index("we expect") < text.index("<h2>Models") < text.index("<h2>The data")
    assert text.count("<img") == 1 and "use --time joined" in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    named = ["analyze", str(messy), "--quick", "--out", str(out), "--estimator"]
    done = CliRunner().invoke(app, [*named, "linear", "--time", "joined"])
    assert "linear: with all 150 rows" in done.output and "--time" not in out.read_text("utf-8")
    done = CliRunner().invoke(app, [*named, "trees"])
    assert "must be one-step" in done.output + str(done.exception or "")
    for gone in ("every class", "guessing the mean", "η", "β", "polynomial"):
        assert gone not in text


def test_columns_that_steps_have_in_common():
    """Where one was taken; of a table without curvature nothing is said."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1500, 8))
    t = x[:, 0] + 0.5 * x[:, 1]
    y = t**2 + t + 0.1 * rng.standard_normal(1500)
    model = named_model("one-step", "regression")
    (first, size, _), (second, smaller, _) = columns_found(model, x, y)[:2]
    assert (first, second) == (0, 1) and abs(smaller / size) == pytest.approx(0.5, abs=0.1)
    assert columns_found(model, x, rng.standard_normal(1500)) == []


def test_heavy_tails_are_seen():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.standard_normal(500), rng.standard_t(1, 500), rng.random(500) > 0.9])
    assert heavy_tails(x).tolist() == [1]
    assert label_tail(x[:, 0]) == (0, 0.0)
    count, share = label_tail(x[:, 1])
    assert count >= 3 and 0.5 < share <= 1


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Path:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(path, x=x[:500], y=y[:500])
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--classes", "5,x"], "must be from"),
        (["--classes", "5,5"], "two different classes"),
        (["--task", "regresion"], 'Did you mean "regression"'),
        (["--task", "regression", "--classes", "5,9"], "labels that are classes"),
    ],
)
def test_bad_options_are_advice(digits, tmp_path, arguments, said):
    done = CliRunner().invoke(
        app, ["analyze", str(digits), "--out", str(tmp_path / "r.html"), *arguments]
    )
    assert said in done.output + str(done.exception or "")


def test_few_rows_a_category_and_labels_that_mean_nothing(tmp_path):
    """A few neurons are silent at some rows: the theory must not take their logarithm. Names with
    a dollar sign are names, not mathematics."""
    rng = np.random.default_rng(0)
    _ = rng.standard_normal((200, 2000)), rng.standard_normal(200)
    kinds, labels = rng.choice(list("abc"), 150), rng.choice(["$p_", "q$ ^{$"], 150)
    lines = ["a,b,c,$kind$,la$bel$"]
    for row, kind, label in zip(rng.standard_normal((150, 3)), kinds, labels, strict=True):
        lines.append(",".join([*map(repr, map(float, row)), str(kind), str(label)]))
    path, out = tmp_path / "few.csv", tmp_path / "few.html"
    path.write_text("\n".join(lines), encoding="utf-8")
    result = CliRunner().invoke(app, ["analyze", str(path), "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "la$bel$" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", [0, 2])
def test_many_more_columns_than_rows(seed):
    import onegrad as og

    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((200, 2000)), rng.standard_normal(200)
    problem = og.Problem(
        data={"model": "arrays", "x": x, "y": y}, network={"width": 7},
        training={"samples": 66, "rate": 1.0, "ridge": 1e-3},
    )  # fmt: skip
    found = og.predict(problem, accuracy=0.03)
    assert np.isfinite(found.test_error) and 0.5 < found.test_error < 5
