"""Work on threads of our own: the same numbers as on one, none of the library's beside it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from benchmarks.speed.measure import points
from onegrad.compute.randomness import Streams
from onegrad.compute.threads import blas_threads, several_threads, side_by_side
from onegrad.simulate.network.trial import Draw
from onegrad.simulate.simulate import reuse_of, run_group


def test_tasks_run_at_the_same_time_on_one_thread_each_of_the_library():
    together = threading.Barrier(2, timeout=20)

    def task():
        together.wait()  # the other one is there as well
        return several_threads(), {
            i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"
        }

    with blas_threads(2):
        assert several_threads()
        assert side_by_side(task, task) == [(False, {1}), (False, {1})]
        assert several_threads()
    assert not several_threads()


def test_errors_of_a_thread_are_raised():
    def fails():
        raise ValueError("of a task")

    for threads in (1, 2):
        with blas_threads(threads), pytest.raises(ValueError, match="of a task"):
            side_by_side(int, fails)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_do_not_depend_on_the_threads(dtype):
    group = points(130, 110, 150, ("tanh",), dtype)
    models = ("network", "hermite", "gaussian")
    one, two = (run_group(group, models, 3, threads) for threads in (1, 2))
    close = 1e-12 if dtype == "float64" else 1e-5
    for alone, beside in zip(one, two, strict=True):
        for number in ("test_error", "train_error", "train_objective"):
            assert getattr(beside, number) == pytest.approx(getattr(alone, number), rel=close)
    other = run_group(group, models, 4, 2)[0]  # the control: another draw is not the same
    assert other.test_error != pytest.approx(one[0].test_error, rel=close)


def test_noise_that_was_drawn_ahead_is_the_same_and_used_once():
    (point,) = points(30, 20, 40, ("tanh",))
    features = np.zeros((40, 20))

    def noise(threads):
        with blas_threads(threads):
            draw = Draw(point.problem, Streams(0, 0), reuse_of(("network", "hermite")))
            _ = draw.train
            ahead = list(draw._noise)
            drawn = [np.vstack([part for _, part in draw.noise("hermite", features)]) for _ in "ab"]
            return ahead, drawn, list(draw._noise)

    (before, (first, second), after), (none, (third, _), _) = noise(2), noise(1)
    assert (before, after, none) == (["hermite"], [], [])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


SHOW = """
import onegrad, os, sys
print(os.environ["OPENBLAS_THREAD_TIMEOUT"], "numpy" in sys.modules)
"""


@pytest.mark.parametrize(("given", "found"), [(None, "18"), ("26", "26")])
def test_threads_wait_shortly_unless_told_otherwise(given, found):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    environment |= {} if given is None else {"OPENBLAS_THREAD_TIMEOUT": given}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == [found, "False"]
