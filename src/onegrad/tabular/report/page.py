"""The report as one HTML file that asks nothing of the network."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence

from onegrad import __version__
from onegrad.figures.style import RC
from onegrad.tabular.learning.curve_picture import draw_curve
from onegrad.tabular.report import words
from onegrad.tabular.report.analysis import CONSTANT, Analysis
from onegrad.text.document import document


def page(analysis: Analysis, source: str) -> str:
    """Curve, models, what a step found, what was done to the table, tails."""
    title = f"What would more rows buy? {source}"
    curve = analysis.curve
    first = " A first look (--quick) at fewer rows." if analysis.quick else ""
    sections = [
        _texts([words.failed_sentence(curve), words.rows_sentence(curve),
                words.verdict_sentence(curve), words.method_sentence(curve)]),
        _picture(analysis),
        _section("Before you believe it", _list(analysis.table.cautions)),
        _section("Models", _texts([words.best_sentence(analysis),
                                   words.constant_sentence(analysis),
                                   words.unequal_sentence(analysis)]) + _models(analysis)),
        _section("What the step found", _texts([words.found_sentence(analysis)])),
        _section("The data", _texts([words.data_sentence(analysis), words.tails_sentence(analysis),
                                     words.label_tail_sentence(analysis)])
                 + _list(analysis.table.notes)),
        f'<p class="quiet">Made by onegrad {__version__}.{first}</p>',
    ]  # fmt: skip
    return document(title, "\n".join(part for part in sections if part))


def _section(heading: str, body: str) -> str:
    return f"<h2>{html.escape(heading)}</h2>\n{body}" if body else ""


def _texts(sentences: Sequence[str]) -> str:
    return "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences if sentence)


def _list(items: Sequence[str]) -> str:
    shown = "".join(f"<li>{html.escape(item)}</li>" for item in items)
    return f"<ul>{shown}</ul>" if shown else ""


def _picture(analysis: Analysis) -> str:
    """The curve as an SVG inside the page; letters are drawn as shapes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(RC):
        figure, axes = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
        draw_curve(analysis.curve, axes)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    how = {"random": "rows held out at random", "groups": "whole groups held out",
           "time": "later rows, judged by fits to earlier ones"}[analysis.curve.kind]  # fmt: skip
    caption = (
        f"{analysis.curve.model}, {analysis.score.name} by the number of rows. Dots: measured "
        f"({how}), with standard errors. Line: forecast; bands: what should hold 68 and 95 % of "
        "scores, as calibrated on the curves of other tables."
    )
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" '
        f'alt="{html.escape(caption, quote=True)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _models(analysis: Analysis) -> str:
    best, rows = analysis.best, ""
    for name, one in analysis.models.items():
        lead = analysis.lead(best, name)
        behind = "" if name == best else words.size(lead._replace(mean=-lead.mean))
        seconds = "" if name == CONSTANT else f"{one.seconds:.1f} s"
        cells = (name, f"{one.values.mean():.3f}", behind, seconds)
        rows += f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
    names = ("model", html.escape(analysis.score.name), "less the best", "CPU")
    head = "".join(f"<th>{name}</th>" for name in names)
    splits = analysis.splits
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="quiet">{len(splits.tests)} splits, {splits.largest:,} rows fitted, the same '
        "for all. ± holds 95 %, for splits that share rows. The curve goes on from the same fits."
        "</p>"
    )
