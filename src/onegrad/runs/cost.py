"""What a run will cost, said before it starts: time to a factor of about two, and memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onegrad.compute.memory import available_bytes
from onegrad.compute.threads import blas_threads, threads_for
from onegrad.problem import Problem
from onegrad.simulate.memory import peak_bytes
from onegrad.simulate.simulate import by_layer, group_points, reuse_of
from onegrad.spec.experiment import Experiment, Point
from onegrad.text.display import count_of

_OVERHEAD = 0.005  # seconds of a model's repetition, however small
_SLOWER = 1.3  # factor over the time of the products alone: measured 1.0 to 1.8 from n = 800 on
_THEORY = 0.5  # seconds of a point where the law of the data is known
_LAYER = 30  # times k²(k + n): a first layer as it is, 1.5 s at k = n = 1000
_NODES = 6000  # nodes of the semi-parametric theory
# operations in units of S·k², on real data
_REAL_DATA = 30
WORTH_SAYING = 3600.0  # seconds


@dataclass(frozen=True)
class Cost:
    """Of the rows that are missing.

    repetitions, predictions : units of work: draws of the points that share them, theory points
    seconds : on `workers` workers
    bytes : of one repetition at its largest
    available : bytes that this machine can give, if it tells
    open_ended : more repetitions follow if the first ones are not precise enough
    """

    repetitions: int
    predictions: int
    seconds: float
    workers: int
    bytes: int
    available: int | None
    open_ended: bool

    @property
    def worth_saying(self) -> bool:
        return self.seconds > WORTH_SAYING or not self.fits

    @property
    def fits(self) -> bool:
        return self.available is None or self.bytes <= self.available

    def __str__(self) -> str:
        parts = []
        if self.repetitions:
            parts.append(count_of(self.repetitions, "repetition"))
        if self.predictions:
            parts.append(count_of(self.predictions, "prediction"))
        least = "at least " * self.open_ended
        took = "less than a minute" if self.seconds < 60 else f"about {duration(self.seconds)}"
        text = (
            f"{' and '.join(parts)} to compute: {least}{took} on "
            f"{count_of(self.workers, 'worker')}, {_size(self.bytes)} of memory each"
        )
        if not self.fits and self.available is not None:
            text += f" ({_size(self.available)} are available: what does not fit is refused)"
        return text


Agree = Callable[[Cost], None]


def cost_of(
    experiment: Experiment, missing: Mapping[int, int], predictions: int, workers: int
) -> Cost:
    """missing : repetitions that a point still needs, by its number; predictions : theory points"""
    rate = _operations_per_second()
    models = experiment.compare.simulated
    seconds, repetitions, largest = 0.0, 0, 0
    for members in group_points(experiment.points) if models else []:
        count = max(missing.get(point.number, 0) for point in members)
        if not count:
            continue
        repetitions += count
        layers = by_layer(members).values()
        each = sum(_seconds(layer, models, rate) for layer in layers)
        seconds += count * each / (1 if _threads(members[0]) > 1 else workers)
        largest = max(largest, group_bytes(members, models, experiment.controlled))
    if predictions:
        each = float(np.mean([_theory_seconds(p.problem, rate) for p in experiment.points]))
        seconds += predictions * each / workers
    return Cost(
        repetitions, predictions, seconds, workers, largest, available_bytes(),
        experiment.compare.seeds == "auto",
    )  # fmt: skip


def group_bytes(members: Sequence[Point], models: Sequence[str], controlled: bool) -> int:
    """Of one repetition, at its largest, of points that share their draws."""
    layers = by_layer(members).values()
    reuse = reuse_of(models, len(layers), max(map(len, layers)), controlled)
    return max(peak_bytes(p.problem, models, reuse, p.precision) for p in members)


def _threads(point: Point) -> int:
    return threads_for(point.problem.operations)


def _seconds(layer: Sequence[Point], models: Sequence[str], rate: float) -> float:
    """Of one repetition of points that share a first layer: its products, and a solution each."""
    problem = layer[0].problem
    n, k, m, s = (float(v) for v in (problem.dim, problem.width, problem.samples,
                                     problem.step_samples))  # fmt: skip
    small = min(k, m)
    fit = 2 * m * k * n + m * k * small + small**3 / 3
    risk = 2 * k * k * n
    more = (len(layer) - 1) * (risk + 4 * m * k) + 9 * small**3 * (len(layer) > 2)
    operations = problem.training.steps * 4 * s * k * n + len(models) * (fit + risk + more)
    threads = _threads(layer[0])
    return len(models) * _OVERHEAD + _SLOWER * operations / (rate * max(1.0, 0.8 * threads))


def _theory_seconds(problem: Problem, rate: float) -> float:
    n, k, s = float(problem.dim), float(problem.width), float(problem.step_samples)
    if problem.data.known and problem.one_step:
        return _THEORY
    if problem.data.known:  # at worst from drawn layers
        from onegrad.theory.policy import Policy  # the theory is loaded where there is one

        layers = Policy().layers
        steps = problem.training.steps * 4 * s * k * n
        return _THEORY + layers * (steps + _LAYER * k * k * (k + n)) / rate
    return _THEORY + _REAL_DATA * (_NODES * k * k + k**3) / rate


def _operations_per_second(size: int = 384, times: int = 3) -> float:
    """Of a matrix product on one thread, here and now: 10 ms."""
    a = np.random.default_rng(0).standard_normal((size, size))
    with blas_threads(1):
        _ = a @ a
        start = time.perf_counter()
        for _ in range(times):
            _ = a @ a
        return times * 2.0 * size**3 / max(time.perf_counter() - start, 1e-9)


def duration(seconds: float) -> str:
    """A minute and more, in the unit that a person would take.

    >>> duration(90), duration(7200), duration(3e6), duration(1e12)
    ('1.5 minutes', '2 hours', '35 days', '32 thousand years')
    """
    year = 365.25 * 86400
    units = (
        (60, 100, "minute"), (3600, 48, "hour"), (86400, 730, "day"), (year, 1e4, "year"),
        (1e3 * year, 1e4, "thousand year"), (1e6 * year, math.inf, "million year"),
    )  # fmt: skip
    size, unit = next((size, unit) for size, most, unit in units if seconds < most * size)
    count = seconds / size
    shown = f"{count:.1f}" if count < 2 and count != round(count) else f"{count:.0f}"
    return f"{shown} {unit}{'' if shown == '1' else 's'}"


def _size(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{max(1, round(size / 1e6)):,} MB"
