"""The page before a click: what one step does is seen. And a slider that moves, with its curve."""

import multiprocessing
import re

import pytest
from playwright.sync_api import expect

from onegrad.page.controls import TASKS
from onegrad.page.work import perform
from tests.page.browsing import download, ink, table
from tests.page.server import eventually


def picture(page, selector):
    return page.eval_on_selector(selector, "canvas => canvas.toDataURL()")


def test_the_first_view_shows_a_gain_and_the_data(visit, tmp_path):
    page = visit.open()
    page.wait_for_function("() => document.body.dataset.gain > 0.2")
    expect(page.locator("#answer")).to_contain_text(
        re.compile(r"one step takes \d\d % of the test error away")
    )
    expect(page.locator("#legend")).to_contain_text("theory without the step")
    expect(page.locator("#legend")).to_contain_text("best constant")
    rows = table(download(page, "#download-csv", tmp_path))
    count = len(rows) // 2
    with_step = {r["scaling.exponent"]: float(r["test_error"]) for r in rows[:count]}
    without = {r["scaling.exponent"]: float(r["test_error"]) for r in rows[count:]}
    assert with_step.keys() == without.keys()
    here = min(with_step, key=lambda value: abs(float(value) - 0.35))
    assert with_step[here] < 0.8 * without[here]
    small = [f".panel.small:nth-of-type({i}) canvas" for i in (2, 3)]
    assert all(ink(page, selector) > 5 for selector in small)
    before = [picture(page, selector) for selector in small]
    page.fill("[data-key='scaling.exponent'] input[type=number]", "-0.3")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_contain_text("by less than 0.5 %")
    assert picture(page, small[0]) == before[0]  # the same data
    assert picture(page, small[1]) != before[1]
    page.select_option("#task", "regression")
    visit.settle()
    spread = picture(page, small[0])
    page.fill("[data-key='scaling.weighting'] input[type=number]", "0")
    page.keyboard.press("Enter")
    assert eventually(lambda: picture(page, small[0]) != spread, 240)


def test_the_page_opens_with_one_step(visit):
    """One slider and one button: the error falls, a next thing to try is offered."""
    page = visit.open("")
    expect(page.locator("#tab-start")).to_have_attribute("aria-selected", "true")
    assert not page.locator("#controls").is_visible()
    expect(page.locator("#step-said")).to_contain_text("Before the step")
    pictures = page.locator(".picture canvas")
    assert pictures.count() == 4
    before = [one.evaluate("canvas => canvas.toDataURL()") for one in pictures.all()]
    page.click("#take-step")
    page.wait_for_selector("body[data-step=taken]")
    after = [one.evaluate("canvas => canvas.toDataURL()") for one in pictures.all()]
    assert all(a != b for a, b in zip(before, after, strict=True))
    expect(page.locator("#step-said")).to_contain_text("The step takes 38 % of the test error away")
    expect(page.locator("#step-next")).to_contain_text("Next:")
    page.fill("#step-rate", "0")
    expect(page.locator("#step-said")).to_contain_text("less than 1 %")
    expect(page.locator("#step-next")).to_contain_text("degree 2 begins")
    page.fill("#step-rate", "830")
    page.click("#all-settings")
    visit.settle()
    assert page.locator("#controls").is_visible()
    expect(page.locator("#answer")).to_contain_text("takes 38 % of the test error away")


def test_neurons_before_and_after(visit, tmp_path):
    page = visit.open("#view=neurons")
    assert ink(page) > 5
    expect(page.locator("#neuron-facts")).to_contain_text("teacher 0.057 → 0.2")
    rows = table(download(page, "#download-csv", tmp_path))
    assert {row["step"] for row in rows} == {"0", "last"} and "teacher" in rows[0]


def burn():
    while True:
        pass


@pytest.fixture
def busy():
    """Both cores have something else to do."""
    burning = [multiprocessing.Process(target=burn, daemon=True) for _ in range(2)]
    for process in burning:
        process.start()
    yield
    for process in burning:
        process.kill()
        process.join()


DRAG = """async ([key, seconds]) => {
  const slider = document.querySelector(`[data-key='${key}'] input[type=range]`);
  performance.clearMeasures();
  const end = performance.now() + 1000 * seconds;
  let position = 200, moves = 0;
  while (performance.now() < end) {
    position = 200 + (position - 200 + 5) % 600;
    slider.value = position;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    moves += 1;
    await new Promise((done) => setTimeout(done, 1000 / 30));
  }
  return [moves, performance.getEntriesByName("onegrad: first curve").length];
}"""


@pytest.mark.alone
def test_a_drag_redraws_all_the_time_and_ends_right(visit, busy, tmp_path):
    """Five seconds without a rest, thirty moves a second: drafts of the newest value come."""
    page = visit.open()
    moves, drawn = page.evaluate(DRAG, ["training.ridge", 5])
    print(f"{moves} moves, {drawn} redraws")
    assert moves > 60 and drawn >= 5
    visit.settle()
    ridge = float(page.input_value("[data-key='training.ridge'] input[type=number]"))
    rows = [r for r in table(download(page, "#download-csv", tmp_path)) if r["model"] == "theory"]
    base = TASKS["isotropic"]["tables"]
    for row in rows[::9]:
        here = base | {
            "training": base["training"] | {"ridge": ridge},
            "scaling": base["scaling"] | {"exponent": float(row["scaling.exponent"])},
        }
        (expected,) = perform("theory", [here], {"coarse": False})
        assert float(row["test_error"]) == pytest.approx(expected["test_error"], rel=2e-3)
