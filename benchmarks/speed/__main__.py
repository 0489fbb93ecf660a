"""`python -m benchmarks.speed`: measure, and write docs/speed.md with date and version.

--quick takes small sizes; --from FILE writes the page of a run of `onegrad bench` again.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onegrad
from benchmarks.speed.report import run_bench, tables

if TYPE_CHECKING:
    from rich.table import Table

PAGE = Path(__file__).parents[2] / "docs" / "speed.md"


def page(report: dict[str, Any], date: str) -> str:
    machine = report["machine"]
    size = "small sizes (`--quick`)" if report["quick"] else "full sizes"
    parts = [
        "# Speed\n",
        f"Written by `python -m benchmarks.speed` on {date}, onegrad {onegrad.__version__}: {size},"
        f" {report['seconds'] / 60:.0f} minutes, {machine['cpus']} cores ({machine['processor']}), "
        f"NumPy {machine['numpy']}, {', '.join(machine['blas'])}. Load when it began: "
        f"{report.get('load', 'not recorded')}; elapsed times and shares of the machine's rate "
        "mean something where that is below 1.\n",
        "*Plain* is the straightforward procedure, one file of NumPy that uses nothing else of the "
        "package (`benchmarks/speed/plain.py`); a test holds both to the same numbers. Both are "
        "measured in turns in one run, because only ratios within one run mean anything. What each "
        "column is: [benchmarks](generated/benchmarks.md).\n",
    ]
    return "\n".join([*parts, *(part for table in tables(report) for part in _markdown(table))])


def _markdown(table: Table) -> list[str]:
    heads = [str(column.header) for column in table.columns]
    rows = zip(*(list(column.cells) for column in table.columns), strict=True)
    marks = ["---", *("---:" for _ in heads[1:])]
    lines = [heads, marks, *([str(cell) for cell in row] for row in rows)]
    text = [f"## {table.title}\n", *(f"| {' | '.join(line)} |" for line in lines), ""]
    caption = str(table.caption or "")
    return [*text, f"{caption[0].upper()}{caption[1:]}.\n"] if caption else text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--from", dest="file", type=Path)
    given = parser.parse_args()
    if given.file:
        report = json.loads(given.file.read_text(encoding="utf-8"))
        date = datetime.fromtimestamp(given.file.stat().st_mtime, UTC)
    else:
        report = run_bench(given.quick, lambda text: print(f"{text} …", file=sys.stderr))
        date = datetime.now(UTC)
    PAGE.write_text(page(report, f"{date:%d %B %Y}".lstrip("0")), encoding="utf-8")


main()
