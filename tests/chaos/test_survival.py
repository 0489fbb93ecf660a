"""Real processes are killed, interrupted and starved; no row is lost, repeated or different."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import onegrad as og
from tests.chaos.processes import Run, content, dask_cluster, stored, wait_until

SPEC = """
name = "survivor"
[data]
model = "mixture"
dim = 60
[network]
width = 50
[training]
samples = 60
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network", "hermite"]
seeds = {seeds}
[sweep]
"network.activation" = ["relu", "erf"]
"training.samples" = [60, 70]
"training.ridge" = [1e-4, 1e-3, 1e-2]
"""
SEEDS = 60
ROWS = 12 * 2 * SEEDS

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("survival") / "spec.toml"
    path.write_text(SPEC.format(seeds=SEEDS))
    return path


@pytest.fixture(scope="module")
def quiet(spec):
    """What an undisturbed run in this process stores."""
    og.run(spec, spec.parent / "quiet", og.Local(1))
    rows = content(spec.parent / "quiet")
    assert len(rows) == ROWS
    return rows


@pytest.mark.slow
def test_a_dask_worker_is_killed(spec, quiet, tmp_path):
    """A real scheduler and two workers, one of which is killed: the other one goes on.

    When the scheduler itself is killed, the run stops and says so.
    """
    long = tmp_path / "long.toml"
    long.write_text(SPEC.format(seeds=100_000))
    with dask_cluster(tmp_path) as (address, scheduler, first, second):
        run = Run(spec, tmp_path / "out", scheduler=address)
        run.wait_for_rows(24)
        first.kill()
        code, error = run.finish()
        assert code == 0, error
        assert error == ""
        assert second.poll() is None
        assert content(tmp_path / "out") == quiet
        run = Run(long, tmp_path / "long", command=True, scheduler=address)
        run.wait_for_rows(24)
        scheduler.kill()
        code, error = run.finish()
    assert code == 2
    assert "scheduler" in error and "run the same command again" in error
    lines = [line for line in error.splitlines() if " to compute: " not in line]
    assert len(lines) == 1, error
    assert stored(tmp_path / "long") >= 24


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"workers": 1}, signal.SIGINT),
        ({"workers": 2}, signal.SIGINT),
        ({"engine": "dask"}, signal.SIGINT),
        ({"workers": 1}, signal.SIGTERM),
        ({"workers": 2}, signal.SIGHUP),
        ({"engine": "dask"}, signal.SIGTERM),
    ],
)
def test_ctrl_c_term_and_hup(spec, tmp_path, options, number):
    """Ctrl-C as from a terminal, to every process at once; the others as `kill` sends them, to the
    coordinator. One line says what is kept."""
    long = tmp_path / "long.toml"
    long.write_text(SPEC.format(seeds=100_000))
    run = Run(long, tmp_path / "out", command=True, **options)
    run.wait_for_rows(24)
    (os.killpg if number == signal.SIGINT else os.kill)(run.process.pid, number)
    start = time.monotonic()
    code, error = run.finish()
    assert code == 128 + number, error
    said = [line for line in error.splitlines() if line.startswith("onegrad: ")]
    (line,) = [line for line in said if " to compute: " not in line]  # the estimate
    assert "run the same command again" in line
    assert ("interrupted" if number == signal.SIGINT else signal.Signals(number).name) in line
    wait_until(lambda: not run.processes())
    assert time.monotonic() - start < 60  # two seconds; 30 where only idleness ends a worker
    assert stored(tmp_path / "out") >= 24


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 400 kB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        assert not (os.environ.get("CI") and os.geteuid() == 0), done.stderr
        pytest.skip(f"may not mount a small file system here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="no mount command")
def test_a_full_disk_stops_the_run_and_spoils_nothing(spec, quiet, small_disk, tmp_path):
    code, error = Run(spec, small_disk, command=True, workers=1).finish()
    assert code == 2
    assert "the disk is full" in error and "run the same command again" in error.lower(), error
    assert "Traceback" not in error
    # what was stored is readable where it is, and the run goes on once there is room
    kept = content(small_disk)
    assert 0 < len(kept) < ROWS and set(kept) <= set(quiet)
    larger = tmp_path / "larger"
    shutil.copytree(small_disk, larger)
    assert set(content(larger)) == set(kept)
    code, error = Run(spec, larger).finish()
    assert code == 0, error
    assert content(larger) == quiet
