"""The command `neurons`: where each neuron points before and after the steps."""

from __future__ import annotations

from pathlib import Path

from onegrad.cli.layout import print_text
from onegrad.cli.output import print_json
from onegrad.neurons.report import Neurons, neurons
from onegrad.spec.experiment import Experiment


def report_neurons(experiment: Experiment, folder: Path, as_json: bool) -> None:
    """A table of root mean square cosines for every point of the sweep, and files with all of
    them: neurons.csv and neurons.png, numbered where there are several points."""
    found = []
    for point in experiment.points:
        report = neurons(point.problem, point.compare.seed)
        number = "" if len(experiment.points) == 1 else f"-{point.number + 1}"
        found.append((point.settings, report))
        files = _written(report, folder, number)
        if not as_json:
            settings = ", ".join(f"{key} = {value}" for key, value in point.settings.items())
            print_text("\n".join(filter(None, [settings, repr(report), *map(str, files)])))
    if as_json:
        rows = [{"point": settings, **report.as_json()} for settings, report in found]
        print_json({"name": experiment.name, "rows": rows})


def _written(report: Neurons, folder: Path, number: str) -> list[Path]:
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    table, picture = folder / f"neurons{number}.csv", folder / f"neurons{number}.png"
    lines = [",".join(("step", "neuron", "readout", *report.directions))]
    for step, cosines in enumerate(report.cosines):
        for i, (readout, row) in enumerate(zip(report.readout, cosines, strict=True)):
            numbers = ",".join(f"{x:.6g}" for x in (readout, *row))
            lines.append(f"{step},{i},{numbers}")
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    panels = report.plot()
    figure = getattr(panels, "flat", [panels])[0].figure
    figure.savefig(picture, dpi=150)
    plt.close(figure)
    return [table, picture]
