"""What a command loads before it does anything: counted, so that no import creeps back."""

import json
import subprocess
import sys

import pytest

SPEC = """
data = { model = "mixture", dim = 30 }
network = { activation = "relu", width = 30 }
training = { samples = 40 }
scaling = { strength = 0.74, weighting = 0.5 }
compare = { models = ["network", "theory"], seeds = 1, accuracy = 0.03 }
"""
# what is loaded at the first row of a run, or at the end of any other command
PROBE = """
import gc, json, sys
from onegrad.cli import commands

def collections():
    return sum(generation["collections"] for generation in gc.get_stats())

def tell(*_):
    with open("loaded.json", "w") as file:
        json.dump([sorted(sys.modules), collections() - before], file)

if sys.argv[1] == "run":
    from onegrad.runs.coordinator import Coordinator
    def first(self, rows):
        if rows:
            tell()
            sys.exit()
    Coordinator._tell = first
before = collections()
try:
    commands.main()
except SystemExit:
    if sys.argv[1] != "run":
        tell()
"""
SLOW = ("scipy.stats", "scipy.optimize", "scipy.interpolate", "matplotlib", "sklearn", "pandas",
        "loky", "distributed")  # fmt: skip
THEORY = ("onegrad.predict.predict", "onegrad.theory.conditional", "scipy.sparse.linalg")
# command, what it must not load, and how many modules it may have loaded
COMMANDS = {
    "--help": ((*SLOW, *THEORY, "numpy", "pydantic"), 220),
    "list": ((*SLOW, *THEORY, "numpy"), 340),
    "show quickstart": ((*SLOW, *THEORY, "numpy"), 340),
    "cite": ((*SLOW, *THEORY, "numpy"), 340),
    "degree spec.toml": ((*SLOW, *THEORY[:2]), 830),
    "simulate spec.toml": ((*SLOW, *THEORY), 860),
    "predict spec.toml": (SLOW, 980),
    "run spec.toml --out out": ((*SLOW, *THEORY), 860),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_loaded_before_it_is_needed(command, tmp_path):
    without, most = COMMANDS[command]
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", PROBE, *command.split()], cwd=tmp_path, check=True,
        capture_output=True, timeout=120,
    )  # fmt: skip
    loaded, collections = json.loads((tmp_path / "loaded.json").read_text(encoding="utf-8"))
    assert [name for name in without if name in loaded] == []
    assert len(loaded) <= most
    assert collections <= 2  # hundreds of searches for garbage where there is none, otherwise
