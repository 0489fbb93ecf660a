"""Scenes in one file of HTML that opens without a server: the story, or a spec with sliders."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError
from onegrad.figures.style import LABELS, RATIOS
from onegrad.page.grids import axis, rounded
from onegrad.page.untrained import without_step
from onegrad.predict.predict import predict_curve
from onegrad.spec.experiment import Experiment, Point

_MODULES = ("chart.js", "step_scene.js", "scenes.js", "article.js")
_MOST = 400  # points of the theory of one exported page
_SLIDERS = 2


def story_page() -> str:
    """The story as one file of HTML."""
    return one_file(json.loads(_file("story.json")))


def export_story(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "story.html"
    path.write_text(story_page(), encoding="utf-8")
    return path


def one_file(data: Mapping[str, Any]) -> str:
    """HTML with its style, program and numbers inside: nothing else is ever asked for."""
    text = _file("story.html")
    program = "\n".join(_without_imports(_file(name)) for name in _MODULES)
    inside = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    icon = base64.b64encode(_file("icon.svg").encode()).decode()
    for old, new in (
        ('  <link rel="stylesheet" href="step.css">\n', ""),
        ('<link rel="stylesheet" href="article.css">',
         f"<style>\n{_file('step.css')}{_file('article.css')}</style>"),
        ('href="icon.svg"', f'href="data:image/svg+xml;base64,{icon}"'),
        ('  <script type="module" src="article.js"></script>\n', ""),
        ("</body>", f'  <script type="application/json" id="data">{inside}</script>\n'
                    f'  <script type="module">\n{program}</script>\n</body>'),
    ):  # fmt: skip
        assert old in text, old
        text = text.replace(old, new)
    return text


def _file(name: str) -> str:
    return (resources.files("onegrad.page") / "static" / name).read_text(encoding="utf-8")


def _without_imports(program: str) -> str:
    """Modules in one script: each is written so that its imports stand in one line."""
    return re.sub(r'^import .* from "\./\w+\.js";\n', "", program, flags=re.MULTILINE)


def export_page(experiment: Experiment, folder: Path) -> Path:
    """A page with the theory of a spec along its longest numeric sweep; other numeric sweeps are
    sliders, at most two, and a sweep of words gives a line each."""
    scene = scene_of(experiment)
    lead = (
        "Lines are the theory, computed without training anything, with the gradient step and "
        "(dashed) without it."
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    title = experiment.name or "one gradient step"
    path.write_text(one_file({"title": title, "lead": lead, "scenes": [scene]}), encoding="utf-8")
    return path


def scene_of(experiment: Experiment) -> dict[str, Any]:
    """Test errors of a spec's points as a scene."""
    points = experiment.points
    x, sliders, words = _roles(experiment)
    if len(points) > _MOST:
        raise SpecError.of(
            "sweep", f"{len(points)} points", f"must have at most {_MOST} on an exported page",
            "Shorten the lists",
        )  # fmt: skip
    lists = {key: sorted({_number(p.settings[key]) for p in points}) for key in (x, *sliders)}
    names = list(dict.fromkeys(str(p.settings[words]) for p in points)) if words else [""]
    lines: list[dict[str, Any]] = []
    for colour, name in enumerate(names):
        mine = [p for p in points if not words or str(p.settings[words]) == name]
        for dash in (False, True):
            lines.append({
                "label": _label(name, dash), "colour": colour, "dash": dash,
                "y": _nested(mine, x, sliders, lists, dash),
            })  # fmt: skip
    seen = [v for line in lines for v in _flat(line["y"]) if v is not None]
    low, high = min(seen), max(seen)
    log = low > 0 and high / low > 8
    return {
        "id": "spec", "kind": "curves", "words": {"title": LABELS.get(x, x), "text": ""},
        "x": _axis(x, lists[x]), "sliders": [_axis(key, lists[key]) for key in sliders],
        "y": {"title": "test error (MSE)", "low": low / 1.2 if log else 0.95 * low,
              "high": high * 1.2 if log else 1.05 * high, "log": log},
        "lines": lines, **({"gain": [0, 1], "what": "test error"} if len(names) == 1 else {}),
    }  # fmt: skip


def _roles(experiment: Experiment) -> tuple[str, list[str], str | None]:
    """Which swept key is the axis, which are sliders, and which tells lines apart."""
    settings = experiment.points[0].settings
    counts = {key: {str(p.settings[key]) for p in experiment.points} for key in settings}
    numeric = [key for key, value in settings.items() if isinstance(value, int | float)]
    numeric = [key for key in numeric if len(counts[key]) > 1]
    words = [key for key in settings if key not in numeric and len(counts[key]) > 1]
    numeric.sort(key=lambda key: -len(counts[key]))
    whole = 1
    for key in (*numeric, *words):
        whole *= len(counts[key])
    if not numeric or len(numeric) > 1 + _SLIDERS or len(words) > 1:
        raise SpecError.of(
            "sweep", list(settings), "must sweep one to three numbers, and at most one word",
            "The longest list is the axis, the others are sliders",
        )  # fmt: skip
    if whole != len(experiment.points):
        raise SpecError.of(
            "sweep.zip", len(experiment.points), "cannot become sliders: lists advance together",
            "Sweep the keys by themselves",
        )  # fmt: skip
    return numeric[0], numeric[1:], words[0] if words else None


def _nested(
    points: Sequence[Point], x: str, sliders: Sequence[str], lists: Mapping[str, list[float]],
    dash: bool,
) -> list[Any]:  # fmt: skip
    """Errors along x for each value of each slider; without the step where `dash`."""
    if sliders:
        key, *rest = sliders
        return [
            _nested([p for p in points if p.settings[key] == v], x, rest, lists, dash)
            for v in lists[key]
        ]
    ordered = sorted(points, key=lambda p: _number(p.settings[x]))
    problems = [without_step(p.problem) if dash else p.problem for p in ordered]
    return rounded([one.test_error for one in predict_curve(problems)], 5)


def _axis(key: str, values: list[float]) -> dict[str, Any]:
    return axis("", LABELS.get(key, key), values, log=key in RATIOS and values[0] > 0)


def _label(name: str, dash: bool) -> str:
    which = "without the step" if dash else "with the step"
    return f"{name}, {which}" if name else which


def _number(value: Any) -> float:
    return float(value)


def _flat(values: Any) -> list[float | None]:
    return [v for row in values for v in _flat(row)] if isinstance(values, list) else [values]
