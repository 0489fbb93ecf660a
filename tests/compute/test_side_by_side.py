"""Work beside products: the same numbers on one thread or several."""

import threading

import numpy as np
import pytest

from onegrad.compute.array_pool import Pool
from onegrad.compute.side_by_side import for_pieces, side_by_side, threads_are


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_are_all_worked_on_once(threads: int) -> None:
    x = np.arange(400_000.0).reshape(400, 1000)
    out, names = np.zeros_like(x), set()

    def work(rows: object) -> None:
        out[rows] += 2 * x[rows]
        names.add(threading.current_thread().name)

    with threads_are(threads):
        for_pieces(x, work)
    np.testing.assert_array_equal(out, 2 * x)
    assert (threading.current_thread().name in names) == (threads == 1)


def test_errors_of_a_thread_are_raised() -> None:
    def fails() -> None:
        raise ValueError("of a task")

    for threads in (1, 2):
        with threads_are(threads), pytest.raises(ValueError, match="of a task"):
            side_by_side(lambda: None, fails)


def test_threads_get_arrays_of_their_own_from_a_pool() -> None:
    pool, both, kept = Pool(), threading.Barrier(4), []

    def take() -> None:
        both.wait()
        kept.append([pool.empty((300, 300)) for _ in range(20)])

    with threads_are(4):
        side_by_side(*[take] * 4)
    starts = {array.__array_interface__["data"][0] for arrays in kept for array in arrays}
    assert len(starts) == 80
