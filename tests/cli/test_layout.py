"""Tables and verdicts at 120, 80 and 60 columns, in a pipe, and without colour."""

import io
import os
import re
import time

import pytest
from rich.console import Console

from onegrad.cli.layout import PIPE, blocks, natural_width, print_table, wrapped
from onegrad.cli.tables import results_table, verdict_text
from onegrad.cli.theory_text import (
    assumptions_in_words,
    degree_table,
    degree_text,
    prediction_table,
    waiting_line,
)
from onegrad.degree.report import degree
from onegrad.predict.predict import predict_experiment
from onegrad.predict.prediction import Prediction
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.spec.experiment import Experiment
from onegrad.theory.options import Theory
from tests.cli.started import onegrad
from tests.cli.test_cli import fresh

MODELS = ("network", "hermite", "conditional-gaussian", "theory")
SPEC = {
    "name": "a name that is rather long, as names of experiments are when they say what they do",
    "data": {"model": "mixture", "dim": 30}, "network": {"width_ratio": 1.0},
    "training": {"samples": 40}, "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": list(MODELS), "accuracy": 0.1},
    "sweep": {"network.activation": ["relu", "tanh"], "network.width_ratio": [0.5, 2.0]},
}  # fmt: skip
ONE = {key: SPEC[key] for key in ("name", "network")} | {"network": {"width": 30}}
BY_HAND = ONE | {
    "data": {"model": "mixture", "dim": 30, "spread": 3.0}, "training": {"samples": 40, "rate": 2.0}
}  # fmt: skip
TWICE = ONE | {
    "data": SPEC["data"], "scaling": SPEC["scaling"], "training": {"samples": 40, "steps": 2}
}  # fmt: skip


@pytest.fixture(scope="module")
def experiment():
    return Experiment.read(SPEC)


def made(experiment, seeds):
    rows = [
        Row(p.settings, m, s, 0.1 + 0.01 * s + 0.003 * i, 0.05 + 0.001 * s, 0.1, number=p.number)
        for p in experiment.points for i, m in enumerate(MODELS)
        for s in range(1 if m == "theory" else seeds)
    ]  # fmt: skip
    return Results(experiment.name, tuple(rows))


def printed(table, keys, width, capsys, monkeypatch, **environment):
    """Lines on a terminal of this width (None: a pipe)."""
    for name, value in {"COLUMNS": str(width), "TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    terminal = property(lambda self: width is not None)
    monkeypatch.setattr(Console, "is_terminal", terminal)
    print_table(table, keys)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [120, 80, 60, None])
@pytest.mark.parametrize("seeds", [3, 20])
def test_results_and_verdict_fit(experiment, width, seeds, capsys, monkeypatch):
    results = made(experiment, seeds)
    for text in (
        printed(results_table(experiment, results), 2, width, capsys, monkeypatch),
        wrapped(verdict_text(results), width or PIPE, 4),
    ):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
        assert max(map(len, lines)) <= (width or PIPE)
        words = " ".join(lines)
        assert "…" not in words  # nothing is cut off
        for model in MODELS:
            assert model in words or model.partition("-")[0] in words
        if width is None:
            assert "\x1b" not in text


def test_a_narrow_table_says_the_same(experiment):
    table = results_table(experiment, made(experiment, 3))
    assert natural_width(table) > 80
    text = blocks(table, 2, 60)
    assert "relu, width_ratio = 0.5\n  network test error" in text
    assert text.count("  conditional-gaussian") == 4 and text.count("±") >= 16


def test_few_seeds_have_wider_intervals_and_say_so(experiment):
    """Three standard errors of three seeds are no difference, of thirty they are one."""
    captions = [str(results_table(experiment, made(experiment, n)).caption) for n in (3, 8)]
    assert "± 4.3 of them (Student)" in captions[0] and "Student" not in captions[1]


def test_a_sweep_of_degrees_is_one_table(experiment, capsys, monkeypatch):
    reports = [(p, degree(p.problem, draws=2)) for p in experiment.points]
    table = degree_table(experiment, reports)
    assert table.row_count == 4 and [c.header for c in table.columns][3] == "rule"
    for width in (80, 60):
        text = printed(table, 2, width, capsys, monkeypatch)
        assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 60])
def test_predictions_fit(experiment, width, capsys, monkeypatch):
    table = prediction_table(experiment, predict_experiment(experiment)[1])
    text = printed(table, 2, width, capsys, monkeypatch)
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())) <= width


def test_a_sweep_tells_the_assumptions_of_all_its_points():
    """Numbers that differ as ranges, what holds at some points as such, methods apart."""

    def of(method, *assumptions):
        return Prediction(1.0, 1.0, 1.0, method, assumptions)

    lines = assumptions_in_words([
        of("one theory", "Terms of order 1/n (test +2.5 %).", "60 nodes."),
        of("one theory", "Terms of order 1/n (test -0.1 %).", "1,200 nodes.", "A caution."),
        of("another", "It assumes nothing."),
    ])  # fmt: skip
    assert lines == [
        "One theory:",
        "Terms of order 1/n (test -0.1 to +2.5 %).",
        "60 to 1,200 nodes.",
        "At 1 of 2 points: A caution.",
        "Another:",
        "It assumes nothing.",
    ]


def test_quick_for_theory_and_degree(tmp_path):
    for command in ("predict", "degree"):
        done = onegrad(command, "quickstart", "--quick", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "(quick: n = 300, 5 seeds)" in done.stdout and "\x1b" not in done.stdout


def test_completion_knows_the_presets(tmp_path):
    words = {
        "_ONEGRAD_COMPLETE": "complete_bash",
        "COMP_WORDS": "onegrad run quick",
        "COMP_CWORD": "2",
    }
    done = fresh(cwd=tmp_path, env=os.environ | words)
    assert "quickstart" in done.stdout


@pytest.mark.parametrize("width", [120, 80, 60])
def test_sentences_about_degrees_fit(experiment, width):
    for point in (experiment.points[0], Experiment.read(BY_HAND).points[0]):
        text = wrapped(degree_text(point, degree(point.problem, draws=2)), width)
        assert max(map(len, text.splitlines())) <= width
        assert re.search("^degree +rule +test error beside the network's", text, re.M)


def test_without_a_rule_the_reason_is_said():
    by_hand, twice = Experiment.read(BY_HAND), Experiment.read(TWICE)
    (point,), (again,) = by_hand.points, twice.points
    assert "η and θ are set by hand" in degree_text(point, degree(point.problem, draws=2))
    assert "a single step of gradient descent" in degree_text(again, degree(again.problem, draws=2))
    table = degree_table(by_hand, [(point, degree(point.problem, draws=2))])
    assert "No rule: η and θ are set by hand" in str(table.caption)
    assert [*table.columns[1].cells] == ["none"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_says_what_it_is(experiment, monkeypatch):
    """And what does not, or goes to a file, says nothing."""
    shown = []
    for stream, patience in ((_Terminal(), 0.0), (_Terminal(), 60.0), (io.StringIO(), 0.0)):
        monkeypatch.setattr("sys.stderr", stream)
        with waiting_line(experiment, Theory(), patience):
            time.sleep(0.3)
        shown.append(stream.getvalue())
    assert shown == ["Computing 4 predictions to 1 % …\n", "", ""]
