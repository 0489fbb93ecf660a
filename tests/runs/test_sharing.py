"""Runs on one file share the work, and take over what a dead one had begun."""

import contextlib
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from onegrad.runs import claims
from onegrad.runs.engines import Local
from onegrad.runs.run import run_experiment
from onegrad.runs.store import Store
from onegrad.spec.experiment import Experiment

SPEC = {
    "data": {"model": "mixture", "dim": 20},
    "network": {"width": 15},
    "training": {"samples": 20},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "linear"], "seeds": 30},
    "sweep": {"training.ridge": [1e-4, 1e-2]},
}
ROWS = 2 * 2 * 30


def computed(folder):
    """Rows that a run computed by itself; it has all of them in the end."""
    last = []
    results = run_experiment(Experiment.read(SPEC), folder, Local(1), last.append)
    assert len(results.rows) == ROWS
    return last[-1].computed


def test_two_runs_compute_every_row_once(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(computed, [tmp_path] * 2))
    assert sum(counts) == ROWS
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM rows").fetchone()[0] == ROWS
        for table in ("claims", "runs"):  # nobody is there any more
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0


def leave_behind(folder, machine, process, started):
    """All rows of seed 0, claimed by somebody else."""
    store = Store(folder)
    points = Experiment.read(SPEC).points
    cells = [store._cell(p, m, 0) for p in points for m in ("network", "linear")]
    store.close()
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        db.execute("INSERT INTO runs VALUES ('x', ?, ?, ?, 0)", (machine, process, started))
        db.executemany("INSERT INTO claims VALUES (?, ?, ?, ?, 'x')", cells)
        db.commit()


def dead_process():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


@pytest.mark.parametrize("who", ["dead", "another of the same number"])
def test_what_a_dead_local_process_had_begun_is_taken_over_at_once(tmp_path, monkeypatch, who):
    monkeypatch.setattr(claims, "SILENCE", 1e9)
    process = dead_process() if who == "dead" else os.getpid()
    leave_behind(tmp_path, claims.machine(), process, "12345")
    assert computed(tmp_path) == ROWS


def test_a_silent_run_on_another_machine_is_waited_for_and_then_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "SILENCE", 1.0)
    leave_behind(tmp_path, "elsewhere", 1, "1")
    start = time.monotonic()
    assert computed(tmp_path) == ROWS
    assert time.monotonic() - start > 1.0


def test_a_run_that_is_alive_elsewhere_is_not_disturbed(tmp_path, monkeypatch):
    """As long as its heart beats, its rows are waited for; when it brings them, they are taken."""
    monkeypatch.setattr(claims, "SILENCE", 2.0)
    quiet = run_experiment(Experiment.read(SPEC), tmp_path / "quiet", Local(1))
    leave_behind(tmp_path, "elsewhere", 1, "1")

    def other():
        with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite", timeout=30)) as db:
            for _ in range(30):
                db.execute("UPDATE runs SET beat = beat + 1 WHERE run = 'x'")
                db.commit()
                time.sleep(0.1)
        store = Store(tmp_path)
        points = Experiment.read(SPEC).points
        rows = [row for row in quiet.rows if row.seed == 0]
        store.add((points[row.number], row) for row in rows)
        store.close()
        with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite", timeout=30)) as db:
            db.execute("DELETE FROM claims WHERE run = 'x'")
            db.commit()

    thread = threading.Thread(target=other)
    thread.start()
    assert computed(tmp_path) == ROWS - 4
    thread.join()


def test_a_run_shows_that_it_is_alive(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT", 0.05)
    store = Store(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "results.sqlite")) as db:
        end = time.monotonic() + 20
        while db.execute("SELECT beat FROM runs").fetchone()[0] < 3:
            assert time.monotonic() < end
            time.sleep(0.02)
    store.close()
