"""Chromium for the tests of the page; where there is none they are skipped, but never in CI."""

import os
import shutil

import pytest

from tests.page.server import Explorer

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


PATIENCE = 240_000  # ms, on a machine that has other things to do too


@pytest.fixture(scope="session")
def explorer():
    running = Explorer()
    yield running
    assert running.stop() == ""


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or "/usr/bin/chromium"
    if not os.path.exists(path):  # noqa: PTH110
        if os.environ.get("CI"):
            pytest.fail("chromium is missing: tools/system_packages brings it")
        pytest.skip("needs chromium (Debian's package `chromium`)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class Visit:
    """A page with everything that it asked for and complained about."""

    def __init__(self, browser, explorer, **options):
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 850}, accept_downloads=True, **options
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda m: m.type != "log" and self.complaints.append(m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.explorer = explorer

    def open(self, rest="#view=curve", quality="accurate"):
        self.page.goto("about:blank")
        self.page.goto(self.explorer.address + rest)
        self.settle(quality)
        return self.page

    def settle(self, quality="accurate"):
        self.page.wait_for_selector(f"body[data-quality={quality}]")

    def close(self):
        """No complaint in the console, and not one request to anywhere else."""
        self.context.close()
        assert self.complaints == []
        home = (self.explorer.url, self.explorer.url.replace("http:", "ws:"), "blob:", "data:")
        assert [url for url in self.requests if not url.startswith((*home, "about:"))] == []
        assert len(self.requests) > 5


@pytest.fixture
def visit(browser, explorer):
    opened = Visit(browser, explorer)
    yield opened
    opened.close()
