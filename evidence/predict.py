"""Predictions of the frozen problems, each in a process with limits of its own."""

from __future__ import annotations

import json
import math
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onegrad as og

from .files import Record, lines

SECONDS = 60  # of processor time, for one prediction
MEMORY = 4 << 30  # bytes of address space
_WALL = 3600  # seconds after which a prediction that neither computes nor ends is given up
_NUMBERS = (
    "test_error", "train_error", "train_objective", "relative_error", "misclassification",
    "test_loss", "train_loss", "calibration",
)  # fmt: skip


def seed_of(problem: Record) -> int:
    """The theory's seed: another than the simulation's, but where the problem's directions belong
    to that one."""
    fixed = problem["spec"]["data"].get("directions") == "fixed"
    return int(problem["seed"]) if fixed else int(problem["seed"]) + 500_000


def predicted(problem: Record) -> Record:
    """What the theory says about one problem, in this process."""
    start = time.process_time()
    found = og.predict(og.Problem.from_spec(problem["spec"]), rng=seed_of(problem), throw=False)
    seconds = round(time.process_time() - start, 3)
    record: Record = {"id": problem["id"], "seconds": seconds}
    if found.status == "failed":
        return record | {"status": "refused", "refusal": found.error}
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    return record | {
        "status": "ok", "engine": found.method, "numerics": found.status,
        "estimate": None if math.isnan(found.error_estimate) else found.error_estimate,
        "decisions": [
            (one.about, float(f"{one.margin:.3g}")) for one in found.decisions
            if math.isfinite(one.margin)
        ],
        "predicted": {
            name: float(f"{value:.9g}")
            for name, value in numbers.items()
            if value is not None and math.isfinite(value)
        },
    }  # fmt: skip


def predict_all(problems: list[Record], out: Path, workers: int, progress: bool = True) -> None:
    """Those that `out` does not have yet, `workers` at a time; a line of JSON each."""
    known = {one["id"] for one in lines(out)}
    left = [one for one in problems if one["id"] not in known]
    if not left:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    # everything is imported once, by a prediction in this process; then every problem is forked
    og.predict("quickstart", accuracy=0.03)
    with out.open("a", encoding="utf-8") as file:
        for done, record in enumerate(_forked(left, workers), 1):
            file.write(json.dumps(record) + "\n")
            file.flush()
            if progress:
                print(f"\r{done} of {len(left)}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)


def _forked(problems: list[Record], workers: int) -> Iterator[Record]:
    waiting = iter(problems)
    with selectors.DefaultSelector() as running:
        for _, problem in zip(range(workers), waiting, strict=False):
            _start(problem, running)
        while running.get_map():
            for key, _ in running.select(timeout=1.0):
                record = _finished(key.fileobj, key.data, running)
                if record is not None:
                    yield record
                    for _, problem in zip((0,), waiting, strict=False):
                        _start(problem, running)
            for key in list(running.get_map().values()):
                if time.monotonic() - key.data["start"] > _WALL:
                    key.data["over"] = True
                    os.kill(key.data["pid"], signal.SIGKILL)


def _start(problem: Record, running: selectors.BaseSelector) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(problem, writing)
    os.close(writing)
    data = {"pid": pid, "id": problem["id"], "start": time.monotonic(), "over": False, "bytes": b""}
    running.register(reading, selectors.EVENT_READ, data)


def _child(problem: Record, writing: int) -> None:
    """Predicts, writes the record to the pipe and ends; never returns."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            record = predicted(problem)
        except MemoryError:
            record = {"id": problem["id"], "status": "memory"}
        except Exception as error:  # whatever a user would see as a traceback
            record = {"id": problem["id"], "status": "crash", "refusal": repr(error)}
        record["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        os.write(writing, json.dumps(record).encode())
    finally:
        os._exit(0)


def _finished(pipe: Any, data: Record, running: selectors.BaseSelector) -> Record | None:
    """The record of a child whose pipe has ended; None while there is more to read."""
    piece = os.read(pipe, 1 << 16)
    data["bytes"] += piece
    if piece:
        return None
    running.unregister(pipe)
    os.close(pipe)
    _, _, used = os.wait4(data["pid"], 0)
    if data["bytes"]:
        record: Record = json.loads(data["bytes"])
    else:
        over = data["over"] or used.ru_utime + used.ru_stime >= SECONDS - 0.5
        record = {"id": data["id"], "status": "time" if over else "crash"}
    return {"seconds": round(used.ru_utime + used.ru_stime, 3)} | record
