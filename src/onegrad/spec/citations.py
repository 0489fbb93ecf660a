"""Which papers stand behind what a spec uses."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onegrad.spec.experiment import Experiment

_BY_THEORY = {"mixture": ("cui2024", "hu2023"), "isotropic": ("adlam2020", "mei2022")}
_BY_DATA = {"fashion-mnist": ("xiao2017",)}
_BY_CONVENTION = {"mixture": ("demir2025",), "isotropic": ("moniri2024", "ba2022")}


def bibliography() -> dict[str, str]:
    """Every BibTeX entry, by key."""
    text = (resources.files("onegrad") / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"@\w+\{(\w+),.*?\n\}", text, flags=re.DOTALL)
    bodies = re.findall(r"@\w+\{\w+,.*?\n\}", text, flags=re.DOTALL)
    return dict(zip(entries, bodies, strict=True))


def cited(experiment: Experiment) -> list[str]:
    """Keys of the papers behind the conventions and models of a spec."""
    from onegrad.simulate.models import (
        MODELS,  # with NumPy, for which the list of all need not wait
    )

    keys: dict[str, None] = {}
    for point in experiment.points:
        convention = point.problem.network.convention
        keys |= dict.fromkeys(_BY_CONVENTION[convention])
        keys |= dict.fromkeys(_BY_DATA.get(point.problem.data.model, ()))
        if experiment.compare.theories:
            keys |= dict.fromkeys(_BY_THEORY[convention])
    for model in experiment.compare.models:
        keys |= dict.fromkeys(MODELS[model].cites)
    return list(keys)
