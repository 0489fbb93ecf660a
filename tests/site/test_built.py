"""The built site (`make docs`): whole, its links lead somewhere, nothing comes from outside."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

import onegrad

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
built = pytest.mark.skipif(
    not (SITE / "index.html").exists() and not os.environ.get("CI"), reason="make docs has not run"
)
pytestmark = built


class Page(HTMLParser):
    """Targets of links and of what is loaded, and all anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(found.get("href", ""))
        elif tag in ("script", "img", "iframe", "source", "video"):
            self.loaded.append(found.get("src") or "")


@pytest.fixture(scope="module")
def pages():
    own = [p for p in sorted(SITE.rglob("*.html")) if "_static" not in p.parts]
    return {p: Page(p.read_text(encoding="utf-8")) for p in own}


def test_links_lead_somewhere(pages):
    checked = 0
    for path, page in pages.items():
        for target in page.links + page.loaded:
            url = urlparse(target)
            if url.scheme or not target:
                continue
            goal = (path.parent / unquote(url.path)).resolve() if url.path else path
            assert goal.exists(), f"{path.relative_to(SITE)} → {target}"
            if url.fragment and goal in pages and not url.query:
                assert unquote(url.fragment) in pages[goal].anchors, f"{path.name} → {target}"
            checked += 1
    assert checked > 1000


def test_nothing_is_loaded_from_outside(pages):
    for path, page in pages.items():
        for target in page.loaded:
            assert urlparse(target).scheme in ("", "data"), f"{path.relative_to(SITE)}: {target}"
    for style in SITE.rglob("*.css"):
        for url in re.findall(r"url\(([^)]*)\)", style.read_text(encoding="utf-8")):
            assert not re.match(r"['\"]?(https?:)?//", url), f"{style.name}: {url}"


def test_examples_ran_and_names_have_pages(pages):
    examples = sorted((SITE / "auto_examples").glob("plot_*.html"))
    assert len(examples) >= 8
    for path in examples:
        assert "_images/sphx_glr_" in path.read_text(encoding="utf-8"), path.name
    names = [name for name in onegrad.__all__ if name != "__version__"]
    assert all((SITE / "generated" / "api" / f"{name}.html").exists() for name in names)
    chapters = [path.read_text(encoding="utf-8") for path in (SITE / "book").glob("*.html")]
    assert sum(chapter.count('class="tex') for chapter in chapters) > 100


def test_in_a_browser_no_request_leaves():
    """The front page, a page with formulas and the gallery, loaded by chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("no chromium")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        page = browser.new_page()
        outside, missing = [], []
        page.on("request", lambda r: outside.append(r.url) if r.url[:4] == "http" else None)
        page.on("requestfailed", lambda r: missing.append(r.url))
        for name in ("index", "book/errors", "generated/presets", "auto_examples/plot_0_tutorial"):
            page.goto((SITE / f"{name}.html").as_uri())
            broken = page.evaluate(
                "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
            )
            assert not broken
            drawn = page.evaluate("document.querySelectorAll('.katex').length")
            wrong = page.evaluate(
                "[...document.querySelectorAll('.katex-error')].map(e => e.title || e.textContent)"
            )
            assert not wrong and (drawn > 20 or name != "book/errors")
        assert not outside and not missing
        browser.close()
