"""Mutated specs: a valid one with some of its values, keys and characters replaced.

`python -m tests.fuzz.specs 100000 [SEED]` for a long run; what it finds goes to KEPT.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from onegrad.errors import OnegradError
from onegrad.runs.cost import cost_of
from onegrad.runs.store import compute_spec, point_spec
from onegrad.spec.experiment import Experiment
from onegrad.spec.presets import preset_names, preset_path
from onegrad.spec.toml_text import to_toml
from onegrad.validate.random_specs import random_spec
from tests.fuzz import long_run, peak

SECONDS = 5.0
MEGABYTES = 500  # that reading one spec may add, a million points included
# Valid specs: the shorter presets, with sweeps, zipped lists, steps, losses and several directions,
# and specs of the audit's generator; together they have nearly every key.
_PRESETS = [name for name in preset_names() if name.startswith(("quick", "ours/", "dandi", "hulu"))]
BASES = (
    *(preset_path(name).read_text(encoding="utf-8") for name in _PRESETS),
    *(to_toml({"name": "x", **random_spec(0, number)}) for number in range(30)),
)
VALUES = (
    "0", "-1", "1", "2", "1e400", "-0.0", "nan", "inf", "1" + "0" * 400, "9" * 5000, "true", "[]",
    "[1]", "[[1]]", "{}", '""', '"relu"', '"[/]"', '"\\u0000"', '"$x$"', '"' + "x" * 5000 + '"',
    "1979-05-27", "07:32:00", "[" * 300 + "]" * 300, '["network", "network"]', "0x7fffffffffffffff",
    '"hermite(1e308, 1e308)"', '"hermite()"', '"hermite(nan)"', '"file"', '"arrays"', '"auto"',
    "[0.01, " * 120 + "0.4" + "]" * 120, str([0.01] * 100), "1e-320", "9007199254740993", '"../x"',
    '"\\u202e"', "[true, false]", '{a = 1}', "4.9e-324", '"hermite(' + ", ".join("1" * 40) + ')"',
    '"/dev/zero"', '"/"', '"cuda:99"', "10000000", "99999",
)  # fmt: skip
PLAUSIBLE = (
    "0.5", "1", "3", "50", "0.9", '"tanh"', '"relu"', "[0.3, 0.7]", "[1, 2]", '"auto"', "0", "2",
    '"sign"', '"product"', '"max"', "[[0, 1], [1, 0]]", "[[1.0, 0.5], [1.0]]", "[0.0, 1.0]",
    '"uniform"', '"power-law"', "[3.0, 1.0, 0.1]", '"hinge"', '"logistic"', '"absolute"', '"adam"',
    '"sign"', '"same"', '"spikes"', '"random"', '"fixed"', '"network"', "[0.5, 0.25]", "true",
    '"component"', '"single-index"', '"multi-index"', '"isotropic"', '"mixture"', '"sampled"',
    '"float32"', '["relu", "erf"]', "[0.2, 0.2, 0.6]", "1e-8", "1e6", "4",
)  # fmt: skip
KEYS = (
    "dim", "weights", "rank", "ranks", "strengths", "alignment", "mean", "directions", "spread",
    "path", "label", "link", "noise", "values", "model", "width", "width_ratio", "activation",
    "samples", "step_samples", "ridge", "rate", "strength", "exponent", "constant", "seeds", "seed",
    "degree", "risk", "device", "dtype", "precision", "most_seeds", "name", "together", "classes",
    "part", "bulk", "spectrum", "levels", "share", "counts", "indices", "flip", "cosine", "cosines",
    "rows", "steps", "batch", "optimiser", "damping", "loss", "delta", "redraw", "finite_size",
    "traces", "control_variates", "direction", "self", "__class__", "model_config", "table", "a.b",
    '"a b"', "''",
)  # fmt: skip
CHANGES = (
    "data.dim=0", "data.dim=" + "9" * 5000, "sweep.data.dim=[1,2]", "x", "=", "a=b=c",
    "network.activation=hermite(1,2", "sweep.zip.data.dim=[3]", "compare.models=[]", "data=1",
    "sweep=1", "data.weights=" + "[" * 2000, "sweep.network.width=5", "..=1", "network.width=1e9",
)  # fmt: skip
# What once failed: never again. A list with many wrong entries: an error of 50 MB.
KEPT = (BASES[0].replace('["network", "theory"]', str([1] * 200_000)),)


def mutated(seed: int, number: int) -> tuple[str, list[str], bool]:
    """A spec's text, `--set` changes, and `--quick`."""
    rng = random.Random(f"{seed} {number}")
    lines = rng.choice(BASES).splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind <= 2 and "=" in lines[at]:
            value = rng.choice(VALUES if rng.random() < 0.6 else PLAUSIBLE)
            lines[at] = f"{lines[at].partition('=')[0]}= {value}"
        elif kind == 3:
            lines.insert(at, f"{rng.choice(KEYS)} = {rng.choice(VALUES)}")
        elif kind == 4:
            del lines[at]
            lines = lines or [""]
        elif kind == 5:
            lines[at] = lines[rng.randrange(len(lines))]
        elif kind == 6 and lines[at]:
            place = rng.randrange(len(lines[at]))
            letter = chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x3000))))
            lines[at] = lines[at][:place] + letter + lines[at][place + rng.randrange(2) :]
        else:
            lines[at] = f"[{rng.choice(('data', 'sweep', 'compare', 'figure', 'x', 'sweep.zip'))}]"
    changes = [rng.choice(CHANGES)] if rng.random() < 0.15 else []
    return "\n".join(lines), changes, rng.random() < 0.25


def check(seed: int, number: int, folder: Path) -> bool:
    """Whether it was a valid spec; raises what is not ours, and AssertionError for a hang."""
    return check_text(folder / "spec.toml", *mutated(seed, number))


def check_text(path: Path, text: str, changes: Sequence[str] = (), quick: bool = False) -> bool:
    """The same of a spec's text. A valid one also has its cost and the keys of its rows."""
    path.write_text(text, encoding="utf-8", errors="replace")
    start, before = time.process_time(), peak()
    try:
        experiment = Experiment.read(path, changes, quick)
        _plan(experiment)
        valid = True
    except OnegradError as error:
        assert 0 < len(str(error)) < 40_000, f"{len(str(error))} characters"
        valid = False
    took, more = time.process_time() - start, peak() - before
    assert took < SECONDS, f"took {took:.1f} s"
    assert more < MEGABYTES, f"{more:.0f} MB more"
    return valid


def _plan(experiment: Experiment) -> None:
    """What a run does before its first row: keys of the rows, time and memory."""
    for point in experiment.points[:3]:
        json.dumps(point_spec(point), allow_nan=False)
        for model in experiment.compare.models:
            compute_spec(point, model)
    count = experiment.compare.largest_count
    missing = {point.number: count for point in experiment.points}
    cost = cost_of(experiment, missing, len(experiment.points), workers=2)
    assert cost.seconds > 0 and str(cost)


if __name__ == "__main__":
    long_run(check, *map(int, sys.argv[1:]))
