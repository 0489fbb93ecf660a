"""The built-in experiments, presets/<source>/<figure>.toml, and how a spec is found: a preset, a
file or a mapping."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from onegrad.errors import SpecError, did_you_mean
from onegrad.spec.fields import read_toml

Spec = str | Path | Mapping[str, Any]

SOURCES = {
    "": "Start here",
    "demir2025": "Demir & Dogan 2025: mixtures with structure, and Fashion-MNIST",
    "moniri2024": "Moniri, Lee, Hassani, Dobriban 2024: isotropic data",
    "cui2024": "Cui et al. 2024: isotropic data, maximal step",
    "dandi2023": "Dandi et al. 2023: one giant step on several teachers",
    "ba2022": "Ba et al. 2022: small and large steps, isotropic data",
    "hulu2023": "Hu, Lu 2023: random features and their Gaussian equivalent",
    "mei2022": "Mei, Montanari 2022: double descent of random features",
    "ours": "Ours",
}


def preset_path(name: str) -> Path:
    return Path(str(resources.files("onegrad.spec.presets") / f"{name}.toml"))


def preset_names() -> list[str]:
    """quickstart first, then source by source, figures in their order."""
    folder = preset_path("x").parent
    names = [p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.toml")]
    rank = {source: i for i, source in enumerate(SOURCES)}
    return sorted(names, key=lambda name: (rank[name.rpartition("/")[0]], _natural(name)))


def _natural(name: str) -> list[tuple[int, str]]:
    """Figure 10 after figure 9."""
    return [(int(d or 0), t) for d, t in re.findall(r"(\d*)(\D*)", name)]


def known_tables(spec: str | Path) -> dict[str, Any]:
    """The tables of a preset, or of a TOML file."""
    if not isinstance(spec, str | os.PathLike):
        raise SpecError.of(
            "problem", spec, "must be a Problem, a preset's name, the path of a TOML file, or a "
            "mapping of tables", 'For example "quickstart"',
        )  # fmt: skip
    if str(spec) in preset_names():
        return read_toml(preset_path(str(spec)))
    try:
        return read_toml(spec)
    except SpecError as error:
        if Path(spec).suffix != ".toml" and not Path(spec).exists():
            raise unknown(str(spec)) from None
        raise error


def unknown(name: str) -> SpecError:
    """What to say about a name that is no file and no preset."""
    presets = preset_names()
    named = [full for full in presets if full.rpartition("/")[2] == name]
    near = f'Did you mean "{named[0]}"?' if named else did_you_mean(name, presets)
    advice = " ".join(filter(None, (near, "All presets: onegrad list")))
    return SpecError.of("spec", name, "no such file or preset", advice)


def read_spec(spec: Spec) -> Mapping[str, Any]:
    """The tables of a preset, of a TOML file, or of the mapping itself."""
    return spec if isinstance(spec, Mapping) else known_tables(spec)


@dataclass(frozen=True)
class Preset:
    """A line of `onegrad list`.

    minutes : about how long a run takes on two quiet cores, from minutes.json
    """

    name: str
    title: str
    minutes: float


def preset_groups() -> dict[str, list[Preset]]:
    """Every preset, by where its figure comes from."""
    minutes = json.loads((preset_path("x").parent / "minutes.json").read_text(encoding="utf-8"))
    groups: dict[str, list[Preset]] = {}
    for name in preset_names():
        tables = read_toml(preset_path(name))
        line = Preset(name, tables["name"], minutes.get(name, math.nan))
        groups.setdefault(SOURCES[name.rpartition("/")[0]], []).append(line)
    return groups
