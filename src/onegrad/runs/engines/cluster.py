"""dask.distributed: workers on other machines, or a cluster of processes on this one.

A scheduler runs the code of whoever reaches its port. One that is started here speaks TLS with
certificates that live in memory, on the loopback address, without a dashboard. For a scheduler of
somebody else dask's own configuration holds (distributed.comm.tls).
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from onegrad import __version__
from onegrad.compute.threads import cores
from onegrad.runs.engines.base import Engine, EngineError
from onegrad.runs.engines.work import Done, WrongVersion, pack, work_on_packed
from onegrad.runs.schedule import Unit
from onegrad.spec.experiment import Experiment

_CONNECT = 10.0  # seconds to wait for a scheduler
_NO_WORKERS = 60.0  # seconds to wait for a first worker, or for one to come back
_COUNT_AGAIN = 2.0  # seconds between two counts of the workers
_FAREWELL = 0.5  # seconds to wait for each good-bye
_TALKATIVE = ("distributed", "distributed.client", "tornado.application")  # of what we handle
_LOOPBACK = "127.0.0.1"


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

            self._security = distributed.Security.temporary() if scheduler is None else None
        except ImportError:
            raise EngineError(
                'engine = "dask" needs dask.distributed: pip install "onegrad[cluster]"'
            ) from None
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._killed = distributed.KilledWorker
        self._address = scheduler or "here"
        self._own = self._cluster(workers or cores()) if scheduler is None else None
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

    def _cluster(self, workers: int) -> Any:
        import dask.config
        import distributed

        # the HTTP server of a scheduler cannot be left out, so that it gets nothing to serve
        served = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
        with dask.config.set({key: [] for key in served}):
            return distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, host=_LOOPBACK,
                security=self._security, dashboard_address=f"{_LOOPBACK}:0",
                scheduler_kwargs={"dashboard": False}, silence_logs=logging.CRITICAL,
            )  # fmt: skip

    def _connect(self, client: Any, scheduler: str | None) -> Any:
        where = {"security": self._security} if scheduler is None else {}
        try:
            return client(scheduler or self._own, timeout=_CONNECT, set_as_default=False, **where)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            secure = (
                "For tls:// set distributed.comm.tls (ca-file, client.cert, client.key) in dask's "
                "configuration"
                if str(scheduler).startswith("tls://")
                else "Start one with `dask scheduler`, workers with `dask worker ADDRESS "
                "--nthreads 1`, and give the address it prints (tcp://host:8786, or tls://…)"
            )
            raise EngineError(
                f"no dask scheduler answers at {scheduler} ({error}). {secure}"
            ) from None

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_NO_WORKERS)
        except TimeoutError:
            raise EngineError(self._nobody()) from None
        for who, ask in (("worker", self._client.run), ("scheduler", self._of_scheduler)):
            try:
                versions = ask(_version)
            except Exception as error:
                raise EngineError(
                    f"a {who} cannot import onegrad ({error}). Install onegrad {__version__} "
                    "on all sides"
                ) from None
            for name, version in versions.items():
                if version != __version__:
                    raise _other_version(f"the {who} at {name}", version)

    def _of_scheduler(self, function: Any) -> dict[str, str]:
        """It unpacks what it passes on."""
        return {self._address: self._client.run_on_scheduler(function)}

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
        future: Future[Done] = self._executor.submit(
            work_on_packed, self._points, units, __version__
        )
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
        """Work under way is dropped. Worker processes of ours end with their cluster, in the
        background if that takes longer, and at the latest with this process."""
        with suppress(Exception):
            self._executor.shutdown(wait=False)
        self._points = None
        for ending in (self._client, self._own):
            with suppress(Exception):
                if ending is not None:
                    ending.close(timeout=_FAREWELL)
        if self._own is not None:
            self._own.shutdown_on_close = False  # the interpreter does not wait for it again


def _other_version(who: str, version: str) -> EngineError:
    return EngineError(
        f"{who} has onegrad {version}, this is {__version__}. Install the same version on all sides"
    )


def _version() -> str:
    return __version__
