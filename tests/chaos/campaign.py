"""Random kills of everything that takes part in a run, and damage between two runs.

`python -m tests.chaos.campaign --here 140 --local 40 --dask 20 [--seed 0]` is the long form; the
short one is test_campaign.py. Whatever happens, a finished run has the rows of a quiet one, bit by
bit; every flipped bit of a row is reported by the next run; and rows that a damaged or lost journal
takes away are missed: `load_results` says how many.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import onegrad as og
from onegrad.runs.store import Store, StoreWarning
from tests.chaos import processes
from tests.chaos.processes import Run, content, dask_cluster, stored, wait_until

SPEC = """
name = "chaos"
[data]
model = "mixture"
dim = 30
[network]
width = 25
[training]
samples = 30
[scaling]
strength = 0.6
weighting = 0.5
[compare]
models = ["network", "hermite"]
seeds = {seeds}
[sweep]
"network.activation" = ["relu", "erf"]
"training.ridge" = [1e-4, 1e-2]
"""
SEEDS = 120
NUMBERS = ("test_error", "train_error", "train_objective", "seconds")


class Campaign:
    """One store after the other is brought to its end against kills; `counts` says what happened.

    here : a forked process that computes by itself; local : with worker processes; dask : on a
    scheduler with two workers, all of them processes of their own
    """

    def __init__(self, folder: Path, seed: int, seeds: int = SEEDS) -> None:
        self.rng = random.Random(seed)
        self.folder, self.turn = folder, 0
        self.spec = folder / "spec.toml"
        self.spec.write_text(SPEC.format(seeds=seeds), encoding="utf-8")
        og.run(self.spec, folder / "quiet", og.Local(1))
        self.quiet = content(folder / "quiet")
        self.counts: Counter[str] = Counter()
        self.flipped: list[tuple[str, int]] = []
        self.out = self._fresh()

    def _fresh(self) -> Path:
        self.turn += 1
        return self.folder / f"store{self.turn}"

    def finished(self) -> bool:
        """Whether the store is complete; then it is compared, and another one begun."""
        found = {row[:3]: row for row in content(self.out)} if stored(self.out) else {}
        wanted = {row[:3]: row for row in self.quiet}
        wrong = [key for key in found if found[key] != wanted.get(key)]
        assert not [key for key in wrong if key[1:] not in self.flipped], f"wrong rows: {wrong}"
        if wrong or len(found) < len(wanted):
            return False
        assert content(self.out) == self.quiet
        self.counts["complete stores"] += 1
        shutil.rmtree(self.out)
        self.out = self._fresh()
        return True

    # --- bits -----------------------------------------------------------------------------

    def flip(self) -> None:
        """One bit of one number of one stored row."""
        with contextlib.closing(sqlite3.connect(self.out / "results.sqlite")) as db:
            rows = db.execute(
                f"SELECT model, seed, point, {', '.join(NUMBERS)} FROM rows"
            ).fetchall()
            if not rows:
                return
            row = self.rng.choice(rows)
            which = self.rng.randrange(len(NUMBERS))
            bits = struct.unpack("<Q", struct.pack("<d", row[3 + which]))[0]
            bits ^= 1 << self.rng.randrange(52)  # never a NaN, which would become NULL
            value = struct.unpack("<d", struct.pack("<Q", bits))[0]
            db.execute(
                f"UPDATE rows SET {NUMBERS[which]} = ? WHERE model = ? AND seed = ? AND point = ?",
                (value, *row[:3]),
            )
            db.commit()
        self.flipped.append((row[0], row[1]))
        self.counts["flips"] += 1

    def _heard(self, said: str) -> None:
        """The flips that a run has reported are no longer expected."""
        if not self.flipped:
            return
        for model, seed in self.flipped:
            assert f"{model}, seed {seed} of point" in said, (self.flipped, said[-2000:])
        self.counts["flips reported"] += len(self.flipped)
        self.flipped = []

    # --- the journal ----------------------------------------------------------------------

    def hurt_journal(self) -> None:
        """What a kill has left of the write-ahead log loses its end, a bit, or all of it."""
        log = self.out / "results.sqlite-wal"
        if not log.exists() or not log.stat().st_size:
            return
        data, kind = bytearray(log.read_bytes()), self.rng.choice(("cut", "flipped", "zeroed"))
        at = self.rng.randrange(len(data))
        if kind == "cut":
            data = data[:at]
        elif kind == "flipped":
            data[at] ^= 1 << self.rng.randrange(8)
        else:
            data[at : at + 4096] = bytes(len(data[at : at + 4096]))
        log.write_bytes(data)
        self.counts[f"journals {kind}"] += 1
        self._missed()

    def _missed(self) -> None:
        """Rows that are there are right, and those that are not are missed, or nothing is read."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StoreWarning)
            try:
                rows = og.load_results(self.out).rows
            except og.OnegradError:
                self.counts["stores refused"] += 1
                self._set_aside()
                return
        good = len([row for row in rows if row.status != "damaged"])
        said = f"{good:,} of {len(self.quiet):,} rows"
        assert good == len(self.quiet) or said in str([str(w.message) for w in caught]), said
        self.counts["rows missed"] += len(self.quiet) - good

    def _set_aside(self) -> None:
        """What the message says: begin anew in another folder."""
        self.flipped = []
        self.out = self._fresh()

    # --- kills ----------------------------------------------------------------------------

    def here(self) -> None:
        """One or two forked processes on the store, killed at a random moment."""
        if self.rng.random() < 0.3 and stored(self.out):
            self.flip()
            self._report_here()
        children = [self._fork() for _ in range(self.rng.choice((1, 1, 1, 2)))]
        rows, end = stored(self.out) + self.rng.choice((0, 1, 8, 60)), time.monotonic() + 10
        while stored(self.out) < rows and _run(children[0]) and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(0.05 * self.rng.random())
        for child in children:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            killed = os.WIFSIGNALED(status)
            assert killed or os.WEXITSTATUS(status) == 0
            self.counts["kills here" if killed else "ended before"] += 1
        if self.rng.random() < 0.4:  # before anybody reads, which moves the journal into the file
            self.hurt_journal()
        self.finished()

    def _report_here(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StoreWarning)
            Store(self.out).close()
        self._heard(" ".join(str(warning.message) for warning in caught))

    def _fork(self) -> int:
        child = os.fork()
        if child:
            return child
        code = 1
        warnings.simplefilter("ignore", StoreWarning)
        try:
            og.run(self.spec, self.out, og.Local(1))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def local(self) -> None:
        """The coordinator or one of its workers, in processes started anew."""
        if self.rng.random() < 0.3 and stored(self.out):
            self.flip()
        run = Run(self.spec, self.out, workers=2)
        before = stored(self.out)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: stored(self.out) > before or run.process.poll() is not None)
        time.sleep(0.5 * self.rng.random())
        workers = run.workers()
        if workers and self.rng.random() < 0.6:
            self._kill(self.rng.choice(workers), "kills of local workers")
            time.sleep(0.3 * self.rng.random())
        self._kill(run.process.pid, "kills of local coordinators")
        self._heard(run.finish()[1])
        wait_until(lambda: not run.processes())
        self.finished()

    def dask(self) -> None:
        """A dask worker, and then the coordinator or the scheduler."""
        if self.rng.random() < 0.3 and stored(self.out):
            self.flip()
        with dask_cluster(self.folder / f"dask{self.turn}") as (address, scheduler, first, second):
            run = Run(self.spec, self.out, scheduler=address)
            before = stored(self.out)
            wait_until(lambda: stored(self.out) > before or run.process.poll() is not None)
            self._kill(first.pid, "kills of dask workers")
            time.sleep(0.5 * self.rng.random())
            last = {"scheduler": scheduler.pid, "coordinator": run.process.pid}
            name = self.rng.choice(list(last))
            self._kill(last[name], f"kills of dask {name}s")
            self._heard(run.finish()[1])
            assert name == "coordinator" or second is not None
        self.finished()

    def _kill(self, process: int, what: str) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            self.counts[what] += 1

    def finish(self) -> None:
        """The last store is brought to its end undisturbed."""
        if self.flipped:
            self._report_here()
        og.run(self.spec, self.out, og.Local(1))
        assert self.finished()

    @property
    def kills(self) -> int:
        return sum(count for what, count in self.counts.items() if what.startswith("kills"))


def _run(child: int) -> bool:
    """Whether a child of ours has not ended yet."""
    state = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    return state != "Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("here", 140), ("local", 40), ("dask", 20), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    processes.PATIENCE = 900  # it may run beside anything
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), asked.seed)
        for way in ("here", "local", "dask"):
            limit = campaign.kills + getattr(asked, way)
            while campaign.kills < limit:
                getattr(campaign, way)()
                if campaign.kills % 50 < 2:
                    print(campaign.kills, dict(campaign.counts), file=sys.stderr, flush=True)
        campaign.finish()
    print(f"{campaign.kills} kills, 0 rows lost, doubled or wrong: {dict(campaign.counts)}, "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main()
