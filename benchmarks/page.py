"""How soon the page follows a slider, in a real browser (Chromium and the test packages).

    python -m benchmarks.page               # on a quiet machine: medians in milliseconds
    python -m benchmarks.page --burners 2   # beside so many busy processes: redraws of a drag too

For every task: milliseconds from a move of the slider of λ to the first new curve on the screen
(median and slowest of `--moves`), the same for a curve seen before, processor time of the workers
for each new curve, and the number of redraws while the slider is dragged for five seconds at 30
moves a second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics

from playwright.sync_api import Page, sync_playwright

from tests.page.conftest import FLAGS, PATIENCE
from tests.page.server import Explorer
from tests.page.test_first_view import DRAG, burn
from tests.page.test_page import moves, worker_seconds

SETTLED = "body[data-quality=accurate]"
SLIDER = "training.ridge"


def measure(page: Page, explorer: Explorer, count: int) -> str:
    """One line on the task that is open."""
    page.wait_for_selector(SETTLED)
    moves(page, SLIDER, [250, 260])  # warm
    steps = [300 + 5 * i for i in range(count)]
    before = worker_seconds(explorer)
    fresh = moves(page, SLIDER, steps)
    spent = 1000 * (worker_seconds(explorer) - before) / count
    seen = moves(page, SLIDER, steps[::-1])
    page.wait_for_selector(SETTLED)
    made, drawn = page.evaluate(DRAG, [SLIDER, 5])
    page.wait_for_selector(SETTLED)
    return (
        f"first curve {statistics.median(fresh):5.0f} ms (slowest {max(fresh):.0f}), seen before "
        f"{statistics.median(seen):4.1f} ms; processor {spent:.0f} ms a curve; drag: {drawn} "
        f"redraws of {made} moves"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moves", type=int, default=25)
    parser.add_argument("--burners", type=int, default=0)
    given = parser.parse_args()
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(given.burners)]
    explorer = Explorer()
    try:
        with sync_playwright() as playwright:
            path = shutil.which("chromium") or "/usr/bin/chromium"
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            context = browser.new_context(viewport={"width": 1280, "height": 850})
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.goto(explorer.address)
            page.wait_for_selector(SETTLED)
            for process in burners:
                process.start()
            tasks = page.eval_on_selector_all("#task option", "all => all.map(o => o.value)")
            for task in tasks:
                page.select_option("#task", task)
                print(f"{task:15} {measure(page, explorer, given.moves)}", flush=True)
            print(f"load of the machine: {os.getloadavg()[0]:.1f}")
            browser.close()
    finally:
        for process in burners:
            process.kill()
        explorer.stop()


if __name__ == "__main__":
    main()
