"""The number of classes is a control: one output for each of more than two."""

import json
import tomllib

from playwright.sync_api import expect

from onegrad.problem import Problem
from tests.page.browsing import CURVES, table
from tests.page.browsing import download as downloaded

TABLES = {
    "data": {
        "model": "mixture",
        "dim": 60,
        "weights": [0.5, 0.5],
        "rank": 1,
        "mean": 2.0,
        "spread": 2.0,
    },
    "labels": {"model": "component", "flip": 0.1},
    "network": {"convention": "mixture", "activation": "relu", "width_ratio": 0.5},
    "training": {"samples": 120, "ridge": 1e-2, "rate": 20.0, "loss": "hinge"},
    "compare": {"models": ["network", "theory"], "seeds": 2, "seed": 0},
}
LINK = (
    "#view=curve&axis=network.width_ratio&range=[0.5,1]&dots=[0.5,1]"
    f'&quantities=["test_error","misclassification"]&curves={CURVES}'
) + "".join(
    f"&{name}.{key}={json.dumps(value)}"
    for name, fields in TABLES.items()
    for key, value in fields.items()
)


def problem_of(page):
    page.click("#copy-spec")
    page.wait_for_selector("dialog[open]")
    tables = tomllib.loads(page.input_value("#dialog-text"))
    page.keyboard.press("Escape")
    tables.pop("sweep")
    return Problem.from_spec(tables)


def test_classes_have_a_control(visit, tmp_path):
    page = visit.open(LINK, "coarse")
    box = page.locator("[data-pick='classes'] select")
    expect(box).to_have_value("2")
    assert problem_of(page).labels_binary
    box.select_option("3")
    expect(page.locator("#status")).to_contain_text("matrix theory of the first layer")
    expect(box).to_have_value("3")
    expect(box).to_be_focused()
    expect(page.locator("[data-pick='training.loss'] select")).to_have_value("squared")
    three = problem_of(page)
    # neither flips nor the hinge loss exist for three outputs: they go instead of being refused
    assert three.outputs == 3 and three.label_flip == 0 and three.loss.name == "squared"
    rows = table(downloaded(page, "#download-csv", tmp_path))
    trained = [r for r in rows if r["model"] in ("theory", "theory (coarse)")]
    assert len(trained) >= 2
    assert all(0 < float(r["misclassification"]) < 2 / 3 for r in trained)
    box.select_option("2")
    assert problem_of(page).labels_binary


def test_other_tasks_have_no_classes(visit):
    page = visit.open(LINK.replace('"component"', '"single-index"').replace("hinge", "squared")
                      .replace("&labels.flip=0.1", ""), "coarse")  # fmt: skip
    assert page.locator("[data-pick='classes']").count() == 0
