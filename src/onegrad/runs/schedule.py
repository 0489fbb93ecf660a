"""Which work is left of an experiment, in which order, and when a point has enough repetitions."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from onegrad.compute.threads import threads_for
from onegrad.control_variates import CONTROLS
from onegrad.results.rows import Estimate, Row
from onegrad.simulation import by_layer, group_points
from onegrad.specs.experiment import Compare, Experiment

Errors = Mapping[str, Mapping[int, float]]  # test errors of each model by seed

FEWEST_SEEDS = 8  # of `seeds = "auto"`: a standard error of fewer is too uncertain to stop by


@dataclass(frozen=True)
class Unit:
    """What a worker does in one go: one repetition of points with the same draw, or one theory.

    points : their numbers in the experiment
    cells : the (point, model) whose rows are wanted of it
    threads : of the linear algebra library; it belongs to the unit, not to the worker, as the
        last bits of a product depend on it
    retry : it failed once
    losses : how often the worker that had it died
    """

    seed: int
    points: tuple[int, ...]
    models: tuple[str, ...]
    cells: frozenset[tuple[int, str]]
    threads: int = 1
    retry: bool = False
    losses: int = 0


@dataclass
class _Group:
    """Points that share their draws, and how far they are.

    begun, wanted : of each point that is not settled: repetitions made in earlier rounds, and
        those that it has to have before it is looked at again
    """

    begun: dict[int, int]
    wanted: dict[int, int]
    under_way: int = 0
    cursor: int = 0
    members: list[int] = field(default_factory=list)


class Schedule:
    """Hands out units seed by seed, so that the first rows of every curve arrive early.

    With `seeds = "auto"` a point gets more repetitions in rounds. Whether it has enough is
    decided when all rows of a round are in, from these rows alone: never by which came first.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.compare = experiment.compare
        self.repeated = experiment.repeated
        self.values: dict[tuple[int, str], dict[int, float]] = {}
        self.total = 0
        self.done = 0
        self._usual = max(1, len(self.repeated))
        number = {id(point): i for i, point in enumerate(experiment.points)}
        self._groups: list[_Group] = []
        self._ready: list[tuple[int, int]] = []  # (next seed, group)
        models = self.repeated
        for members in group_points(experiment.points) if models else []:
            numbers = [number[id(point)] for point in members]
            first = first_count(self.compare, self.repeated)
            group = _Group(dict.fromkeys(numbers, 0), dict.fromkeys(numbers, first))
            group.members = numbers
            self.total += first * len(numbers) * len(models)
            heapq.heappush(self._ready, (0, len(self._groups)))
            self._groups.append(group)
        self._home = {i: g for g, group in enumerate(self._groups) for i in group.members}
        self._theories = deque(
            (name, i) for name in self.compare.theories for i in range(len(experiment.points))
        )
        self.total += len(self._theories)

    def stored(self, number: int, rows: Iterable[Row]) -> None:
        """Good rows of a point that are there already; to be told before the first unit."""
        for row in rows:
            self.values.setdefault((number, row.model), {})[row.seed] = row.test_error

    @property
    def units_left(self) -> int:
        """About how many units are not in yet, if all were like the last one."""
        return -(-(self.total - self.done) // self._usual)

    def next(self) -> Unit | None:
        """The next unit, or None: nothing is left, or a round waits for units under way."""
        while self._ready or self._theories:
            if self._theories and (not self._ready or self._ready[0][0] > 0):
                unit = self._theory(*self._theories.popleft())
            else:
                seed, index = heapq.heappop(self._ready)
                unit = self._repetition(index, seed)
            if unit is not None:
                self._usual = len(unit.cells)
                return unit
        return None

    def _theory(self, name: str, number: int) -> Unit | None:
        if 0 in self.values.get((number, name), {}):
            self.done += 1
            return None
        return Unit(0, (number,), (name,), frozenset([(number, name)]))

    def _repetition(self, index: int, seed: int) -> Unit | None:
        group, models = self._groups[index], self.repeated
        asked = [i for i, n in group.wanted.items() if group.begun[i] <= seed < n]
        missing = frozenset(
            (i, m) for i in asked for m in models if seed not in self.values.get((i, m), {})
        )
        self.done += len(asked) * len(models) - len(missing)
        group.cursor = seed + 1
        if group.cursor < max(group.wanted.values()):
            heapq.heappush(self._ready, (group.cursor, index))
        if not missing:
            self._look_again(index)
            return None
        group.under_way += 1
        points = tuple(i for i in asked if any((i, m) in missing for m in models))
        wanted = tuple(m for m in models if any((i, m) in missing for i in points))
        threads = threads_for(self.experiment.points[points[0]].problem.operations)
        return Unit(seed, points, wanted, missing, threads)

    def arrived(self, unit: Unit, rows: Iterable[tuple[int, Row]]) -> None:
        """All rows of a unit are in."""
        self.done += len(unit.cells)
        for number, row in rows:
            value = row.test_error if row.status == "ok" else math.nan
            self.values.setdefault((number, row.model), {})[row.seed] = value
        if unit.models[0] not in self.compare.theories:
            index = self._home[unit.points[0]]
            self._groups[index].under_way -= 1
            self._look_again(index)

    def _look_again(self, index: int) -> None:
        """At the end of a round: which points need more repetitions, and how many."""
        group = self._groups[index]
        if group.under_way or group.cursor < max(group.wanted.values()):
            return
        begun, wanted = group.wanted, {}
        for i, count in begun.items():
            errors = {m: self.values.get((i, m), {}) for m in self.repeated}
            more = next_count(self.compare, count, errors)
            if more > count:
                wanted[i] = more
                self.total += (more - count) * len(self.repeated)
        group.begun, group.wanted = {i: begun[i] for i in wanted}, wanted
        if wanted:
            heapq.heappush(self._ready, (min(group.begun.values()), index))

    def parts(self, unit: Unit) -> list[Unit]:
        """A unit that failed, cut into the pieces that can fail alone: a model on one layer.

        Points that differ in the ridge alone stay together: the first two ridges are solved in
        another way than the rest, and their numbers must not depend on a failure elsewhere.
        """
        if unit.models[0] in self.compare.theories:
            return [replace(unit, retry=True)]
        number = {id(self.experiment.points[i]): i for i in unit.points}
        parts = []
        for layer in by_layer([self.experiment.points[i] for i in unit.points]).values():
            for model in unit.models:
                points = tuple(number[id(point)] for point in layer)
                cells = frozenset((i, model) for i in points) & unit.cells
                if cells:
                    parts.append(Unit(unit.seed, points, (model,), cells, unit.threads, True))
        self._groups[self._home[unit.points[0]]].under_way += len(parts) - 1
        return parts

    def estimate(self, number: int) -> Estimate:
        """Of a point's first model so far: mean test error and its standard error."""
        first = self.values.get((number, self.compare.models[0]), {})
        controls = [self.values.get((number, name), {}) for name in CONTROLS]
        return _estimate(first, controls)


def first_count(compare: Compare, repeated: Iterable[str]) -> int:
    """How many repetitions a point gets before anyone looks at it: one more for each control,
    whose factor is fitted."""
    if compare.seeds != "auto":
        return compare.seeds
    controls = sum(name in CONTROLS for name in repeated)
    return min(FEWEST_SEEDS + controls, compare.most_seeds)


def next_count(compare: Compare, count: int, errors: Errors) -> int:
    """How many repetitions a point needs that has `count`; `count` itself if they are enough.

    They are enough when the standard error of every model's mean test error is below
    `compare.precision` of it. Otherwise as many as the present spread asks for, but at most twice
    and at least 9/8 of what there is: few interim analyses, so that stopping by luck stays rare.

    errors : of each model (and control) by seed; NaN where it failed, which does not count
    """
    if compare.seeds != "auto":
        return count
    worst = 0.0
    controls = [errors.get(name, {}) for name in CONTROLS]
    for model, values in errors.items():
        if model in CONTROLS:
            continue
        mean, error = _estimate({s: values.get(s, math.nan) for s in range(count)}, controls)
        if math.isfinite(error) and error > 0:
            worst = max(worst, error / (compare.precision * abs(mean)) if mean else math.inf)
    if worst <= 1:
        return count
    asked = count * min(2.0, worst**2)
    return min(compare.most_seeds, max(math.ceil(asked), count + max(1, count // 8)))


def _estimate(values: Mapping[int, float], controls: Iterable[Mapping[int, float]]) -> Estimate:
    """As `results.estimate` has it for the rows of these seeds."""
    good = [seed for seed, value in values.items() if math.isfinite(value)]
    complete = [c for c in controls if all(math.isfinite(c.get(s, math.nan)) for s in good)]
    return Estimate.of([values[s] for s in good], [[c[s] for s in good] for c in complete])


def interim_analyses(compare: Compare, errors: Errors) -> Iterator[int]:
    """The numbers of repetitions at which a point was looked at, up to the one it stopped at.

    Ends early, at the first round that is not complete.
    """
    count = first_count(compare, errors)
    while True:
        yield count
        if not all(s in values for values in errors.values() for s in range(count)):
            return
        more = next_count(compare, count, errors)
        if more == count:
            return
        count = more
