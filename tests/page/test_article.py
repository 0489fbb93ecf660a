"""Pages without a server: the story and an exported spec, opened from a file."""

import pytest

from onegrad.page.article import export_page, export_story
from onegrad.spec.experiment import Experiment

SPEC = {
    "data": {"model": "isotropic", "dim": 100},
    "network": {"width": 100},
    "training": {"samples": 200, "rate": 20.0},
    "sweep": {"training.samples": [100, 200, 400, 800], "training.rate": [1.0, 20.0, 50.0]},
}


@pytest.fixture
def opened(browser):
    """A page from a file, and whatever it asked for and complained about."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda m: m.type != "log" and complaints.append(m.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def visit(path, query=""):
        page.goto(path.as_uri() + query)
        page.wait_for_selector("body[data-ready]")
        return page

    yield visit
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_the_story_opens_from_a_file(opened, tmp_path):
    path = export_story(tmp_path)
    assert path.stat().st_size < 1_500_000
    page = opened(path)
    assert page.locator(".scene").count() == 7
    for scene in page.locator(".scene").all():
        scene.scroll_into_view_if_needed()
        said = scene.locator(".answer")
        before = said.inner_text()
        scene.locator("input[type=range]").first.fill("0")
        canvas = scene.locator("canvas").last
        assert canvas.evaluate(
            """canvas => new Set(canvas.getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height).data).size"""
        ) > 5  # fmt: skip
        if scene.get_attribute("id") != "step":
            assert said.inner_text() != before
    page.focus("dfn")
    assert page.evaluate("getComputedStyle(document.querySelector('dfn'), '::after').content") != ""
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.emulate_media(color_scheme="dark")


def test_a_scene_stands_alone_in_a_slide(opened, tmp_path):
    page = opened(export_story(tmp_path), "?scene=nothing")
    assert page.locator(".scene").count() == 1
    assert not page.locator("header").is_visible()


def test_a_spec_becomes_a_page(opened, tmp_path):
    path = export_page(Experiment.from_tables(SPEC), tmp_path)
    page = opened(path)
    assert page.locator(".scene").count() == 1
    before = page.inner_text(".answer")
    page.locator("input[type=range]").fill("2")
    assert "with it" in before and page.inner_text(".answer") != before
