"""The view of several steps in a real browser."""

import tomllib

from playwright.sync_api import expect

from onegrad.spec.experiment import Experiment
from tests.page.browsing import SMALL, download, ink, table


def test_steps(visit, tmp_path):
    """Error and learned polynomial after no step to five: two batches, then five optimisers."""
    page = visit.open(SMALL.replace("view=curve", "view=steps"))
    expect(page.locator("#legend")).to_contain_text("the same samples")
    expect(page.locator("#answer")).to_contain_text("The error is least after")
    assert all(ink(page, f".panel:nth-of-type({i}) canvas") > 5 for i in (1, 2, 3))
    rows = table(download(page, "#download-csv", tmp_path))
    assert [(r["batch"], int(r["steps"])) for r in rows] == [
        (batch, steps) for batch in ("fresh", "same") for steps in range(6)
    ]
    assert {r["networks"] for r in rows} == {"4"}
    for row in rows:
        near = 4 * float(row["test_error_se"]) + 0.05 * float(row["test_error"])
        assert abs(float(row["theory_test_error"]) - float(row["test_error"])) < near
    page.select_option("#versus", "optimiser")
    page.select_option("#measure", "alignment")
    expect(page.locator("#legend")).to_contain_text("Muon")
    visit.settle("coarse")
    page.click("#copy-spec")
    page.wait_for_selector("dialog[open]")
    spec = Experiment.from_tables(tomllib.loads(page.input_value("#dialog-text")))
    assert len(spec.points) == 25 and {p.problem.training.steps for p in spec.points} == {
        *range(1, 6)
    }
    optimisers = {p.problem.training.optimiser for p in spec.points}
    assert optimisers == {"gd", "kfac", "sign", "adam", "muon"}
