"""The files of this folder: problems with their simulated numbers, and predictions of them."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import onegrad as og

HERE = Path(__file__).parent
FROZEN, OLDER, BEFORE = (HERE / f"{name}.jsonl" for name in ("frozen", "audit-2", "before"))
Record = dict[str, Any]


def lines(path: Path) -> list[Record]:
    """The records of a file, one a line; none where there is no file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def latest(path: Path) -> dict[str, Record]:
    """Records by id; of several simulations of a problem the longest counts."""
    found: dict[str, Record] = {}
    for record in lines(path):
        before = found.get(record["id"])
        if before is None or record.get("repetitions", 0) >= before.get("repetitions", 0):
            found[record["id"]] = record
    return found


def problems(sample: float = 1.0) -> list[Record]:
    """All problems that have simulated numbers, or the share `sample` of every class."""
    found = [one for one in latest(FROZEN).values() if "simulated" in one]
    found += [_older(one) for one in lines(OLDER)]
    taken: dict[str, float] = {}
    chosen = []
    for one in found:
        due = taken[one["class"]] = taken.get(one["class"], 1.0 - sample / 2) + sample
        if math.floor(due) > math.floor(due - sample):
            chosen.append(one)
    return chosen


def _older(record: Record) -> Record:
    """A problem of audit-2.jsonl in the form of frozen.jsonl."""
    simulated = {f"{q}_error": [record[q], record[f"{q}_se"]] for q in ("test", "train")}
    return {
        "id": f"audit-2 {record['i']}", "class": "audit-2", "seed": 0, "spec": record["spec"],
        "repetitions": record["seeds"], "simulated": simulated,
    }  # fmt: skip


def fingerprint() -> str:
    """Of the package's sources: predictions of other sources are others."""
    root = Path(og.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
