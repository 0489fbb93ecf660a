"""Objects in a terminal and in a notebook: short, in our words, without addresses."""

import inspect
import pydoc
import re

import numpy as np
import pytest

import onegrad as og

TABLES = {
    "data": {"model": "mixture", "dim": 60}, "network": {"width": 50, "activation": "tanh"},
    "training": {"samples": 80}, "scaling": {"strength": 0.6, "weighting": 0.5},
}  # fmt: skip
ISOTROPIC = {
    "data": {"model": "isotropic", "dim": 60},
    "network": {"width": 70, "convention": "isotropic", "activation": "tanh"},
    "training": {"samples": 90, "ridge": 0.1}, "scaling": {"exponent": 0.3, "constant": 3.0},
}  # fmt: skip


@pytest.fixture(scope="module")
def objects():
    problem, isotropic = og.Problem.from_spec(TABLES), og.Problem.from_spec(ISOTROPIC)
    found = og.simulate(problem, ("network", "hermite"), seeds=2)
    swept = og.sweep(problem, {"training.ridge": [1e-3, 1e-2]}, seeds=2, progress=False)
    predicted, instance = og.predict(problem, accuracy=0.03), problem.instance(0)
    return {
        "Problem": problem, "Prediction": predicted, "LearnedFunction": predicted.learned(),
        "Instance": instance, "Batch": instance.sample(20, 0),
        "failed": og.predict(problem, "isotropic", throw=False),
        "Simulation": found, "Results": swept, "Row": swept.rows[0], "Estimate": found.test_error,
        "Summary": swept.summaries()[0], "DegreeReport": og.degree(problem),
        "SpectrumReport": og.spectrum(isotropic), "Theory": og.Theory(),
        "LimitingSpectrum": og.limiting_spectrum(isotropic), "Mixture": problem.data,
        "Network": problem.network, "Activation": problem.activation,
        "Arrays": og.Arrays(x=np.ones((200, 9)), y=np.arange(200.0)),
        "OneStepRegressor": og.OneStepRegressor(width=10),
        "SpecError": og.SpecError.of("a", 1, "b"),
    }  # fmt: skip


def test_texts_are_short_and_without_addresses(objects):
    for name, thing in objects.items():
        text = repr(thing)
        assert len(text.splitlines()) <= 14 and len(text) < 1500, name
        assert " at 0x" not in text and "array([" not in text, name
        assert "\n" in text or len(text) < 300, name


def test_pages_are_small_tables(objects):
    shown = [name for name, thing in objects.items() if hasattr(thing, "_repr_html_")]
    assert {"Problem", "Prediction", "Simulation", "Results", "DegreeReport", "SpectrumReport"} <= {
        *shown
    }
    for name in shown:
        if name == "OneStepRegressor":  # scikit-learn's own
            continue
        html = objects[name]._repr_html_()
        assert html.count("<table>") == html.count("</table>") == 1 and len(html) < 9000, name
        assert not re.search(r"https?://|<script", html), name


def test_what_they_say(objects):
    assert "n = 60, k = 50, m = 80" in repr(objects["Problem"])
    assert "activation = tanh" in repr(objects["Problem"])
    assert "a draft" in repr(objects["Prediction"]) and "%" not in repr(objects["Prediction"])
    assert "isotropic data" in repr(objects["failed"]) and "nan" not in repr(objects["failed"])
    assert "2 points, 2 models, 6 rows" in repr(objects["Results"])
    assert repr(objects["Mixture"]) == "Mixture(dim=60)" == str(objects["Mixture"])
    assert repr(objects["Network"]) == "Network(activation='tanh', width=50)"
    assert "(200, 9)" in repr(objects["Arrays"])
    mean, error = objects["Estimate"]
    assert repr(objects["Estimate"]).startswith("Estimate(") and "±" in repr(objects["Estimate"])
    assert mean > error > 0


def test_long_results_are_cut():
    rows = tuple(
        og.Row({"data.rank": i}, "network", 0, 1.0, 1.0, 1.0, number=i) for i in range(100)
    )
    text = repr(og.Results("long", rows))
    assert "… and 88 more" in text and len(text.splitlines()) == 15
    assert og.Results("long", rows)._repr_html_().count("<tr>") == 31


@pytest.mark.parametrize("name", ["Problem", "Mixture", "Network", "Training", "Scaling"])
def test_help_and_completion_show_our_names(name):
    thing = getattr(og, name)
    text = pydoc.render_doc(thing, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 220
    for word in ("model_dump", "model_fields", "__pydantic", "model_validate"):
        assert word not in text.replace("cls.model_fields", "")
    names = [n for n in dir(thing) if not n.startswith("_")]
    assert not [n for n in names if n.startswith("model_") or n in ("copy", "json", "dict")]
    parameters = inspect.signature(thing).parameters
    assert list(parameters) == [n for n in thing.model_fields if n != "model"]
    if name != "Problem":
        assert "Settings" in thing.__doc__ and next(iter(parameters)) in thing.__doc__


def test_names_of_an_object(objects):
    names = [n for n in dir(objects["Problem"]) if not n.startswith("_")]
    assert {"rate", "degree", "data", "instance"} <= {*names}
    assert not [n for n in names if n.startswith("model_")]
