"""A preset on the page, the spec that is copied from it, and what `onegrad predict` computes.

The page's own modules turn presets into requests and specs (node, presets.mjs); here these are
compared with the preset as problems, point by point.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from onegrad.errors import SpecError
from onegrad.page.controls import about, presets
from onegrad.page.pieces import pieces_of
from onegrad.page.requests import read_request
from onegrad.page.work import perform
from onegrad.predict.predict import predict, predict_experiment
from onegrad.problem import Problem
from onegrad.spec.experiment import Experiment

SCRIPT = Path(__file__).parents[1] / "page_js" / "presets.mjs"
PRESETS = {p["name"]: p["tables"] for group in presets() for p in group["presets"]}
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


@pytest.fixture(scope="module")
def shown():
    """What the page makes of each preset."""
    node = shutil.which("node")
    done = subprocess.run(
        [node, str(SCRIPT)], input=json.dumps(about()), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def problems(experiment):
    return [point.problem.model_dump_json() for point in experiment.points]


def request(message):
    return read_request(json.dumps({"type": message["type"], "id": 1} | message))


@needs_node
@pytest.mark.parametrize("name", PRESETS)
def test_the_copied_spec_is_the_preset(shown, name):
    assert "refused" not in shown[name], shown[name]
    preset = Experiment.from_tables(PRESETS[name])
    copied = Experiment.from_tables(shown[name]["copied"])
    assert sorted(problems(copied)) == sorted(problems(preset))
    assert copied.compare == preset.compare
    if "figure" in PRESETS[name]:
        assert copied.figure.kind == preset.figure.kind
        if "quantities" in PRESETS[name]["figure"]:
            assert copied.figure.quantities == preset.figure.quantities


@needs_node
@pytest.mark.parametrize("name", [n for n in PRESETS if "spectrum" not in n])
def test_the_page_asks_for_the_points_of_the_preset(shown, name):
    """Lines pass through every point of the preset: same problem, accuracy and seed."""
    preset = Experiment.from_tables(PRESETS[name])
    if shown[name]["view"] == "steps":
        pytest.skip("networks are drawn and trained there: tests/page_parts/test_steps.py")
    asked = request(shown[name]["asked"])
    pieces = [piece for piece in pieces_of(asked) if piece.kind in ("theory", "map")]
    found = {Problem.from_spec(dict(piece.tables)).model_dump_json(): piece for piece in pieces}
    for point in preset.points:
        if shown[name]["view"] == "map" and "network.activation" in PRESETS[name]["sweep"]:
            first = PRESETS[name]["sweep"]["network.activation"][0]
            if point.problem.activation.name != first:
                continue  # one map at a time
        piece = found[point.problem.model_dump_json()]
        assert piece.options["seed"] == preset.compare.seed
        assert piece.options["accuracy"] == preset.compare.accuracy
        assert piece.options["finite_size"] == preset.compare.finite_size


VIEWS = ("curve", "map", "features", "spectrum", "neurons", "steps")


@needs_node
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", PRESETS)
def test_what_is_copied_from_a_view_is_what_it_shows(shown, name, view):
    """Every view of every preset: the points of the copied spec are among those of the request."""
    own, here = shown[name]["view"], shown[name]["views"][view]
    copied = {problem_of(point.problem) for point in Experiment.from_tables(here["copied"]).points}
    (headline,) = Experiment.from_tables(shown[name]["headline"]).points
    if view == own and view in ("map", "spectrum"):  # one map, one network at a time
        assert copied == {
            problem_of(p.problem) for p in Experiment.from_tables(PRESETS[name]).points
        }
        return
    if view in ("features", "neurons", "spectrum"):
        assert copied == {problem_of(headline.problem)}
        return
    try:
        asked = request(here["asked"])
    except SpecError as refused:
        assert any(words in str(refused) for words in ("too large", "at most")), refused
        return
    assert copied <= {problem_of(Problem.from_spec(dict(p.tables))) for p in pieces_of(asked)}


def problem_of(problem):
    """As text; one step knows no other batch."""
    found = problem.model_dump(mode="json")
    if found["training"]["steps"] == 1:
        found["training"]["batch"] = "fresh"
    return json.dumps(found, sort_keys=True)


@needs_node
@pytest.mark.parametrize("name", ["demir2025/fig2c", "ours/xor-step", "quickstart"])
def test_the_headline_is_onegrad_predict(shown, name):
    """Same digits: the headline's numbers are those of `predict` at the present setting."""
    spec = shown[name]["headline"]
    asked = request({"type": "picture", "spec": spec})
    (_, _, _, after, _) = pieces_of(asked)
    (answer,) = perform(after.kind, [after.tables], after.options)
    problem = Experiment.from_tables(spec).points[0].problem
    assert answer["test_error"] == predict(problem).test_error
    assert answer["rate"] == problem.rate


@needs_node
def test_rank_keeps_the_strengths(shown):
    """Figure 2c at rank 1 and 2: uniform strengths, as `onegrad predict` has them."""
    asked = request(shown["demir2025/fig2c"]["asked"])
    pieces = [p for p in pieces_of(asked) if p.tables["network"]["activation"] == "relu"][:2]
    found = perform("theory", [p.tables for p in pieces], pieces[0].options)
    tables = PRESETS["demir2025/fig2c"]
    sweep = {"network.activation": ["relu"], "data.rank": [1, 2]}
    rows = predict_experiment(Experiment.from_tables(tables | {"sweep": sweep}))[0].rows
    assert [p.tables["data"]["rank"] for p in pieces] == [1, 2]
    for ours, theirs in zip(found, rows, strict=True):
        assert ours["test_error"] == pytest.approx(theirs.test_error, rel=1e-12)
