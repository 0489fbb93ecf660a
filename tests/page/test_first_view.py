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
    with_step = {r["scaling.exponent"]: float(r["test_error"]) for r in rows[:20]}
    without = {r["scaling.exponent"]: float(r["test_error"]) for r in rows[20:]}
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
    assert eventually(lambda: picture(page, small[0]) != spread, 30)


def test_the_story_has_six_scenes_with_published_points(visit):
    """Each is a link of its own, is computed when it is seen, and leads to its sliders."""
    page = visit.page
    page.goto(visit.explorer.address.replace("?", "story.html?"))
    page.wait_for_selector("#scene-6")
    assert page.locator(".scene").count() == 6
    for number in range(1, 7):
        page.evaluate(f"location.hash = '#scene-{number}'")
        page.wait_for_selector(f"#scene-{number}[data-quality]")
        assert page.get_attribute(f"#scene-{number}", "data-quality") in ("coarse", "accurate")
        canvas = f"#scene-{number} .panel canvas"
        assert ink(page, canvas) > 5
        if number in (2, 3, 4):
            expect(page.locator(f"#scene-{number} .legend")).to_contain_text("published figure")
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.click("#scene-5 a:text('Move its sliders')")
    page.wait_for_selector("#tab-spectrum[aria-selected=true]")
    page.click("#story")
    page.wait_for_selector("#scene-1")


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
