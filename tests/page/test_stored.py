"""`onegrad explore DIR`: a run that is stored, on data that the page can draw and on others."""

import pytest
from playwright.sync_api import expect

from onegrad.runs.run import run_experiment
from onegrad.spec.experiment import Experiment
from tests.page.browsing import download, open_preset, table
from tests.page.conftest import Visit
from tests.page.server import SPEC, Explorer


def test_a_stored_run_opens(browser, tmp_path):
    spec = SPEC | {"sweep": {"network.width_ratio": [0.5, 2.0]}}
    run_experiment(Experiment.from_tables(spec), tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    explorer = Explorer(str(tmp_path))
    try:
        visit = Visit(browser, explorer)
        page = visit.open("")
        expect(page.locator("#legend")).to_contain_text("hermite")
        page.fill("[data-key='scaling.strength'] input[type=number]", "0.5")
        page.keyboard.press("Enter")
        visit.settle()
        open_preset(page, "stored")
        assert "scaling.strength=0.74" in page.evaluate("location.hash")
        visit.close()
    finally:
        explorer.stop()
    assert sorted(p.name for p in tmp_path.iterdir()) == before  # only looked at


@pytest.fixture
def opened(browser, tmp_path):
    """A function that runs a spec, opens its folder and gives the visit and the rows."""
    running = []

    def run_and_open(spec):
        results = run_experiment(Experiment.from_tables(spec), tmp_path)
        explorer = Explorer(str(tmp_path))
        visit = Visit(browser, explorer)
        running.append((visit, explorer))
        visit.open("")
        return visit, results.as_json()["rows"]

    yield run_and_open
    for visit, explorer in running:
        visit.close()
        explorer.stop()


def test_a_key_without_a_slider_is_an_axis_of_its_own(opened, tmp_path):
    """Three swept keys: the axis, the curves, and one of which a single value is looked at."""
    network = {k: v for k, v in SPEC["network"].items() if k != "width_ratio"}
    visit, rows = opened(SPEC | {
        "data": SPEC["data"] | {"dim": 60},
        "network": network,
        "training": {"samples": 60},
        "compare": {"models": ["network"], "seeds": 2},
        "sweep": {
            "network.activation": ["relu", "tanh"],
            "network.width": [30, 90, 120],
            "training.ridge": [1e-4, 1e-1],
        },
    })  # fmt: skip
    page = visit.page
    assert page.input_value("#axis") == "network.width"
    expect(page.locator("#figure")).to_contain_text("training.ridge; stored are 0.0001, 0.1")
    for ridge in (1e-4, 1e-1):
        page.fill("[data-key='training.ridge'] input[type=number]", str(ridge))
        page.keyboard.press("Enter")
        visit.settle()
        found = table(download(page, "#download-csv", tmp_path))
        assert len([row for row in found if row["model"] == "theory"]) == 6
        dots = {
            (float(row["network.width"]), row["network.activation"]): float(row["test_error"])
            for row in found
            if row["model"] == "network"
        }
        here = [row for row in rows if row["point"]["training.ridge"] == ridge]
        assert len(dots) == len(here) == 6
        for row in here:
            where = (row["point"]["network.width"], row["point"]["network.activation"])
            assert dots[where] == pytest.approx(row["test_error"], rel=1e-12)


def test_a_run_on_data_that_the_page_cannot_draw(opened, tmp_path):
    """Its dots and its theory are shown as they were stored; nothing is computed."""
    visit, rows = opened({
        "data": {"model": "digits", "spread": 5.0},
        "labels": {"model": "given"},
        "network": {"convention": "mixture", "activation": "tanh", "width_ratio": 1.0},
        "training": {"samples": 60, "ridge": 1e-3},
        "compare": {"models": ["network", "theory"], "seeds": 2},
        "sweep": {"training.rate": [0.1, 10.0]},
    })  # fmt: skip
    page = visit.page
    assert not page.locator("#alert").is_visible()
    assert page.is_disabled("#tab-map") and page.locator("#simulate").count() == 0
    expect(page.locator("#controls")).to_contain_text("it shows what the run has stored")
    found = table(download(page, "#download-csv", tmp_path))
    assert [row["model"] for row in found] == ["theory"] * 2 + ["network"] * 2
    for ours in found:
        (theirs,) = [
            row
            for row in rows
            if row["model"] == ours["model"]
            and row["point"]["training.rate"] == float(ours["training.rate"])
        ]
        assert float(ours["test_error"]) == pytest.approx(theirs["test_error"], rel=1e-12)
    page.select_option("#task", "regression")  # and from there to what it can draw
    visit.settle()
    assert not page.is_disabled("#tab-map")
