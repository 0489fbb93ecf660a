"""Rows as tables, labelled arrays and files: every number where its labels say."""

import builtins
import csv
import math
import random
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from onegrad import load_results
from onegrad.errors import OnegradError, SpecError
from onegrad.results.results import Results
from onegrad.results.rows import Row
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.runs.store import Store
from onegrad.spec.experiment import Experiment

QUANTITIES = ["test_error", "train_error", "train_objective"]
SPEC = {
    "name": "small",
    "data": {"model": "mixture", "dim": 20, "directions": "orthogonal"},
    "network": {"width": 10},
    "training": {"samples": 30},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 2, "accuracy": 0.03},
    "sweep": {"network.activation": ["tanh", "relu"], "training.ridge": [1e-2, 1e-3, 1e-1]},
}


def made(points, models=("network", "theory"), seeds=3):
    """Rows with numbers of which each tells where it belongs, in random order."""
    rows = []
    for i, point in enumerate(points):
        for j, model in enumerate(models):
            for seed in range(1 if model == "theory" else seeds):
                value = 100.0 * i + 10 * j + seed
                rows.append(Row(point, model, seed, value, value / 2, value / 4, 0.1, number=i))
    random.Random(0).shuffle(rows)
    return Results("made", tuple(rows))


def test_every_number_stands_where_its_labels_say():
    points = [{"network.activation": a, "training.ridge": r} for a in ("relu", "tanh")
              for r in (0.1, 0.2, 0.4)]  # fmt: skip
    results = made(points)
    data = results.to_xarray()
    assert data.test_error.dims == ("network.activation", "training.ridge", "model", "seed")
    assert data.test_error.shape == (2, 3, 2, 3)
    assert data.attrs["name"] == "made"
    for row in results.rows:
        cell = data.sel(row.point | {"model": row.model, "seed": row.seed})
        assert [float(cell[q]) for q in QUANTITIES] == [getattr(row, q) for q in QUANTITIES]
    assert int(data.test_error.notnull().sum()) == len(results.rows)
    theory = data.test_error.sel(model="theory")
    assert theory.sel(seed=0).notnull().all() and theory.sel(seed=[1, 2]).isnull().all()


def test_keys_swept_together_share_the_dimension_point():
    points = [{"network.activation": a, "data.dim": n, "training.samples": m}
              for a in ("relu", "tanh") for n, m in ((50, 70), (50, 80), (100, 80))]  # fmt: skip
    results = made(points)
    data = results.to_xarray()
    assert set(data.test_error.dims) == {"network.activation", "point", "model", "seed"}
    order = dict(zip(zip(data["data.dim"].values, data["training.samples"].values, strict=True),
                     range(3), strict=True))  # fmt: skip
    assert set(order) == {(50, 70), (50, 80), (100, 80)}
    for row in results.rows:
        at = order[row.point["data.dim"], row.point["training.samples"]]
        labels = {"network.activation": row.point["network.activation"], "model": row.model}
        cell = data.test_error.isel(point=at).sel(labels | {"seed": row.seed})
        assert float(cell) == row.test_error


def test_a_grid_with_a_hole_and_failed_rows_loses_nothing():
    points = [{"a.x": x, "a.y": y} for x in (1, 2) for y in (1, 2)][:3]
    results = made(points, seeds=2)
    failed = Row(points[0], "hermite", 0, status="failed", error="no")
    results = Results(results.name, (*results.rows, failed))
    data = results.to_xarray()
    assert data.sizes["point"] == 3
    assert int(data.test_error.notnull().sum()) == len(results.rows) - 1
    frame = results.to_pandas()
    assert list(frame[frame.status == "failed"].error) == ["no"]


def test_lists_and_mixed_values_are_labelled_by_texts():
    points = [{"data.weights": w, "compare.degree": d} for w in ([0.1, 0.9], [0.5, 0.5])
              for d in ("auto", 3)]  # fmt: skip
    data = made(points).to_xarray()
    assert set(data["data.weights"].values) == {"[0.1, 0.9]", "[0.5, 0.5]"}
    assert set(data["compare.degree"].values) == {"auto", "3"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run_experiment(Experiment.read(SPEC), out, Local(1))
    return out


def test_a_folder_is_loaded_without_its_spec(folder):
    wanted = run_experiment(Experiment.read(SPEC), folder, Local(1))
    loaded = load_results(folder)
    assert loaded.to_xarray()["training.ridge"].values.tolist() == [1e-3, 1e-2, 1e-1]

    def numbers(results):
        return sorted((r.point["network.activation"], r.point["training.ridge"], r.model, r.seed,
                       r.test_error, r.train_error) for r in results.rows)  # fmt: skip

    assert numbers(loaded) == numbers(wanted)
    assert set(loaded.rows[0].point) == {"network.activation", "training.ridge"}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "nc"])
def test_files_hold_every_row(folder, tmp_path, suffix):
    results = load_results(folder)
    path = results.export(tmp_path / "deep" / f"rows.{suffix}")
    if suffix == "nc":
        with xr.open_dataset(path, engine="h5netcdf") as read:
            xr.testing.assert_identical(read.load(), results.to_xarray())
        return
    frame = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    frame["error"] = frame["error"].astype(object).fillna("")
    pd.testing.assert_frame_equal(frame, results.to_pandas(), check_dtype=False)


def test_csv_needs_no_extra_and_the_others_say_which(folder, tmp_path, monkeypatch):
    results = load_results(folder)
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] in ("pandas", "xarray", "pyarrow", "h5netcdf"):
            raise ImportError(name)
        return real(name, *rest, **more)

    import importlib

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(importlib, "import_module", without)
    with results.export(tmp_path / "rows.csv").open(newline="") as handle:
        assert len(list(csv.DictReader(handle))) == len(results.rows)
    for action in (
        results.to_pandas,
        results.to_xarray,
        lambda: results.export(tmp_path / "rows.nc"),
        lambda: results.export(tmp_path / "rows.parquet"),
    ):
        with pytest.raises(OnegradError, match=r"pip install 'onegrad\[frames\]'"):
            action()


def test_an_unknown_suffix_is_advice():
    with pytest.raises(SpecError, match=r"\.parquet"):
        made([{}]).export("rows.xlsx")


def test_a_hundred_thousand_stored_rows_load_in_time(tmp_path):
    """250 points × 4 models × 100 seeds through the store, as a long run leaves them."""
    spec = SPEC | {"sweep": {"scaling.weighting": [i / 24 for i in range(25)],
                             "scaling.strength": [i / 10 for i in range(10)]}}  # fmt: skip
    experiment = Experiment.read(spec)
    models = ("network", "hermite", "conditional-gaussian", "gaussian")
    store = Store(tmp_path)
    store.add(
        (point, Row(point.settings, model, seed, i + 0.5, seed + 0.25, 1.0, 0.01))
        for i, point in enumerate(experiment.points)
        for model in models
        for seed in range(100)
    )
    store.close()
    start = time.process_time()
    data = load_results(tmp_path).to_xarray()
    seconds = time.process_time() - start
    assert dict(data.sizes) == {"scaling.weighting": 25, "scaling.strength": 10, "model": 4,
                                "seed": 100}  # fmt: skip
    assert not np.isnan(data.test_error).any()
    where = experiment.points[37].settings
    assert (data.test_error.sel(where) == 37.5).all()
    assert math.isclose(float(data.train_error.sel(where).mean()), 49.75)
    assert seconds < 5


def test_texts_are_no_formulas_of_a_spreadsheet(tmp_path):
    """Of a column's name, and of an error: its first letter is an apostrophe; numbers stay."""
    rows = [Row({"=1+1": -0.5}, "network", 0, -0.25, status="failed", error=text)
            for text in ('=cmd|" /C calc"!A0', "+1", "-1", "@sum", "good", "")]  # fmt: skip
    path = Results("x", tuple(rows)).export(tmp_path / "rows.csv")
    with path.open(newline="", encoding="utf-8") as handle:
        header, *lines = csv.reader(handle)
    assert header[0] == "'=1+1"
    assert [line[-1][:1] for line in lines] == ["'", "'", "'", "'", "g", ""]
    assert {line[0] for line in lines} == {"-0.5"}
