"""What was computed is kept: across reruns, more seeds, kills and damage."""

import contextlib
import math
import sqlite3
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from onegrad.results.rows import Row
from onegrad.runs import database
from onegrad.runs.engines import work
from onegrad.runs.load import load_results
from onegrad.runs.run import run_experiment
from onegrad.runs.store import Store, StoreError, StoreWarning
from onegrad.simulate.models import MODELS
from onegrad.spec.experiment import Experiment
from tests.keys import key_of

SPEC = {
    "name": "small",
    "data": {"model": "mixture", "dim": 30},
    "network": {"width": 20},
    "training": {"samples": 40},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "hermite"], "seeds": 3},
    "sweep": {"network.activation": ["relu", "erf"], "training.ridge": [1e-4, 1e-3, 1e-2]},
}


def experiment(seeds=3, **changes):
    return Experiment.read(SPEC | {"compare": SPEC["compare"] | {"seeds": seeds}} | changes)


def numbers(results):
    return [(r.point, r.model, r.seed, r.test_error, r.train_error) for r in results.rows]


@pytest.fixture
def counted(monkeypatch):
    """How many (point, model, seed) cells were really computed."""
    computed = []
    original = work.run_group

    def counting(*arguments):
        rows = original(*arguments)
        computed.extend((str(r.point), r.model, r.seed) for r in rows)
        return rows

    monkeypatch.setattr(work, "run_group", counting)
    return computed


def test_rerunning_computes_nothing(tmp_path, counted):
    first = run_experiment(experiment(), tmp_path)
    assert len(counted) == 2 * 3 * 2 * 3
    counted.clear()
    again = run_experiment(experiment(name="other title"), tmp_path)
    assert counted == []
    assert numbers(first) == numbers(again)


def test_more_seeds_add_the_missing_ones(tmp_path, counted):
    run_experiment(experiment(seeds=2), tmp_path)
    counted.clear()
    results = run_experiment(experiment(seeds=5), tmp_path)
    assert {seed for *_, seed in counted} == {2, 3, 4}
    assert len(results.rows) == 6 * 2 * 5
    assert numbers(results) == numbers(run_experiment(experiment(seeds=5), tmp_path / "fresh"))


def test_more_points_and_models_add_the_missing_ones(tmp_path, counted):
    run_experiment(experiment(sweep={"training.ridge": [1e-4]}), tmp_path)
    counted.clear()
    wider = experiment(sweep={"training.ridge": [1e-4, 1.0]})
    run_experiment(wider, tmp_path)
    assert {point for point, *_ in counted} == {str({"training.ridge": 1.0})}


def test_a_new_code_version_recomputes_that_model(tmp_path, counted, monkeypatch):
    run_experiment(experiment(), tmp_path)
    counted.clear()
    newer = replace(MODELS["hermite"], version=MODELS["hermite"].version + 1)
    monkeypatch.setitem(MODELS, "hermite", newer)
    run_experiment(experiment(), tmp_path)
    assert {model for _, model, _ in counted} == {"hermite"}


def test_failed_rows_are_tried_again(tmp_path, counted):
    spec = experiment(compare={"models": ["spiked"], "seeds": 1})
    results = run_experiment(spec, tmp_path)
    assert {row.status for row in results.rows} == {"failed"}
    counted.clear()
    run_experiment(spec, tmp_path)
    assert len(counted) == 6
    db = sqlite3.connect(tmp_path / "results.sqlite")
    assert db.execute("SELECT count(*) FROM rows").fetchone()[0] == 6


def test_a_key_has_what_the_model_depends_on_and_nothing_else():
    first = experiment(compare={"models": ["network"]}).points[0]

    def changed(model, **compare):
        other = experiment(compare={"models": ["network"], **compare}).points[0]
        return key_of(other, model) != key_of(first, model)

    for model in ("network", "hermite", "kernel"):
        assert not changed(model, accuracy=0.001) and not changed(model, seeds=7)
        assert changed(model, risk="sampled") and changed(model, dtype="float32")
    assert changed("theory", accuracy=0.001)
    assert not changed("theory", risk="sampled") and not changed("theory", test_samples=6000)
    assert changed("hermite", degree=2) and not changed("network", degree=2)
    # the kernel's risk is always sampled, the others' may be
    assert changed("kernel", test_samples=6000) and changed("network", test_samples=6000)
    assert not changed("network", risk="auto")


def test_another_test_set_is_another_number(tmp_path, counted):
    """With risk = "auto", where the risk has to be sampled."""
    spec = {"models": ["kernel", "theory"], "seeds": 1}
    run_experiment(experiment(compare=spec | {"test_samples": 400}, sweep={}), tmp_path)
    counted.clear()
    again = spec | {"test_samples": 400, "accuracy": 0.1}
    run_experiment(experiment(compare=again, sweep={}), tmp_path)
    assert not counted
    run_experiment(experiment(compare=spec | {"test_samples": 500}, sweep={}), tmp_path)
    assert {model for _, model, _ in counted} == {"kernel"}


@pytest.mark.parametrize("damage", ["garbage", "truncated", "foreign"])
def test_damage_is_reported_and_never_replaced(tmp_path, damage):
    path = tmp_path / "results.sqlite"
    if damage == "foreign":
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE diary (day TEXT)")
        db.commit()
        db.close()
    else:
        run_experiment(experiment(seeds=30), tmp_path)
        whole = path.read_bytes()
        path.write_bytes(b"nonsense" * 1000 if damage == "garbage" else whole[: len(whole) // 3])
    before = path.read_bytes()
    with pytest.raises(StoreError, match="--out"):
        run_experiment(experiment(), tmp_path)
    assert path.read_bytes() == before


def test_a_second_run_says_so_and_waits(tmp_path, counted):
    """Of two runs on one folder the second computes nothing that the first has stored."""
    store = Store(tmp_path)
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second = pool.submit(run_experiment, experiment(seeds=1), tmp_path)
        deadline = time.monotonic() + 20
        while not caught and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "another run is writing" in str(caught[0].message) and not second.done()
        point = experiment().points[0]
        store.add([(point, Row(point.settings, "network", 0, 0.5, 0.5, 0.5))])
        assert load_results(tmp_path).rows  # readers are let in meanwhile
        store.close()
        rows = second.result(60).rows
    assert rows[0].test_error == 0.5 and len(counted) == 11 + 1  # points that share draws
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "results.json", "results.lock", "results.sqlite", "spec.toml"
    ]  # fmt: skip


def test_a_killed_run_leaves_no_lock(tmp_path):
    code = f"import os; from onegrad.runs.store import Store; Store({str(tmp_path)!r}); os._exit(1)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Store(tmp_path).close()


def test_good_rows_stay(tmp_path):
    point = experiment().points[0]
    store = Store(tmp_path)
    for error, status in ((math.nan, "failed"), (0.1, "ok"), (0.2, "ok")):
        store.add([(point, Row(point.settings, "network", 0, error, status=status))])
    assert [row.test_error for row in store.rows(point, ["network"], 10)] == [0.1]
    store.close()


def test_the_log_stays_small(tmp_path):
    """A log of the size of the rows, not of everything that was ever written."""
    spec = experiment(seeds=3, sweep={})
    store, log = Store(tmp_path), tmp_path / "results.sqlite-wal"
    (point,) = spec.points
    for seed in range(600):
        store.add([(point, Row(point.settings, "network", seed, 0.1, 0.2, 0.3))])
    assert 0 < log.stat().st_size < 600_000
    store.close()
    assert not log.exists()


def test_rows_that_were_wanted_are_missed(tmp_path):
    """Whatever took them away: an interruption, or a damaged log."""
    run_experiment(experiment(seeds=3), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_results(tmp_path).rows) == 36
    run_experiment(experiment(seeds=2), tmp_path)  # fewer than there are
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as db:
        db.execute("DELETE FROM rows WHERE seed = 1")
        db.commit()
    with pytest.warns(StoreWarning, match="24 of 36 rows"):
        assert len(load_results(tmp_path).rows) == 24
    done = subprocess.run(
        [sys.executable, "-m", "onegrad", "export", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0 and "24 of 36 rows" in done.stderr


def test_a_killed_run_knows_what_it_wanted(tmp_path, monkeypatch):
    """With its log thrown away, so that nothing but the plan is left."""
    code = f"""
import os, onegrad as og
from onegrad.runs import coordinator
coordinator.Coordinator._take_in = lambda *_: os._exit(1)
og.run({SPEC!r}, {str(tmp_path)!r}, og.Local(1))
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 1
    (tmp_path / "results.sqlite-wal").unlink()
    with pytest.warns(StoreWarning, match="0 of 36 rows"):
        assert not load_results(tmp_path).rows


def test_automatic_seeds_are_planned_round_by_round(tmp_path):
    compare = {"models": ["network"], "seeds": "auto", "precision": 0.001, "most_seeds": 20}
    run_experiment(experiment(compare=compare, sweep={}), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = load_results(tmp_path).rows
    assert len(rows) == 20
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as db:
        assert db.execute("SELECT seeds FROM planned").fetchone()[0] == len(rows)


def test_other_versions_are_told(tmp_path):
    run_experiment(experiment(), tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as db:
        db.row_factory = sqlite3.Row
        for row in map(dict, db.execute("SELECT * FROM rows WHERE seed = 0").fetchall()):
            row["package_version"] = "0.0.1"
            db.execute(
                "UPDATE rows SET package_version = '0.0.1', checksum = ? WHERE checksum = ?",
                (database.checksum(row), row["checksum"]),
            )
        db.commit()
    with pytest.warns(StoreWarning, match=r"12 by onegrad 0\.0\.1"):
        Store(tmp_path).close()


def journal(folder):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        return db.execute("PRAGMA journal_mode").fetchone()[0]


def test_a_journal_of_its_own_where_memory_cannot_be_shared(tmp_path, monkeypatch):
    """Network file systems: SQLite's locking by files, which has no write-ahead log, stands in."""
    expected = numbers(run_experiment(experiment(), tmp_path / "wal"))
    connect, modes = sqlite3.connect, []

    def without_shared_memory(path, **options):
        db = connect(f"file:{path}?vfs=unix-dotfile", **options | {"uri": True})
        db.set_trace_callback(lambda text: modes.append(text) if "synchronous" in text else None)
        return db

    monkeypatch.setattr(database.sqlite3, "connect", without_shared_memory)
    run_experiment(experiment(seeds=2), tmp_path / "delete")
    assert numbers(run_experiment(experiment(), tmp_path / "delete")) == expected
    assert not modes  # each commit waits for the disk


def test_many_open_one_new_store_at_once(tmp_path):
    """None of them takes the half-made file of another for damaged or foreign."""
    for round_ in range(20):
        with ThreadPoolExecutor(8) as pool:
            stores = list(pool.map(lambda _, n=round_: _opened(tmp_path / str(n)), range(8)))
        assert stores == [True] * 8


def _opened(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        Store(folder).close()
    return True
