"""dask.distributed: workers on other machines, or a cluster of processes on this one."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from onegrad import __version__
from onegrad.compute.threads import cores
from onegrad.runs.engines.base import Engine, EngineError
from onegrad.runs.engines.work import (
    Done,
    WrongVersion,
    children_ignore_ctrl_c,
    pack,
    work_on_packed,
)
from onegrad.runs.schedule import Unit
from onegrad.spec.experiment import Experiment

_CONNECT = 10.0  # seconds to wait for a scheduler
_NO_WORKERS = 60.0  # seconds to wait for a first worker, or for one to come back
_COUNT_AGAIN = 2.0
_FAREWELL = 0.7  # seconds for a good-bye; twice that at most
_TALKATIVE = ("distributed", "distributed.client", "tornado.application")  # of what we handle


class DaskEngine(Engine):
    """The workers of a dask scheduler, or of a cluster that is started here and ends with us.

    The points travel once, as a task whose result dask can make again where it is lost. A unit
    whose worker dies is moved to another one by dask itself.
    """

    job_seconds = 0.3

    def __init__(
        self, experiment: Experiment, scheduler: str | None = None, workers: int | None = None
    ) -> None:
        super().__init__()
        try:
            import distributed
        except ImportError:
            raise EngineError(
                'engine = "dask" needs dask.distributed: pip install "onegrad[cluster]"'
            ) from None
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._killed = distributed.KilledWorker
        self._address = scheduler or "here"
        self._own: Any = None
        if scheduler is None:
            with children_ignore_ctrl_c():
                self._own = distributed.LocalCluster(
                    n_workers=workers or cores(), threads_per_worker=1, processes=True,
                    dashboard_address=":0", silence_logs=logging.CRITICAL,
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
            self.close()
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
        for worker, version in versions.items():
            if version != __version__:
                raise _other_version(f"the worker {worker}", version)
        try:  # it unpacks what it passes on
            version = self._client.run_on_scheduler(_version)
        except Exception as error:
            raise EngineError(
                f"the scheduler cannot import onegrad ({error}). Install onegrad {__version__} "
                "where it runs"
            ) from None
        if version != __version__:
            raise _other_version("the scheduler", version)

    def _nobody(self) -> str:
        return (
            f"the dask scheduler at {self._address} has had no worker for {_NO_WORKERS:.0f} s. "
            "Start some with `dask worker ADDRESS --nthreads 1`"
        )

    @property
    def slots(self) -> int:
        """Workers come and go, so that they are counted again from time to time."""
        if time.monotonic() - self._counted > _COUNT_AGAIN:
            self._slots = max(4, 4 * self.workers)
            self._counted = time.monotonic()
        return self._slots

    @property
    def workers(self) -> int:
        with suppress(OSError):
            if self._client.status == "running":
                return len(self._client.nthreads())
        raise self._gone()

    def _gone(self) -> EngineError:
        return EngineError(
            f"the dask scheduler at {self._address} went away or dropped the work. Every row that "
            "arrived is kept; see that it runs, and run the same command again"
        )

    def _submit(self, units: Sequence[Unit], left: int) -> Future[Done]:
        job = (work_on_packed, self._points, units, __version__)
        future: Future[Done] = self._executor.submit(*job)
        return future

    def worker_died(self, error: BaseException) -> bool:
        if isinstance(error, WrongVersion):
            raise _other_version("a worker that joined later", error.args[0])
        if isinstance(error, CancelledError):
            raise self._gone()
        return isinstance(error, self._killed)

    def restart(self) -> None:
        """Nothing to do: dask goes on with the other workers."""

    def check(self) -> None:
        deadline = time.monotonic() + _NO_WORKERS
        while not self.workers:
            if time.monotonic() > deadline:
                raise EngineError(self._nobody())
            time.sleep(0.5)

    def close(self) -> None:
        """Good-bye to all, in the background: work under way and workers that do not answer would
        make it last; worker processes of ours are killed."""
        with suppress(Exception):
            self._executor.shutdown(wait=False)
        self._points = None
        parting = threading.Thread(target=self._part, daemon=True)
        parting.start()
        parting.join(_FAREWELL / 2)
        if self._own is not None:
            self._own.shutdown_on_close = False  # nor does the interpreter wait for it
            for worker in list(self._own.workers.values()):
                with suppress(OSError, AttributeError):
                    if worker.pid:
                        os.kill(worker.pid, signal.SIGKILL)
        parting.join(_FAREWELL)

    def _part(self) -> None:
        for ending in (self._client, self._own):
            with suppress(Exception):
                if ending is not None:
                    ending.close(timeout=_FAREWELL)


def _other_version(who: str, version: str) -> EngineError:
    return EngineError(
        f"{who} has onegrad {version}, this is {__version__}. Install the same version on all sides"
    )


def _version() -> str:
    return __version__
