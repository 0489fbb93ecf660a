"""Spectra as rows: stored once, found by what they depend on, the same report back."""

import sqlite3

import numpy as np
import pytest

import onegrad as og
from onegrad.results.rows import SPECTRUM_COLUMNS
from onegrad.runs import spectra
from onegrad.runs.load import load_results
from onegrad.runs.spectra import run_spectra
from onegrad.spec.experiment import Experiment

ISOTROPIC = {
    "name": "closed forms",
    "data": {"model": "isotropic", "dim": 40},
    "network": {"width": 50, "convention": "isotropic"},
    "training": {"samples": 60},
    "compare": {"models": ["network"], "seeds": 1},
    "sweep": {"scaling.exponent": [0.2, 0.3]},
    "figure": {"kind": "weight-spectrum"},
}
MIXTURE = {
    "name": "a limit", "data": {"model": "mixture", "dim": 40, "spread": 12.0},
    "network": {"width": 30, "activation": "tanh"}, "training": {"samples": 50, "rate": 0.0},
    "figure": {"kind": "feature-spectrum"},
}  # fmt: skip


@pytest.fixture(params=[ISOTROPIC, MIXTURE], ids=["isotropic", "mixture"])
def experiment(request):
    return Experiment.from_tables(request.param)


def counted(monkeypatch):
    calls = []
    real = spectra.spectrum
    monkeypatch.setattr(spectra, "spectrum", lambda *a: calls.append(a) or real(*a))
    return calls


def test_a_stored_spectrum_is_the_one_that_was_drawn(experiment, tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    drawn = [og.spectrum(p.problem, p.compare.seed) for p in experiment.points]
    for _ in range(2):
        reports = [report for _, report in run_spectra(experiment, tmp_path)]
        assert len(calls) == len(drawn)  # the second time all come from the store
        for one, other in zip(drawn, reports, strict=True):
            assert one.as_json() == other.as_json()
            assert repr(one) == repr(other)
            for mine, theirs in zip(one.feature_values, other.feature_values, strict=True):
                np.testing.assert_array_equal(mine, theirs)
    if experiment.name == "a limit":
        mine, theirs = (one.features.limit.law for one in (drawn[0], reports[0]))
        np.testing.assert_array_equal(mine.densities, theirs.singular_density(mine.values))


def test_only_what_changed_is_drawn_again(tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    run_spectra(Experiment.from_tables(ISOTROPIC), tmp_path)
    more = {**ISOTROPIC, "name": "other", "sweep": {"scaling.exponent": [0.2, 0.25, 0.3]}}
    run_spectra(Experiment.from_tables(more), tmp_path)
    assert len(calls) == 3
    run_spectra(Experiment.from_tables({**more, "compare": {"seed": 1}}), tmp_path)
    assert len(calls) == 6  # of another draw


def test_rows_of_errors_and_spectra_stand_apart(tmp_path):
    results = og.run(ISOTROPIC, tmp_path, progress=False)
    assert [row.model for row in results.rows] == ["network"] * 2
    assert [row.point for row in results.spectra] == [{"scaling.exponent": e} for e in (0.2, 0.3)]
    assert "2 spectra" in repr(results) and "spectrum at" in repr(results.spectra[0])
    loaded = load_results(tmp_path)
    assert loaded.rows == results.rows
    frame = loaded.to_pandas()
    assert list(frame["model"]) == ["network", "network", "spectrum", "spectrum"]
    assert set(SPECTRUM_COLUMNS) <= set(frame.columns)
    assert loaded.to_xarray()["feature_edge"].sel(model="spectrum", seed=0).notnull().all()


def test_a_damaged_spectrum_is_drawn_again(tmp_path, monkeypatch):
    experiment = Experiment.from_tables(ISOTROPIC)
    run_spectra(experiment, tmp_path)
    with sqlite3.connect(tmp_path / "results.sqlite") as file:
        file.execute("UPDATE rows SET weight_outliers = 7 WHERE model = 'spectrum'")
    file.close()
    calls = counted(monkeypatch)
    with pytest.warns(UserWarning, match="damaged"):
        run_spectra(experiment, tmp_path)
    assert len(calls) == 2
