"""The command line: thin verbs over the library."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from onegrad.cli.applications import analyze, audit, bench, explore, reproduce
from onegrad.cli.arguments import (
    Accuracy,
    Engine,
    FiniteSize,
    Json,
    Method,
    Overlaps,
    Preset,
    Quick,
    Scheduler,
    Set,
    Spec,
    Why,
    Workers,
    Yes,
    agreement,
    with_finite_size,
)
from onegrad.cli.layout import print_table, print_text
from onegrad.cli.output import (
    exit_if_all_failed,
    print_failed_rows,
    print_failures,
    print_json,
    print_verdict,
    report_neurons,
    report_spectra,
    show_results,
)
from onegrad.cli.stopping import listen, stoppable

if TYPE_CHECKING:
    from onegrad.errors import OnegradError

_COLLECTED_AFTER = 100_000  # new objects between collections; Python's 700 rescans imports

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What one gradient step teaches a two-layer network: simulation and theory.",
)


@app.command()
def run(
    spec: Spec,
    changes: Set = None,
    quick: Quick = False,
    out: Annotated[Path | None, typer.Option(help="folder for results and figure")] = None,
    finite_size: FiniteSize = None,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """The main job: compute, store, print a table, draw a figure."""
    from onegrad.runs.engines import engine_of
    from onegrad.runs.progress import progress_line
    from onegrad.runs.run import default_folder, run_experiment
    from onegrad.spec.experiment import Experiment

    experiment = Experiment.read(spec, with_finite_size(changes, finite_size), quick)
    folder = out or default_folder(spec, experiment.name, quick)
    kept = f"{folder} keeps every row; run the same command again to go on."
    with stoppable(kept):
        with progress_line(experiment) as progress:
            where = engine_of(engine, workers, scheduler)
            results = run_experiment(experiment, folder, where, progress, agreement(yes))
        if experiment.figure.draws_spectra:
            report_spectra(experiment, folder, as_json)
            return
        print_failed_rows(results, folder)
        show_results(experiment, results, as_json)
        # Imported late: loading matplotlib would delay the table
        from onegrad.figures.draw import save_figure_of

        written = save_figure_of(experiment, results, folder)
        if written and not as_json:
            print_verdict(experiment, results)
            print("\nFigure: " + ", ".join(str(path) for path in written))
    exit_if_all_failed(results)


@app.command()
def simulate(
    spec: Spec,
    changes: Set = None,
    quick: Quick = False,
    engine: Engine = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Monte Carlo alone: mean and standard error of every model, differences paired by seed."""
    from onegrad.runs.engines import engine_of
    from onegrad.runs.progress import progress_line
    from onegrad.runs.run import simulate_experiment
    from onegrad.spec.experiment import Experiment

    experiment = Experiment.read(spec, changes or (), quick)
    with stoppable("Nothing is kept: `onegrad run` stores."), progress_line(experiment) as progress:
        where = engine_of(engine, workers, scheduler)
        results = simulate_experiment(experiment, where, progress, agreement(yes))
    show_results(experiment, results, as_json)
    exit_if_all_failed(results)


@app.command()
def predict(
    spec: Spec,
    changes: Set = None,
    quick: Quick = False,
    method: Method = "auto",
    accuracy: Accuracy = None,
    overlaps: Overlaps = "auto",
    finite_size: FiniteSize = None,
    by_projection: Annotated[
        bool, typer.Option("--by-projection", help="with --json: errors given the projections κ")
    ] = False,
    why: Why = False,
    as_json: Json = False,
) -> None:
    """Theory alone: errors, how sure they are, and what they mean."""
    from onegrad.cli.theory_text import (
        answer_line,
        prediction_table,
        prediction_text,
        waiting_line,
    )
    from onegrad.predict.predict import predict_experiment
    from onegrad.spec.experiment import Experiment
    from onegrad.theory.options import Theory

    experiment = Experiment.read(spec, with_finite_size(changes, finite_size), quick)
    compare = experiment.compare
    accuracy = compare.accuracy if accuracy is None else accuracy
    theory = Theory(method, accuracy, overlaps, compare.finite_size)
    with waiting_line(experiment, theory):
        results, predictions = predict_experiment(experiment, theory)
    if as_json:
        report = results.as_json()
        for record, prediction in zip(report["rows"], predictions, strict=True):
            record |= prediction.as_json(by_projection)
        print_json(report)
    else:
        if len(predictions) == 1 and predictions[0].status != "failed":
            print_text(answer_line(predictions[0]))
        print_table(prediction_table(experiment, predictions), len(experiment.sweep))
        print_text(prediction_text(experiment, predictions, why))
        print_failures(results)
    exit_if_all_failed(results)


@app.command()
def degree(
    spec: Spec,
    changes: Set = None,
    quick: Quick = False,
    workers: Workers = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Which polynomial degree is enough: measured at this size, and by the rule as n grows."""
    from onegrad.cli.theory_text import degree_table, degree_text
    from onegrad.degree.report import degrees
    from onegrad.runs.engines import Local
    from onegrad.runs.progress import progress_line
    from onegrad.spec.experiment import Experiment

    experiment = Experiment.read(spec, changes or (), quick)
    with stoppable("Nothing is kept."), progress_line(experiment) as progress:
        found = degrees(experiment, Local(workers), progress, agreement(yes))
    reports = list(zip(experiment.points, found, strict=True))
    if as_json:
        rows = [{"point": point.settings, **report.as_json()} for point, report in reports]
        print_json({"name": experiment.name, "rows": rows})
    elif len(reports) == 1:
        print_text(degree_text(*reports[0]))
    else:
        print_table(degree_table(experiment, reports), len(experiment.sweep))


@app.command()
def spectrum(
    spec: Spec,
    changes: Set = None,
    quick: Quick = False,
    out: Annotated[Path | None, typer.Option(help="folder for rows and figure")] = None,
    as_json: Json = False,
) -> None:
    """Singular values of weights and features: limiting bulk, spikes, alignments."""
    from onegrad.runs.run import default_folder
    from onegrad.spec.experiment import Experiment

    experiment = Experiment.read(spec, changes or (), quick)
    folder = out or default_folder(spec, experiment.name, quick)
    with stoppable(f"{folder} keeps every row; run the same command again to go on."):
        report_spectra(experiment, folder, as_json)


@app.command()
def neurons(
    spec: Spec,
    changes: Set = None,
    out: Annotated[Path | None, typer.Option(help="folder for table and figure")] = None,
    as_json: Json = False,
) -> None:
    """Where each neuron points, before and after each step: table, neurons.csv, neurons.png."""
    from onegrad.runs.run import default_folder
    from onegrad.spec.experiment import Experiment

    experiment = Experiment.read(spec, changes or ())
    report_neurons(experiment, out or default_folder(spec, experiment.name, False), as_json)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="a folder that `run` has written to")],
    kind: Annotated[str, typer.Option("--format", help="csv, parquet or netcdf")] = "csv",
    out: Annotated[Path | None, typer.Option(help="the file, instead of FOLDER/rows.…")] = None,
) -> None:
    """Every stored row as a file: CSV, Parquet, or NetCDF with one dimension per swept key."""
    from onegrad.errors import SpecError
    from onegrad.results.frames import SUFFIXES
    from onegrad.runs.load import load_results

    if kind not in SUFFIXES:
        raise SpecError.choice("--format", kind, SUFFIXES)
    results = load_results(folder)
    written = results.export(out or folder / f"rows{SUFFIXES[kind]}")
    print(f"{len(results.rows) + len(results.spectra)} rows: {written}")


@app.command("list")
def list_presets() -> None:
    """The built-in experiments: name, title, about how many minutes on two cores."""
    from onegrad.spec.presets import preset_groups

    groups = preset_groups()
    longest = max(len(one.name) for presets in groups.values() for one in presets)
    for source, presets in groups.items():
        print(source)
        for one in presets:
            minutes = f"{one.minutes:.0f}" if one.minutes >= 1 else "< 1"
            print_text(f"  {one.name:{longest}} {minutes:>3} min  {one.title}", longest + 12)


@app.command("show")
def show_preset(preset: Preset) -> None:
    """A preset as TOML, which runs as it is."""
    from onegrad.spec.presets import preset_names, preset_path, unknown

    if preset not in preset_names():
        raise unknown(preset)
    print(preset_path(preset).read_text(encoding="utf-8"), end="")


for command in (analyze, audit, bench, explore, reproduce):
    app.command()(command)


@app.command()
def cite(
    spec: Annotated[str | None, typer.Argument(help="only what this spec or preset uses")] = None,
) -> None:
    """BibTeX of what was used."""
    from onegrad.spec.citations import bibliography, cited

    entries = bibliography()
    keys = list(entries)
    if spec:
        from onegrad.spec.experiment import Experiment

        keys = cited(Experiment.read(spec), spec)
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


def main() -> None:
    """Entry point: errors of ours are advice on one page, not a traceback."""
    from onegrad.errors import OnegradError, ours

    gc.set_threshold(_COLLECTED_AFTER)
    listen()
    warnings.showwarning = functools.partial(_one_line, warnings.showwarning)
    try:
        app(prog_name="onegrad")
    except OnegradError as error:
        _refuse(error)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            sys.exit(0)
        print(f"onegrad: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        _refuse(ours(error))
    except KeyboardInterrupt as stop:
        print("onegrad: interrupted", file=sys.stderr)
        sys.exit(128 + getattr(stop, "number", 2))
    finally:
        gc.freeze()  # the process ends: skip the collection of its objects


def _refuse(error: OnegradError) -> NoReturn:
    """What is wrong, and a file that can be sent where nobody foresaw it."""
    from onegrad.errors import UnexpectedError

    print(f"onegrad: {error}", file=sys.stderr)
    if isinstance(error, UnexpectedError):
        command = " ".join(["onegrad", *sys.argv[1:]])
        with (
            contextlib.suppress(OSError),
            tempfile.NamedTemporaryFile(
                "w", prefix="onegrad-error-", suffix=".txt", delete=False, encoding="utf-8"
            ) as file,
        ):
            file.write(f"{command}\n{error.report}")
            print(
                f"Please send {file.name} to the authors: it has the command, versions, and where "
                "it happened. Read it first; it names files of yours.",
                file=sys.stderr,
            )
    sys.exit(2)


def _one_line(usual: Any, message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Show a warning at a terminal: its text, without the line of code that raised it."""
    if category.__module__.startswith("onegrad."):
        print(f"onegrad: {message}", file=sys.stderr)
    else:
        usual(message, category, *where, **more)
