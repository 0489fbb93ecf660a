"""Commands that take no spec: a report on data, the bench, the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from onegrad.cli.arguments import Json
from onegrad.cli.output import print_json, print_table


def analyze(
    data: Annotated[Path, typer.Argument(help="a CSV, Parquet, NPZ (x, y) or IDX file")],
    label: Annotated[
        str | None, typer.Option(help="the column with the labels; the last one unless named")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="regression or classification; seen by itself otherwise")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="two classes A,B to tell apart; the largest two otherwise")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="the HTML file to write")] = None,
) -> None:
    """A report on somebody's own data: one HTML page with pictures."""
    from onegrad.data.reading import read_table
    from onegrad.report.analysis import analyse
    from onegrad.report.page import write_page

    path = out or Path(f"{data.stem}-report.html")
    table = read_table(data, label, task)
    pair = [name.strip() for name in classes.split(",")] if classes else None
    analysis = analyse(table, pair, lambda text: print(f"{text} …", file=sys.stderr))
    write_page(analysis, data.name, path)
    print(f"Report: {path}")


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="small sizes, seconds")] = False,
    out: Annotated[Path, typer.Option(help="file for the measurements")] = Path(
        "results/bench.json"
    ),
    as_json: Json = False,
) -> None:
    """Speed against a straightforward implementation, in one run."""
    from onegrad.bench.report import run_bench, tables

    report = run_bench(quick, lambda text: print(f"measuring {text} …", file=sys.stderr))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(report)
        return
    for table in tables(report):
        print_table(table)
    print(f"Measurements: {out}")


def explore(
    folder: Annotated[
        Path | None, typer.Argument(help="the --out folder of a run, to look at it")
    ] = None,
    port: Annotated[int | None, typer.Option(help="port on 127.0.0.1", min=1, max=65535)] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="print the address, open nothing")
    ] = False,
) -> None:
    """The page: move a slider, see the theory; let simulated points arrive on it."""
    from onegrad.explorer.server import explore as serve

    serve(folder, port, browser=not no_browser)
