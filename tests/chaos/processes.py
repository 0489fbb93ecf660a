"""Runs in processes of their own, whom tests may kill, and what they have stored."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import uuid
from pathlib import Path

PATIENCE = 90  # seconds: machines may be slow and busy


def content(folder):
    with contextlib.closing(sqlite3.connect(folder / "results.sqlite")) as db:
        return db.execute(
            "SELECT point, model, seed, test_error, train_error, train_objective, status FROM rows "
            "ORDER BY 1, 2, 3"
        ).fetchall()


def stored(folder):
    """Rows so far, while somebody else is writing."""
    with contextlib.suppress(sqlite3.OperationalError):
        return len(content(folder)) if (folder / "results.sqlite").exists() else 0
    return 0


class Run:
    """A run in a process group of its own, whose processes can be told by a mark.

    From Python, which draws no figure; from the command line if `command`.
    """

    def __init__(self, spec, out, command=False, **options):
        self.out = out
        where = f"og.Local({options.get('workers')})"
        if "scheduler" in options or options.get("engine") == "dask":
            where = f"og.Dask({options.get('scheduler')!r})"
        code = f"import onegrad as og; og.run({str(spec)!r}, {str(out)!r}, {where})"
        program = ["-c", code]
        if command:
            program = ["-m", "onegrad", "run", str(spec), "--out", str(out)]
            program += [word for k, v in options.items() for word in (f"--{k}", str(v))]
        self.mark = f"ONEGRAD_TEST={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, *program],
            env=os.environ | {name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self):
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def workers(self):
        """Those that compute: not the coordinator, nor a tracker of resources."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/cmdline").read_text()
                if pid != self.process.pid and "resource_tracker" not in text:
                    found.append(pid)
        return found

    def wait_for_rows(self, count):
        wait_until(lambda: stored(self.out) >= count or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def finish(self):
        """Exit code and what it said beside its progress."""
        _, error = self.process.communicate(timeout=PATIENCE)
        lines = [line for line in error.splitlines(True) if not re.search(r"\d+/\d+ rows", line)]
        return self.process.returncode, "".join(lines)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


@contextlib.contextmanager
def dask_cluster(folder):
    """A scheduler and two workers, each a process of its own on the loopback address."""
    folder.mkdir(parents=True, exist_ok=True)
    where = folder / "scheduler.json"
    base = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [
        subprocess.Popen(
            [
                *base,
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(where),
            ],
            **quiet,
        )
    ]
    try:
        wait_until(where.exists)
        processes += [
            subprocess.Popen(
                [*base, "worker", "--scheduler-file", str(where), "--nthreads", "1", "--no-nanny",
                 "--no-dashboard", "--local-directory", str(folder)], **quiet,
            )
            for _ in range(2)
        ]  # fmt: skip
        yield json.loads(where.read_text())["address"], *processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
