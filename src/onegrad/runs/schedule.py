"""Which work is left of an experiment, in which order, and when a point has enough repetitions."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scipy.special import stdtrit

from onegrad.compute.threads import threads_for
from onegrad.results.estimates import Estimate
from onegrad.results.rows import Row
from onegrad.simulate.control_variates import CONTROLS, own_controls
from onegrad.simulate.simulate import by_layer, group_points
from onegrad.spec.experiment import Compare, Experiment

Errors = Mapping[str, Mapping[int, float]]  # test errors of each model by seed
Variates = Mapping[int, Sequence[float]]  # control variates of a test error by seed

FEWEST = 8  # fewest repetitions whose standard error may stop a run
FEWEST_CONTROLLED = 4  # the same with control variates whose factors are not fitted
_EIGHT = float(stdtrit(FEWEST - 1, 0.995))


@dataclass(frozen=True)
class Unit:
    """What a worker does in one go: one repetition of points with the same draw, or one theory.

    points : their numbers in the experiment
    cells : the (point, model) whose rows are wanted of it
    threads : of the linear algebra library; it belongs to the unit, not to the worker, as the
        last bits of a product depend on it
    retry : it failed once
    losses : how often the worker that had it died
    controlled : whether rows get control variates
    """

    seed: int
    points: tuple[int, ...]
    models: tuple[str, ...]
    cells: frozenset[tuple[int, str]]
    threads: int = 1
    retry: bool = False
    losses: int = 0
    controlled: bool = False


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
        self.models = experiment.compare.simulated
        self.values: dict[tuple[int, str], dict[int, float]] = {}
        self.controls: dict[tuple[int, str], dict[int, tuple[float, ...]]] = {}
        self.total = 0
        self.unplanned: dict[tuple[int, str], int] = {}  # repetitions wanted, for the store
        self.left: dict[tuple[int, str], int] = {}  # rows still missing for each (point, model)
        self._rows_left = 0
        self._usual = max(1, len(self.models))
        self._groups: list[_Group] = []
        self._ready: list[tuple[int, int]] = []  # (next seed, group)
        models = self.models
        for members in group_points(experiment.points) if models else []:
            numbers = [point.number for point in members]
            first = {
                i: first_count(self._compare(i), models, experiment.controlled) for i in numbers
            }
            group = _Group(dict.fromkeys(numbers, 0), first)
            group.members = numbers
            self.total += sum(first.values()) * len(models)
            self.unplanned |= {(i, model): n for i, n in first.items() for model in models}
            heapq.heappush(self._ready, (0, len(self._groups)))
            self._groups.append(group)
        self._home = {i: g for g, group in enumerate(self._groups) for i in group.members}
        self._theories = deque(
            (name, i) for name in self.compare.theories for i in range(len(experiment.points))
        )
        self.total += len(self._theories)
        self.unplanned |= {(i, name): 1 for name, i in self._theories}
        self._count()

    @property
    def done(self) -> int:
        """Rows that are in, those that were stored before from the first moment on."""
        return self.total - self._rows_left

    def _count(self) -> None:
        """All that is left, anew."""
        self.left, self._rows_left = {}, 0
        for group in self._groups:
            for i, wanted in group.wanted.items():
                self._expect(i, range(wanted))
        for name, i in self._theories:
            self._more(i, name, int(0 not in self.values.get((i, name), {})))

    def _expect(self, number: int, seeds: range) -> None:
        """Rows of these repetitions, as far as they are not there yet."""
        for model in self.models:
            self._more(number, model, sum(self._missing(number, model, s) for s in seeds))

    def _more(self, number: int, model: str, rows: int) -> None:
        self.left[number, model] = self.left.get((number, model), 0) + rows
        self._rows_left += rows

    def _compare(self, number: int) -> Compare:
        """How often a point is repeated is its own affair; the models are the experiment's."""
        return self.experiment.points[number].compare

    def stored(self, rows: Iterable[Row]) -> None:
        """Record good rows that are stored already; call this before the first unit."""
        for row in rows:
            self._take(row)
        self._count()

    def _take(self, row: Row) -> None:
        value = row.test_error if row.status == "ok" else math.nan
        self.values.setdefault((row.number, row.model), {})[row.seed] = value
        if row.controls:
            values = tuple(control.test_error for control in row.controls)
            self.controls.setdefault((row.number, row.model), {})[row.seed] = values

    def _missing(self, number: int, model: str, seed: int) -> bool:
        """Whether a row is to be computed, or has no control variates and should."""
        if seed not in self.values.get((number, model), {}):
            return True
        return self.experiment.controlled and seed not in self.controls.get((number, model), {})

    @property
    def units_left(self) -> int:
        """About how many units are not in yet, if all were like the last one."""
        return -(-(self.total - self.done) // self._usual)

    def missing(self) -> dict[int, int]:
        """Repetitions that each point still has to have before anyone looks at it."""
        points = range(len(self.experiment.points))
        return {i: max((self.left.get((i, m), 0) for m in self.models), default=0) for i in points}

    def predictions_missing(self) -> int:
        return sum(self.left[i, name] for name, i in self._theories)

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
            return None
        return Unit(0, (number,), (name,), frozenset([(number, name)]))

    def _repetition(self, index: int, seed: int) -> Unit | None:
        group, models = self._groups[index], self.models
        asked = [i for i, n in group.wanted.items() if group.begun[i] <= seed < n]
        missing = frozenset((i, m) for i in asked for m in models if self._missing(i, m, seed))
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
        controlled = self.experiment.controlled
        return Unit(seed, points, wanted, missing, threads, controlled=controlled)

    def arrived(self, unit: Unit, rows: Iterable[Row]) -> None:
        """All rows of a unit are in."""
        for number, model in unit.cells:
            self._more(number, model, -1)
        for row in rows:
            self._take(row)
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
            errors = {m: self.values.get((i, m), {}) for m in self.models}
            controls = {m: self.controls.get((i, m), {}) for m in self.models}
            more = next_count(self._compare(i), count, errors, controls)
            if more > count:
                wanted[i] = more
                self.total += (more - count) * len(self.models)
                self.unplanned |= {(i, model): more for model in self.models}
                self._expect(i, range(count, more))
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
        parts = []
        for layer in by_layer([self.experiment.points[i] for i in unit.points]).values():
            for model in unit.models:
                points = tuple(point.number for point in layer)
                cells = frozenset((i, model) for i in points) & unit.cells
                if cells:
                    part = replace(unit, points=points, models=(model,), cells=cells)
                    parts.append(replace(part, retry=True, losses=0))
        self._groups[self._home[unit.points[0]]].under_way += len(parts) - 1
        return parts

    def estimate(self, number: int) -> Estimate:
        """Of a point's first model so far: mean test error and its standard error."""
        cell = number, self.compare.models[0]
        return _estimate(cell[1], self.values.get(cell, {}), self.controls.get(cell, {}))


def first_count(compare: Compare, models: Sequence[str], controlled: bool) -> int:
    """How many repetitions a point gets before its first interim analysis: four where the factors
    of control variates are about known, else eight and one more for each factor that is fitted."""
    if compare.seeds != "auto":
        return compare.seeds
    few = controlled and own_controls(models)
    fewest = compare.fewest_seeds
    if fewest == "auto":
        fewest = FEWEST_CONTROLLED if few else FEWEST
    return min(fewest + CONTROLS * (controlled and not few), compare.most_seeds)


def caution(count: int) -> float:
    """What the standard error of fewer than eight values is multiplied by before it may stop a
    point, so that a lucky one does so as rarely as with eight: a ratio of Student's quantiles."""
    return 1.0 if count >= FEWEST or count < 2 else float(stdtrit(count - 1, 0.995)) / _EIGHT


def next_count(
    compare: Compare,
    count: int,
    errors: Errors,
    controls: Mapping[str, Variates] = {},
) -> int:
    """How many repetitions a point needs that has `count`; `count` itself if they are enough.

    They are enough when the standard error of every model's mean test error, with `caution`, is
    below `compare.precision` of it. Otherwise as many as the present spread asks for, but at most
    twice and at least 9/8 of what there is: few interim analyses, so that stopping by luck stays
    rare.

    errors : of each model by seed; NaN where it failed, which does not count
    """
    if compare.seeds != "auto":
        return count
    worst = caution(count) * _excess(compare, range(count), errors, controls)
    if worst <= 1:
        return count
    asked = count * min(2.0, worst**2)
    return min(compare.most_seeds, max(math.ceil(asked), count + max(1, count // 8)))


def _excess(
    compare: Compare, seeds: Iterable[int], errors: Errors, controls: Mapping[str, Variates]
) -> float:
    """The largest standard error of a model's mean test error over these seeds, relative to the
    one that is wanted; 0 where none is known."""
    worst = 0.0
    for model, values in errors.items():
        known = {s: values.get(s, math.nan) for s in seeds}
        mean, error = _estimate(model, known, controls.get(model, {}))
        if math.isfinite(error) and error > 0:
            worst = max(worst, error / (compare.precision * abs(mean)) if mean else math.inf)
    return worst


def _estimate(model: str, values: Mapping[int, float], controls: Variates) -> Estimate:
    """As `results.estimate` has it for the rows of these seeds."""
    good = [seed for seed, value in values.items() if math.isfinite(value)]
    if not all(seed in controls for seed in good):
        return Estimate.of([values[s] for s in good])
    columns = [list(column) for column in zip(*(controls[s] for s in good), strict=True)]
    return Estimate.of([values[s] for s in good], columns, own_controls([model]))


def interim_analyses(
    compare: Compare, errors: Errors, controls: Mapping[str, Variates] | None = None
) -> Iterator[int]:
    """The numbers of repetitions at its interim analyses, up to the one it stopped at.

    controls : of each model; None where control variates were not asked for. Ends early, at the
    first round that is not complete.
    """
    count = first_count(compare, list(errors), controls is not None)
    while True:
        yield count
        if not all(s in values for values in errors.values() for s in range(count)):
            return
        more = next_count(compare, count, errors, controls or {})
        if more == count:
            return
        count = more
