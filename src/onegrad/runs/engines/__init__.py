"""Where the units of an experiment are computed: here, in worker processes, on a cluster."""

from __future__ import annotations

from onegrad.compute.backend import get_backend
from onegrad.errors import SpecError, did_you_mean
from onegrad.runs.engines.base import Engine, EngineError
from onegrad.runs.engines.local import Local
from onegrad.specs.experiment import Experiment

__all__ = ["ENGINES", "Engine", "EngineError", "open_engine"]

ENGINES = ("local", "dask")


def open_engine(
    experiment: Experiment,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Engine:
    """An engine for the points of an experiment; the numbers do not depend on which.

    engine : "local" (this machine), "dask", or None: dask if a scheduler is given
    workers : processes on this machine; as many as it has cores by default. With "local" the work
        stays in this process if there is little of it, or if a number of 1 is given
    scheduler : address of a dask scheduler; without it "dask" starts a cluster on this machine
    """
    engine = engine or ("dask" if scheduler else "local")
    if engine not in ENGINES:
        raise SpecError.of(
            "engine", engine, f"must be one of {', '.join(ENGINES)}", did_you_mean(engine, ENGINES)
        )
    if workers is not None and not 1 <= workers <= 10_000:
        raise SpecError.of("workers", workers, "must be a whole number from 1 to 10,000")
    if scheduler is not None and engine != "dask":
        raise SpecError.of(
            "scheduler", scheduler, 'belongs to engine = "dask"', "Leave one of the two out"
        )
    if scheduler is not None and workers is not None:
        raise SpecError.of(
            "workers", workers, "cannot be chosen for a scheduler that runs already",
            "Start as many workers there as you need: dask worker ADDRESS --nthreads 1",
        )  # fmt: skip
    if scheduler is None and experiment.compare.simulated:
        for device in {point.compare.device for point in experiment.points}:
            get_backend(device)  # a device that is missing is refused before anything starts
    if engine == "local":
        return Local(experiment, workers)
    from onegrad.runs.engines.cluster import Cluster

    return Cluster(experiment, workers, scheduler)
