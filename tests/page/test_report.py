"""The report of `onegrad analyze` in a real browser: every picture shown, nothing asked outside."""

import numpy as np
import pytest

from onegrad.tabular.reading.reading import read_table
from onegrad.tabular.report.analysis import analyse
from onegrad.tabular.report.page import page


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("report")
    x = rng.standard_normal((240, 15)) + 2 * rng.standard_normal((240, 1))
    np.savez(folder / "data.npz", x=x, y=(x[:, 0] > 0).astype(int))
    path = folder / "report.html"
    analysis = analyse(read_table(folder / "data.npz"), say=lambda text: None, quick=True)
    path.write_text(page(analysis, 'data <b>"1"</b>.npz'), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [400, 1200])
def test_report_is_whole(browser, report, width):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    requests, complaints = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.goto(report.as_uri())
    sizes = tab.eval_on_selector_all("img", "all => all.map(i => [i.naturalWidth, i.alt.length])")
    assert len(sizes) == 1 and all(natural > 0 and words > 10 for natural, words in sizes)
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.title() == 'What would more rows buy? data <b>"1"</b>.npz'  # escaped, not obeyed
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert complaints == []
    tab.close()
