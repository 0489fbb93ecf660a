"""Commands that take no spec: a report on data, the bench, the page, all published figures."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from onegrad.cli.arguments import Engine, Json, Scheduler, Workers, Yes, agreement
from onegrad.cli.layout import print_table
from onegrad.cli.output import print_json
from onegrad.cli.stopping import stoppable
from onegrad.errors import OnegradError
from onegrad.text.strict_json import json_text


def analyze(
    data: Annotated[Path, typer.Argument(help="a CSV, Parquet, NPZ (x, y) or IDX file")],
    label: Annotated[
        str | None, typer.Option(help="the column with the labels; the last one unless named")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="regression or classification; seen by itself otherwise")
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="the model of the curve: one-step, hist-gradient-boosting, random-forest or "
            "linear; the best of them unless named"
        ),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="only rows of these classes, A,B,…; all otherwise")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="a column in whose order later rows are judged by fits to earlier ones"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="a first answer, from at most 1000 rows")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="the HTML file to write")] = None,
) -> None:
    """What more rows of somebody's own data would buy, with advice: one HTML page."""
    from onegrad.tabular.reading.reading import read_table
    from onegrad.tabular.report.analysis import analyse
    from onegrad.tabular.report.page import page
    from onegrad.tabular.report.words import best_sentence, failed_sentence, rows_sentence

    path = out or Path(f"{data.stem}-report.html")
    table = read_table(data, label, task, time)
    pair = [name.strip() for name in classes.split(",")] if classes else None
    analysis = analyse(
        table, estimator, pair, time, lambda text: print(text, file=sys.stderr), quick
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(analysis, data.name), encoding="utf-8")
    curve = analysis.curve
    for sentence in (
        failed_sentence(curve), rows_sentence(curve), best_sentence(analysis),
        *analysis.table.cautions,
    ):  # fmt: skip
        print(sentence, end="\n" * bool(sentence))
    print(f"Report: {path}")


def audit(
    problems: Annotated[int, typer.Option(help="how many", min=1)] = 500,
    seed: Annotated[int, typer.Option(help="which ones, and their random numbers", min=0)] = 0,
    dims: Annotated[
        tuple[int, int], typer.Option(help="smallest and largest number of inputs n")
    ] = (200, 700),
    only: Annotated[
        list[int] | None, typer.Option(help="this number alone; repeatable", min=0)
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for every row, audit.md and audit.json")] = Path(
        "results/audit"
    ),
    page: Annotated[Path | None, typer.Option(help="file for the page too")] = None,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Random problems: theory against simulation, the table of deviations."""
    from onegrad.runs.engines import engine_of
    from onegrad.runs.progress import progress_line
    from onegrad.validate.audit import AuditPlan, run_audit
    from onegrad.validate.audit_text import audit_page

    plan = AuditPlan(problems, seed, dims, only=tuple(only or ()))
    kept = f"{out} keeps every row; run the same command again to go on."
    with stoppable(kept), progress_line(plan.experiments()[0]) as progress:
        where = engine_of(engine, workers, scheduler)
        found = run_audit(plan, out, where, progress, agreement(yes))
    text, record = audit_page(found), found.as_json()
    (out / "audit.json").write_text(json_text(record, 1) + "\n", encoding="utf-8")
    for path in (out / "audit.md", *([page] if page else [])):
        path.write_text(text, encoding="utf-8")
    if as_json:
        print_json(record)
    else:
        print(text, end="")


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="small sizes, seconds")] = False,
    out: Annotated[Path, typer.Option(help="file for the measurements")] = Path(
        "results/bench.json"
    ),
    as_json: Json = False,
) -> None:
    """Speed against a straightforward implementation, in one run."""
    run_bench, tables = _benchmarks()
    report = run_bench(quick, lambda text: print(f"measuring {text} …", file=sys.stderr))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(report)
        return
    for table in tables(report):
        print_table(table)
    print(f"Measurements: {out}")


def _benchmarks() -> tuple[Any, Any]:
    """`run_bench` and `tables` of benchmarks/speed, which the installed package does not have."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "speed" / "report.py").exists():
        raise OnegradError(
            "onegrad bench needs benchmarks/speed of the source, which is not installed with the "
            "package. Clone the repository, run `pip install --editable .` in it, and try again"
        )
    sys.path.insert(0, str(checkout))
    report = import_module("benchmarks.speed.report")
    return report.run_bench, report.tables


def explore(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="the --out folder of a run, to look at it; a spec with --export; or the link of a "
            'view, "#…"'
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="write a page that needs no server: of a spec with one to three swept numbers, "
            "or of the story",
        ),
    ] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on", min=1, max=65535)] = None,
    host: Annotated[
        str, typer.Option(help="address to listen on; 0.0.0.0 lets other computers in")
    ] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="print the address, open nothing")
    ] = False,
) -> None:
    """The page: move a slider, see the theory; let simulated points arrive on it."""
    if export is not None:
        from onegrad.page.article import export_page, export_story
        from onegrad.spec.experiment import Experiment

        known = None if folder is None else Experiment.read(str(folder))
        print(export_story(export) if known is None else export_page(known, export))
        return
    from onegrad.page.server import Place
    from onegrad.page.server import explore as serve

    view = str(folder) if str(folder).startswith("#") else ""
    serve(None if view else folder, Place(host, port), browser=not no_browser, view=view)


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="sources or figures, demir2025 or demir2025/fig1a; all unless named"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="some of the points, five seeds, sizes as published")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="folder for rows, figures and page")] = None,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
) -> None:
    """Every published figure with the published points, as one page; goes on where it stopped."""
    from dataclasses import replace

    from onegrad.cli.tables import reproduction_table
    from onegrad.figures.draw import save_figure_of
    from onegrad.figures.histograms import save_spectra
    from onegrad.runs.engines import engine_of
    from onegrad.runs.progress import progress_line
    from onegrad.runs.run import run_experiment
    from onegrad.runs.spectra import run_spectra
    from onegrad.validate.reproduce import chosen_figures, planned
    from onegrad.validate.reproduction_page import write_reproduction

    folder = out or Path("results") / f"reproduction{'-quick' * quick}"
    where = engine_of(engine, workers, scheduler)
    done = []
    plan = planned(chosen_figures(figures or ()), folder, quick)
    for number, one in enumerate(plan, start=1):
        print(f"{number} of {len(plan)}: {one.name}, {one.experiment.name}", file=sys.stderr)
        if one.experiment.figure.draws_spectra:
            reports = [report for _, report in run_spectra(one.experiment, one.store)]
            save_spectra(one.experiment, reports, folder / one.name)
        else:
            with progress_line(one.experiment) as progress:
                results = run_experiment(one.experiment, one.store, where, progress)
            save_figure_of(one.experiment, results, folder / one.name)
            one = replace(one, results=results)
        done.append(one)
        # Writes what is finished if the run is stopped
        written = write_reproduction(done, folder, quick)
    print_table(reproduction_table(done))
    print("Page: " + ", ".join(str(path) for path in written))
