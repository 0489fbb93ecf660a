"""What planning, sending and storing cost beside the work itself."""

from __future__ import annotations

import tempfile
import time
from importlib.util import find_spec
from typing import Any

import numpy as np

from onegrad.compute.backend import Array
from onegrad.gaussian.activation import Activation, register_activation
from onegrad.runs.coordinator import Status
from onegrad.runs.engines import engine_of
from onegrad.runs.run import run_experiment
from onegrad.simulate.simulate import run_group
from onegrad.spec.experiment import Experiment

CELL, LONG_CELL = 0.05, 0.5  # seconds


def _slope(x: Array) -> Array:
    time.sleep(CELL)
    return np.asarray(1 - np.tanh(x) ** 2)


def _long_slope(x: Array) -> Array:
    time.sleep(LONG_CELL)
    return np.asarray(1 - np.tanh(x) ** 2)


def overheads(units: int, dask: bool) -> list[dict[str, Any]]:
    """In one process, in two, and on a dask cluster of two if it is installed."""
    cases = [("local", 1), ("local", 2)]
    if dask and find_spec("distributed") is not None:
        cases.append(("dask", 2))
    return [overhead(units, *case) for case in cases]


def overhead(
    units: int,
    engine: str,
    workers: int,
    long: bool = False,
    scheduler: str | None = None,
) -> dict[str, Any]:
    """Time of a run per unit of work over the time of the same unit alone, minus one.

    The unit is one tiny network that sleeps for 50 ms in its gradient, or for half a second: what
    other programs do on the machine hardly enters. Counted from a third of the units on, so that
    the start of the workers, a second or two once, is left out; `whole_efficiency` has it.
    """
    register_activation(Activation("sleeping", np.tanh, _long_slope if long else _slope))
    spec = Experiment.read(
        {
            "data": {"model": "mixture", "dim": 20},
            "network": {"width": 20, "activation": "sleeping"},
            "training": {"samples": 20},
            "scaling": {"strength": 0.5, "weighting": 0.5},
            "compare": {
                "models": ["network"],
                "seeds": units,
                "risk": "sampled",
                "test_samples": 1,
            },
        }
    )
    alone = []
    for seed in range(3 if long else 10):
        start = time.perf_counter()
        run_group(spec.points, ["network"], seed)
        alone.append(time.perf_counter() - start)
    cell = float(np.median(alone))
    arrivals: list[tuple[float, float, int]] = []

    def note(status: Status) -> None:
        if status.rows:
            arrivals.append((time.perf_counter(), time.process_time(), status.computed))

    begin = time.perf_counter()
    chosen = engine_of(engine, None if scheduler else workers, scheduler)
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(spec, folder, chosen, note)
    start_at = next(a for a in arrivals if 3 * a[2] >= units)
    wall, cpu, count = np.subtract(arrivals[-1], start_at).tolist()
    record = {
        "engine": engine, "workers": workers, "units": units, "cell_seconds": cell,
        "overhead": workers * wall / count / cell - 1,
        "whole_efficiency": units * cell / workers / (arrivals[-1][0] - begin),
    }  # fmt: skip
    # a coordinator that does not compute itself uses the processor for nothing but this
    return record | ({"coordinator_share": cpu / count / cell} if workers > 1 else {})
