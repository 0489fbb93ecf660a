"""Files that are damaged, older, newer or read-only: said with the row, never passed on."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import warnings

import pytest

from onegrad.page.stored import open_stored
from onegrad.runs import database
from onegrad.runs.load import load_results
from onegrad.runs.run import run_experiment
from onegrad.runs.store import Store, StoreError, StoreWarning
from onegrad.spec.experiment import Experiment

SPEC = {
    "data": {"model": "mixture", "dim": 20},
    "network": {"width": 15},
    "training": {"samples": 20},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "linear"], "seeds": 4},
    "sweep": {"training.ridge": [1e-4, 1e-2]},
}
ROWS = 16


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    run_experiment(Experiment.read(SPEC), folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "out")
    return tmp_path / "out"


def content(folder):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        return db.execute(
            "SELECT point, model, seed, test_error, train_error, status, error FROM rows "
            "ORDER BY 1, 2, 3"
        ).fetchall()


def change(folder, statement, *values):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        db.execute(statement, values)
        db.commit()


@pytest.mark.parametrize(
    "damage",
    [
        "test_error = test_error + 1e-16",
        "train_objective = NULL",
        "seed = 77",
        "model = 'nettork'",
        "point = 'x' || substr(point, 2)",
        "status = 'om'",
        "error = 'x'",
        "checksum = 'x' || substr(checksum, 2)",
    ],
)
def test_a_changed_row_is_reported_and_computed_again(folder, whole, damage):
    change(folder, f"UPDATE rows SET {damage} WHERE model = 'network' AND seed = 2")
    if damage.startswith("test_error"):
        change(folder, "UPDATE rows SET test_error = 0.5 WHERE model = 'network' AND seed = 2")
    shown = [row for row in load_results(folder).rows if row.status == "damaged"]
    assert len(shown) == 2 and all("checksum" in row.error for row in shown)
    assert all(row["model"] != "nettork" for row in open_stored(folder)["rows"])
    with pytest.warns(StoreWarning, match="2 entries do not match"):
        results = run_experiment(Experiment.read(SPEC), folder)
    assert content(folder) == content(whole)
    assert all(row.status == "ok" for row in results.rows)
    with warnings.catch_warnings():  # it is said once, and mended
        warnings.simplefilter("error")
        run_experiment(Experiment.read(SPEC), folder)


def test_changed_settings_of_a_point_are_reported_and_written_anew(folder, whole):
    change(folder, "UPDATE points SET spec = replace(spec, 'mixture', 'mixturf')")
    assert {row.status for row in load_results(folder).rows} == {"ok"}
    with pytest.warns(StoreWarning, match="settings of point"):
        run_experiment(Experiment.read(SPEC), folder)
    named = [row.point for row in load_results(folder).rows]
    assert named == [row.point for row in load_results(whole).rows]


def test_a_newer_file_is_left_alone(folder):
    change(folder, f"PRAGMA user_version = {database.FORMAT + 1}")
    before = (folder / "results.sqlite").read_bytes()
    for use in (Store, load_results, open_stored):
        with pytest.raises(StoreError, match="newer version of onegrad") as error:
            use(folder)
        assert "recover" not in str(error.value)
    assert (folder / "results.sqlite").read_bytes() == before


def without_checksums(folder):
    """The file as format 2 had it, before checksums and claims."""
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        db.execute("ALTER TABLE rows DROP COLUMN checksum")
        db.execute("DROP TABLE claims")
        db.execute("DROP TABLE runs")
        db.execute("PRAGMA user_version = 2")
        db.commit()


def test_an_older_file_is_migrated(folder, whole):
    without_checksums(folder)
    with pytest.raises(StoreError, match="Run it once more"):
        load_results(folder)  # only read, it cannot be
    run_experiment(Experiment.read(SPEC), folder)
    assert content(folder) == content(whole)
    assert len(load_results(folder).rows) == ROWS
    change(folder, "UPDATE rows SET test_error = 0.5 WHERE seed = 0 AND model = 'linear'")
    with pytest.warns(StoreWarning):
        Store(folder).close()


def test_a_file_of_the_first_version_is_refused_with_advice(folder):
    change(folder, "PRAGMA user_version = 0")
    for use in (Store, load_results, open_stored):
        with pytest.raises(StoreError, match=r"older version of onegrad.*--out"):
            use(folder)


@pytest.fixture
def read_only(folder):
    """The folder where nobody can write, not even root."""
    if os.geteuid() != 0:
        (folder / "results.sqlite").chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    bind = ["mount", "--bind", str(folder), str(folder)]
    if subprocess.run(bind, capture_output=True).returncode != 0:
        pytest.skip("may not mount here")
    try:
        remount = ["mount", "-o", "remount,bind,ro", str(folder)]
        subprocess.run(remount, check=True, capture_output=True)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_read_only_folder_is_read(read_only, whole):
    assert len(load_results(read_only).rows) == ROWS
    assert len(open_stored(read_only)["rows"]) == ROWS / 4
    # what is all there can be asked for; what is missing cannot be stored
    assert len(run_experiment(Experiment.read(SPEC), read_only).rows) == ROWS
    more = SPEC | {"compare": SPEC["compare"] | {"seeds": 5}}
    with pytest.raises(StoreError, match="read-only and lacks rows"):
        run_experiment(Experiment.read(more), read_only)
    assert sorted(p.name for p in read_only.iterdir()) == ["results.json", "results.sqlite"]
