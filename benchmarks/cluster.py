"""How much of a dask cluster's time is work: a sweep of half-second cells on 2 × 4 workers.

`python -m benchmarks.cluster [UNITS]`. A scheduler and two groups of four worker processes, as on
two machines, are started here, by dask's own commands. A cell sleeps, so that eight workers need no
eight cores: what is measured is planning, sending, receiving and storing. The efficiency is cell ×
cells / (workers × elapsed time), from a third of the cells on, and of the whole run with its start.
"""

import subprocess
import sys
import time

from benchmarks.speed.scheduling import overhead

MACHINES, EACH = 2, 4
_PORT = 8797


def main(units=320):
    address = f"tcp://127.0.0.1:{_PORT}"
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [*dask, "--host", "127.0.0.1", "--port", str(_PORT), "--no-dashboard"], **quiet
        )
    ]
    try:
        time.sleep(3)
        options = ["--nworkers", str(EACH), "--nthreads", "1", "--no-dashboard"]
        started += [subprocess.Popen([*worker, *options], **quiet) for _ in range(MACHINES)]
        _wait_for(address, MACHINES * EACH)
        found = overhead(units, "dask", MACHINES * EACH, long=True, scheduler=address)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)
    print(
        f"{MACHINES} x {EACH} workers, {units} cells of {found['cell_seconds']:.3f} s: efficiency "
        f"{1 / (1 + found['overhead']):.1%}, with the start {found['whole_efficiency']:.1%}; "
        f"coordinator {found['coordinator_share']:.1%} of a cell"
    )


def _wait_for(address, workers):
    import distributed

    with distributed.Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=120)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
