"""Which version of each model made the recorded numbers (versions.json).

A store finds its rows by the model's version, so numbers must not change while it stays:
`python -m tests.golden.record` refuses to record changed numbers of a model whose record still has
the version that made the old ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from onegrad.runs.store import version_of
from onegrad.simulate.models import MODELS
from tests.golden.cases import CASES

FILE = Path(__file__).with_name("versions.json")
_ROW = re.compile(r"(?:\S+=.* )?(\S+) seed \d+ (?:status|test_error|train_error|train_objective)")
_BY_METHOD = {model.theory: name for name, model in MODELS.items() if model.theory}

Numbers = Mapping[str, float]


def owner(key: str) -> str | None:
    """The model whose stored rows hold such a number; None where nothing is stored."""
    case, _, name = key.partition(" | ")
    if case not in CASES:
        return None
    if CASES[case]["what"] in ("predict", "curve"):
        return _BY_METHOD.get(CASES[case]["options"].get("method", "auto"), "theory")
    row = _ROW.fullmatch(name)
    return row[1] if row is not None and row[1].partition(":")[0] in MODELS else None


def versions_of(golden: Numbers) -> dict[str, int]:
    """The present version of every model that has numbers."""
    return {model: version_of(model) for model in {*map(owner, golden)} - {None}}


def not_raised(found: Numbers, golden: Numbers, versions: Mapping[str, int]) -> list[str]:
    """Models whose numbers are others than the recorded ones, under the same version."""
    changed = {
        owner(key)
        for key in found.keys() & golden.keys()
        if found[key] != golden[key] and not (math.isnan(found[key]) and math.isnan(golden[key]))
    }
    return sorted(m for m in changed - {None} if versions.get(m) == version_of(m))


def write(golden: Numbers) -> None:
    text = json.dumps(versions_of(golden), indent=1, sort_keys=True)
    FILE.write_text(text + "\n", encoding="utf-8")
