"""Mutated specs: a valid one with some of its values, keys and characters replaced.

`python -m tests.fuzz.specs 100000 [SEED]` for a long run; what it finds goes to KEPT.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from onegrad.errors import OnegradError
from onegrad.specs.experiment import Experiment

SECONDS = 5.0
BASES = (
    """name = "mixture"
[data]
model = "mixture"
dim = 40
weights = [0.5, 0.5]
rank = 1
alignment = 0.2
mean = 0.5
[labels]
model = "single-index"
link = "relu"
noise = 0.1
[network]
activation = "relu"
width = 30
[training]
samples = 50
ridge = 1e-3
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network", "hermite", "theory"]
seeds = 3
""",
    """name = "isotropic"
[data]
model = "isotropic"
dim = 30
[network]
convention = "isotropic"
activation = "hermite(0, 1, 0.5)"
width_ratio = 0.5
readout = "constant"
[training]
samples = 40
step_samples = 60
gradient = "labels-only"
[scaling]
exponent = 0.29
constant = 1.0
[compare]
models = ["network"]
seeds = "auto"
precision = 0.05
accuracy = 0.02
[sweep]
"network.width_ratio" = [0.5, 1.0]
"network.activation" = ["relu", "tanh"]
[sweep.zip]
"training.samples" = [40, 50]
"data.dim" = [30, 40]
""",
    """[data]
model = "digits"
classes = [0, 1]
centring = "common"
spread = 30.0
[network]
width = 20
[training]
samples = 60
rate = 2.0
[compare]
models = ["network", "surrogate"]
seeds = 2
test_samples = 50
[figure]
quantities = ["test_error"]
""",
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
PLAUSIBLE = ("0.5", "1", "3", "50", "0.9", '"tanh"', '"relu"', "[0.3, 0.7]", "[1, 2]", '"auto"')
KEYS = (
    "dim", "weights", "rank", "ranks", "strengths", "alignment", "mean", "directions", "spread",
    "path", "label", "link", "noise", "values", "model", "width", "width_ratio", "activation",
    "samples", "step_samples", "ridge", "rate", "strength", "exponent", "constant", "seeds", "seed",
    "degree", "risk", "device", "dtype", "precision", "most_seeds", "name", "together", "classes",
    "part", "bulk", "direction", "self", "__class__", "model_config", "table", "a.b", '"a b"', "''",
)  # fmt: skip
CHANGES = (
    "data.dim=0", "data.dim=" + "9" * 5000, "sweep.data.dim=[1,2]", "x", "=", "a=b=c",
    "network.activation=hermite(1,2", "sweep.zip.data.dim=[3]", "compare.models=[]", "data=1",
    "sweep=1", "data.weights=" + "[" * 2000, "sweep.network.width=5", "..=1", "network.width=1e9",
)  # fmt: skip
# What once failed, by (seed, number) of a run: never again.
KEPT: tuple[tuple[int, int], ...] = ()


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


def check(seed: int, number: int, path: Path) -> bool:
    """Whether it was a valid spec; raises what is not ours, and AssertionError for a hang."""
    text, changes, quick = mutated(seed, number)
    path.write_text(text, encoding="utf-8", errors="replace")
    start = time.process_time()
    try:
        Experiment.read(path, changes, quick)
        valid = True
    except OnegradError as error:
        assert 0 < len(str(error)) < 40_000, f"{len(str(error))} characters"
        valid = False
    took = time.process_time() - start
    assert took < SECONDS, f"took {took:.1f} s"
    return valid


def main(count: int, seed: int) -> None:
    valid, failed, start = 0, 0, time.monotonic()
    with TemporaryDirectory() as folder:
        for number in range(count):
            if number % 1000 == 0:
                print(number, file=sys.stderr, flush=True)
            try:
                valid += check(seed, number, Path(folder) / "spec.toml")
            except Exception as error:
                failed += 1
                print(f"({seed}, {number}): {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(f"{count} specs of seed {seed}: {valid} valid, {failed} failures, "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
