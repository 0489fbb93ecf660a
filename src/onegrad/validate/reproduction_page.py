"""The page on all reproduced figures: picture, numbers, what agrees, what differs and why."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onegrad import __version__
from onegrad.runs.store import version_of
from onegrad.spec.presets import SOURCES
from onegrad.text.display import markdown_table
from onegrad.text.document import as_html, document
from onegrad.validate.common_shift import CommonShift
from onegrad.validate.images import GAN_STATISTICS, IMAGE_TESTS, ImageTest
from onegrad.validate.reproduce import Reproduction
from onegrad.validate.reproduced import Agreement

_HALF = "The source plots half of the mean squared error; its points are doubled here."
_LABELS = (
    "Most of the trend is the scale of the labels, whose power falls as 1/‖Σ̄‖: the error of "
    "predicting nothing falls with it."
)
# What differs from the source in a figure, or has to be known to read it.
NOTES = {
    "demir2025/fig1b": _LABELS,
    "demir2025/fig1c": _LABELS,
    "demir2025/fig5a": _LABELS,
    "demir2025/fig5b": f"The same picture as Fig. 1c. {_LABELS}",
    "demir2025/fig2b": "Mean squared errors of labels ±1, not rates of misclassification.",
    "demir2025/fig2c": "Strengths are drawn; the theory is averaged over their law.",
    "demir2025/fig4a": "The teacher lies along the spikes, so that the labels keep their scale.",
    "demir2025/fig4b": (
        "What the source calls the linear model is the Hermite model of degree 1 with its noise. "
        "Its colours end at 4 and 100 percent, and points beyond are not drawn."
    ),
    "demir2025/fig5c": (
        "At β = 0 the setting is that of Figs. 1c and 5a, whose published points are 3 to 5 % "
        "lower than these: the source's two data sets differ by as much."
    ),
    "demir2025/fig6": (
        "What the source calls training error is the ridge objective: squared error and penalty."
    ),
    "demir2025/fig7a": "The same picture as Fig. 3a.",
}
_IMAGES = "The source draws its images from a GAN, these are real ones (traces below)."
_QUICK = (
    "This is a quick run: at most four values of each swept key and five repetitions, two at the "
    "largest sizes; sizes are those of the source. The theory of images is computed to "
    "3 %."
)


def sentences(one: Reproduction) -> list[str]:
    """What agrees, what differs, and why."""
    lines = [_agreement(a) for a in one.found]
    if shift := one.shift:
        lines.append(_shift(shift))
    if one.found and not one.name.endswith("fig4b"):
        lines.append(_HALF)
    if one.name in NOTES:
        lines.append(NOTES[one.name])
    if one.found and _images(one) is not None:
        lines.append(_IMAGES)
    if one.found and one.name in IMAGE_TESTS:
        lines.append(_image_test(IMAGE_TESTS[one.name]))
    return lines


def _image_test(test: ImageTest) -> str:
    return (
        f"Tested: with real images networks were {100 * test.real:+.0f} % from the published "
        f"points, without the 5 % of each class that lie furthest towards the other class "
        f"{100 * test.typical:+.0f} %, with samples of a small GAN of our own "
        f"{100 * test.generated:+.0f} % (docs/reproduction.md)."
    )


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


def _command(one: Reproduction) -> str:
    return f"onegrad run {one.name}"


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
        test = IMAGE_TESTS.get(one.name)
        for a in one.found:
            verdict = "agrees" if a.agrees else "differs"
            if not a.agrees and test is not None and not a.gap and test.explains(a.mean):
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
    data, gan = _images(one), GAN_STATISTICS.get(one.name)
    if data is None or gan is None:
        return []
    real = data.both_classes().statistics
    rows = [
        [f"trace of class {label}", f"{trace / 255**2:.2f}", f"{theirs:.2f}"]
        for label, trace, theirs in zip(data.classes, real.traces, gan.traces, strict=True)
    ]
    if gan.distance is not None:
        ours = real.distance / 255
        rows.append(["class mean to their average", f"{ours:.3f}", f"{gan.distance:.3f}"])
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
        parts.append(f"\n`{_command(one)}` ({_time(one)}).\n")
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
