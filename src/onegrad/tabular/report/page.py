"""The report as one HTML file that asks nothing of the network."""

from __future__ import annotations

import html
from pathlib import Path

import numpy as np

from onegrad import __version__
from onegrad.tabular.report import pictures, words
from onegrad.tabular.report.analysis import Analysis
from onegrad.tabular.report.number_texts import measured_text, score_text, short
from onegrad.tabular.report.scores import measure_name
from onegrad.text.document import document


def write_page(analysis: Analysis, source: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(analysis, source), encoding="utf-8")


def page(analysis: Analysis, source: str) -> str:
    """The question first; then advice, findings, baselines, and what was done to the table."""
    title = f"What would more rows buy? {source}"
    test = words.backtest_sentence(analysis) or words.unchecked_sentence(analysis)
    found = words.found_sentence(analysis)
    sections = [
        _section(
            "What will more rows buy me?",
            [words.rows_sentence(analysis), words.verdict_sentence(analysis), test],
            pictures.learning(analysis), _curve_caption(analysis),
        ),
        _curve_table(analysis),
        _section(
            "Advice",
            [words.step_sentence(analysis), words.width_sentence(analysis),
             words.rate_sentence(analysis)],
        ),
        f"<pre><code>{html.escape(words.snippet(analysis))}</code></pre>",
        _section("What the step found", [found]) if found else "",
        _section(
            "Beside other models",
            [words.unequal_sentence(analysis), words.beaten_sentence(analysis),
             words.constant_sentence(analysis)],
            pictures.comparison(analysis) if analysis.scores else "",
            "A fifth of the rows held out, the same splits for all; bars: standard errors.",
        ) if analysis.scores else "",
        _scores(analysis),
        _section(
            "The data",
            [words.data_sentence(analysis), words.tails_sentence(analysis),
             words.label_tail_sentence(analysis)],
            pictures.cloud(analysis),
            "Rows along the two directions in which the standardised columns vary most.",
        ),
        _notes(analysis),
        _closing(analysis),
    ]  # fmt: skip
    body = "\n".join(part for part in sections if part)
    return document(title, body)


def _section(heading: str, sentences: list[str], picture: str = "", caption: str = "") -> str:
    shown = ""
    if picture:
        shown = (
            f'<figure><img src="{picture}" alt="{html.escape(caption, quote=True)}">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )
    text = "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences if sentence)
    return f"<h2>{html.escape(heading)}</h2>\n{text}\n{shown}"


def _curve_caption(analysis: Analysis) -> str:
    curve = analysis.curve
    return (
        f"Squared error over that of the best constant (1 is no better than a constant, 0 is "
        f"perfect) of a network of {curve.width} neurons. Dots: measured on held-out rows, "
        f"{len(curve.subsets[-1].error)} splits, with standard errors. Line: theory anchored at "
        "the last dot, the less the more uncertain that is; band: two standard deviations."
    )


def _curve_table(analysis: Analysis) -> str:
    curve = analysis.curve
    classes = analysis.table.task == "classification"
    most = f"{np.mean(analysis.table.y == analysis.table.classes[0]):.1%}" if classes else ""
    rows = [("best constant", "1", "", most)]
    for one in curve.subsets:
        error = measured_text(one.mean, one.standard_error)
        rows.append((f"{one.rows:,}", error, "", f"{1 - one.wrong.mean():.1%}"))
    for point in curve.ahead():
        low, high = short(point.low), short(point.high)
        error = f"{short(point.error)} ({low} to {high})"
        rows.append((f"{point.rows:,}", "", error, f"{point.accuracy:.1%}"))
    names = ["rows", "measured", "predicted"] + ["accuracy"] * classes
    shown = [row if classes else row[:3] for row in rows]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in shown)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _notes(analysis: Analysis) -> str:
    notes = list(analysis.table.notes)
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return f'<p class="quiet">What was done to the table first:</p><ul class="quiet">{items}</ul>'


def _scores(analysis: Analysis) -> str:
    if not analysis.scores:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{score_text(score.estimate)}</td>"
        f"<td>{score.seconds:.1f} s</td></tr>"
        for name, score in analysis.scores.items()
    )
    return (
        f"<table><thead><tr><th>model</th><th>{measure_name(analysis.table)}</th><th>CPU</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _closing(analysis: Analysis) -> str:
    first = " A first look (--quick): fewer rows, a smaller network." if analysis.quick else ""
    cut = f" and cut at {analysis.clip:g} robust standard deviations" if analysis.clip else ""
    return (
        f'<p class="quiet">Made by onegrad {__version__}.{first} Inputs were standardised{cut}; '
        "rate and ridge were chosen anew at every number of rows. The band's width comes from "
        "tests on other tables and from this one's own.</p>"
    )
