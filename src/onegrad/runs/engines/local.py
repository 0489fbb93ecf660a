"""Worker processes on this machine, where they are worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future

from onegrad.compute.memory import available_bytes
from onegrad.compute.threads import cores, threads_for
from onegrad.runs.cost import group_bytes
from onegrad.runs.engines.base import Engine, Here
from onegrad.runs.engines.work import Done, pack, start_worker, work, work_on_started
from onegrad.runs.schedule import Unit
from onegrad.simulate.simulate import group_points
from onegrad.spec.experiment import Experiment

_WORTH_WORKERS = 4.0  # seconds of work; two processes take one to two to come up
_IDLE = 30.0  # seconds without work after which a worker ends, one whose coordinator is dead too
_INTERPRETER = 200_000_000  # bytes of a worker before it has any problem
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class LocalEngine(Engine):
    """Small problems in loky's worker processes, one BLAS thread each; large ones here.

    A problem that is large enough for several threads is computed in this process on all of them,
    one repetition after the other. Workers are started at once if their number was given, else
    when the first units say that there is enough to do.
    """

    job_seconds = 0.05

    def __init__(self, experiment: Experiment, workers: int | None = None) -> None:
        super().__init__()
        self._experiment = experiment
        self._workers = workers
        self._here = Here()
        self._pool: Executor | None = None
        self._size = 0

    @property
    def workers(self) -> int:
        return self._workers or min(cores(), fitting_workers(self._experiment))

    @property
    def slots(self) -> int:
        return 1 if self._pool is None else 3 * self._size

    def _submit(self, units: Sequence[Unit], left: int) -> Future[Done]:
        if units[0].threads > 1 or not self._worth_workers(left):
            return self._here.submit(work, self._experiment.points, units)
        try:
            if self._pool is None:
                self._pool = self._start()
            return self._pool.submit(work_on_started, units)
        except BrokenExecutor as error:
            broken: Future[Done] = Future()
            broken.set_exception(error)
            return broken

    def _worth_workers(self, left: int) -> bool:
        if self._pool is not None:
            return True
        if self._workers is not None:
            return self._workers > 1
        if self._experiment.compare.device.startswith("cuda"):
            return False  # one GPU does not get faster by being shared
        return cores() > 1 and math.isfinite(self._each) and self._each * left > _WORTH_WORKERS

    def _start(self) -> Executor:
        from loky import ProcessPoolExecutor

        self._size = self.workers
        packed = pack(self._experiment.points)
        pool: Executor = ProcessPoolExecutor(
            self._size, initializer=start_worker, initargs=(packed,), env=_ONE_THREAD,
            timeout=_IDLE,
        )  # fmt: skip
        return pool

    def restart(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
            self._pool = self._start()

    def check(self) -> None:
        """Nothing to do: loky tells when a process dies."""

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
            self._pool = None


def fitting_workers(experiment: Experiment) -> int:
    """How many repetitions at once fit into the memory that is left, at least one."""
    models = experiment.compare.simulated
    most = 0
    for group in group_points(experiment.points) if models else []:
        if threads_for(group[0].problem.operations) == 1:
            most = max(most, group_bytes(group, models, experiment.controlled))
    available = available_bytes()
    return 10_000 if available is None else max(1, int(available / (most + _INTERPRETER)))
