"""The story's numbers against `onegrad predict`, and what is exported of a spec."""

import json
from importlib import resources

import pytest

from onegrad.errors import SpecError
from onegrad.page.article import scene_of, story_page
from onegrad.page.story import at_exponent, first_task
from onegrad.page.work import perform
from onegrad.predict.predict import predict
from onegrad.problem import Problem
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import read_toml
from onegrad.spec.presets import preset_path
from onegrad.theory.options import Theory

DIGITS = 2e-3  # numbers are written with four digits, and interpolated along smooth curves


@pytest.fixture(scope="module")
def scenes():
    text = (resources.files("onegrad.page") / "static" / "story.json").read_text(encoding="utf-8")
    return {scene["id"]: scene for scene in json.loads(text)["scenes"]}


def test_the_first_scene_is_what_predict_says(scenes):
    rows = scenes["step"]["rows"]
    for row in (rows[1], rows[12], rows[-1]):
        problem = Problem.from_spec(first_task() | {"training": {
            "samples": 1200, "ridge": 0.1, "rate": row["rate"]}, "scaling": {}})  # fmt: skip
        found = predict(problem, Theory("conditional"))
        assert row["test_error"] == pytest.approx(found.test_error, rel=DIGITS)
        chosen = predict(problem)  # another theory where that one states less
        assert row["test_error"] == pytest.approx(chosen.test_error, rel=found.error_estimate)
        learned = found.learned("teacher", 0, 7).learned
        assert row["learned"] == pytest.approx(learned.tolist(), rel=DIGITS, abs=DIGITS)
        assert row["size"] == pytest.approx(problem.step_size, rel=DIGITS)


CURVES = {
    "published": ("demir2025/fig1a", "network.width_ratio", "training.ridge"),
    "nothing": ("demir2025/fig1c", "scaling.strength", "scaling.weighting"),
    "widths": ("moniri2024/double-descent", "network.width_ratio", "training.ridge"),
    "samples": ("quickstart", "training.total", "training.rate"),
}


def predicted(scene, x, slider):
    """What `predict` says of the scene's preset there, and how well that is known."""
    preset, *keys = CURVES[scene["id"]]
    tables = read_toml(preset_path(preset))
    for key, value in zip(keys, (x, slider), strict=True):
        table, _, name = key.partition(".")
        if name == "width_ratio":
            tables["network"].pop("width", None)
        tables[table][name] = int(value) if name == "total" else value
    found = predict(Problem.from_spec({k: v for k, v in tables.items() if k != "sweep"}))
    unit = found.label_variance if "Var y" in scene["y"]["title"] else 1.0
    return found.test_error / unit, found.error_estimate


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_what_predict_says(scenes, name):
    """Sliders stop at the values of the grid only, so that nothing is interpolated between them."""
    scene = scenes[name]
    (slider,) = scene["sliders"]
    rows, values = scene["lines"][0]["y"], slider["values"]
    for s, i in ((len(values) - 3, 4), (2, len(scene["x"]["values"]) - 3)):
        error, known = predicted(scene, scene["x"]["values"][i], values[s])
        assert rows[s][i] == pytest.approx(error, rel=DIGITS + known)


def test_spikes_and_degrees(scenes):
    data = scenes["spikes"]
    strength = data["x"]["values"][12]
    tables = first_task() | {"training": {"samples": 1200, "ridge": 0.1}}
    (bulk,) = perform("spectrum", [at_exponent(tables, strength / 2)], {})
    (before,) = perform("spectrum", [at_exponent(tables, 0.0)], {})
    edge = before["features"]["edge"]
    ours = [line["y"][-1][12] for line in data["lines"] if line["colour"] == 1]
    theirs = [v / edge for v in bulk["features"]["spikes"]]
    assert [v for v in ours if v is not None] == pytest.approx(theirs, rel=DIGITS)


def test_it_is_one_small_file_that_asks_for_nothing():
    page = story_page()
    assert len(page.encode()) < 1_500_000
    assert "http:" not in page.replace("http://www.w3.org", "") and "https:" not in page
    assert "src=" not in page and "import " not in page


def test_a_spec_with_a_slider(scenes):
    tables = {
        "data": {"model": "isotropic", "dim": 100}, "network": {"width": 100},
        "training": {"samples": 200, "rate": 20.0},
        "sweep": {"training.rate": [1.0, 20.0], "training.samples": [100, 200, 400]},
    }  # fmt: skip
    scene = scene_of(Experiment.from_tables(tables))
    assert scene["x"]["values"] == [100.0, 200.0, 400.0]
    alone = {k: v for k, v in tables.items() if k != "sweep"}
    assert scene["lines"][0]["y"][1][1] == pytest.approx(
        predict(Problem.from_spec(alone)).test_error, rel=DIGITS
    )
    with pytest.raises(SpecError, match="one to three numbers"):
        scene_of(Experiment.from_tables(alone))
