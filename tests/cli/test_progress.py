"""What a run says while it runs: on a terminal, and in a pipe."""

import os
import re
import subprocess
import sys

import pytest

from onegrad.cli.progress import rate_and_rest, where
from onegrad.results.rows import Estimate
from onegrad.runs.coordinator import Status
from onegrad.specs.experiment import Experiment

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
    return [sys.executable, "-m", "onegrad", "run", str(path), "--out", str(tmp_path / "out")]


def test_on_a_terminal(command):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "150"},
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
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode())
    assert "/120" in text
    assert re.search(r"rows, [\d.e+]+/s, \d+:\d\d left, \d+ failed", text)
    assert re.search(r"ridge = 0.001: network 0.\d+ ± 0.\d+", text)


def test_quiet_in_a_pipe_but_for_what_failed(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    first, *rest = done.stderr.splitlines()
    assert "60 of 120 rows failed" in first and "Run the same command again" in first
    assert len(rest) == 2 and all(line.startswith("spiked at") for line in rest)


def test_words():
    experiment = Experiment.read(
        {"data": {"model": "isotropic", "dim": 9}, "network": {"width": 9},
         "training": {"samples": 9, "rate": 1.0}, "sweep": {"training.ridge": [0.5]}}
    )  # fmt: skip
    status = Status(50, 100_050, 10, 0, [], experiment.points[0], Estimate(0.5, 0.01))
    assert where(experiment, status) == "ridge = 0.5: network 0.500 ± 0.010"
    assert rate_and_rest(status, 1.0) == "rows, 10/s, 2:46:40 left"
    assert rate_and_rest(Status(5, 10, 0, 0, [], None, None), 1.0) == "rows"
