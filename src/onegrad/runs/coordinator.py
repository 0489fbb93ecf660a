"""The coordinator: units out to the engine, rows into the store, whatever happens to workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace

from onegrad.results.estimates import Estimate
from onegrad.results.rows import Row
from onegrad.runs.cost import Cost, cost_of
from onegrad.runs.engines import Engine
from onegrad.runs.engines.work import Done, Failure, Outcome
from onegrad.runs.schedule import Schedule, Unit
from onegrad.runs.store import Store
from onegrad.simulate.simulate import failed_row
from onegrad.spec.experiment import Experiment, Point

_SUSPECT = 2  # crashes after which a unit runs alone, to find out whether it is the cause
_LOOK_ROUND = 5.0  # seconds without any row before the engine is asked how it is
_DIED = "its worker process died each time: killed, or out of memory"


@dataclass(frozen=True)
class Status:
    """How far a run is, and what has just arrived.

    done, total : rows, with those that were stored before; the total of `seeds = "auto"` grows
    computed : rows of this run
    point, estimate : where the last rows belong, and the first model's test error there so far
    work_left : what is left to compute over what this run has computed, in seconds of work; None
        before the first row
    open_ended : more repetitions may follow (`seeds = "auto"`)
    """

    done: int
    total: int
    computed: int
    failed: int
    rows: list[Row]
    point: Point | None
    estimate: Estimate | None
    work_left: Callable[[], float | None] = lambda: None
    open_ended: bool = False


Progress = Callable[[Status], None]


class Coordinator:
    """The only one who writes to the store. A unit's rows are stored together, once.

    A unit that raises is cut into its models, which are tried once more; what fails again is
    stored as failed. Units whose worker died are given out again; one that is under suspicion
    goes alone, and if it takes its worker along once more its models do.
    """

    def __init__(
        self, experiment: Experiment, store: Store, engine: Engine, progress: Progress | None
    ) -> None:
        self._points = experiment.points
        self._store = store
        self._engine = engine
        self._progress = progress
        self._schedule = Schedule(experiment)
        self._under_way: dict[Future[Done], list[Unit]] = {}
        self._again: deque[Unit] = deque()
        self._suspects: deque[Unit] = deque()
        self._computed = self._failed = 0
        self._spent: dict[str, tuple[float, int]] = {}  # seconds and rows of each model
        self._schedule.stored(
            row
            for point in self._points
            for row in store.rows(point, experiment.compare.models, point.compare.largest_count)
            if row.status == "ok"
        )

    @property
    def complete(self) -> bool:
        """Whether every row is stored already."""
        return self._schedule.done == self._schedule.total

    def cost(self) -> Cost:
        """Of what is missing, as far as is known now."""
        schedule = self._schedule
        missing, predictions = schedule.missing(), schedule.predictions_missing()
        return cost_of(schedule.experiment, missing, predictions, self._engine.workers)

    def run(self) -> None:
        self._plan()
        self._tell([])
        while self._give_out():
            done, _ = wait(self._under_way, _LOOK_ROUND, FIRST_COMPLETED)
            if not done:
                self._engine.check()
            self._take_in(done)
        self._tell([])

    def _plan(self) -> None:
        """The store knows how many rows there are to be, with `seeds = "auto"` round by round."""
        if self._schedule.unplanned:
            self._store.plan(self._schedule.unplanned, self._points)
            self._schedule.unplanned = {}

    def _give_out(self) -> bool:
        """Keep the engine busy; False if there is nothing left to do."""
        while len(self._under_way) < self._engine.slots:
            left = self._schedule.units_left
            units = self._next_job(self._engine.job_size(left))
            if not units:
                break
            self._under_way[self._engine.submit(units, left)] = units
        if not self._under_way and self._suspects:
            units = [self._suspects.popleft()]
            self._under_way[self._engine.submit(units, 1)] = units
        return bool(self._under_way)

    def _next_job(self, size: int) -> list[Unit]:
        """Up to `size` units; one that needs several threads goes alone."""
        units: list[Unit] = []
        while len(units) < size:
            unit = self._again.popleft() if self._again else self._schedule.next()
            if unit is None:
                break
            if units and unit.threads > 1:
                self._again.appendleft(unit)
                break
            units.append(unit)
            if unit.threads > 1:
                break
        return units

    def _take_in(self, done: set[Future[Done]]) -> None:
        new: list[tuple[Unit, list[Row]]] = []
        broken = False
        while done:
            future = done.pop()
            units = self._under_way.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            if error is None:
                outcomes = future.result().outcomes
            elif self._engine.worker_died(error):
                if not broken:  # all that was under way is lost with it
                    broken = True
                    done |= wait(self._under_way, _LOOK_ROUND).done
                outcomes = [self._lost(unit) for unit in units]
            else:
                outcomes = [Failure(f"{type(error).__name__}: {error}") for _ in units]
            for unit, outcome in zip(units, outcomes, strict=True):
                rows = self._failure(unit, outcome) if isinstance(outcome, Failure) else outcome
                if rows:
                    new.append((unit, rows))
        self._keep(new)
        if broken:
            self._engine.restart()

    def _lost(self, unit: Unit) -> Outcome:
        if unit.losses < _SUSPECT:
            unit = replace(unit, losses=unit.losses + 1)
            (self._suspects if unit.losses >= _SUSPECT else self._again).append(unit)
            return []
        if unit.retry:
            return _failed_rows(self._points, unit, _DIED)
        parts = self._schedule.parts(unit)
        self._suspects.extend(replace(part, losses=_SUSPECT) for part in parts)
        return []

    def _failure(self, unit: Unit, failure: Failure) -> list[Row]:
        if unit.retry:
            return _failed_rows(self._points, unit, failure.error)
        self._again.extend(self._schedule.parts(unit))
        return []

    def _keep(self, new: list[tuple[Unit, list[Row]]]) -> None:
        arrived = [
            replace(row, point=self._points[row.number].settings) for _, rows in new for row in rows
        ]
        if not arrived:
            return
        self._store.add((self._points[row.number], row) for row in arrived)
        for unit, rows in new:
            self._schedule.arrived(unit, rows)
        self._plan()
        for row in arrived:
            seconds, count = self._spent.get(row.model, (0.0, 0))
            self._spent[row.model] = seconds + row.seconds, count + 1
        self._computed += len(arrived)
        self._failed += sum(row.status != "ok" for row in arrived)
        self._tell(arrived)

    def _tell(self, rows: list[Row]) -> None:
        if self._progress is None:
            return
        last = rows[-1].number if rows else None
        self._progress(
            Status(
                self._schedule.done,
                self._schedule.total,
                self._computed,
                self._failed,
                rows,
                None if last is None else self._points[last],
                None if last is None else self._schedule.estimate(last),
                self._work_left,
                self._schedule.compare.seeds == "auto",
            )
        )

    def _work_left(self) -> float | None:
        """Estimate a remaining row's seconds by finished rows of its model, or of all."""
        spent, rows = (sum(column) for column in zip((0.0, 0), *self._spent.values(), strict=True))
        if not spent > 0:
            return None
        each = {model: seconds / count for model, (seconds, count) in self._spent.items()}
        left = self._schedule.left.items()
        return sum(count * each.get(model, spent / rows) for (_, model), count in left) / spent


def _failed_rows(points: tuple[Point, ...], unit: Unit, error: str) -> list[Row]:
    return [failed_row(points[i], model, unit.seed, error) for i, model in sorted(unit.cells)]
