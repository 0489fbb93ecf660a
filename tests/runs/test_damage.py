"""Files that are damaged, older, newer or read-only: said with the row, never passed on."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import warnings

import pytest

from onegrad.errors import OnegradError
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
    with pytest.warns(StoreWarning, match="14 of 16 rows"):
        shown = [row for row in load_results(folder).rows if row.status == "damaged"]
    assert len(shown) == (0 if "nettork" in damage else 2)  # nobody knows where that one stood
    assert all("checksum" in row.error for row in shown)
    with pytest.warns(StoreWarning):
        assert all(row["model"] != "nettork" for row in open_stored(folder)["rows"])
    with pytest.warns(StoreWarning, match="2 rows do not match"):
        results = run_experiment(Experiment.read(SPEC), folder)
    assert content(folder) == content(whole)
    assert all(row.status == "ok" for row in results.rows)
    with warnings.catch_warnings():  # it is said once, and mended
        warnings.simplefilter("error")
        run_experiment(Experiment.read(SPEC), folder)


def test_changed_settings_of_a_point_are_written_anew(folder, whole):
    change(folder, "UPDATE points SET spec = replace(spec, 'mixture', 'mixturf')")
    assert {row.status for row in load_results(folder).rows} == {"ok"}
    run_experiment(Experiment.read(SPEC), folder)
    named = [row.point for row in load_results(folder).rows]
    assert named == [row.point for row in load_results(whole).rows]


@pytest.mark.parametrize("more, which", [(1, "a newer"), (-1, "an older")])
def test_a_file_of_another_format_is_left_alone(folder, more, which):
    change(folder, f"PRAGMA user_version = {database.FORMAT + more}")
    before = (folder / "results.sqlite").read_bytes()
    for use in (Store, load_results, open_stored):
        with pytest.raises(StoreError, match=f"{which} version of onegrad.*--out") as error:
            use(folder)
        assert "recover" not in str(error.value)
    assert (folder / "results.sqlite").read_bytes() == before


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
    with pytest.raises(StoreError, match=r"cannot be written.*--out"):
        run_experiment(Experiment.read(SPEC), read_only)
    assert sorted(p.name for p in read_only.iterdir()) == [
        "results.json", "results.lock", "results.sqlite", "spec.toml"
    ]  # fmt: skip


# --- stores of strangers ---------------------------------------------------------------------

_ENDLESS = """
    DROP TABLE rows;
    CREATE VIEW rows AS WITH RECURSIVE n(point) AS (SELECT '' UNION ALL SELECT point FROM n)
    SELECT * FROM n;
"""


@pytest.mark.parametrize(
    "statements",
    [
        _ENDLESS,
        "CREATE TRIGGER t AFTER INSERT ON points BEGIN DELETE FROM rows; END;",
        "CREATE TABLE more (x TEXT);",
        "ALTER TABLE rows ADD COLUMN x TEXT;",
        "ALTER TABLE rows RENAME COLUMN seconds TO minutes;",
        "DROP TABLE planned;",
    ],
)
def test_tables_that_are_not_ours_are_refused(folder, statements):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        db.executescript(statements)
        db.commit()
    for use in (Store, load_results, open_stored):
        with pytest.raises(StoreError, match="does not write"):
            use(folder)


@pytest.mark.parametrize(
    "column, value",
    [
        ("test_error", b"\xff"), ("test_error", "0.1"), ("test_error", 1e400), ("seed", "x"),
        ("seed", -1), ("seed", 2**62), ("model", b"network"), ("model", "network:"),
        ("model", "hermite:\x00"), ("compute", "["), ("compute", "[1]"), ("compute", '{"a": NaN}'),
        ("compute", "[" * 100_000), ("compute", "{}" + " " * 10**6), ("status", "\x1b[2J"),
        ("status", 7), ("error", b""), ("seconds", "long"), ("spectrum", "{}"), ("spectrum", "7"),
        ("control_power", "x"), ("model_version", "1"), ("package_version", None),
    ],
)  # fmt: skip
def test_rows_of_strangers_raise_our_errors_alone(folder, column, value):
    """With a checksum that is right."""
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        db.row_factory = sqlite3.Row
        (row,) = db.execute("SELECT * FROM rows WHERE model = 'network' LIMIT 1").fetchall()
        changed = dict(row) | {column: value}
        changed["checksum"] = database.checksum(changed)
        with contextlib.suppress(sqlite3.IntegrityError):
            db.execute(
                f"UPDATE rows SET {column} = ?, checksum = ? WHERE checksum = ?",
                (value, changed["checksum"], row["checksum"]),
            )
        db.commit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        for use in (_shown, open_stored, lambda f: run_experiment(Experiment.read(SPEC), f)):
            with contextlib.suppress(OnegradError):
                use(folder)


def _shown(folder):
    results = load_results(folder)
    repr(results), json.dumps(results.as_json()), results.to_pandas()
    results.export(folder / "rows.csv")


@pytest.mark.parametrize("spec", ["[]", "{}", '{"data": 1}', '{"data": {"x": [[]]}}', "x", "1e999"])
def test_settings_of_strangers_raise_our_errors_alone(folder, spec):
    key = database.text_hash(spec)
    change(folder, "UPDATE points SET point = ?, spec = ?" + " WHERE point = (SELECT min(point) "
           "FROM points)", key, spec)  # fmt: skip
    for use in (_shown, open_stored):
        with contextlib.suppress(OnegradError), warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            use(folder)


def test_a_pipe_or_a_device_is_no_store(tmp_path):
    os.mkfifo(tmp_path / "results.sqlite")
    with pytest.raises(StoreError, match="not a file"):
        Store(tmp_path)
    with pytest.raises(OnegradError, match="no folder of results"):
        load_results(tmp_path)
