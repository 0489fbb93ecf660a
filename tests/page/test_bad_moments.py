"""The page when something is wrong, or comes at a bad moment."""

import json

import pytest
from playwright.sync_api import expect

from tests.page.browsing import SMALL, download, open_preset, table
from tests.page.conftest import Visit
from tests.page.server import SPEC, Explorer

UNREADABLE = ["#view=nonsense", "#data.dim=x", "#curves=3&view=map", "#%%%", f"{SMALL}&dots=5"]
WRONG_PARTS = [
    'dots=["a"]', 'range=["a",2]', "range=[2,1]", 'quantities=["sum"]', "quantities=[]",
    "layer=__proto__", "component=x", "zip=3", 'curves={"key":"x"}',
    'curves={"key":"network.activation","values":[]}', "compare.models=3",
    "network.activation=3", "axis=network.nonsense",
]  # fmt: skip


def test_a_broken_link_is_said_and_opens_the_usual_page(visit):
    visit.open("")
    usual = visit.page.evaluate("location.hash")
    for rest in UNREADABLE:
        page = visit.open(rest)
        expect(page.locator("#alert")).to_contain_text("This link cannot be read")
        assert page.evaluate("location.hash") == usual, rest


@pytest.mark.parametrize("part", WRONG_PARTS)
def test_a_broken_link_leaves_an_open_page_as_it_is(here, part):
    page, before = here
    page.evaluate("(hash) => { location.hash = hash; }", f"{SMALL}&{part}")
    expect(page.locator("#alert")).to_contain_text("This link cannot be read")
    assert page.evaluate("location.hash") == before
    page.evaluate("() => { document.getElementById('alert').hidden = true; }")


@pytest.fixture(scope="module")
def here(browser, explorer):
    """One open page for all of them, and its address."""
    visit = Visit(browser, explorer)
    page = visit.open(SMALL)
    yield page, page.evaluate("location.hash")
    visit.close()


def test_no_inputs_and_then_some(visit):
    page = visit.open(SMALL)
    box = "[data-key='data.dim'] input[type=number]"
    page.fill(box, "0")
    page.keyboard.press("Enter")
    visit.settle("refused")
    expect(page.locator("[data-key='data.dim'] .wrong")).to_contain_text("data.dim = 0: must be")
    assert page.is_disabled("#download-csv")  # what is seen belongs to the settings before
    page.fill(box, "300")
    page.keyboard.press("Enter")
    visit.settle()
    assert "training.samples=200" in page.evaluate(
        "location.hash"
    ) and "data.dim=300" in page.evaluate("location.hash")


def move(*positions):
    """JavaScript that drags the slider of β through some positions at once."""
    return f"""
      const slider = document.querySelector("[data-key='scaling.strength'] input[type=range]");
      for (const value of {list(positions)}) {{
        slider.value = value;
        slider.dispatchEvent(new Event("input", {{ bubbles: true }}));
      }}
    """


def test_simulating_right_after_a_move_keeps_the_curve(visit, tmp_path):
    """A move that waits for the curve before it is not forgotten when something else is asked."""
    page = visit.open(SMALL)
    page.evaluate(f"() => {{ {move(300, 400, 500)} document.getElementById('simulate').click(); }}")
    visit.settle()
    page.wait_for_selector("body[data-simulating=false]")
    rows = table(download(page, "#download-csv", tmp_path))
    assert {row["model"] for row in rows} >= {"theory", "network", "hermite"}


def test_choosing_models_right_after_a_move_keeps_the_accurate_curve(visit):
    page = visit.open(SMALL)
    page.evaluate(f"() => {{ {move(310)} }}")
    page.wait_for_selector("body[data-quality=coarse]")
    page.evaluate("document.querySelector('#run input[value=linear]').click()")
    visit.settle("accurate")
    assert page.is_checked("#run input[value=linear]")


def test_samples_over_inputs_are_named_so(visit, tmp_path):
    page = visit.open(SMALL)
    for key, column, low, high in (
        ("training.samples", "training.samples/data.dim", 0.2, 10),
        ("data.weights", "data.weights[0]", 0.02, 0.98),
    ):
        page.select_option("#axis", key)
        page.wait_for_selector("body:not([data-quality=asked])")
        rows = table(download(page, "#download-csv", tmp_path))
        values = [float(row[column]) for row in rows]
        assert (min(values), max(values)) == (low, high)


def test_the_server_goes_and_comes_back(browser):
    mine = {"ONEGRAD_TOKEN": "a-token-that-outlives-a-restart"}
    explorer = Explorer(**mine)
    visit = Visit(browser, explorer)
    page = visit.open(SMALL)
    explorer.stop()
    page.wait_for_selector("#offline:not([hidden])")
    page.evaluate(f"() => {{ {move(350)} }}")  # asked of nobody
    again = Explorer("--port", str(explorer.port), **mine)
    try:
        page.wait_for_selector("#offline", state="hidden")
        visit.settle()
        visit.context.close()
        refused = [text for text in visit.complaints if "ERR_CONNECTION_REFUSED" not in text]
        assert refused == []
    finally:
        again.stop()


def test_a_draw_of_other_settings_is_not_shown(visit):
    """The network is drawn while the step has moved on: it would stand on the wrong density."""
    page = visit.open()
    page.click("#tab-spectrum")
    visit.settle()
    page.click("#simulate")
    page.fill("[data-key='scaling.exponent'] input[type=number]", "0.1")
    page.keyboard.press("Enter")
    visit.settle()
    page.wait_for_selector("body[data-simulating=false]")
    page.wait_for_timeout(1500)
    assert "one trained network" not in page.inner_text("#legend")


def test_the_help_of_a_setting_is_shown_when_it_has_the_focus(visit):
    page = visit.open(SMALL)
    help_of = {"scaling.weighting": "θ = n^{β(1−α)}", "data.alignment": "cosine between"}
    for key, text in help_of.items():
        page.locator(f"[data-key='{key}'] input[type=range]").focus()
        expect(page.locator(".hint")).to_contain_text(text)
        expect(page.locator(".hint")).to_contain_text(key)


def test_every_number_box_with_nonsense(visit):
    """It is said at the box, which is marked, and nothing else; a right number mends it."""
    page = visit.open(SMALL)
    keys = page.eval_on_selector_all("#controls [data-key]", "all => all.map(r => r.dataset.key)")
    assert len(keys) > 8
    for key in keys:
        row = page.locator(f"#controls [data-key='{key}']")
        box, right = (
            row.locator("input[type=number]"),
            row.locator("input[type=number]").input_value(),
        )
        for nonsense in ("", "-1e300"):
            box.fill(nonsense)
            box.press("Enter")
            expect(row.locator(".wrong")).to_contain_text("must be")
            assert box.get_attribute("aria-invalid") == "true"
            assert not page.locator("#alert").is_visible()
            assert page.locator("#controls .wrong").count() == 1
        box.fill(right)
        box.press("Enter")
        expect(page.locator("#controls .wrong")).to_have_count(0)
        if key == "data.dim":  # the samples did not follow into nonsense
            assert "training.samples=200" in page.evaluate("location.hash")


@pytest.mark.parametrize("seeds", ["-5", "", "2.5", "1000"])
def test_a_wrong_number_of_seeds_is_refused_at_its_box(here, seeds):
    page, _ = here
    page.fill("#seeds", seeds)
    page.press("#seeds", "Enter")
    expect(page.locator("#run .wrong")).to_contain_text("seeds: must be a whole number from 1 to")
    expect(page.locator("#simulate")).to_be_disabled()
    page.fill("#seeds", "2")
    page.press("#seeds", "Enter")
    expect(page.locator("#run .wrong")).to_have_count(0)
    expect(page.locator("#simulate")).to_be_enabled()


def test_both_panels_are_seen_in_a_narrow_window(visit):
    visit.page.set_viewport_size({"width": 400, "height": 800})
    page = visit.open(SMALL)
    expect(page.locator("#answer")).to_be_visible()  # it comes with the pictures, above the panels
    boxes = [panel.bounding_box() for panel in page.locator(".panel:not(.small)").all()]
    assert len(boxes) == 2 and boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    for box in boxes:
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400 and box["y"] + box["height"] <= 800


def test_the_spectrum_opens_with_something_for_every_task(visit):
    page = visit.open(SMALL.replace("view=curve", "view=spectrum"))
    expect(page.locator("#legend")).to_contain_text("one trained network")
    expect(page.locator("#spectrum-facts")).to_contain_text("One network")
    expect(page.locator("#legend")).to_contain_text("limiting density")  # some seconds later
    page.select_option("#task", "classification")
    visit.settle()
    page.click("#go-isotropic")
    expect(page.locator("#legend")).to_contain_text("limiting density")
    # without closed forms: another view, and the reason where there is no limit
    page.select_option("[data-pick='training.optimiser'] select", "muon")
    expect(page.locator("#spectrum-facts")).to_contain_text("No limits: no types of neurons")
    page.select_option("[data-pick='training.optimiser'] select", "gd")
    expect(page.locator("#spectrum-facts")).to_contain_text("degree ℓ")


def test_published_points_go_when_the_settings_change(visit):
    page = visit.open()
    open_preset(page, "demir2025/fig1a")
    expect(page.locator("#figure")).to_contain_text("Figure 1a")
    expect(page.locator("#legend")).to_contain_text("published figure")
    page.fill("[data-key='training.ridge'] input[type=number]", "0.001")
    page.keyboard.press("Enter")
    expect(page.locator("#legend")).not_to_contain_text("published figure")
    expect(page.locator("#figure")).to_have_text("")


@pytest.mark.parametrize("model", ["gaussian", "kernel"])
def test_every_model_of_a_link_has_its_box(visit, model):
    page = visit.open(
        SMALL.replace(json.dumps(SPEC["compare"]["models"]), f'["network", "{model}"]')
    )
    assert page.is_checked(f"#run input[value={model}]")
    page.check("#run input[value=linear]")
    assert model in page.evaluate("decodeURIComponent(location.hash)")
