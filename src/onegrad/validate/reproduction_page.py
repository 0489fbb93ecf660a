"""The page on all reproduced figures: picture, numbers, what agrees, what differs and why."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onegrad import __version__
from onegrad.runs.store import version_of
from onegrad.spec.presets import SOURCES
from onegrad.text.display import markdown_table
from onegrad.text.document import as_html, document
from onegrad.validate.reproduce import Reproduction
from onegrad.validate.reproduced import Agreement, CommonShift

_HALF = "The source plots half of the mean squared error; its points are doubled here."
_NO_NUMBERS = "Settings of the paper where it states them; no published numbers at hand."
_IMAGES = "The source draws its images from a GAN, these are real ones (traces below)."
_QUICK = (
    "This is a quick run: at most four values of each swept key and five repetitions, two at the "
    "largest sizes; sizes are those of the source. The theory of images is computed to "
    "3 %."
)


def sentences(one: Reproduction) -> list[str]:
    """What agrees, what differs, and why."""
    lines, figure = [_agreement(a) for a in one.found], one.figure
    if shift := one.shift:
        lines.append(_shift(shift))
    if one.found and not one.name.endswith("fig4b"):
        lines.append(_HALF)
    if figure is None:
        lines.append(_NO_NUMBERS)
    elif figure.note:
        lines.append(figure.note)
    if one.found and _images(one) is not None:
        lines.append(_IMAGES)
    if one.found and figure and figure.other_images:
        lines.append(_image_test(figure.other_images))
    return lines


def _image_test(measured: Mapping[str, float]) -> str:
    return (
        f"Tested: with real images networks were {100 * measured['real']:+.0f} % from the "
        "published points, without the 5 % of each class that lie furthest towards the other class "
        f"{100 * measured['typical']:+.0f} %, with samples of a small GAN of our own "
        f"{100 * measured['generated']:+.0f} % (docs/reproduction.md)."
    )


def _as_measured(deviation: float, measured: Mapping[str, float]) -> bool:
    """Whether a deviation is what real images were measured to do: no other size or sign."""
    return bool(measured) and abs(deviation - measured["real"]) <= 3 * measured["spread"]


def _shift(shift: CommonShift) -> str:
    return (
        f"The {shift.points} points of the source share one data set, which moves them together: "
        f"the mean over the figure has a spread of {100 * shift.spread:.1f} % between data sets "
        f"({shift.data_sets} of ours), and the published one is {100 * shift.published:+.1f} % "
        f"from ours, {shift.spreads:.1f} spreads."
    )


def _agreement(a: Agreement) -> str:
    count = len(a.comparisons)
    unit = "standard errors" if a.what == "hermite − network" else "spreads between data sets"
    size = f"{100 * a.mean:+.1f} % on average"
    if a.off == 0:
        most = f"at most {a.worst.spreads:.1f} {unit} away"
        return f"{a.what}: agrees at all {count} published points, {size}, {most}."
    word = "agrees" if a.agrees else "differs"
    worst = ", ".join(_place(k, v) for k, v in a.worst.point.items())
    return (
        f"{a.what}: {word}; {a.off} of {count} published points are further away than chance "
        f"explains, {size}, at most {a.worst.spreads:.1f} {unit} ({worst})."
    )


def _place(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{key.rpartition('.')[2]} = {value:.3g}" if isinstance(value, float) else f"{value}"


def write_reproduction(done: Sequence[Reproduction], out: Path, quick: bool) -> tuple[Path, Path]:
    """reproduction.html, which holds its pictures, and reproduction.md beside the folders."""
    out.mkdir(parents=True, exist_ok=True)
    written = out / "reproduction.html", out / "reproduction.md"
    text = _markdown(done, quick)
    written[0].write_text(_html(text, out, quick), encoding="utf-8")
    written[1].write_text(f"# {_TITLE}\n\n{text}", encoding="utf-8")
    return written


def _time(one: Reproduction) -> str:
    if not one.results:
        return "one draw"
    extent = f"{len(one.experiment.points)} points, {one.experiment.compare.seeds} repetitions"
    if one.whole:
        points, seeds = one.whole
        extent = f"quick: {extent}, of {points} and {seeds} in full"
    return f"{extent}; {one.seconds / 60:.1f} minutes of computing on one core"


def _images(one: Reproduction) -> Any:
    """The data of a figure where they are images, else None."""
    data = one.experiment.points[0].problem.data
    return data if data.pictures else None


def summary_rows(done: Sequence[Reproduction]) -> list[list[str]]:
    """One line per figure and model: figure, model, points, deviations, verdict."""
    rows = []
    for one in done:
        measured = one.figure.other_images if one.figure else {}
        for a in one.found:
            verdict = "agrees" if a.agrees else "differs"
            if not a.agrees and not a.gap and _as_measured(a.mean, measured):
                verdict = "differs: real images"
            rows.append([
                one.name, a.what, str(len(a.comparisons)), f"{100 * a.mean:+.1f} %",
                f"{100 * a.mean_size:.1f} %", f"{a.root_mean_square:.1f}",
                f"{a.worst.spreads:.1f}", verdict,
            ])  # fmt: skip
    return rows


_TITLE = "Every published figure, reproduced"
SUMMARY = (
    "figure", "", "points", "mean deviation", "its size", "r.m.s. in spreads", "largest", "verdict",
)  # fmt: skip


def image_rows(one: Reproduction) -> list[list[str]]:
    """Traces and mean distances of the real images beside those of the source's GAN."""
    data, gan = _images(one), one.figure.gan if one.figure else {}
    if data is None or not gan:
        return []
    real = data.both_classes().statistics
    rows = [
        [f"trace of class {label}", f"{trace / 255**2:.2f}", f"{theirs:.2f}"]
        for label, trace, theirs in zip(data.classes, real.traces, gan["traces"], strict=True)
    ]
    if "distance" in gan:
        ours = real.distance / 255
        rows.append(["class mean to their average", f"{ours:.3f}", f"{gan['distance']:.3f}"])
    return rows


_IMAGE_HEADERS = ("pixels in [0, 1]", "real images", "GAN of the source")


# --- Markdown ---------------------------------------------------------------------------------


def _markdown(done: Sequence[Reproduction], quick: bool) -> str:
    parts = [*_lead(quick), markdown_table(SUMMARY, summary_rows(done)), ""]
    for one in done:
        source, _, figure = one.name.partition("/")
        parts.append(f"## {one.name}: {one.experiment.name}\n")
        parts.append(f"![{one.name}]({source}/{figure}/figure.png)\n")
        lines = sentences(one)
        parts += [f"- {line}" for line in lines]
        if rows := image_rows(one):
            parts.append("\n" + markdown_table(_IMAGE_HEADERS, rows))
        parts.append(f"\n`onegrad run {one.name}` ({_time(one)}).\n")
    return "\n".join(parts)


def _lead(quick: bool) -> list[str]:
    return [
        "Black crosses are published points, read off the pictures with the error that is drawn. "
        "A spread is the standard deviation between our repetitions, each with its own data, and "
        "the chance of the source's test set (2 % with 5000 samples): where the source has one "
        "data set for all its trials, its points are off by as much.\n",
        f"Predictions are those of version {version_of('theory')} of the theory (CHANGELOG.md).\n",
        *([f"{_QUICK}\n"] if quick else []),
    ]


# --- HTML -------------------------------------------------------------------------------------


def _html(markdown: str, out: Path, quick: bool) -> str:
    """The page as one HTML file that contains its pictures."""

    def picture(match: re.Match[str]) -> str:
        data = base64.b64encode((out / match[1]).read_bytes()).decode("ascii")
        return f'src="data:image/png;base64,{data}"'

    body = re.sub(r'src="([^"]+\.png)"', picture, as_html(markdown))
    body = body.replace('">differs</td>', '" class="red">differs</td>')
    source = ", ".join(s for s in SOURCES if s == "demir2025")
    made = (
        f'<p class="quiet">Made by onegrad {__version__}: <code>onegrad reproduce'
        f"{' --quick' * quick}</code>.\nPoints of {source}.</p>"
    )
    style = "\nbody { max-width: 60rem } .red { color: #c62828; font-weight: bold }"
    return document(_TITLE, f"{body}\n{made}", style)
