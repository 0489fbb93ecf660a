"""What leaves a public function is an error of ours, with a report that can be sent."""

import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import onegrad as og
from onegrad.errors import UnexpectedError, verb
from onegrad.predict import predict as dispatch
from onegrad.text.strict_json import json_text

SPEC = {
    "data": {"model": "mixture", "dim": 20},
    "network": {"width": 40},
    "training": {"samples": 80, "ridge": 0.01},
    "scaling": {"strength": 0.6, "weighting": 0.5},
}


@verb
def broken(error):
    raise error


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("x"), ValueError("x"), KeyError("x"), RecursionError("x")]
)
def test_what_nobody_foresaw_becomes_our_error(error):
    with pytest.raises(UnexpectedError, match=type(error).__name__) as caught:
        broken(error)
    report = caught.value.report
    assert caught.value.__cause__ is error
    assert f"onegrad {og.__version__}" in report and "in broken" in report
    assert pickle.loads(pickle.dumps(caught.value)).report == report


def test_memory_files_and_wrong_calls_are_said_as_they_are():
    with pytest.raises(og.OnegradError, match="not enough memory") as caught:
        broken(MemoryError("8 GB"))
    assert not isinstance(caught.value, UnexpectedError)
    for error in (FileNotFoundError("x"), ImportError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            broken(error)
    with pytest.raises(TypeError, match="argument"):
        broken(1, 2)


def test_arithmetic_does_not_warn_unless_asked_to():
    noisy = verb(lambda: np.float64(1e308) * 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert noisy() == np.inf
    assert not caught
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnexpectedError, match="RuntimeWarning"):
            noisy()


def test_one_broken_point_does_not_stop_the_others(monkeypatch):
    original = dispatch._alone

    def breaking(problem, *rest):
        if problem.width == 41:
            raise KeyError("half way")
        return original(problem, *rest)

    monkeypatch.setattr(dispatch, "_alone", breaking)
    problems = [SPEC | {"network": {"width": width}} for width in (40, 41, 42)]
    found = og.predict_curve(problems)
    assert [one.status == "failed" for one in found] == [False, True, False], found
    assert "unexpected" in found[1].error
    with pytest.raises(UnexpectedError):
        og.predict(problems[1])


def test_the_command_writes_a_report(tmp_path):
    code = """
import sys
from onegrad.cli import commands
from importlib import import_module
report = import_module("onegrad.degree.report")
report.DegreeReport.as_json = lambda self: {}["broken"]
sys.argv = ["onegrad", "degree", "quickstart", "--json"]
commands.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    (report,) = tmp_path.glob("onegrad-error-*.txt")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert str(report) in done.stderr and "KeyError" in done.stderr
    text = report.read_text(encoding="utf-8")
    assert text.startswith("onegrad degree quickstart --json") and "in as_json" not in done.stdout
    assert "KeyError: 'broken'" in text


def test_json_has_no_nan():
    text = json_text({"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": None}})
    assert json.loads(text) == {"a": None, "b": [None, 1.5], "c": {"d": None}}
