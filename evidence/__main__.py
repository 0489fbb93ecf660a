"""`make evidence`: predict the frozen problems, compare, write the page.

python -m evidence [--sample 0.1] [--base FILE] [--out FILE] [--page FILE] [--only TEXT]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .compare import compared
from .files import BEFORE, fingerprint, lines, problems
from .page import moves, page
from .predict import predict_all

_PAGE = Path(__file__).parent.parent / "docs" / "accuracy.md"
_RESULTS = Path("results/evidence")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("--sample", type=float, default=1.0, help="share of every class")
    parser.add_argument("--base", type=Path, help="predictions of an earlier run: list what moved")
    parser.add_argument(
        "--out", type=Path, help="predictions, a line of JSON each; those it has are kept "
        f"(default: {_RESULTS}/<fingerprint of the sources>.jsonl)",
    )  # fmt: skip
    parser.add_argument("--page", type=Path, help="the page (default: docs/accuracy.md)")
    parser.add_argument("--only", help="problems whose id contains this text")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    chosen = [one for one in problems(given.sample) if not given.only or given.only in one["id"]]
    out = given.out or _RESULTS / f"{fingerprint()}.jsonl"
    predict_all(chosen, out, given.workers)
    found = compared(chosen, lines(out))
    text = page(found, compared(chosen, lines(BEFORE)), len(problems()))
    whole = given.sample >= 1 and not given.only
    if given.page or whole:
        (given.page or _PAGE).write_text(text, encoding="utf-8")
    print(text)
    print(f"Predictions: {out}")
    if given.base:
        print("\n" + moves(found, compared(chosen, lines(given.base))))


if __name__ == "__main__":
    main()
