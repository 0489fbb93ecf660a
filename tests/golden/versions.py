"""Which recorded numbers belong to which version of which model (versions.json).

A store finds its rows by the model's version, so numbers must not change while it stays. A digest
of the recorded numbers is kept for every model and case, with the version that made them;
`python -m tests.golden.versions` writes it anew after golden.json was recorded, and refuses where a
model's numbers changed and `version` in its record did not.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onegrad.runs.store import version_of
from onegrad.simulate.models import MODELS
from tests.golden.cases import CASES
from tests.golden.record import FILE as GOLDEN_FILE

FILE = Path(__file__).with_name("versions.json")
_ROW = re.compile(r"(?:\S+=.* )?(\S+) seed \d+ (?:status|test_error|train_error|train_objective)")
_BY_METHOD = {model.theory: name for name, model in MODELS.items() if model.theory}

Numbers = Mapping[str, float]
Versions = dict[str, dict[str, Any]]


def owner(key: str) -> str | None:
    """The model whose stored rows hold such a number; None where nothing is stored."""
    case, _, name = key.partition(" | ")
    if case not in CASES:
        return None
    if CASES[case]["what"] in ("predict", "curve"):
        return _BY_METHOD.get(CASES[case]["options"].get("method", "auto"), "theory")
    row = _ROW.fullmatch(name)
    return row[1] if row is not None and row[1].partition(":")[0] in MODELS else None


def digests(golden: Numbers) -> dict[str, dict[str, str]]:
    """Of the numbers of every model and case."""
    texts: dict[str, dict[str, list[str]]] = {}
    for key in sorted(golden):
        model = owner(key)
        if model is not None:
            case = key.partition(" | ")[0]
            texts.setdefault(model, {}).setdefault(case, []).append(f"{key} {golden[key]!r}")
    return {
        model: {c: hashlib.sha256("\n".join(t).encode()).hexdigest()[:12] for c, t in own.items()}
        for model, own in sorted(texts.items())
    }


def not_raised(golden: Numbers, versions: Versions) -> list[str]:
    """Models and cases whose numbers are others than those recorded for the same version."""
    return [
        f"{model}: the numbers of {case} changed and its version is still {version_of(model)}"
        for model, own in digests(golden).items()
        if model in versions and versions[model]["version"] == version_of(model)
        for case, digest in own.items()
        if versions[model]["numbers"].get(case, digest) != digest
    ]


def out_of_date(golden: Numbers, versions: Versions) -> list[str]:
    """Models whose entry is not what `main` would write."""
    wanted = _wanted(golden)
    return [name for name in {*wanted, *versions} if wanted.get(name) != versions.get(name)]


def _wanted(golden: Numbers) -> Versions:
    found = digests(golden)
    return {name: {"version": version_of(name), "numbers": own} for name, own in found.items()}


def main() -> None:
    golden = json.loads(GOLDEN_FILE.read_text(encoding="utf-8"))
    versions = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    said = not_raised(golden, versions)
    if said:
        sys.exit("\n".join([*said, "Raise `version` in src/onegrad/models, then run this again."]))
    FILE.write_text(json.dumps(_wanted(golden), indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
