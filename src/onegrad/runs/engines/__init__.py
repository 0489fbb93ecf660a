"""Where the units of an experiment are computed: here, in worker processes, on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from onegrad.compute.backend import get_backend
from onegrad.errors import SpecError
from onegrad.runs.engines.base import Engine, EngineError
from onegrad.runs.engines.local import LocalEngine
from onegrad.spec.experiment import Experiment

__all__ = ["Dask", "Engine", "EngineError", "Local", "engine_of", "open_engine"]

_NAMES = ("local", "dask")


def _check_workers(workers: int | None) -> None:
    if workers is not None and not 1 <= workers <= 10_000:
        raise SpecError.of("workers", workers, "must be a whole number from 1 to 10,000")


@dataclass(frozen=True)
class Local:
    """This machine: as many worker processes as it has cores, or as are asked for.

    The work stays in this process if there is little of it, or if `workers` is 1.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        _check_workers(self.workers)


@dataclass(frozen=True)
class Dask:
    """The workers of a dask scheduler at `address` (tcp://host:8786).

    Without an address a cluster of `workers` processes is started on this machine.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        _check_workers(self.workers)
        if self.address is not None and self.workers is not None:
            raise SpecError.of(
                "workers", self.workers, "cannot be chosen for a scheduler that runs already",
                "Start as many workers there as you need: dask worker ADDRESS --nthreads 1",
            )  # fmt: skip


def engine_of(
    name: str | None = None, workers: int | None = None, scheduler: str | None = None
) -> Local | Dask:
    """The engine that a command's options name: dask if a scheduler is given, else local."""
    name = name or ("dask" if scheduler else "local")
    if name not in _NAMES:
        raise SpecError.choice("engine", name, _NAMES)
    if scheduler is not None and name != "dask":
        raise SpecError.of(
            "scheduler", scheduler, 'belongs to engine = "dask"', "Leave one of the two out"
        )
    return Local(workers) if name == "local" else Dask(scheduler, workers)


def open_engine(experiment: Experiment, engine: Local | Dask) -> Engine:
    """Ready to work on the points of an experiment; the numbers do not depend on which it is."""
    remote = isinstance(engine, Dask) and engine.address is not None
    if not remote and experiment.compare.simulated:
        for device in {point.compare.device for point in experiment.points}:
            get_backend(device)  # a device that is missing is refused before anything starts
    if isinstance(engine, Local):
        return LocalEngine(experiment, engine.workers)
    from onegrad.runs.engines.cluster import DaskEngine

    return DaskEngine(experiment, engine.address, engine.workers)
