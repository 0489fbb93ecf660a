"""What one gradient step would learn on somebody's data: every number of the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.spikes import Spikes, find_spikes
from onegrad.data.table import Table
from onegrad.errors import SpecError, did_you_mean
from onegrad.prediction import predict_curve
from onegrad.problem import degree_rule
from onegrad.report.scores import scores
from onegrad.results.rows import Estimate, paired_difference
from onegrad.runs.run import simulate_experiment
from onegrad.specs.experiment import Experiment
from onegrad.theory.options import DRAFT

Say = Callable[[str], None]

_MOST_SAMPLES = 600  # for each of step and readout
_SEEDS = 8
_CHOOSING_SEED = 7_000_000  # settings are chosen on other splits than they are judged on
_RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_SHARES = (0.125, 0.25, 0.5, 1.0)
_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class PreparedTable:
    """Inputs on the theory's scale (noise of variance 1), labels ±1 or of variance 1."""

    x: Array
    y: Array
    spikes: Spikes
    shown: tuple[str, str] | None  # the two classes that are told apart, +1 first
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Standing:
    """Where the data stand between α and β: θ = n^data_exponent."""

    data_exponent: float
    theta: float
    dim: int

    def strength(self, rate: float) -> float:
        """β = log(ηθ)/log n."""
        return self.data_exponent + math.log(rate) / math.log(self.dim)

    def degree(self, rate: float) -> int:
        """The degree of the polynomial model at this learning rate."""
        return degree_rule(self.strength(rate))

    def largest_rate(self, degree: int) -> float:
        """The learning rate up to which this degree is enough."""
        return float(self.dim ** (degree / (degree + 1) - self.data_exponent))


@dataclass(frozen=True)
class Curve:
    """Errors against one setting: measured with error bars, and predicted where theory can."""

    values: tuple[float, ...]
    measured: dict[str, tuple[Estimate, ...]]
    predicted: tuple[float | None, ...]

    @property
    def gap(self) -> float | None:
        """Median relative distance between prediction and network."""
        pairs = zip(self.predicted, self.measured["network"], strict=True)
        gaps = [abs(p / e.mean - 1) for p, e in pairs if p is not None and e.mean > 0]
        return float(np.median(gaps)) if gaps else None


@dataclass(frozen=True)
class Analysis:
    """Everything that the page shows."""

    table: Table
    prepared: PreparedTable
    standing: Standing | None
    samples: int
    ridge: float
    rate: float
    width: Curve
    sample: Curve
    rates: Curve
    gain: dict[str, Estimate]
    changes: dict[str, Estimate]  # of the network's test error against each model, paired by split
    without_theory: str
    scores: dict[str, tuple[float, float]]  # accuracy or R² of estimators on all rows, and seconds


def analyse(table: Table, classes: Sequence[str] | None = None, say: Say = print) -> Analysis:
    """Spikes, scaling, predicted and measured learning curves, and what the step gains.

    A few dozen networks of at most 600 samples and 2400 neurons are trained: seconds for a small
    table, three minutes for 784 columns; O(rows × columns) memory beside them.
    """
    say("looking for structure")
    prepared = prepare(table, classes)
    standing = _standing(prepared)
    samples = min(_MOST_SAMPLES, len(prepared.y) // 3)
    say("choosing the ridge and the learning rate")
    rates = _rates(prepared, samples)
    ridge, rate, chosen = _choose(prepared, samples, rates)
    say("measuring and predicting the learning curves")
    curves = _Curves(prepared, samples, ridge, rate)
    width = curves.against("network.width_ratio", _WIDTHS, ("network", "random-features"))
    sizes = sorted({max(10, round(samples * share)) for share in _SHARES})
    sample = curves.against("training.samples", sizes, ("network", "random-features"))
    by_rate = curves.against("training.rate", rates, ("network",))
    say("comparing with random features and a linear model")
    gain, changes = _gain(prepared, samples, chosen)
    return Analysis(
        table, prepared, standing, samples, ridge, rate, width, sample, by_rate,
        gain, changes, curves.failure, scores(table),
    )  # fmt: skip


# --- preparing --------------------------------------------------------------------------


def prepare(table: Table, classes: Sequence[str] | None = None) -> PreparedTable:
    """Two classes (or a target), columns in one unit, centred, noise level one."""
    x, notes = table.x, []
    shown: tuple[str, str] | None = None
    if table.task == "classification":
        shown = _two(table.classes, classes)
        rows = (table.y == shown[0]) | (table.y == shown[1])
        x, y = x[rows], np.where(table.y[rows] == shown[0], 1.0, -1.0)
        if len(y) < 60:
            raise SpecError.of(
                "classes", list(shown), f"have only {len(y)} rows together; 60 are needed",
                "Choose larger classes with --classes",
            )  # fmt: skip
        if len(table.classes) > 2:
            notes.append(
                f"Of {len(table.classes)} classes, {shown[0]} and {shown[1]} are told apart below; "
                "--classes A,B takes others."
            )
    else:
        y = (table.y - table.y.mean()) / table.y.std()
    deviations = x.std(axis=0)
    alive = deviations > 1e-12 * np.abs(x).max()
    if not alive.all():
        x, deviations = x[:, alive], deviations[alive]
        notes.append(f"{int((~alive).sum())} columns are constant here and left out.")
    centred = x - x.mean(axis=0)
    if not _one_unit(x, deviations):
        centred = centred / deviations
        notes.append("Columns come in different units: each was scaled to variance one.")
    within = centred.copy()
    groups = 1
    if shown:
        groups = 2
        for sign in (1.0, -1.0):
            within[y == sign] -= within[y == sign].mean(axis=0)
    spikes = find_spikes(within, groups)
    return PreparedTable(centred / math.sqrt(spikes.noise), y, spikes, shown, tuple(notes))


def _two(known: tuple[str, ...], wanted: Sequence[str] | None) -> tuple[str, str]:
    if wanted is None:
        return known[0], known[1]
    for name in wanted:
        if name not in known:
            raise SpecError.of(
                "classes", name, f"must be from {', '.join(known[:20])}", did_you_mean(name, known)
            )
    if len(set(wanted)) != 2:
        raise SpecError.of("classes", list(wanted), "must be two different classes",
                           f"For example {known[0]},{known[1]}")  # fmt: skip
    return wanted[0], wanted[1]


def _one_unit(x: Array, deviations: Array) -> bool:
    """Most columns vary alike, or (pixels) many share the same largest value."""
    low, high = np.percentile(deviations, [10, 90])
    tops = x.max(axis=0)
    return bool(high < 3 * low or (x.shape[1] >= 10 and np.mean(tops == tops.max()) > 0.3))


def _standing(prepared: PreparedTable) -> Standing | None:
    dim = prepared.x.shape[1]
    if prepared.spikes.count == 0:
        return None
    theta = float(prepared.spikes.strengths[0])
    return Standing(math.log(theta) / math.log(dim), theta, dim)


# --- learning curves --------------------------------------------------------------------


def _rates(prepared: PreparedTable, samples: int) -> tuple[float, ...]:
    """From 1 to the largest of the theory, where a step reaches the size of the weights."""
    largest = max(prepared.x.shape[1], samples)
    return tuple(float(f"{largest**exponent:.3g}") for exponent in _EXPONENTS)


def _spec(prepared: PreparedTable, samples: int, **changes: Any) -> dict[str, Any]:
    """A spec with the data in it; keywords are dotted keys with a double underscore."""
    spec: dict[str, Any] = {
        "name": "report",
        "data": {"model": "arrays", "x": prepared.x, "y": prepared.y},
        "network": {"activation": "relu", "width_ratio": 1.0},
        "training": {"samples": samples, "rate": 1.0, "ridge": 1e-3},
        "compare": {"models": ["network"], "seeds": _SEEDS},
        "sweep": {},
    }
    for key, value in changes.items():
        table, _, name = key.partition("__")
        spec[table][name] = value
    return spec


def _measure(spec: dict[str, Any]) -> dict[tuple[str, tuple[Any, ...]], Estimate]:
    """Test error by model and swept values."""
    results = simulate_experiment(Experiment.from_tables(spec))
    return {(s.model, tuple(s.point.values())): s.test_error for s in results.summaries()}


def _choose(
    prepared: PreparedTable, samples: int, rates: tuple[float, ...]
) -> tuple[float, float, dict[str, tuple[float, float]]]:
    """The best ridge and rate at k = m, and the best ridge of each model for the comparison."""
    spec = _spec(
        prepared, samples, compare__seeds=3, compare__seed=_CHOOSING_SEED,
        compare__models=["network", "random-features"],
    )  # fmt: skip
    spec["sweep"] = {"training.rate": list(rates), "training.ridge": list(_RIDGES)}
    found = _measure(spec)
    best = {
        model: min((e.mean, key) for (m, key), e in found.items() if m == model)[1]
        for model in ("network", "random-features")
    }
    rate, ridge = best["network"]
    return ridge, rate, best


class _Curves:
    """Learning curves with all settings but one held."""

    def __init__(self, prepared: PreparedTable, samples: int, ridge: float, rate: float) -> None:
        self.prepared, self.samples, self.ridge, self.rate = prepared, samples, ridge, rate
        self.failure = ""

    def against(self, key: str, values: Sequence[float], models: tuple[str, ...]) -> Curve:
        spec = _spec(
            self.prepared, self.samples, training__ridge=self.ridge, training__rate=self.rate,
            compare__models=list(models),
        )  # fmt: skip
        if key == "training.samples":  # the network stays, the samples grow
            spec["network"] = {"activation": "relu", "width": self.samples}
        spec["sweep"] = {key: list(values)}
        found = _measure(spec)
        measured = {m: tuple(found[m, (value,)] for value in values) for m in models}
        return Curve(tuple(values), measured, self._predicted(Experiment.from_tables(spec)))

    def _predicted(self, experiment: Experiment) -> tuple[float | None, ...]:
        found = predict_curve([p.problem for p in experiment.points], accuracy=DRAFT)
        self.failure = next((one.error for one in found if one.error), self.failure)
        return tuple(None if one.error else one.test_error for one in found)


def _gain(
    prepared: PreparedTable, samples: int, best: dict[str, tuple[float, float]]
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Each model at its own best ridge, on splits that had no part in the choice.

    Test errors, and changes of the network's relative to each other model's, paired by split.
    """
    rows = {}
    for model in ("network", "random-features", "linear"):
        rate, ridge = best.get(model, best["network"])
        spec = _spec(
            prepared, samples, training__rate=rate, training__ridge=ridge, compare__models=[model]
        )
        rows[model] = simulate_experiment(Experiment.from_tables(spec)).rows
    gain = {model: Estimate.of(row.test_error for row in own) for model, own in rows.items()}
    changes = {
        model: paired_difference(rows["network"], own, "test_error")
        for model, own in rows.items()
        if model != "network"
    }
    return gain, changes
