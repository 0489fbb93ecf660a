"""Pages that follow from the code: API, commands, presets, references, and texts kept elsewhere.

`conf.py` calls `write_all` before each build; nothing of it is committed.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cached_property
from pathlib import Path

import formulas
import thumbnails

import onegrad
from onegrad.page.article import export_story
from onegrad.spec.citations import bibliography
from onegrad.spec.presets import Preset, preset_groups, preset_path

ROOT = Path(__file__).parents[1]
GROUPS = {
    "State a problem": (
        "Problem", "Mixture", "Isotropic", "FashionMnist", "Digits", "Arrays", "SingleIndex",
        "MultiIndex", "ComponentLabels", "Network", "Training", "Scaling", "fit_mixture",
    ),
    "Predict its errors": (
        "predict", "predict_curve", "predict_readout", "Theory", "Prediction",
    ),
    "Simulate networks": ("simulate", "Simulation", "Estimate"),
    "Run an experiment with a sweep": (
        "run", "sweep", "Results", "load_results", "Row", "Summary", "Local", "Dask",
        "scaling_exponents", "ScalingExponent",
    ),
    "See what the step has done": (
        "neurons", "Neurons", "spectrum", "SpectrumReport", "limiting_spectrum",
        "LimitingSpectrum", "degree", "DegreeReport",
    ),
    "Use it on a table of data": (
        "learning_curve", "LearningCurve", "OneStepClassifier", "OneStepRegressor",
    ),
    "Bring an activation": (
        "Activation", "get_activation", "hermite_activation", "register_activation",
    ),
    "Check it": ("audit", "Audit"),
    "Errors": ("OnegradError", "SpecError", "AssumptionError", "ConvergenceError"),
}  # fmt: skip
MAKE = {
    "Problem": """A problem is made of five tables, by hand, from a spec file, or from a preset:

```python
og.Problem(data=og.Mixture(dim=500), network=og.Network(width=400),
           training=og.Training(samples=600))
og.Problem.from_spec("my.toml")  # or a preset's name, or a nested mapping of the same keys
problem.replace(**{"network.width": 800, "training.ridge": 1e-3})  # another one, by dotted keys
```

`data` is one of [`Mixture`](Mixture.md), [`Isotropic`](Isotropic.md),
[`FashionMnist`](FashionMnist.md), [`Digits`](Digits.md), [`Arrays`](Arrays.md); `labels` one of
[`SingleIndex`](SingleIndex.md), [`MultiIndex`](MultiIndex.md),
[`ComponentLabels`](ComponentLabels.md).
What every key means: [spec files](../../spec.md).
"""
}


def write_all(here: Path) -> None:
    out = here / "generated"
    for folder in (out / "api", out / "thumbnails"):
        folder.mkdir(parents=True, exist_ok=True)
    pages = {f"api/{name}": page_of(name) for name in public_names()}
    pages |= {
        "api": api_index(), "commands": commands(), "presets": presets(out / "thumbnails"),
        "references": references(), "formulas": formulas.page(here),
        "refuses": moved("VISION.md"), "changelog": moved("CHANGELOG.md"),
        "benchmarks": moved("benchmarks/README.md"),
    }  # fmt: skip
    for name, text in pages.items():
        write(out / f"{name}.md", text)
    export_story(out / "site")


def write(path: Path, text: str) -> None:
    """Only where it changes, so that a second build has less to do."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# --- API ----------------------------------------------------------------------------------


def public_names() -> list[str]:
    return [name for name in onegrad.__all__ if name != "__version__"]


def api_index() -> str:
    public = set(public_names())
    groups = {title: [n for n in names if n in public] for title, names in GROUPS.items()}
    left = sorted(public - {n for names in groups.values() for n in names})
    parts = ["# API\n\n`import onegrad as og`; every name below is `og.name`.\n"]
    for title, names in (groups | {"More": left}).items():
        if names:
            lines = [f"| [`{n}`](api/{n}.md) | {first_line(getattr(onegrad, n))} |" for n in names]
            parts += [f"## {title}\n", "| name | is |\n|---|---|", *lines, ""]
    hidden = "\n".join(f"api/{name}" for name in sorted(public))
    return "\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{hidden}\n```\n"])


def page_of(name: str) -> str:
    thing = getattr(onegrad, name)
    code = f"```python\n{signature(thing, f'og.{name}')}\n```\n"
    parts = [f"# {name}\n", MAKE.get(name, ""), code, returned(thing), markdown(thing)]
    if inspect.isclass(thing):
        parts += members(thing)
    beside = next((names for names in GROUPS.values() if name in names), ())
    links = [f"[`{other}`]({other}.md)" for other in beside if other != name]
    return "\n".join([*parts, f"**See also** {', '.join(links)}\n" if links else ""])


def returned(thing: object) -> str:
    """What a function gives, with a link where that is a class of ours."""
    if inspect.isclass(thing) or not callable(thing):
        return ""
    text = str(inspect.get_annotations(thing).get("return", ""))
    names = [n for n in public_names() if re.search(rf"\b{n}\b", text)]
    links = {n: f"[`{n}`]({n}.md)" for n in names}
    listed = "a list of " if text.startswith(("list[", "tuple[")) else ""
    return f"Returns {listed}{' or '.join(links.values())}.\n" if links else ""


def members(cls: type) -> list[str]:
    """A table of attributes, then the methods one by one."""
    own = [n for n in dir(cls) if not n.startswith("_") and ours(cls, n)]
    plain, methods = [], []
    for name in own:
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property | cached_property):
            plain.append(f"| `{name}` | {first_line(value)} |")
        elif callable(getattr(cls, name, None)):
            methods.append(name)
    parts = []
    if plain:
        parts += ["## Attributes\n", "| name | is |\n|---|---|", *plain, ""]
    for name in methods:
        method = getattr(cls, name)
        if not inspect.getdoc(method):
            continue
        parts += [f"## {name}\n", f"```python\n{signature(method, name)}\n```\n", markdown(method)]
    return parts


def ours(cls: type, name: str) -> bool:
    """Defined by onegrad, and not what a dataclass has as the default of a field."""
    home = next((base for base in cls.__mro__ if name in vars(base)), object)
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    return home.__module__.startswith("onegrad") and name not in fields


def signature(thing: object, name: str) -> str:
    try:
        signature_of = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    kept = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature_of.parameters.values()
        if p.name not in ("self", "cls")
    ]
    text = str(signature_of.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<([\w.]+)[^<>]*>", r"\1", text.replace("<factory>", "..."))
    if len(name + text) <= 90:
        return name + text
    lines = ",\n    ".join(str(p) for p in _written(kept))
    return f"{name}(\n    {lines},\n)"


def _written(parameters: list[inspect.Parameter]) -> list[str]:
    """Parameter by parameter, as in a call that is broken into lines."""
    found, star = [], False
    for p in parameters:
        star = star or p.kind is p.VAR_POSITIONAL
        if p.kind is p.KEYWORD_ONLY and not star:
            found.append("*")
            star = True
        default = "" if p.default is p.empty else f"={p.default!r}"
        marks = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}
        found.append(
            re.sub(r"<([\w.]+)[^<>]*>", r"\1", f"{marks.get(p.kind, '')}{p.name}{default}")
        )
    return found


def first_line(thing: object) -> str:
    text = inspect.getdoc(thing) or ""
    return escaped(" ".join(text.partition("\n\n")[0].split())).replace("\n", " ")


def markdown(thing: object) -> str:
    """A docstring as Markdown: `name : text` as a list, examples and formulas as blocks."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    found: list[str] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith(">>>"):
            block = []
            while i < len(lines) and lines[i].strip():
                block.append(lines[i])
                i += 1
            found += ["", "```python", *block, "```", ""]
        elif re.match(r"^-{3,}$", line):
            found[-1] = f"\n**{found[-1]}**\n"
            i += 1
        elif re.match(r"^[\w*, ]+ : ", line):
            names, _, text = line.partition(" : ")
            i += 1
            while i < len(lines) and lines[i].startswith("  "):
                text += " " + lines[i].strip()
                i += 1
            found.append(f"- `{names}`: {escaped(text)}")
        elif line.startswith("    "):
            block = []
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                block.append(lines[i][4:])
                i += 1
            found += ["", "```text", *"\n".join(block).strip("\n").splitlines(), "```", ""]
        else:
            after_list = found and found[-1].startswith("- ") and line.strip()
            found += ["", escaped(line)] if after_list else [escaped(line)]
            i += 1
    return "\n".join(found) + "\n"


def escaped(text: str) -> str:
    """Characters that Markdown would take for its own, outside of `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_|<>$\[\]{}])", r"\\\1", part)
        for part in parts
    )


# --- commands, presets, references ----------------------------------------------------------


def commands() -> str:
    """`--help` of every command, as it is printed."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from onegrad.cli.commands import app

    runner = CliRunner()
    parts = ["# Commands\n", "What `--help` prints, for each command.\n"]
    for name in ("", *get_command(app).commands):
        words = [name, "--help"] if name else ["--help"]
        said = runner.invoke(app, words, env={"COLUMNS": "90"}, prog_name="onegrad").stdout
        title = f"onegrad {name}".strip()
        parts += [f"## {title}\n", f"```text\n{said.strip()}\n```\n"]
    return "\n".join(parts)


def presets(folder: Path) -> str:
    """Every preset with a picture, what it shows, how long it takes, and how to run it."""
    drawn = thumbnails.draw_all(folder)
    parts = [
        "# Presets\n",
        "Built-in experiments, among them the figures of the papers. The small pictures are of "
        "smaller sizes; minutes are estimates for the whole experiment on two cores. "
        "`onegrad show NAME` prints one as TOML, to copy and change.\n",
    ]
    for source, members in preset_groups().items():
        parts += [f"## {source}\n", '<div class="presets">']
        parts += [card(preset, drawn.get(preset.name)) for preset in members]
        parts += ["</div>\n"]
    return "\n".join(parts)


def card(preset: Preset, picture: str | None) -> str:
    name, title = preset.name, preset.title
    image = f'<img src="../_static/{picture}" alt="{title}">' if picture else ""
    what = comment(preset_path(name).read_text(encoding="utf-8"))
    about = f"about {preset.minutes:.0f} minutes" if preset.minutes >= 1.5 else "about a minute"
    minutes = "under a minute" if preset.minutes < 1 else about
    return (
        f'<div class="preset">{image}<p><strong>{title}</strong></p><p>{what}</p>'
        f"<p>{minutes}</p><p><code>onegrad run {name}</code></p></div>"
    )


def comment(text: str) -> str:
    """The first lines of a spec, which say where it comes from and what it shows."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", " ".join(lines))
    return re.sub(
        r"docs/book/([\w-]+)\.md",
        lambda page: f'<a href="../book/{page[1]}.html">{page[1].replace("-", " ")}</a>',
        text,
    )


def references() -> str:
    parts = ["# References\n", "BibTeX by `onegrad cite`.\n"]
    for key, entry in bibliography().items():
        parts += [f"({key})=\n\n**{key}**\n", f"```text\n{entry}\n```\n"]
    return "\n".join(parts)


def moved(name: str) -> str:
    """A text that is kept elsewhere in the repository, with its links as the site has them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"\]\((?:\.\./)?docs/", "](../", text)
    return re.sub(
        r"\[(`?[^\]]*`?)\]\((?:\.\./)?(?:src|tests|examples|notes|speed)/[^)]*\)", r"\1", text
    )
