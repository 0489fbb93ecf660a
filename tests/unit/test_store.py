"""What was computed is kept: across reruns, more seeds, kills and damage."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from onegrad.experiments import store as storing
from onegrad.experiments.engines import work
from onegrad.experiments.run import run_experiment
from onegrad.experiments.spec import Experiment
from onegrad.experiments.store import Store, StoreError, point_hash

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

    def counting(points, models, seed, threads):
        rows = original(points, models, seed, threads)
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
    monkeypatch.setitem(storing.MODEL_VERSIONS, "hermite", 2)
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
    assert len({point_hash(p) for p in points}) == len(points)
    other = experiment(name="x", figure={"quantities": ["train_error"]}).points
    assert [point_hash(p) for p in points] == [point_hash(p) for p in other]
    seeded = experiment(compare={"models": ["network"], "seeds": 3, "seed": 1}).points
    assert point_hash(seeded[0]) != point_hash(points[0])


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
    assert second.rows(point, [rows[0].model], 10) == first.rows(point, [rows[0].model], 10)


@pytest.mark.slow
def test_killed_at_random_moments_nothing_is_lost_or_repeated(tmp_path):
    """kill -9 of the running process, again and again, and the end is that of one quiet run."""
    lines = [f"name = {SPEC['name']!r}"]
    for table, values in SPEC.items():
        if isinstance(values, dict):
            lines.append(f"[{table}]")
            lines += [f'"{k}" = {v!r}' for k, v in values.items()]
    spec = tmp_path / "spec.toml"
    spec.write_text(
        "\n".join(lines).replace("'seeds': 3", "").replace('"seeds" = 3', '"seeds" = 60')
    )
    command = [sys.executable, "-m", "onegrad", "run", str(spec), "--out"]
    quiet = subprocess.run([*command, str(tmp_path / "quiet")], capture_output=True)
    assert quiet.returncode == 0, quiet.stderr
    rng = random.Random(0)
    killed = 0
    for _ in range(20):
        process = subprocess.Popen(
            [*command, str(tmp_path / "killed")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.6, 2.2))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
    assert killed >= 5
    assert subprocess.run([*command, str(tmp_path / "killed")], capture_output=True).returncode == 0

    def content(folder):
        db = sqlite3.connect(tmp_path / folder / "results.sqlite")
        return db.execute(
            "SELECT point, model, seed, test_error, train_error, train_objective, status FROM rows "
            "ORDER BY 1, 2, 3"
        ).fetchall()

    assert content("killed") == content("quiet")
    assert len(content("quiet")) == 6 * 2 * 60
