"""`onegrad analyze` on the kinds of tables that people have."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from onegrad.cli.commands import app
from onegrad.data.reading import read_table
from onegrad.report.analysis import analyse, prepare


def quiet(_text: str) -> None:
    return None


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Path:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "digits.npz"
    np.savez(path, x=x, y=y)
    return path


@pytest.fixture
def gappy(tmp_path) -> Path:
    """A regression table with gaps: the target needs the square of one input."""
    rng = np.random.default_rng(0)
    lines = ["u,v,target"]
    for i in range(300):
        u, v = rng.normal(), 5 * rng.normal()
        lines.append(f"{'' if i % 17 == 0 else u},{v},{u * u + 0.3 * v}")
    path = tmp_path / "gappy.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_report_on_digits(digits, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["analyze", str(digits), "--out", str(out), "--classes", "5,9"])
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert "5 and 9 are told apart" in text
    assert text.count("<img") == 7
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    for heading in ("Structure in the noise", "Which learning rate", "What the step gains"):
        assert heading in text


def test_gain_where_the_truth_is_known(tmp_path):
    """A noisy linear target gains nothing from the network; a class that is a product gains."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((900, 12))
    np.savez(tmp_path / "linear.npz", x=x, y=x @ rng.standard_normal(12) + rng.normal(size=900))
    linear = analyse(read_table(tmp_path / "linear.npz"), say=quiet)
    assert linear.changes["linear"].mean > 0
    x = rng.standard_normal((900, 3))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    np.savez(tmp_path / "product.npz", x=x, y=y)
    product = analyse(read_table(tmp_path / "product.npz"), say=quiet)
    assert product.changes["linear"].mean < -0.4
    assert product.gain["linear"].mean > 0.9


def test_spikes_and_standing(tmp_path):
    """θ = n^½ exactly: the data's exponent is ½, and degree 2 begins where η leaves 1."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3000, 100))
    x[:, 0] *= np.sqrt(1 + 10.0)
    y = np.where(rng.random(3000) < 0.5, "a", "b")
    np.savez(tmp_path / "spike.npz", x=7 * x, y=y)
    analysis = analyse(read_table(tmp_path / "spike.npz"), say=quiet)
    assert analysis.prepared.spikes.count == 1
    assert analysis.standing is not None
    assert analysis.standing.data_exponent == pytest.approx(0.5, abs=0.02)
    assert analysis.standing.largest_rate(2) == pytest.approx(100 ** (2 / 3 - 0.5), rel=0.1)
    assert analysis.standing.degree(2.0) == 2 and analysis.standing.degree(20.0) == 4


def test_gaps_are_told(gappy, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["analyze", str(gappy), "--out", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert "18 gaps filled" in text and "different units" in text
    assert "With 2 inputs there is no crowd" in text


def test_units(digits):
    assert not any("units" in note for note in prepare(read_table(digits)).notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--classes", "5,x"], "must be from"),
        (["--classes", "5,5"], "two different classes"),
        (["--label", "z"], "Report"),  # an archive has no columns to name
        (["--task", "regresion"], 'Did you mean "regression"'),
    ],
)
def test_bad_options_are_advice(digits, tmp_path, arguments, said):
    done = CliRunner().invoke(
        app, ["analyze", str(digits), "--out", str(tmp_path / "r.html"), *arguments]
    )
    message = done.output + str(done.exception or "")
    assert said in message


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
    result = CliRunner().invoke(app, ["analyze", str(path), "--out", str(out)])
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
