"""The commands as a user calls them: real processes, real files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.started import onegrad

SPEC = """
name = "tiny"
[data]
model = "mixture"
dim = 40
[network]
activation = "relu"
width = 30
[training]
samples = 50
[scaling]
strength = 0.74
weighting = 0.5
[compare]
models = ["network", "hermite", "theory"]
seeds = 3
[sweep]
"network.width_ratio" = [0.5, 1.5]
"""


def fresh(*arguments, cwd=None, env=None):
    """In an interpreter that has imported nothing yet; `onegrad` is one that has."""
    command = [sys.executable, "-m", "onegrad", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=120)


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(SPEC)
    return path


def test_simulate_json_keeps_the_contract(spec):
    done = fresh("simulate", spec, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["name"] == "tiny"
    assert len(report["rows"]) == 4
    row = report["rows"][0]
    assert row["point"] == {"network.width_ratio": 0.5}
    assert row["model"] == "network"
    assert row["seeds"] == 3 and row["status"] == "ok"
    for key in ("test_error", "test_error_se", "train_error", "train_error_se", "train_objective",
                "seconds"):  # fmt: skip
        assert row[key] > 0
    assert row["train_error"] < row["train_objective"] < row["test_error"]


def test_simulate_is_reproducible(spec):
    runs = [json.loads(run("simulate", spec, "--json").stdout)["rows"] for run in (fresh, onegrad)]
    for row in (row for rows in runs for row in rows):
        del row["seconds"]
    assert runs[0] == runs[1]


def test_run_writes_figure_and_numbers(spec, tmp_path):
    out = tmp_path / "out"
    done = onegrad("run", spec, "--out", out, "--set", "compare.accuracy=0.03")
    assert done.returncode == 0, done.stderr
    for name in ("figure.png", "figure.pdf", "figure.csv", "results.json"):
        assert (out / name).stat().st_size > 300
    assert (out / "figure.csv").read_text().count("\n") == 7


def test_degree(spec):
    done = onegrad("degree", spec)  # a sweep: one table
    assert done.returncode == 0 and "hermite:4" in done.stdout
    done = onegrad("degree", spec, "--set", "network.width_ratio=0.5")
    assert "Degree 3 is enough" in done.stdout
    assert "(0.6667, 0.75)" in done.stdout
    rows = json.loads(onegrad("degree", spec, "--json").stdout)["rows"]
    assert rows[0]["degree"] == 3
    assert rows[0]["terms"][3]["kept"] is False


def test_cite(spec):
    everything = onegrad("cite").stdout
    assert everything.count("@") >= 8
    assert "demir2025" in onegrad("cite", spec).stdout
    assert "moniri2024" not in onegrad("cite", spec).stdout


def test_show_prints_toml_that_runs(tmp_path):
    shown = onegrad("show", "quickstart").stdout
    path = tmp_path / "copy.toml"
    path.write_text(shown.replace("seeds = 10", "seeds = 2").replace("300", "40"))
    assert onegrad("simulate", path, "--json").returncode == 0
    assert "quickstart" in onegrad("list").stdout


BAD = {
    "typo": ("strength = 0.74", "strenght = 0.74", ["scaling.strenght", "0.74", '"strength"']),
    "file": ('model = "mixture"\ndim = 40', 'model = "file"\npath = "gone.csv"',
             ["data.path", "gone.csv", "no such file"]),
    "toml": ("dim = 40", "dim = = 40", ["TOML", "line"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_specs_exit_2_with_one_clear_message(spec, case):
    old, new, words = BAD[case]
    spec.write_text(spec.read_text().replace(old, new))
    done = onegrad("simulate", spec)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("command", ["run", "spectrum"])
def test_unusable_output_folder_is_advice(spec, tmp_path, command):
    occupied = tmp_path / "file"
    occupied.write_text("")
    target = spec
    if command == "spectrum":
        target = "moniri2024/weight-spectrum"
    done = onegrad(command, target, "--out", occupied)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and str(occupied) in done.stderr


def test_missing_spec_suggests_the_near_one(spec):
    done = onegrad("simulate", spec.with_name("tini.toml"))
    assert done.returncode == 2
    assert "tiny.toml" in done.stderr
    assert "quickstart" in onegrad("run", "quickstrat").stderr


def test_failed_model_is_reported_and_the_others_go_on(spec):
    spec.write_text(spec.read_text().replace('"theory"', '"spiked"'))
    done = onegrad("simulate", spec, "--json")
    assert done.returncode == 0
    rows = json.loads(done.stdout)["rows"]
    status = {row["model"]: row["status"] for row in rows}
    assert status == {"network": "ok", "hermite": "ok", "spiked": "failed"}
    assert "isotropic" in next(row["error"] for row in rows if row["model"] == "spiked")


def test_readme_example_runs():
    """The Python of the README, as it stands there."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
