"""Options that change a spec, what a run says at its end, and files for other programs."""

import json

import pandas as pd
import pytest
import xarray as xr

from onegrad.cli.commands import app
from onegrad.spec.presets import preset_groups, preset_names
from tests.cli.started import onegrad

SPEC = """
name = "tiny"
[data]
model = "mixture"
dim = 30
[network]
width_ratio = 1.0
[training]
samples = 40
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network", "hermite"]
seeds = 2
[sweep]
"network.activation" = ["relu", "tanh"]
[sweep.zip]
"data.dim" = [20, 30, 40]
"training.samples" = [30, 45, 60]
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(SPEC)
    return path


def test_run_ends_with_a_verdict_and_exports_what_it_stored(spec, tmp_path):
    out = tmp_path / "out"
    done = onegrad("run", spec, "--out", out, "--workers", 1)
    assert done.returncode == 0, done.stderr
    verdict = done.stdout[done.stdout.index("Verdict") :]
    assert "hermite" in verdict and "±" in verdict and "Figure:" in verdict
    saved = json.loads((out / "results.json").read_text())
    assert [(v["model"], v["quantity"]) for v in saved["verdict"]] == [
        ("hermite", "test_error"), ("hermite", "train_error"),
    ]  # fmt: skip

    done = onegrad("export", out, "--format", "netcdf")
    assert done.returncode == 0, done.stderr
    assert str(out / "rows.nc") in done.stdout and "24 rows" in done.stdout
    with xr.open_dataset(out / "rows.nc", engine="h5netcdf") as data:
        assert dict(data.sizes) == {"network.activation": 2, "point": 3, "model": 2, "seed": 2}
        worst = abs(data.test_error.sel(model="hermite") - data.test_error.sel(model="network"))
        assert float(worst.max()) > 0
    app(["export", str(out), "--format", "parquet"], standalone_mode=False)
    assert len(pd.read_parquet(out / "rows.parquet")) == 24
    wanted = tmp_path / "else.csv"
    app(["export", str(out), "--out", str(wanted)], standalone_mode=False)
    assert len(pd.read_csv(wanted)) == 24


def test_export_errors_are_advice(tmp_path):
    near = tmp_path / "elsewhere" / "results" / "here"
    near.mkdir(parents=True)
    (near / "results.sqlite").touch()
    for cwd, arguments, words in (
        (tmp_path, ("nowhere",), ["no folder of results", "none below here", "onegrad run"]),
        (near.parents[1], ("nowhere",), ["results/here", "onegrad run"]),
        (tmp_path, (".", "--format", "netcfd"), ["--format", '"netcdf"']),
    ):
        done = onegrad("export", *arguments, cwd=cwd)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        for word in words:
            assert word in done.stderr


@pytest.mark.parametrize("command", ["simulate", "predict", "degree"])
def test_set_on_every_command(spec, command, capsys):
    changes = [
        "network.activation=erf",
        "sweep.zip.data.dim=[10, 15, 20]",
        "compare.accuracy=0.03",
    ]
    app([command, str(spec), "--json", *(word for c in changes for word in ("--set", c))],
        standalone_mode=False)  # fmt: skip
    points = [row["point"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert {p["data.dim"] for p in points} == {10, 15, 20}
    assert all("network.activation" not in p for p in points)


def test_set_on_spectrum(tmp_path, capsys):
    sizes = ("data.dim=60", "network.width=70", "training.samples=80")
    app(["spectrum", "moniri2024/weight-spectrum", "--json", "--out", str(tmp_path),
         *(word for size in sizes for word in ("--set", size))], standalone_mode=False)  # fmt: skip
    assert json.loads(capsys.readouterr().out)["rows"]
    assert len((tmp_path / "figure.csv").read_text().splitlines()) > 60


def test_a_spectrum_stores_rows_that_can_be_exported(tmp_path):
    done = onegrad("run", "moniri2024/weight-spectrum", "--quick", "--out", tmp_path)
    assert done.returncode == 0 and "Weights: bulk edge" in done.stdout, done.stderr
    done = onegrad("export", tmp_path)
    assert "2 rows" in done.stdout
    network, spectrum = pd.read_csv(tmp_path / "rows.csv").to_dict("records")
    assert network["model"] == "network" and network["test_error"] > 0
    assert spectrum["model"] == "spectrum" and spectrum["weight_outliers"] == 1
    assert spectrum["feature_largest"] > spectrum["feature_edge"] > 0
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored["spectra"][0]["weight_outliers"] == 1


def test_quick_has_its_own_folder(spec, tmp_path):
    done = onegrad("run", spec, "--quick", "--set", "compare.seeds=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results" / "tiny-quick" / "figure.png").exists()
    assert not (tmp_path / "results" / "tiny").exists()
    assert "tiny (quick" in done.stdout


def test_list_has_one_line_for_every_preset_under_its_source():
    lines = onegrad("list").stdout.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == list(preset_groups())
    names = [line.split()[0] for line in lines if line.startswith(" ")]
    assert names == preset_names() and names[0] == "quickstart"
    assert all(" min  " in line for line in lines if line.startswith(" "))
