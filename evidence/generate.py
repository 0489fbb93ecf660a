"""The frozen problems: specs of ten classes, each drawn from a seed of its own.

    python evidence/generate.py > evidence/problems.jsonl

One problem a line: `id` (class and number), `seed` (root of its simulation) and `spec`. The order
mixes the classes, so that the first part of the list is a sample of all of it. The list was drawn
once, with the built-in experiments of commit 5a193a6, and is kept: no prediction was looked at when
the laws below were chosen.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import onegrad as og
from onegrad.validate.random_specs import _activation, _Draw, _few_digits, _labels, random_spec

Spec = dict[str, Any]
SEED = 5230  # of the specs
ROOT = 1_000_000  # roots of the simulations: ROOT · (place of the class) + number
COUNTS = {
    "audit": 500, "losses": 100, "bulks": 100, "indices and classes": 100,
    "steps and optimisers": 100, "users": 100, "equal weights": 60, "bulks, few samples": 30,
}  # fmt: skip
_SIMPLE = ("relu", "tanh", "erf", "sigmoid", "gelu", "softplus", "elu", "sin")


def audit(draw: _Draw, number: int) -> Spec:
    """The law of `onegrad audit`."""
    return random_spec(SEED, number)


def _sizes(draw: _Draw, largest: int = 700) -> tuple[int, int, int]:
    """n, m, k: from 200 to `largest` inputs, at most 1000 samples and neurons."""
    n = round(draw.between(200, largest))
    m = min(1000, round(n * draw.between(0.4, 4.0)))
    return n, m, max(20, min(1000, round(m * draw.between(0.2, 3.0))))


def _mixture(draw: _Draw, n: int, components: tuple[int, ...] = (1, 2, 3, 4)) -> Spec:
    """Spikes, means and weights; equal weights in half of the problems."""
    count = draw.one_of(*components)
    data: Spec = {
        "model": "mixture",
        "dim": n,
        "rank": draw.one_of(0, 1, 2, 3, weights=(0.1, 0.5, 0.25, 0.15)),
    }
    if draw.chance(0.5):
        data["weights"] = _equal(count)
    else:
        parts = draw.rng.dirichlet(np.full(count, 4.0)).round(3)
        data["weights"] = [*parts[:-1].tolist(), round(1.0 - float(parts[:-1].sum()), 3)]
    if data["rank"] and draw.chance(0.3):
        data["strengths"] = [draw.uniform(0.2, 2.0) for _ in range(data["rank"])]
    if data["rank"] and count > 1 and draw.chance(0.3):
        data["alignment"] = draw.uniform(-1.0 / (count - 1), 1.0)
    if draw.chance(0.4) or not data["rank"]:
        data["mean"] = draw.uniform(0.3, 3.0)
    if draw.chance(0.4):
        data["directions"] = draw.one_of("orthogonal", "fixed", weights=(0.7, 0.3))
    if draw.chance(0.2):
        data["counts"] = "proportional"
    return data


def _equal(count: int) -> list[float]:
    return [round(1 / count, 12)] * (count - 1) + [1.0 - round(1 / count, 12) * (count - 1)]


def _inputs(draw: _Draw, n: int, isotropic: float = 0.3, **more: Any) -> Spec:
    return {"model": "isotropic", "dim": n} if draw.chance(isotropic) else _mixture(draw, n, **more)


def _problem(draw: _Draw, data: Spec, labels: Spec, m: int, k: int, **training: Any) -> Spec:
    """With a convention, an activation, a ridge and a step."""
    convention = draw.one_of("mixture", "isotropic", weights=(0.6, 0.4))
    low, high = (1e-5, 0.1) if convention == "mixture" else (1e-3, 3.0)
    network = {"convention": convention, "activation": _activation(draw), "width": k}
    training = {"samples": m, "ridge": _few_digits(draw.between(low, high)), **training}
    if draw.chance(0.3):
        training["step_samples"] = min(2000, round(m * draw.between(0.4, 3.0)))
    if draw.chance(0.3):
        training["gradient"] = "labels-only"
    spec: Spec = {"data": data, "labels": labels, "network": network, "training": training}
    if "rate" in training:
        if data["model"] == "mixture":
            data["spread"] = _few_digits(draw.between(0.5, data["dim"] ** 0.75))
    elif convention == "mixture":
        spec["scaling"] = {"strength": draw.uniform(0, 1), "weighting": draw.uniform(0, 1)}
    else:
        if data["model"] == "mixture":
            data["spread"] = _few_digits(draw.between(0.5, data["dim"] ** 0.75))
        spec["scaling"] = {"exponent": draw.uniform(0.0, 0.45)}
    return spec


def losses(draw: _Draw, number: int) -> Spec:
    """Other losses of the readout; those of signs have labels ±1, some of them flipped."""
    n, m, k = _sizes(draw, 450)
    loss = ("logistic", "hinge", "squared-hinge", "huber", "absolute")[number % 5]
    training: Spec = {"loss": loss}
    if loss in ("logistic", "hinge", "squared-hinge"):
        if draw.chance(0.6):
            data = _mixture(draw, n, (2,))
            data["weights"] = [0.5, 0.5] if draw.chance(0.5) else [0.4, 0.6]
            labels: Spec = {"model": "component"}
        elif draw.chance(0.7):
            data, labels = _inputs(draw, n), {"model": "single-index", "link": "sign"}
        else:
            data, labels = _inputs(draw, n), {"model": "multi-index", "link": "xor"}
        if draw.chance(0.3):
            labels["flip"] = draw.uniform(0.02, 0.3)
    else:
        data = _inputs(draw, n)
        labels = _labels(draw, data)
        if loss == "huber" and draw.chance(0.6):
            training["delta"] = _few_digits(draw.between(0.1, 3.0))
    return _problem(draw, data, labels, min(m, 800), min(k, 800), **training)


def bulks(draw: _Draw, number: int) -> Spec:
    """Bulks that are not flat, with and without spikes and means."""
    n, m, k = _sizes(draw)
    data = _inputs(draw, n, 0.5, components=(1, 2, 3))
    if data.get("directions") == "fixed":
        del data["directions"]
    if draw.chance(0.5):
        data |= {"spectrum": "power-law", "exponent": draw.uniform(0.2, 1.5)}
    else:
        levels = [draw.uniform(1.5, 8.0), draw.uniform(0.1, 1.0)]
        data |= {"spectrum": "two-level", "levels": levels, "share": draw.uniform(0.1, 0.7)}
    more = {"rate": 0.0} if draw.chance(0.25) else {}
    return _problem(draw, data, _labels(draw, data), m, k, **more)


def few_samples(draw: _Draw, number: int) -> Spec:
    """Two levels or a power law, fewer samples than inputs, no step or a small one."""
    n = round(draw.between(200, 500))
    m = round(n * draw.between(0.25, 0.8))
    k = round(n * draw.between(0.3, 1.5))
    data: Spec = {"model": "isotropic", "dim": n}
    if number % 3 == 2:
        data |= {"spectrum": "power-law", "exponent": draw.uniform(0.4, 1.2)}
    else:
        data |= {"spectrum": "two-level", "levels": [4.0, 0.25], "share": draw.uniform(0.1, 0.4)}
    link = draw.one_of("relu", "tanh", "erf", "identity", "softplus")
    more = {"rate": 0.0} if draw.chance(0.5) else {}
    spec = _problem(draw, data, {"model": "single-index", "link": link}, m, k, **more)
    spec["network"]["activation"] = draw.one_of("relu", "tanh", "erf", "gelu")
    return spec


def indices(draw: _Draw, number: int) -> Spec:
    """Labels of several indices; one-hot classes; means placed freely; labels flipped."""
    n, m, k = _sizes(draw, 500)
    if number % 5 < 2:  # classes
        count = draw.one_of(3, 4)
        data = _mixture(draw, n, (count,))
        if draw.chance(0.3):
            data.pop("mean", None)
            data["centres"] = [[draw.uniform(-2, 2) for _ in range(2)] for _ in range(count)]
        labels: Spec = {"model": "component"}
        if draw.chance(0.3):
            labels["noise"] = draw.uniform(0.05, 0.5)
        return _problem(draw, data, labels, m, min(k, 700))
    count = draw.one_of(2, 3, weights=(0.75, 0.25))
    data = _inputs(draw, n, 0.4, components=(1, 2, 3))
    link = draw.one_of("product", "sum", "max", *["xor"] * (count == 2))
    labels = {"model": "multi-index", "indices": count, "link": link}
    if link == "xor" and draw.chance(0.5):
        labels["flip"] = draw.uniform(0.02, 0.3)
    elif link != "xor" and draw.chance(0.4):
        labels["noise"] = draw.uniform(0.05, 0.5)
    spikes = data.get("rank", 0) * len(data.get("weights", ()))
    if spikes >= count and "alignment" not in data and draw.chance(0.3):
        labels["direction"] = "spikes"
    return _problem(draw, data, labels, m, k)


def steps(draw: _Draw, number: int) -> Spec:
    """Two or three steps, on fresh samples or the same; other optimisers."""
    n, m, k = _sizes(draw, 500)
    optimiser = ("gd", "sign", "adam", "muon", "kfac")[number % 5]
    convention = draw.one_of("mixture", "isotropic", weights=(0.6, 0.4))
    training: Spec = {"optimiser": optimiser}
    if optimiser == "gd" or draw.chance(0.6):
        training |= {
            "steps": int(draw.one_of(2, 3, weights=(0.7, 0.3))),
            "batch": draw.one_of("fresh", "same"),
        }
    unit = (k if convention == "mixture" else 1.0) if optimiser in ("gd", "kfac") else 1.0
    training["rate"] = _few_digits(draw.between(0.1, 3.0) * unit)
    if optimiser == "kfac":
        training["damping"] = _few_digits(draw.between(0.1, 3.0))
    data = _inputs(draw, n, 0.4, components=(1, 2, 3))
    spec = _problem(draw, data, _labels(draw, data), m, k, **training)
    spec["network"]["convention"] = convention
    low, high = (1e-5, 0.1) if convention == "mixture" else (1e-3, 3.0)
    spec["training"]["ridge"] = _few_digits(draw.between(low, high))
    return spec


def equal_weights(draw: _Draw, number: int) -> Spec:
    """Spikes of equal strength whose chance overlaps split a multiple largest eigenvalue of Σ̄."""
    n, m, k = _sizes(draw, 500)
    count = draw.one_of(2, 3, 4, weights=(0.3, 0.5, 0.2))
    rank = draw.one_of(2, 3) if count == 2 else draw.one_of(1, 2, weights=(0.75, 0.25))
    data: Spec = {"model": "mixture", "dim": n, "rank": rank, "weights": _equal(count)}
    if rank == 1 and draw.chance(0.4):
        data["alignment"] = draw.uniform(-1.0 / (count - 1), 0.2)
    if draw.chance(0.2):
        data["mean"] = draw.uniform(0.3, 2.0)
    link = draw.one_of(*_SIMPLE, "identity", "hermite(0, 0, 1)")
    labels: Spec = {"model": "single-index", "link": link}
    more = {"rate": 0.0} if draw.chance(0.5) else {}
    spec = _problem(draw, data, labels, m, k, **more)
    spec["network"]["activation"] = draw.one_of(*_SIMPLE)
    if draw.chance(0.6):
        spec["data"].pop("spread", None)
        spec.pop("scaling", None)
        rate = more.get(
            "rate",
            draw.between(0.1, 2.0) * (k if spec["network"]["convention"] == "mixture" else 1),
        )
        spec["training"]["rate"] = _few_digits(rate)
        spec["data"]["spread"] = _few_digits(draw.between(5.0, n**0.75))
    return spec


_PRESETS = ("quickstart", "demir2025/", "cui2024/", "moniri2024/", "ours/")


@cache
def _presets() -> list[tuple[str, Spec]]:
    """The built-in experiments on known populations, as their TOML says them."""
    command = [sys.executable, "-m", "onegrad"]
    listed = subprocess.run([*command, "list"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    names = [name for name in names if name.startswith(_PRESETS)]
    found = []
    for name in names:
        text = subprocess.run([*command, "show", name], capture_output=True, text=True, check=True)
        tables = tomllib.loads(text.stdout)
        if tables["data"].get("model") in ("isotropic", "mixture"):
            found.append((name, tables))
    return found


def users(draw: _Draw, number: int) -> Spec:
    """A point of a built-in experiment, at another size, and in half of the problems with another
    ridge or strength."""
    known = _presets()
    weights = [4.0 if name.startswith(("demir", "quick")) else 1.0 for name, _ in known]
    share = np.array(weights) / sum(weights)
    _, tables = known[int(draw.rng.choice(len(known), p=share))]
    spec: Spec = json.loads(json.dumps(tables))
    sweep = spec.pop("sweep", {})
    along = sweep.pop("zip", {})
    place = int(draw.rng.integers(0, len(next(iter(along.values()))))) if along else 0
    chosen = {key: values[place] for key, values in along.items()}
    chosen |= {key: values[int(draw.rng.integers(0, len(values)))] for key, values in sweep.items()}
    for key in list(spec):
        if key not in ("data", "labels", "network", "training", "scaling"):
            del spec[key]
    for key, value in chosen.items():
        table, name = key.split(".", 1)
        if table not in spec:
            if table not in ("data", "labels", "network", "training", "scaling"):
                continue
            spec[table] = {}
        if name in ("width", "width_ratio"):
            spec[table].pop("width", None), spec[table].pop("width_ratio", None)
        spec[table][name] = value
    n = spec["data"]["dim"]
    target = draw.one_of(200, 300, 500, 1000, 2000, weights=(0.25, 0.3, 0.3, 0.12, 0.03))
    factor = target / n
    spec["data"]["dim"] = target
    for table, name in (
        ("training", "samples"),
        ("training", "step_samples"),
        ("network", "width"),
    ):
        if name in spec[table]:
            spec[table][name] = max(20, round(spec[table][name] * factor))
    mixture = spec["network"].get("convention", "mixture") == "mixture"
    rate = spec["training"].get("rate")
    if rate is not None and mixture and spec["training"].get("optimiser", "gd") in ("gd", "kfac"):
        spec["training"]["rate"] = (
            [r * factor for r in rate] if isinstance(rate, list) else rate * factor
        )
    if draw.chance(0.3):
        spec["training"]["ridge"] = _few_digits(
            spec["training"].get("ridge", 1e-4) * draw.between(0.1, 10.0)
        )
    if draw.chance(0.3) and "strength" in spec.get("scaling", {}):
        spec["scaling"]["strength"] = draw.uniform(0.2, 0.95)
    return spec


LAWS: dict[str, Callable[[_Draw, int], Spec]] = {
    "audit": audit, "losses": losses, "bulks": bulks, "indices and classes": indices,
    "steps and optimisers": steps, "users": users, "equal weights": equal_weights,
    "bulks, few samples": few_samples,
}  # fmt: skip
_MOST_OPERATIONS = 4e10  # of a repetition: more takes above ten seconds


def _affordable(problem: og.Problem) -> bool:
    n, k, m, step = problem.dim, problem.width, problem.samples, problem.step_samples
    inner = m * k * min(m, k) * (20 if problem.loss.name != "squared" else 1)
    return 2.0 * n * k * (2 * step + m + k / 2) + inner < _MOST_OPERATIONS


def _drawn(name: str, place: int) -> Iterator[tuple[int, Spec]]:
    """The problems of a class that the package takes; what it refuses is drawn again."""
    number = attempt = 0
    while number < COUNTS[name]:
        draw = _Draw(np.random.default_rng([SEED, place, attempt]))
        spec = LAWS[name](draw, attempt if name == "audit" else number)
        attempt += 1
        try:
            problem = og.Problem.from_spec(spec)
        except og.SpecError as error:
            print(f"{name} {attempt}: {error}", file=sys.stderr)
            continue
        if _affordable(problem):
            yield number, spec
            number += 1


def main() -> None:
    lines = []
    for place, name in enumerate(LAWS):
        for number, spec in _drawn(name, place):
            record = {
                "id": f"{name} {number}",
                "class": name,
                "seed": ROOT * (1 + place) + number,
                "spec": spec,
            }
            lines.append(((number + 0.5) / COUNTS[name], place, record))
    for _, _, record in sorted(lines, key=lambda line: line[:2]):
        print(json.dumps(record))


if __name__ == "__main__":
    main()
