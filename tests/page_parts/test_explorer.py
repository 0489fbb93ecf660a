"""The explorer without a server: its controls, its bounds, its workers, its spec texts."""

import json
import sys
import threading
import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onegrad.errors import OnegradError, SpecError
from onegrad.page import controls, server, session, work
from onegrad.page.cache import Cache
from onegrad.page.stored import open_stored
from onegrad.page.untrained import without_step
from onegrad.page.work import perform
from onegrad.page.worker_pool import PageTask, WorkerPool
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import bounds
from onegrad.spec.presets import preset_names
from onegrad.spec.toml_text import to_toml
from onegrad.spectrum.report import spectrum
from tests import event_loop

MIXTURE = controls.TASKS["regression"]["tables"]


@pytest.mark.parametrize("slider", controls.SLIDERS, ids=lambda s: f"{s.key}-{s.tasks[0]}")
def test_sliders_stay_within_the_declared_range(slider):
    declared = bounds(controls.field_of(slider.key))
    unit = 500 if slider.over else 1  # m/n is shown, m is declared
    assert slider.low < slider.high
    if "ge" in declared:
        assert slider.low * unit >= declared["ge"]
    if "gt" in declared:
        assert slider.low * unit > declared["gt"]
    if "le" in declared:
        assert slider.high * unit <= declared["le"]
    shown = controls.slider_json(slider)
    assert shown["help"] == controls.WORDS[slider.key]
    assert shown["default"] is None or json.dumps(shown["default"])


def test_defaults_are_those_of_the_reader():
    """A key left out and its default written down are the same problem."""
    listed = [*map(controls.slider_json, controls.SLIDERS)]
    listed += [controls.picker_json(*picker) for picker in controls.PICKERS]
    known = {item["key"]: item["default"] for item in listed if item["default"] is not None}
    assert known["labels.link"] == known["network.activation"] == "relu"
    assert len(known) >= 9
    for key, default in known.items():
        task = "isotropic" if key in ("scaling.constant", "training.gradient") else "regression"
        task = "multi-index" if key == "labels.indices" else task
        tables = {name: dict(table) for name, table in controls.TASKS[task]["tables"].items()}
        table, _, name = key.partition(".")
        tables[table].pop(name, None)
        left_out = Problem.from_spec(tables)
        tables[table][name] = default
        written = Problem.from_spec(tables)
        assert written.rate == left_out.rate
        if key != "scaling.constant":
            assert written.model_dump() == left_out.model_dump()


@pytest.mark.parametrize("task", controls.TASKS)
def test_tasks_are_valid_specs(task):
    assert len(Experiment.from_tables(controls.TASKS[task]["tables"]).points) == 1


def test_presets_on_drawn_data_are_all_offered():
    offered = {p["name"] for group in controls.presets() for p in group["presets"]}
    assert (
        {"demir2025/fig1a", "moniri2024/staircase", "quickstart"} <= offered <= set(preset_names())
    )
    assert not any(name.startswith("fashion") for name in offered)


def test_citations_are_readable():
    lines = controls.citations()
    assert lines["demir2025"].startswith("Demir, Dogan: Asymptotic Analysis")
    assert all("{" not in line and "\\" not in line for line in lines.values())


_scalars = st.one_of(
    st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)  # fmt: skip
_tables = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.one_of(_scalars, st.lists(_scalars, max_size=4)), max_size=4,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["data", "network", "sweep"]), _tables), st.text(max_size=5))
def test_toml_reads_back_as_it_was(tables, name):
    tables = {"name": name.encode("utf-8", "ignore").decode()} | tables
    assert tomllib.loads(to_toml(tables)) == {k: v for k, v in tables.items() if v != {}}


def test_a_stored_run_of_lists_that_advance_together(tmp_path):
    together = {"data.dim": [30, 60], "training.samples": [40, 80]}
    spec = MIXTURE | {
        "compare": {"models": ["random-features"], "seeds": 2, "seed": 3},
        "sweep": {"network.activation": ["relu", "tanh"], "zip": together},
    }
    run_experiment(Experiment.from_tables(spec), tmp_path)
    stored = open_stored(tmp_path)
    assert stored["tables"]["sweep"] == spec["sweep"]
    assert stored["tables"]["compare"]["seed"] == 3
    again = Experiment.from_tables(stored["tables"])
    assert len(again.points) == len(stored["rows"]) == 4
    assert all(row["seeds"] == 2 for row in stored["rows"])


def test_a_stored_run_with_control_variates_shows_what_the_run_said(tmp_path):
    compare = {"models": ["network"], "seeds": 9, "control_variates": True}
    results = run_experiment(Experiment.from_tables(MIXTURE | {"compare": compare}), tmp_path)
    stored = open_stored(tmp_path)
    (row,), (summary,) = stored["rows"], results.summaries()
    assert row["test_error"] == summary.test_error.mean
    assert row["test_error_se"] == summary.test_error.standard_error
    assert row["corrected"]
    Experiment.from_tables(stored["tables"])
    assert stored["tables"]["compare"]["models"] == ["network"]


def test_a_stored_run_over_degrees_keeps_them_apart(tmp_path):
    """The degree is how a point is computed: rows of different ones are never averaged."""
    small = {"data": MIXTURE["data"] | {"dim": 30}, "training": {"samples": 40}}
    spec = MIXTURE | small | {
        "compare": {"models": ["hermite"], "seeds": 2},
        "sweep": {"compare.degree": [1, 3]},
    }  # fmt: skip
    run_experiment(Experiment.from_tables(spec), tmp_path)
    other = {"models": ["hermite"], "seeds": 2, "seed": 9, "degree": 3}
    again = MIXTURE | small | {"compare": other}
    run_experiment(Experiment.from_tables(again), tmp_path)  # other draws in the same folder
    stored = open_stored(tmp_path)
    assert stored["tables"]["sweep"] == {"compare.degree": [1, 3]}
    assert all(row["seeds"] == 2 for row in stored["rows"]) and len(stored["rows"]) == 3
    (axis,) = stored["axes"]
    assert (axis["key"], axis["values"], axis["tasks"]) == ("compare.degree", [1, 3], ())
    assert axis in controls.about(stored)["sliders"]


def test_a_swept_key_with_a_slider_needs_no_axis_of_its_own():
    assert controls.stored_axis("training.ridge", [1e-4, 1e-2]) is None
    assert controls.stored_axis("network.activation", ["relu", "tanh"]) is None
    assert controls.stored_axis("training.rate", [0.1, 10]) is None  # set by hand
    assert controls.stored_axis("data.exponent", [0.5, 1.5])["kind"] == "linear"


def test_toml_has_no_form_for_nothing():
    with pytest.raises(SpecError, match="no form in TOML"):
        to_toml({"data": {"dim": [None]}})


def test_the_cache_forgets_the_oldest():
    cache = Cache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1  # now b is the oldest
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_without_the_step_nothing_but_the_rate_changes():
    problem = Problem.from_spec(MIXTURE)
    before = without_step(problem)
    assert before.rate == 0 and problem.rate > 1
    assert before.spread == problem.spread
    assert before.weight_variance == problem.weight_variance
    assert before.effective_ridge == problem.effective_ridge


def test_the_gain_of_a_map_cell():
    tables = MIXTURE | {"scaling": {"strength": 0.9, "weighting": 1.0}}
    (cell,) = perform("map", [tables], {"coarse": False, "gain": True})
    problem = Problem.from_spec(tables)
    expected = 1 - predict(problem).test_error / predict(without_step(problem)).test_error
    assert cell["gain"] == pytest.approx(expected, rel=1e-9)
    assert cell["gain"] > 0.02  # here the step does teach something
    assert cell["degree"] == problem.degree == 4


def test_where_there_is_no_error_there_is_no_gain():
    tables = MIXTURE | {"labels": {"model": "single-index", "link": "hermite(0)"}}
    (cell,) = perform("map", [tables], {"coarse": True, "gain": True})
    assert cell["test_error"] == 0 and "gain" not in cell


def test_features_are_those_of_the_theory():
    options = {"coarse": False, "direction": "teacher", "component": 0, "step": True}
    (found,) = perform("features", [MIXTURE], options)
    learned = predict(Problem.from_spec(MIXTURE), "conditional").learned("teacher", 0, 7)
    assert found["learned_coefficients"][2] == pytest.approx(
        learned.learned_coefficients[2] * 2**0.5, rel=1e-6, abs=1e-12
    )
    assert found["target"] == pytest.approx(learned.target.tolist())


def test_what_is_refused_comes_back_as_advice():
    muon = MIXTURE | {"training": MIXTURE["training"] | {"optimiser": "muon"}}
    (answer,) = perform("spectrum", [muon], {})
    assert "no types of neurons are known" in answer["error"]


def test_spikes_are_those_of_onegrad_spectrum():
    small = {"data": MIXTURE["data"] | {"dim": 120}}
    small["training"] = MIXTURE["training"] | {"samples": 150}
    tables = MIXTURE | small
    report = spectrum(Problem.from_spec(tables), 3)
    (found,) = perform("draw", [tables], {"seed": 3})
    for name in ("weights", "features"):
        part = getattr(report, name)
        assert found[name]["spikes"] == part.leading[: part.outliers].tolist()
        assert found[name]["limit"]["spikes"] == part.predicted
        assert found[name]["edge"] == part.edge
    muon = tables | {"training": tables["training"] | {"optimiser": "muon"}}
    (found,) = perform("draw", [muon], {"seed": 3})
    assert found["weights"]["limit"] is None and found["note"]


def test_a_failure_that_nobody_foresaw_is_said(monkeypatch):
    def broken(tables, **options):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(work._ALONE, "spectrum", broken)
    monkeypatch.setitem(work._TOGETHER, "theory", broken)
    for kind in ("spectrum", "theory"):
        answers = perform(kind, [MIXTURE, MIXTURE], {})
        assert len(answers) == 2
        assert "ZeroDivisionError: division by zero" in answers[1]["error"]


def test_a_session_survives_its_own_faults(monkeypatch, caplog):
    """Whatever happens to one message, the page gets an answer, and so do the ones after it."""
    sent = []

    async def send(text):
        sent.append(json.loads(text))

    def broken(text):
        raise KeyError(text)

    async def talk():
        one = session.Session(WorkerPool(1), WorkerPool(1), Cache(), send)
        with monkeypatch.context() as patch:
            patch.setattr(session, "read_request", broken)
            await one.read('{"type": "curve", "id": 4}')
        await one.read('{"type": "nonsense", "id": 5}')

    event_loop.run(talk())
    assert [(note["type"], note["id"]) for note in sent] == [("error", 4), ("error", 5)]
    assert "a fault of onegrad" in sent[0]["text"]
    assert "a message of the page failed" in caplog.text


def run_task(pool, kind="theory", seconds=30.0, options=None, **changes):
    """A task that has been given to the pool, and where its answer will be."""
    answers, come = [], threading.Event()

    def deliver(answer):
        answers.append(answer)
        come.set()

    tables = [MIXTURE | changes]
    task = PageTask(kind, tables, options or {"coarse": True}, seconds, deliver)
    pool.submit([task])
    return task, answers, come


def test_a_pool_computes_bounds_time_and_cancels():
    pool = WorkerPool(1)
    heavy = {
        "data": {"model": "mixture", "dim": 1500}, "training": {"samples": 1500},
        "compare": {"models": ["network", "conditional-gaussian"], "seeds": 1},
    }  # fmt: skip
    try:
        _, answers, come = run_task(pool)
        assert come.wait(60) and answers[0][0]["test_error"] > 0
        _, answers, come = run_task(pool, "repetition", 0.1, {"seed": 0}, **heavy)
        assert come.wait(30) and "the page's limit" in answers[0]["error"]
        task, answers, come = run_task(pool, "repetition", 60.0, {"seed": 0}, **heavy)
        waiting, never, _ = run_task(pool)
        task.cancelled = waiting.cancelled = True
        _, answers, come = run_task(pool)  # and the pool goes on with a new process
        assert come.wait(60) and answers[0][0]["test_error"] > 0
        assert never == []
    finally:
        start = time.monotonic()
        pool.stop()
    assert time.monotonic() - start < 5
    pool.stop()  # a second time does no harm


def test_a_folder_without_a_run_is_explained(tmp_path):
    with pytest.raises(SpecError, match=r"holds no results\.sqlite"):
        open_stored(tmp_path)
    (tmp_path / "results.sqlite").write_bytes(b"not a data base at all" * 100)
    with pytest.raises(OnegradError, match="cannot be used"):
        open_stored(tmp_path)


def test_a_port_in_use_is_explained():
    taken = server.Place().listen()
    number = taken.getsockname()[1]
    try:
        with pytest.raises(OnegradError, match=f"port {number} cannot be used"):
            server.Place(port=number).listen()
        other = server.Place().listen()  # without --port another one is taken
        assert other.getsockname()[1] != number
        other.close()
    finally:
        taken.close()


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(OnegradError, match=r'pip install "onegrad\[explore\]"'):
        server.explore()
