"""What was computed is kept: across reruns, more seeds, kills and damage."""

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace

import pytest

from onegrad.results.rows import Row
from onegrad.runs import database
from onegrad.runs.engines import work
from onegrad.runs.run import run_experiment
from onegrad.runs.store import Store, StoreError
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


def test_the_hash_is_of_the_problem_alone():
    points = experiment().points
    assert len({key_of(p) for p in points}) == len(points)
    other = experiment(name="x", figure={"quantities": ["train_error"]}).points
    assert [key_of(p) for p in points] == [key_of(p) for p in other]
    seeded = experiment(compare={"models": ["network"], "seeds": 3, "seed": 1}).points
    assert key_of(seeded[0]) != key_of(points[0])


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


def test_two_stores_on_one_file(tmp_path):
    point = experiment().points[0]
    rows = run_experiment(experiment(seeds=1), tmp_path / "other").rows
    first, second = Store(tmp_path), Store(tmp_path)
    for store in (first, second, first):
        store.add([(point, rows[0])])
    assert len(first.rows(point, [rows[0].model], 10)) == 1
    found, again = (store.rows(point, [rows[0].model], 10) for store in (first, second))
    # NaN is equal to itself in a tuple; rows as such differ by it from Python 3.13 on
    assert [astuple(row) for row in found] == [astuple(row) for row in again]


def journal(folder):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        return db.execute("PRAGMA journal_mode").fetchone()[0]


def test_a_journal_of_its_own_where_memory_cannot_be_shared(tmp_path, monkeypatch):
    """Network file systems: SQLite's locking by files, which has no write-ahead log, stands in."""
    expected = numbers(run_experiment(experiment(), tmp_path / "wal"))
    assert journal(tmp_path / "wal") == "wal"
    connect = sqlite3.connect

    def without_shared_memory(path, **options):
        return connect(f"file:{path}?vfs=unix-dotfile", uri=True, **options)

    monkeypatch.setattr(database.sqlite3, "connect", without_shared_memory)
    first = run_experiment(experiment(seeds=2), tmp_path / "delete")
    assert len(first.rows) == 6 * 2 * 2
    assert numbers(run_experiment(experiment(), tmp_path / "delete")) == expected
    monkeypatch.undo()
    assert journal(tmp_path / "delete") == "delete"


def test_many_open_one_new_store_at_once(tmp_path):
    """None of them takes the half-made file of another for damaged or foreign."""
    for round_ in range(20):
        with ThreadPoolExecutor(8) as pool:
            stores = list(pool.map(lambda _, n=round_: _opened(tmp_path / str(n)), range(8)))
        assert stores == [True] * 8


def _opened(folder):
    Store(folder).close()
    return True


def test_in_memory_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    point = experiment().points[0]
    store = Store(None)
    store.add([(point, Row(point.settings, "network", 0, 0.1, 0.2, 0.3))])
    assert store.rows(point, ["network"], 1)[0].test_error == 0.1
    store.close()
    assert list(tmp_path.iterdir()) == []


class Clock:
    """Time that goes by when it is told to; the disk takes `commit` seconds."""

    def __init__(self, commit):
        self.now, self.commit, self.waits = 100.0, commit, []

    def monotonic(self):
        return self.now

    def hear(self, statement):
        if statement.startswith("PRAGMA synchronous"):
            self.waits.append(statement.endswith("FULL"))
        if statement == "COMMIT":
            self.now += self.commit * self.waits[-1]


@pytest.mark.parametrize("commit, waiting", [(0.001, 100), (0.01, 17), (0.1, 3)])
def test_commits_wait_for_the_disk_within_a_share_of_the_time(
    tmp_path, monkeypatch, commit, waiting
):
    """A hundred commits, one every 0.1 s: all wait where that is cheap."""
    file, clock = database.Database(tmp_path), Clock(commit)
    monkeypatch.setattr(database, "time", clock)
    file.db.set_trace_callback(clock.hear)
    for _ in range(100):
        with file.transaction():
            pass
        clock.now += 0.1
    file.close()
    assert abs(sum(clock.waits) - waiting) <= 1
    assert commit * (sum(clock.waits) - 1) <= database.SHARE * (clock.now - 100)
