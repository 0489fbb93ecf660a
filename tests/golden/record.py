"""`python -m tests.golden.record [FILE]` measures all cases anew and writes golden.json.

To be used only where numbers are meant to change: the difference belongs in the commit. It says
how long each case takes. Numbers that are within the tolerance of the recorded ones stay as they
are, so that a difference is a change; models whose numbers changed must have a new version
(versions.py), else nothing is written.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.golden.cases import CASES
from tests.golden.measure import measure

FILE = Path(__file__).with_name("golden.json")


def main(file: Path = FILE) -> None:
    found = {}
    for name, case in CASES.items():
        start = time.perf_counter()
        found |= {f"{name} | {key}": value for key, value in measure(case).items()}
        print(f"{time.perf_counter() - start:6.2f} s  {name}", file=sys.stderr)
    from tests.golden.test_golden import GOLDEN, complaints
    from tests.golden.versions import FILE as VERSIONS
    from tests.golden.versions import not_raised, write

    for key in found.keys() & GOLDEN.keys():
        if not complaints({key: found[key]}, {key: GOLDEN[key]}):
            found[key] = GOLDEN[key]
    print(f"{len(CASES)} cases, {len(found)} numbers", file=sys.stderr)
    said = not_raised(found, GOLDEN, json.loads(VERSIONS.read_text(encoding="utf-8")))
    if file == FILE and said:
        sys.exit(f"the numbers of {', '.join(said)} changed: raise `version` in their records, or "
                 "stored rows would be taken for the new numbers")  # fmt: skip
    file.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    if file == FILE:
        write(found)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
