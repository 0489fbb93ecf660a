"""What a run says while it runs: on a terminal, and in a pipe."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from onegrad.results.estimates import Estimate
from onegrad.runs import progress
from onegrad.runs.coordinator import Status
from onegrad.runs.progress import time_left, where
from onegrad.spec.experiment import Experiment

SPEC = """
name = "told"
[data]
model = "mixture"
dim = 40
[network]
width = 30
[training]
samples = 50
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network", "spiked"]
seeds = 30
[sweep]
"training.ridge" = [1e-4, 1e-3]
"""


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "told.toml"
    path.write_text(SPEC)
    return [
        sys.executable,
        "-m",
        "onegrad",
        "run",
        str(path),
        "--out",
        str(tmp_path / "out"),
        "--workers",
        "1",
    ]


def on_terminal(command, columns):
    """What arrives at a terminal of so many columns: the states of its lines, escapes taken off."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": str(columns)},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 10_000)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        said += part
    assert process.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode())
    return [part.rstrip() for part in re.split(r"[\r\n]+", plain) if part.strip()]


@pytest.mark.parametrize("columns", [120, 80, 60])
def test_on_a_terminal(command, columns):
    """Bar, count and time left are there, and no line is broken, whatever the width."""
    lines = on_terminal(command, columns)
    assert all(len(text) <= columns for text in lines if "±" in text or "/120 rows" in text)
    states = [text for text in lines if "/120 rows" in text]
    assert states and all("━" in text for text in states)
    assert re.search(r"\d+/120 rows, .*\d+:\d\d left, \d+ failed", "\n".join(states))
    if columns == 120:
        assert any(re.search(r"[\d.e+]+/s  told", text) for text in states)
    tables = "\n".join(lines)
    assert "Verdict" not in tables and "±" in tables  # spiked failed: nothing to compare


def test_quiet_in_a_pipe_but_for_what_failed(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if "60 of 120 rows failed" in line)
    assert "Run the same command again" in lines[at]
    assert all("/120 rows" in line for line in lines[:at])  # a slow machine says where it is
    rest = lines[at + 1 :]
    assert len(rest) == 1 and rest[0].startswith("spiked at 2 points")


def test_plain_lines_in_a_pipe(command, monkeypatch, capsys):
    """Without a terminal a whole line now and then, without any escape."""
    monkeypatch.setattr(progress, "_RARELY", 0.0)
    experiment = Experiment.read(command[4])
    with progress.progress_line(experiment) as show:
        show(Status(0, 120, 0, 0, [], None, None))
        show(Status(60, 120, 60, 0, [], experiment.points[0], Estimate(0.5, 0.01)))
    first, second = capsys.readouterr().err.splitlines()
    assert "0/120 rows" in first and "\x1b" not in first
    assert "60/120 rows" in second and "ridge = 0.0001: network 0.500 ± 0.010" in second


def test_words():
    experiment = Experiment.read(
        {"data": {"model": "isotropic", "dim": 9}, "network": {"width": 9},
         "training": {"samples": 9, "rate": 1.0}, "sweep": {"training.ridge": [0.5]}}
    )  # fmt: skip
    status = Status(50, 100_050, 10, 0, [], experiment.points[0], Estimate(0.5, 0.01))
    assert where(experiment, status) == "ridge = 0.5: network 0.500 ± 0.010"
    assert time_left(status, 1.0) == "2:46:40 left"
    assert time_left(Status(5, 10, 0, 0, [], None, None), 1.0) == ""
    weighed = replace(status, work_left=lambda: 0.5)  # many rows, but cheap ones
    assert time_left(weighed, 60.0) == "0:30 left"
    unknown = replace(weighed, open_ended=True)
    assert time_left(unknown, 60.0) == "at least 0:30 left"
