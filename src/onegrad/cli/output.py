"""What the commands print: tables, JSON, failures, and the files they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onegrad.cli.layout import print_table, print_text
from onegrad.text.strict_json import json_text

if TYPE_CHECKING:
    from onegrad.results.results import Results
    from onegrad.spec.experiment import Experiment


def report_spectra(experiment: Experiment, folder: Path, as_json: bool) -> None:
    """Compute and store what is missing of the spectra, draw them, print them."""
    from onegrad.cli.spectrum_text import spectrum_text
    from onegrad.figures.histograms import save_spectra
    from onegrad.results.rows import SPECTRUM
    from onegrad.runs.spectra import run_spectra

    pairs = run_spectra(experiment, folder)
    written = save_spectra(experiment, [report for _, report in pairs], folder)
    if as_json:
        rows = [{"point": p.settings, "model": SPECTRUM, **report.as_json()} for p, report in pairs]
        print_json({"name": experiment.name, "rows": rows})
        return
    for point, report in pairs:
        print_text(spectrum_text(point, report))
    print("Figure: " + ", ".join(str(path) for path in written))


def report_neurons(experiment: Experiment, folder: Path, as_json: bool) -> None:
    """A table of root mean square cosines for every point of the sweep, and files with all of
    them: neurons.csv and neurons.png, numbered where there are several points."""
    from onegrad.neurons.report import neurons

    found = []
    folder.mkdir(parents=True, exist_ok=True)
    for point in experiment.points:
        report = neurons(point.problem, point.compare.seed)
        number = "" if len(experiment.points) == 1 else f"-{point.number + 1}"
        found.append((point.settings, report))
        table, picture = folder / f"neurons{number}.csv", folder / f"neurons{number}.png"
        report.to_frame().to_csv(table, index=False, float_format="%.6g")
        panels = report.plot()
        getattr(panels, "flat", [panels])[0].figure.savefig(picture, dpi=150)
        if not as_json:
            settings = ", ".join(f"{key} = {value}" for key, value in point.settings.items())
            words = settings, repr(report), str(table), str(picture)
            print_text("\n".join(filter(None, words)))
    if as_json:
        rows = [{"point": settings, **report.as_json()} for settings, report in found]
        print_json({"name": experiment.name, "rows": rows})


def show_results(experiment: Experiment, results: Results, as_json: bool) -> None:
    """A table of all models, or the JSON of the contract."""
    from onegrad.cli.tables import results_table
    from onegrad.degree.report import degree_notes

    notes = degree_notes(experiment)
    if as_json:
        print_json(results.as_json() | ({"notes": notes} if notes else {}))
    else:
        print_table(results_table(experiment, results), len(experiment.sweep))
        for note in notes:
            print(f"Note: {note}")
        print_failures(results)


def print_json(report: dict[str, Any]) -> None:
    print(json_text(report))


def print_verdict(experiment: Experiment, results: Results) -> None:
    from onegrad.cli.tables import published_table, verdict_text

    if text := verdict_text(results):
        print()
        print_text(text, 4)
    if (table := published_table(experiment, results)) is not None:
        print()
        print_table(table, 1)


def exit_if_all_failed(results: Results) -> None:
    """Code 2 where nothing came out, or where every network failed."""
    networks = [row.status for row in results.rows if row.model == "network"]
    if "ok" not in (networks or [row.status for row in results.rows]):
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
    from onegrad.cli.tables import failures

    for line in failures(results):
        print(line, file=sys.stderr)
