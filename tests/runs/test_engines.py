"""Engines change where the work is done, and no bit of any number."""

import gc
import os
import signal
import urllib.error
import urllib.request

import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_limits

import onegrad as og
from onegrad.compute import threads
from onegrad.errors import SpecError
from onegrad.runs.engines import (
    Dask,
    EngineError,
    Local,
    cluster,
    engine_of,
    local,
    open_engine,
    work,
)
from onegrad.runs.run import run_experiment, simulate_experiment
from onegrad.runs.schedule import Schedule
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment

SPEC = {
    "name": "small",
    "data": {"model": "mixture", "dim": 40},
    "network": {"width": 30},
    "training": {"samples": 50},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "theory"], "seeds": 3, "accuracy": 0.03},
    "sweep": {"network.activation": ["relu", "erf"], "training.ridge": [1e-4, 1e-3, 1e-2]},
}


def experiment(**changes):
    return Experiment.read(SPEC | changes)


def numbers(results):
    return [
        (r.point, r.model, r.seed, r.test_error, r.train_error, r.train_objective, r.status)
        for r in results.rows
    ]


@pytest.fixture
def own_activation():
    """Somebody's own, known in this process alone: it has to travel."""
    return og.register_activation(
        og.Activation("bent", lambda x: x + x**3 / 10, lambda x: 1 + 0.3 * x**2)
    )


@pytest.fixture
def kept_futures(monkeypatch):
    """How many results a dask cluster still held when it was closed."""
    kept, close = [], cluster.DaskEngine.close

    def closing(self):
        gc.collect()
        kept.append(len(self._client.futures))
        close(self)

    monkeypatch.setattr(cluster.DaskEngine, "close", closing)
    return kept


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_same_bits_from_every_engine(tmp_path, own_activation, engine, kept_futures):
    spec = experiment(
        sweep={"network.activation": ["relu", "bent"], "training.ridge": [1e-4, 1e-3, 1e-2]}
    )
    here = run_experiment(spec, tmp_path / "here", Local(1))
    there = run_experiment(spec, tmp_path / "there", engine_of(engine, 2))
    assert numbers(here) == numbers(there)
    assert {row.status for row in here.rows} == {"ok"}
    assert len(here.rows) == 6 * (2 * 3 + 1)
    # of dask: the points alone, and at most one whose release is on its way
    assert [n <= 2 for n in kept_futures] == ([True] if engine == "dask" else [])


def test_workers_are_used_when_asked_for(tmp_path, monkeypatch):
    """Negative control of the test above: the work did leave this process."""
    monkeypatch.setattr(local, "work", None)
    assert len(run_experiment(experiment(), tmp_path, Local(2)).rows) == 6 * 7
    with pytest.raises(TypeError):
        run_experiment(experiment(), tmp_path / "here", Local(1))


def test_little_work_stays_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "work_on_started", None)
    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "_WORTH_WORKERS", 1e9)  # however slow the machine is just now
    here = run_experiment(experiment(), tmp_path)
    assert {row.status for row in here.rows} == {"ok"}
    monkeypatch.setattr(local, "_WORTH_WORKERS", 0.0)
    there = run_experiment(experiment(), tmp_path / "more")
    assert "failed" in {row.status for row in there.rows}


def test_simulating_is_running_without_a_file(tmp_path):
    stored = run_experiment(experiment(), tmp_path)
    alone = simulate_experiment(experiment())
    assert numbers(alone) == [n for n in numbers(stored) if n[1] != "theory"]
    with pytest.raises(SpecError, match="nothing to simulate"):
        simulate_experiment(experiment(compare={"models": ["theory"]}))


# --- threads of the linear algebra library ---------------------------------------------------


def test_threads_follow_from_the_size_alone():
    small, large = (
        experiment(data={"model": "mixture", "dim": n}, training={"samples": n}, sweep={})
        for n in (40, 30_000)
    )
    with threadpool_limits(limits=2, user_api="blas"):
        assert threads.threads_for(small.points[0].problem.operations) == 1
        assert threads.threads_for(large.points[0].problem.operations) == 2


@pytest.mark.slow
def test_a_large_problem_has_the_same_bits_wherever_it_runs(tmp_path, monkeypatch):
    """On two threads here, in the local engine and in a dask worker that was given one."""
    monkeypatch.setattr(threads, "_WORTH_THREADS", 1e6)
    size = {
        "data": {"model": "mixture", "dim": 300},
        "network": {"width": 260},
        "training": {"samples": 280},
    }
    spec = experiment(
        **size, sweep={}, compare={"models": ["network", "hermite", "linear"], "seeds": 2}
    )
    with threadpool_limits(limits=2, user_api="blas"):
        assert Schedule(spec).next().threads == 2
        here = run_experiment(spec, tmp_path / "here", Local(1))
        more = run_experiment(spec, tmp_path / "more", Local(2))
        dask = run_experiment(spec, tmp_path / "dask", Dask(workers=2))
    assert numbers(here) == numbers(more) == numbers(dask)
    # negative control: the number of threads does show in the last bits
    one = [run_group(spec.points, spec.compare.models, seed, threads=1) for seed in range(2)]
    assert {r.test_error for rows in one for r in rows} != {r.test_error for r in here.rows}
    np.testing.assert_allclose(
        sorted(r.test_error for rows in one for r in rows),
        sorted(r.test_error for r in here.rows),
        rtol=1e-8,
    )


# --- what goes wrong -------------------------------------------------------------------------


def test_a_failure_is_tried_once_more_and_leaves_no_trace(tmp_path, monkeypatch):
    original, calls = work.run_group, []

    def unreliable(points, models, seed, *rest):
        calls.append(seed)
        if calls.count(seed) == 1:
            raise MemoryError("not now")
        return original(points, models, seed, *rest)

    expected = numbers(run_experiment(experiment(), tmp_path / "good", Local(1)))
    monkeypatch.setattr(work, "run_group", unreliable)
    assert numbers(run_experiment(experiment(), tmp_path / "bad", Local(1))) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_twice_is_recorded_and_the_run_goes_on(tmp_path, workers):
    """A function of somebody's own that breaks: its points fail, those that share draws do not."""

    def broken(x):
        raise ZeroDivisionError("half way through")

    og.register_activation(og.Activation("broken", np.tanh, broken))
    spec = experiment(
        sweep={"network.activation": ["relu", "broken"], "training.ridge": [1e-4, 1e-3, 1e-2]},
        compare={"models": ["network", "hermite", "linear", "random-features"], "seeds": 2},
    )
    results = run_experiment(spec, tmp_path / "both", Local(workers))
    assert len(results.rows) == 6 * 4 * 2
    failed = [row for row in results.rows if row.status != "ok"]
    assert {(row.point["network.activation"], row.model) for row in failed} == {
        ("broken", "network"), ("broken", "hermite")
    }  # fmt: skip
    assert {row.error for row in failed} == {"ZeroDivisionError: half way through"}
    alone = experiment(sweep={"training.ridge": [1e-4, 1e-3, 1e-2]}, compare=dict(spec.compare))
    good = [row for row in results.rows if row.point["network.activation"] == "relu"]
    expected = run_experiment(alone, tmp_path / "alone", Local(1)).rows
    assert [r.test_error for r in good] == [r.test_error for r in expected]


@pytest.mark.slow
def test_a_unit_that_kills_its_worker_is_found_and_recorded(tmp_path):
    coordinator = os.getpid()

    def deadly(x):
        if os.getpid() != coordinator:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.tanh(x)

    og.register_activation(og.Activation("deadly", deadly, lambda x: 1 / np.cosh(x) ** 2))
    spec = experiment(
        sweep={"network.activation": ["relu", "deadly"]},
        compare={"models": ["network"], "seeds": 1},
    )
    good, bad = run_experiment(spec, tmp_path, Local(2)).rows
    assert (good.status, bad.status) == ("ok", "failed")
    assert "died" in bad.error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "dsak"}, ["engine", "dsak", "local, dask"]),
        ({"workers": 0}, ["workers", "0", "from 1"]),
        ({"name": "local", "scheduler": "tcp://x:1"}, ["scheduler", "dask"]),
        ({"scheduler": "tcp://x:1", "workers": 2}, ["workers", "2", "dask worker"]),
    ],
)
def test_bad_options_get_advice(options, words):
    with pytest.raises(SpecError) as caught:
        engine_of(**options)
    for word in words:
        assert word in str(caught.value)


def test_no_scheduler_gets_advice(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT", 0.5)
    with pytest.raises(EngineError, match="dask scheduler"):
        open_engine(experiment(), Dask("tcp://127.0.0.1:9"))


def test_a_cluster_of_ours_speaks_tls_on_the_loopback_address():
    """Whoever reaches the port of a scheduler runs code in it: without our certificate nobody
    does, and nothing listens to other machines. The HTTP server serves nothing."""
    import distributed

    engine = open_engine(experiment(), Dask(workers=1))
    try:
        address = engine._own.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        for stranger in (address, address.replace("tls", "tcp")):
            with pytest.raises((OSError, TypeError, ValueError)):
                distributed.Client(stranger, timeout=1, set_as_default=False)
        ours = psutil.Process()
        listening = [
            port.laddr.ip
            for process in (ours, *ours.children(recursive=True))
            for port in process.net_connections()
            if port.status == "LISTEN"
        ]
        assert len(listening) > 2 and set(listening) == {"127.0.0.1"}
        served = f"http://127.0.0.1:{engine._own.scheduler.http_server.port}"
        for page in ("/status", "/info/main/workers.html", "/json/counts.json", "/metrics"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(served + page, timeout=5)
    finally:
        engine.close()


def test_a_scheduler_of_ones_own_takes_dasks_own_security(tmp_path, monkeypatch):
    """tls:// without certificates says what to set; with them it is as any other scheduler."""
    import dask.config
    import distributed

    security = distributed.Security.temporary()
    cluster_ = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", security=security,
        dashboard_address="127.0.0.1:0", silence_logs=50,
    )  # fmt: skip
    monkeypatch.setattr(cluster, "_CONNECT", 2)
    try:
        address = cluster_.scheduler_address
        with pytest.raises(EngineError, match=r"distributed\.comm\.tls"):
            open_engine(experiment(), Dask(address))
        paths = {"tls_ca_file": "ca.pem", "tls_client_cert": "c.pem", "tls_client_key": "k.pem"}
        for name, file in paths.items():
            (tmp_path / file).write_text(getattr(security, name))
        known = {
            "distributed.comm.tls.ca-file": str(tmp_path / "ca.pem"),
            "distributed.comm.tls.client.cert": str(tmp_path / "c.pem"),
            "distributed.comm.tls.client.key": str(tmp_path / "k.pem"),
        }
        with dask.config.set(known):
            spec = experiment(sweep={}, compare={"models": ["linear"], "seeds": 1})
            assert len(run_experiment(spec, tmp_path, Dask(address)).rows) == 1
    finally:
        cluster_.close()
