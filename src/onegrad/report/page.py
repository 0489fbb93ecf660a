"""The report as one HTML file that asks nothing of the network."""

from __future__ import annotations

import html
from pathlib import Path

from onegrad import __version__
from onegrad.data.spikes import FEWEST_COLUMNS
from onegrad.report import pictures
from onegrad.report.analysis import Analysis, Curve
from onegrad.report.words import (
    data_sentence,
    gain_sentence,
    rate_sentence,
    sample_sentence,
    spikes_sentence,
    standing_sentence,
    width_sentence,
)

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --quiet: #5a5a5a;
  --line: #dddddd }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #181a1b; --quiet: #a5a5a5; --line: #3a3d3f } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem; line-height: 1.25 } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.lead { font-size: 1.1rem } .quiet, figcaption { color: var(--quiet); font-size: .9rem }
figure { margin: 1rem 0 } img { width: 100%; height: auto; background: #fff; border-radius: 6px }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem;
  border-bottom: 1px solid var(--line) } td + td, th + th { text-align: right }
code { overflow-wrap: anywhere }
"""


def write_page(analysis: Analysis, source: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(analysis, source), encoding="utf-8")


def page(analysis: Analysis, source: str) -> str:
    """Every section: a heading, one sentence that a newcomer understands, a picture."""
    title = f"One gradient step on {source}"
    sections = [
        _section("The data", data_sentence(analysis), pictures.cloud(analysis),
                 "Samples along the two directions in which they vary most."),
        _notes(analysis),
        _section("Structure in the noise", spikes_sentence(analysis),
                 pictures.scree(analysis) if analysis.prepared.x.shape[1] >= FEWEST_COLUMNS else "",
                 "Variance along each principal direction, within classes, over the noise level."),
        _section("Where the data stand between α and β", standing_sentence(analysis),
                 pictures.standing(analysis.standing) if analysis.standing else "",
                 "The line is this data set; the bands are the polynomial degree that is enough."),
        _section("How wide the network should be", width_sentence(analysis),
                 pictures.curve(analysis.width, "width over samples, k/m"), _caption(analysis)),
        _table(analysis.width, "k/m"),
        _section("How many samples are enough", sample_sentence(analysis),
                 pictures.curve(analysis.sample, "samples m (and as many for the step)"),
                 _caption(analysis)),
        _table(analysis.sample, "m"),
        _section("Which learning rate", rate_sentence(analysis),
                 pictures.curve(analysis.rates, "learning rate η"), _caption(analysis)),
        _section("What the step gains", gain_sentence(analysis), pictures.gain(analysis),
                 "Each model at its own best ridge, on the same splits, with standard errors."),
        _scores(analysis),
        _closing(analysis),
    ]  # fmt: skip
    body = "\n".join(part for part in sections if part)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{html.escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
<p class="lead">What would a two-layer network learn on these data from a single gradient step on
its first layer, followed by ridge regression on the second?</p>
{body}
</body>
</html>
"""


def _section(heading: str, sentence: str, picture: str, caption: str) -> str:
    shown = ""
    if picture:
        shown = (
            f'<figure><img src="{picture}" alt="{html.escape(caption, quote=True)}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )
    return f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(sentence)}</p>\n{shown}"


def _caption(analysis: Analysis) -> str:
    columns = analysis.prepared.x.shape[1]
    return (
        f"n = {columns}, m = {analysis.samples}, ridge {analysis.ridge:g}, η = {analysis.rate:g} "
        "unless it is on the axis; ReLU; dots: mean over 8 random splits with standard errors; "
        "line: theory, from one first step and the data's own covariances and projections."
    )


def _notes(analysis: Analysis) -> str:
    notes = [*analysis.table.notes, *analysis.prepared.notes]
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return (
        f'<p class="quiet">What was done to the table first:</p><ul class="quiet">{items}</ul>'
        * (len(notes) > 0)
    )


def _table(curve: Curve, name: str) -> str:
    rows = "".join(
        f"<tr><td>{value:g}</td><td>{'–' if p is None else format(p, '.4f')}</td><td>{e}</td></tr>"
        for value, p, e in zip(
            curve.values, curve.predicted, curve.measured["network"], strict=True
        )
    )
    return (
        f"<table><thead><tr><th>{name}</th><th>predicted</th><th>measured</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _scores(analysis: Analysis) -> str:
    if not analysis.scores:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{score:.3f}</td><td>{seconds:.1f} s</td></tr>"
        for name, (score, seconds) in analysis.scores.items()
    )
    what = "accuracy" if analysis.table.task == "classification" else "R²"
    return (
        "<h2>On all of the table</h2><p>The scikit-learn estimators on every class, with settings "
        "of their own choice, judged on a fifth of the rows that was held out.</p>"
        f"<table><thead><tr><th>model</th><th>{what}</th><th>time</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _closing(analysis: Analysis) -> str:
    reason = (
        f" The theory had to be left out in places: {html.escape(analysis.without_theory)}."
        if analysis.without_theory
        else ""
    )
    return (
        f'<p class="quiet">Made by onegrad {__version__}. Errors are mean squared errors of labels '
        "that are ±1 for classes and of variance one for numbers; conventions as in Demir and "
        f"Dogan (2025).{reason}</p>"
    )
