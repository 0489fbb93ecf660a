"""Which papers stand behind what a spec uses."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onegrad.spec.experiment import Experiment

_BY_THEORY = {"mixture": ("cui2024", "hu2023"), "isotropic": ("adlam2020", "mei2022")}
_BY_DATA = {"fashion-mnist": ("xiao2017",)}
_BY_SOURCE = {"hulu2023": "hu2023"}  # sources of presets whose entry has another key
_BY_CONVENTION = {"mixture": ("demir2025",), "isotropic": ("moniri2024", "ba2022")}


def bibliography() -> dict[str, str]:
    """Every BibTeX entry, by key."""
    text = (resources.files("onegrad") / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"@\w+\{(\w+),.*?\n\}", text, flags=re.DOTALL)
    bodies = re.findall(r"@\w+\{\w+,.*?\n\}", text, flags=re.DOTALL)
    return dict(zip(entries, bodies, strict=True))


def cited(experiment: Experiment, spec: str = "") -> list[str]:
    """Keys of the papers behind the conventions and models of a spec; of a preset, `spec` by its
    name, that of its source first."""
    from onegrad.simulate.models import (
        MODELS,  # with NumPy, for which the list of all need not wait
    )

    source = spec.partition("/")[0]
    source = _BY_SOURCE.get(source, source)
    keys: dict[str, None] = {source: None} if source in bibliography() else {}
    for point in experiment.points:
        convention = point.problem.network.convention
        keys |= dict.fromkeys(_BY_CONVENTION[convention])
        keys |= dict.fromkeys(_BY_DATA.get(point.problem.data.model, ()))
        if experiment.compare.theories:
            keys |= dict.fromkeys(_BY_THEORY[convention])
    for model in experiment.compare.models:
        keys |= dict.fromkeys(MODELS[model].cites)
    return list(keys)
