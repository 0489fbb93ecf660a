"""dask.distributed: workers on other machines, or a cluster of processes on this one."""

from __future__ import annotations

import logging
import time
import warnings
from concurrent.futures import CancelledError, Future
from typing import Any

from onegrad import __version__
from onegrad.experiments.engines.base import Engine, EngineError, cores
from onegrad.experiments.engines.work import Outcome, children_ignore_ctrl_c, pack, work_on_packed
from onegrad.experiments.schedule import Unit
from onegrad.experiments.spec import Experiment

_CONNECT = 10.0  # seconds to wait for a scheduler
_NO_WORKERS = 60.0  # seconds to wait for a first worker, or for one to come back
_COUNT_AGAIN = 2.0


class Cluster(Engine):
    """The workers of a dask scheduler, or of a cluster that is started here and ends with us.

    The points travel once, as a task whose result dask can make again where it is lost. A unit
    whose worker dies is moved to another one by dask itself.
    """

    def __init__(self, experiment: Experiment, workers: int | None, scheduler: str | None) -> None:
        try:
            import distributed
        except ImportError:
            raise EngineError(
                'engine = "dask" needs dask.distributed: pip install "onegrad[cluster]"'
            ) from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._killed = distributed.KilledWorker
        self._address = scheduler or "here"
        self._own: Any = None
        if scheduler is None:
            with children_ignore_ctrl_c():
                self._own = distributed.LocalCluster(
                    n_workers=workers or cores(), threads_per_worker=1, processes=True,
                    dashboard_address=None, silence_logs=logging.CRITICAL,
                )  # fmt: skip
        self._client = self._connect(distributed.Client, scheduler)
        self._executor = self._client.get_executor(pure=False)
        self._counted = 0.0
        self._slots = 1
        try:
            self._check_workers()
            with warnings.catch_warnings():  # large data: dask warns, and sends it all the same
                warnings.simplefilter("ignore")
                packed = pack(experiment.points)
                self._points = self._client.submit(bytes, packed, pure=False)
        except BaseException:
            self.close(at_once=True)
            raise

    def _connect(self, client: Any, scheduler: str | None) -> Any:
        try:
            return client(scheduler or self._own, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(
                f"no dask scheduler answers at {scheduler} ({error}). Start one with `dask "
                "scheduler`, workers with `dask worker ADDRESS --nthreads 1`, and give the address "
                "it prints (tcp://host:8786)"
            ) from None

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_NO_WORKERS)
        except TimeoutError:
            raise EngineError(self._nobody()) from None
        try:
            versions = self._client.run(_version)
        except Exception as error:
            raise EngineError(
                f"the workers cannot import onegrad ({error}). Install onegrad {__version__} where "
                "they run"
            ) from None
        other = {worker: v for worker, v in versions.items() if v != __version__}
        if other:
            worker, version = next(iter(other.items()))
            raise EngineError(
                f"the worker {worker} has onegrad {version}, this is {__version__}. Install the "
                "same version on both sides"
            )

    def _nobody(self) -> str:
        return (
            f"the dask scheduler at {self._address} has had no worker for {_NO_WORKERS:.0f} s. "
            "Start some with `dask worker ADDRESS --nthreads 1`"
        )

    @property
    def slots(self) -> int:
        """Workers come and go, so that they are counted again from time to time."""
        if time.monotonic() - self._counted > _COUNT_AGAIN:
            self._slots = max(2, 2 * len(self._client.nthreads()))
            self._counted = time.monotonic()
        return self._slots

    def submit(self, unit: Unit, left: int) -> Future[Outcome]:
        future: Future[Outcome] = self._executor.submit(work_on_packed, self._points, unit)
        return future

    def worker_died(self, error: BaseException) -> bool:
        if isinstance(error, CancelledError):
            raise EngineError(
                f"the dask scheduler at {self._address} dropped the work. Every row that arrived "
                "is kept; see that it runs, and run the same command again"
            )
        return isinstance(error, self._killed)

    def restart(self) -> None:
        """Nothing to do: dask goes on with the other workers."""

    def check(self) -> None:
        deadline = time.monotonic() + _NO_WORKERS
        while self._client.status == "running" and not self._client.nthreads():
            if time.monotonic() > deadline:
                raise EngineError(self._nobody())
            time.sleep(0.5)
        if self._client.status != "running":
            raise EngineError(
                f"the dask scheduler at {self._address} went away. Every row that arrived is kept; "
                "start it and run the same command again"
            )

    def close(self, at_once: bool = False) -> None:
        self._executor.shutdown(wait=False)
        self._points = None
        self._client.close(timeout=2)
        if self._own is not None:
            self._own.close(timeout=2)


def _version() -> str:
    return __version__
