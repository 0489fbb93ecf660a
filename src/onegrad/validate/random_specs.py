"""Random problems over everything that a spec can say, for `onegrad audit`.

Problem number i of a seed is always the same, however many are drawn: its generator is spawned from
(seed, i). Sizes are such that one repetition takes a fraction of a second.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onegrad.errors import SpecError
from onegrad.simulate.network.optimisers import OPTIMISERS

Tables = dict[str, dict[str, Any]]

_SMOOTH = ("tanh", "erf", "sigmoid", "gelu", "softplus", "elu", "sin", "relu", "identity")
_MOST = 1000  # samples and neurons at most

# Keys of a problem that no draw sets, and why.
_BULKS = "bulks that are not flat have drawn layers only; tests/agreement/test_bulks.py has them"
_LOSSES = "other losses have no 1/n correction; tests/agreement/losses_grid.py compares them"
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("data.spectrum", "data.exponent", "data.levels", "data.share"), _BULKS),
    **dict.fromkeys(("training.loss", "training.delta"), _LOSSES),
    "data.centres": "coordinates of one choice; data.mean draws means, tests/data has the others",
    "training.reuse": "has no theory: simulation only",
    "labels.preprocess": "has no theory: simulation only",
    "training.total": "another way to state the number of samples",
    "labels.flip": "needs labels ±1, which few draws have; tests/agreement/test_signs.py",
}


def random_spec(seed: int, number: int, smallest: int = 200, largest: int = 700) -> Tables:
    """The tables of a problem with `smallest` ≤ n ≤ `largest`; every number has few digits."""
    if not 20 <= smallest <= largest:
        raise SpecError.of(
            "dims", [smallest, largest], "must be two ascending sizes of at least 20",
            "For example 200 and 700",
        )  # fmt: skip
    draw = _Draw(np.random.default_rng([seed, number]))
    n = round(draw.between(smallest, largest))
    data = _data(draw, n)
    labels = _labels(draw, data)
    convention = draw.one_of("mixture", "isotropic", weights=(0.6, 0.4))
    m = min(_MOST, round(n * draw.between(0.5, 5.0)))
    k = max(10, min(_MOST, round(m * draw.between(0.15, 4.0))))
    network: dict[str, Any] = {"convention": convention, "activation": _activation(draw)}
    if draw.chance(0.5):
        network["width"] = k
    else:
        network["width_ratio"] = _few_digits(k / m)
    if draw.chance(0.2):
        network["readout"] = draw.one_of("gaussian", "constant", weights=(0.3, 0.7))
    low, high = (1e-6, 0.1) if convention == "mixture" else (1e-4, 3.0)
    training: dict[str, Any] = {"samples": m, "ridge": _few_digits(draw.between(low, high))}
    if draw.chance(0.5):
        training["step_samples"] = min(2 * _MOST, round(m * draw.between(0.3, 3.0)))
    if draw.chance(0.3):
        training["gradient"] = draw.one_of("exact", "labels-only", weights=(0.3, 0.7))
    tables = {
        "data": data, "labels": labels, "network": network, "training": training, "scaling": {}
    }  # fmt: skip
    _set_scales(draw, tables, k)
    _vary(draw, tables)
    return {name: table for name, table in tables.items() if table}


def _vary(draw: _Draw, tables: Tables) -> None:
    """What few problems have: other rows, spikes that differ between components, a teacher at a
    given angle, several steps, other optimisers."""
    data, labels, training = tables["data"], tables["labels"], tables["training"]
    if draw.chance(0.08):
        tables["network"]["rows"] = draw.one_of("gaussian", "unit", weights=(0.2, 0.8))
    plain = "strengths" not in data and "alignment" not in data and "direction" not in labels
    if data.get("rank") and plain:
        if draw.chance(0.15) and labels["model"] == "single-index":
            labels["cosine"] = draw.uniform(-1.0, 1.0)
        elif draw.chance(0.1):
            data["strengths"] = "uniform"
        elif draw.chance(0.2):
            count = len(data.get("weights", (0.5, 0.5)))
            data["ranks"] = [1, *(int(draw.rng.integers(0, 4)) for _ in range(count - 1))]
            del data["rank"]
    if training.get("rate", 0.0) > 0 and draw.chance(0.25):
        training["optimiser"] = draw.one_of(*OPTIMISERS)
        if training["optimiser"] == "kfac" and draw.chance(0.5):
            training["damping"] = _few_digits(draw.between(0.1, 10.0))
        elif OPTIMISERS[training["optimiser"]].normalised:
            training["rate"] = _few_digits(draw.between(0.1, 3.0))
        if draw.chance(0.5):
            training["steps"] = int(draw.rng.integers(2, 4))
            training["batch"] = draw.one_of("fresh", "same")


class _Draw:
    """Draws in words."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def between(self, low: float, high: float) -> float:
        """Uniform in the logarithm."""
        return float(math.exp(self.rng.uniform(math.log(low), math.log(high))))

    def uniform(self, low: float, high: float) -> float:
        return _few_digits(self.rng.uniform(low, high))

    def one_of(self, *options: Any, weights: tuple[float, ...] | None = None) -> Any:
        return options[int(self.rng.choice(len(options), p=weights))]


def _few_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _data(draw: _Draw, n: int) -> dict[str, Any]:
    if draw.chance(0.25):
        return {"model": "isotropic", "dim": n}
    components = draw.one_of(1, 2, 3, 4, weights=(0.2, 0.5, 0.2, 0.1))
    rank = draw.one_of(0, 1, 2, 3, 4, 20, weights=(0.1, 0.5, 0.16, 0.1, 0.08, 0.06))
    data: dict[str, Any] = {"model": "mixture", "dim": n, "rank": rank}
    if components != 2 or draw.chance(0.5):
        parts = draw.rng.dirichlet(np.full(components, 4.0)).round(3)
        data["weights"] = [*parts[:-1].tolist(), round(1.0 - float(parts[:-1].sum()), 3)]
    if rank and draw.chance(0.4):
        data["strengths"] = [draw.uniform(0.2, 2.0) for _ in range(rank)]
    if rank and components > 1 and draw.chance(0.4):
        data["alignment"] = draw.uniform(-1.0 / (components - 1), 1.0)
    if draw.chance(0.4):
        data["mean"] = draw.uniform(0.0, 3.0)
    if draw.chance(0.5):
        data["directions"] = draw.one_of("random", "orthogonal", "fixed", weights=(0.2, 0.5, 0.3))
    if draw.chance(0.3):
        data["counts"] = draw.one_of("drawn", "proportional", weights=(0.3, 0.7))
    return data


def _labels(draw: _Draw, data: dict[str, Any]) -> dict[str, Any]:
    isotropic = data["model"] == "isotropic"
    components = 1 if isotropic else len(data.get("weights", (0.5, 0.5)))
    noise = {"noise": _few_digits(draw.between(0.01, 1.0))} if draw.chance(0.5) else {}
    if components > 1 and draw.chance(0.3):
        values = [draw.uniform(-2.0, 2.0) for _ in range(components)]
        given = {"values": values} if components > 2 or draw.chance(0.4) else {}
        return {"model": "component", **given, **noise}
    labels: dict[str, Any] = {"model": "single-index", "link": _activation(draw)}
    if components > 1 and draw.chance(0.2):
        labels["link"] = [_activation(draw) for _ in range(components)]
    if data.get("rank") and draw.chance(0.3):
        labels["direction"] = draw.one_of("random", "spikes", weights=(0.2, 0.8))
    return labels | noise


def _activation(draw: _Draw) -> str:
    """A named one, or a polynomial: of any degree up to 4, or even."""
    kind = draw.one_of("named", "polynomial", "even", weights=(0.75, 0.15, 0.1))
    if kind == "named":
        return str(draw.one_of(*_SMOOTH))
    degree = int(draw.one_of(1, 2, 3, 4, weights=(0.1, 0.4, 0.4, 0.1)))
    coefficients = [draw.uniform(-1, 1) / math.factorial(j) for j in range(degree + 1)]
    if kind == "even":
        coefficients = [draw.uniform(-0.5, 0.5), 0.0, draw.uniform(0.3, 1.0)]
        coefficients += [0.0, draw.uniform(-0.1, 0.1)] * draw.chance(0.3)
    return f"hermite({', '.join(f'{c:.3g}' for c in coefficients)})"


def _set_scales(draw: _Draw, tables: Tables, width: int) -> None:
    """η and θ: by [scaling] or by hand, as the convention and the data allow."""
    data, training, scaling = tables["data"], tables["training"], tables["scaling"]
    n, mixture = data["dim"], tables["network"]["convention"] == "mixture"
    by_hand = draw.chance(0.4)
    if mixture and not by_hand:
        scaling |= {"strength": draw.uniform(0, 1), "weighting": draw.uniform(0, 1)}
        return
    if data["model"] == "mixture":
        data["spread"] = _few_digits(draw.between(0.5, n))
    if not by_hand:
        scaling["exponent"] = draw.uniform(0.0, 0.5)
        if draw.chance(0.5):
            scaling["constant"] = _few_digits(draw.between(0.3, 3.0))
    elif draw.chance(0.15):
        training["rate"] = 0.0
    else:  # a step is visible from η ≈ k on in the mixture convention, from 1 on in the other
        training["rate"] = _few_digits(draw.between(0.1, 3.0) * (width if mixture else 1.0))
