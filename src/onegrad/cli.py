"""The command line: thin verbs over the library."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from onegrad.experiments.results import Results
    from onegrad.experiments.spec import Experiment

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What one gradient step teaches a two-layer network: simulation and theory.",
)

Spec = Annotated[str, typer.Argument(help="a TOML spec file, or the name of a preset")]
Engine = Annotated[
    str | None, typer.Option(help="local or dask; no number depends on it", show_default="local")
]
Workers = Annotated[
    int | None,
    typer.Option(help="processes on this machine", show_default="as many as it has cores"),
]
Scheduler = Annotated[
    str | None, typer.Option(help="address of a dask scheduler, tcp://host:8786 (else one is made)")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="change a key of the spec; repeatable"),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")]


@app.command()
def run(
    spec: Spec,
    changes: Set = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="sizes, points and seeds cut down: seconds")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="folder for results and figure")] = None,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """The main job: compute, store, print a table, draw a figure."""
    from onegrad.experiments.progress import progress_line
    from onegrad.experiments.run import run_experiment
    from onegrad.experiments.spec import Experiment
    from onegrad.figures.draw import save_figure_of

    experiment = Experiment.read(spec, changes or (), quick)
    folder = out or default_folder(spec, quick)
    if experiment.figure.draws_spectra:
        report_spectra(experiment, folder, as_json)
        return
    try:
        with progress_line(experiment) as progress:
            results = run_experiment(experiment, folder, progress, engine, workers, scheduler)
    except KeyboardInterrupt:
        print(
            f"onegrad: interrupted. {folder} keeps every row; run the same command again to go on.",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    written = save_figure_of(experiment, results, folder)
    print_failed_rows(results, folder)
    show(experiment, results, as_json)
    if not as_json:
        print_verdict(results)
        print("\nFigure: " + ", ".join(str(path) for path in written))


@app.command()
def simulate(
    spec: Spec,
    changes: Set = None,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Monte Carlo alone: mean and standard error of every model, differences paired by seed."""
    from onegrad.experiments.progress import progress_line
    from onegrad.experiments.run import simulate_experiment
    from onegrad.experiments.spec import Experiment

    experiment = Experiment.read(spec, changes or ())
    with progress_line(experiment) as progress:
        results = simulate_experiment(experiment, progress, engine, workers, scheduler)
    show(experiment, results, as_json)


@app.command()
def predict(
    spec: Spec,
    changes: Set = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto, conditional, hybrid, isotropic, isotropic-limit; for real data "
            "semi-parametric or surrogate"
        ),
    ] = "auto",
    accuracy: Annotated[
        float | None,
        typer.Option(help="relative accuracy of the numerics", show_default="compare.accuracy"),
    ] = None,
    overlaps: Annotated[
        str, typer.Option(help="auto, typical (at this n) or drawn (of the spec's seed)")
    ] = "auto",
    finite_size: Annotated[
        bool,
        typer.Option("--finite-size", help="count the mean's degrees of freedom (docs/theory.md)"),
    ] = False,
    by_projection: Annotated[
        bool, typer.Option("--by-projection", help="with --json: errors given the projections κ")
    ] = False,
    as_json: Json = False,
) -> None:
    """Theory alone: errors in the limit, no sampling."""
    from onegrad.experiments.predict import predict_experiment
    from onegrad.experiments.spec import Experiment
    from onegrad.tables import prediction_table

    experiment = Experiment.read(spec, changes or ())
    rows, details = predict_experiment(experiment, method, accuracy, overlaps, finite_size)
    if as_json:
        report = rows.as_json()
        for record, detail in zip(report["rows"], details, strict=True):
            record |= detail.as_json(by_projection) if detail else {}
        print(json.dumps(report, ensure_ascii=False))
        exit_if_all_failed(rows)
        return
    print_table(prediction_table(experiment, rows, details))
    print_failures(rows)
    exit_if_all_failed(rows)


@app.command()
def degree(spec: Spec, changes: Set = None, as_json: Json = False) -> None:
    """Which polynomial degree is enough, and why."""
    from onegrad.experiments.degree import degree_report
    from onegrad.experiments.spec import Experiment
    from onegrad.tables import degree_text

    experiment = Experiment.read(spec, changes or ())
    reports = [
        (point, degree_report(point.problem, experiment.compare.seed))
        for point in experiment.points
    ]
    if as_json:
        rows = [{"point": point.settings, **report.as_json()} for point, report in reports]
        print(json.dumps({"name": experiment.name, "rows": rows}, ensure_ascii=False))
        return
    for point, report in reports:
        print(degree_text(point, report))


@app.command()
def spectrum(
    spec: Spec,
    changes: Set = None,
    out: Annotated[Path | None, typer.Option(help="folder for the figure")] = None,
    as_json: Json = False,
) -> None:
    """Singular values of weights and features: limiting bulk, spikes, alignments."""
    from onegrad.experiments.spec import Experiment

    experiment = Experiment.read(spec, changes or ())
    report_spectra(experiment, out or default_folder(spec), as_json)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="a folder that `run` has written to")],
    kind: Annotated[str, typer.Option("--format", help="csv, parquet or netcdf")] = "csv",
    out: Annotated[Path | None, typer.Option(help="the file, instead of FOLDER/rows.…")] = None,
) -> None:
    """Every stored row as a file: CSV, Parquet, or NetCDF with one dimension per swept key."""
    from onegrad.errors import SpecError, did_you_mean
    from onegrad.experiments.frames import SUFFIXES
    from onegrad.experiments.load import load

    if kind not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise SpecError.of("--format", kind, f"must be from {known}", did_you_mean(kind, SUFFIXES))
    results = load(folder)
    written = results.export(out or folder / f"rows{SUFFIXES[kind]}")
    print(f"{len(results.rows)} rows: {written}")


@app.command("list")
def list_presets() -> None:
    """The built-in experiments."""
    from onegrad.experiments.spec import preset_groups

    for source, presets in preset_groups().items():
        print(source)
        for name, title in presets:
            print(f"  {name:18} {title}")


@app.command("show")
def show_preset(preset: Annotated[str, typer.Argument(help="name of a preset")]) -> None:
    """A preset as TOML, which runs as it is."""
    from onegrad.errors import SpecError, did_you_mean
    from onegrad.experiments.spec import preset_names, preset_path

    if preset not in preset_names():
        known = preset_names()
        raise SpecError.of(
            "preset", preset, f"must be one of {', '.join(known)}", did_you_mean(preset, known)
        )
    print(preset_path(preset).read_text(encoding="utf-8"), end="")


@app.command()
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


@app.command()
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
        print(json.dumps(report, ensure_ascii=False))
        return
    for table in tables(report):
        print_table(table)
    print(f"Measurements: {out}")


@app.command()
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


@app.command()
def cite(
    spec: Annotated[str | None, typer.Argument(help="only what this spec or preset uses")] = None,
) -> None:
    """BibTeX of what was used."""
    from onegrad.experiments.citations import bibliography, cited
    from onegrad.experiments.spec import Experiment

    entries = bibliography()
    keys = cited(Experiment.read(spec)) if spec else list(entries)
    print("\n\n".join(entries[key] for key in keys))


def _version(wanted: bool) -> None:
    if wanted:
        from onegrad import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """What one gradient step teaches a two-layer network: simulation and theory."""


def default_folder(spec: str, quick: bool = False) -> Path:
    return Path("results") / f"{Path(spec).stem}{'-quick' if quick else ''}"


def report_spectra(experiment: Experiment, folder: Path, as_json: bool) -> None:
    from onegrad.experiments.spectrum import spectrum_report
    from onegrad.figures.spectrum import save_spectra
    from onegrad.tables import spectrum_text

    folder.mkdir(parents=True, exist_ok=True)
    reports = [spectrum_report(p.problem, p.compare.seed) for p in experiment.points]
    written = save_spectra(experiment, reports, folder)
    pairs = list(zip(experiment.points, reports, strict=True))
    if as_json:
        rows = [{"point": p.settings, **report.as_json()} for p, report in pairs]
        print(json.dumps({"name": experiment.name, "rows": rows}, ensure_ascii=False))
        return
    for point, report in pairs:
        print(spectrum_text(point, report))
    print("Figure: " + ", ".join(str(path) for path in written))


def show(experiment: Experiment, results: Results, as_json: bool) -> None:
    if as_json:
        print(json.dumps(results.as_json(), ensure_ascii=False))
        exit_if_all_failed(results)
        return
    from onegrad.tables import results_table

    print_table(results_table(experiment, results))
    print_failures(results)
    exit_if_all_failed(results)


def print_verdict(results: Results) -> None:
    from onegrad.tables import verdict_table

    table = verdict_table(results)
    if table is not None:
        print_table(table)


def print_table(table: Table) -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:  # a pipe or a file has no width to fit into
        console = Console(width=160)
    console.print(table)


def exit_if_all_failed(results: Results) -> None:
    if all(row.status != "ok" for row in results.rows):
        raise typer.Exit(2)


def print_failed_rows(results: Results, folder: Path) -> None:
    failed = sum(row.status != "ok" for row in results.rows)
    if failed:
        print(
            f"onegrad: {failed} of {len(results.rows)} rows failed; {folder} keeps the others. Run "
            "the same command again to try the failed ones once more.",
            file=sys.stderr,
        )


def print_failures(results: Results) -> None:
    from onegrad.tables import failures

    for line in failures(results):
        print(line, file=sys.stderr)


def main() -> None:
    """Entry point: errors of ours are advice on one page, not a traceback."""
    from onegrad.errors import OnegradError

    try:
        app()
    except OnegradError as error:
        print(f"onegrad: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        print(f"onegrad: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("onegrad: interrupted", file=sys.stderr)
        sys.exit(130)
