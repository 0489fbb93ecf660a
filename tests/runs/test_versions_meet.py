"""Client, scheduler and workers of different versions of onegrad do not work together."""

import pytest

from onegrad import __version__
from onegrad.runs.engines.base import EngineError
from onegrad.runs.engines.cluster import DaskEngine
from onegrad.runs.engines.work import WrongVersion, work_on_packed


class Client:
    def __init__(self, workers, scheduler):
        self.workers, self.scheduler = workers, scheduler

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function):
        return {"tcp://1": __version__, "tcp://2": self.workers}

    def run_on_scheduler(self, function):
        if self.scheduler is None:
            raise ModuleNotFoundError("No module named 'onegrad'")
        return self.scheduler


@pytest.mark.parametrize(
    ("workers", "scheduler", "said"),
    [
        ("0.0.1", __version__, "the worker at tcp://2 has onegrad 0.0.1"),
        (__version__, "0.0.1", "the scheduler at x has onegrad 0.0.1"),
        (__version__, None, "a scheduler cannot import onegrad"),
        (__version__, __version__, ""),
    ],
)
def test_other_versions_are_refused(workers, scheduler, said):
    engine = DaskEngine.__new__(DaskEngine)
    engine._address = "x"
    engine._client = Client(workers, scheduler)
    if not said:
        engine._check_workers()
        return
    with pytest.raises(EngineError, match=said):
        engine._check_workers()


def test_a_worker_that_joins_later_is_noticed_with_its_first_job():
    with pytest.raises(WrongVersion) as error:
        work_on_packed(b"", [], "0.0.1")
    engine = DaskEngine.__new__(DaskEngine)
    with pytest.raises(EngineError, match="joined later"):
        engine.worker_died(error.value)
