"""Mutated data files of every format, read by `analyze`'s reader and by data.model = "file".

`python -m tests.fuzz.files 2000 [SEED]` for a long run; what it finds goes to KEPT.
"""

from __future__ import annotations

import gzip
import random
import struct
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

from onegrad.data.arrays import File
from onegrad.errors import OnegradError
from onegrad.tabular.reading.reading import read_table
from tests.fuzz import long_run, peak

SECONDS = 5.0
MEGABYTES = 1500  # that reading one file may add, as data/formats.py states: 1 GB and the table
KINDS = ("csv", "npz", "idx", "idx.gz", "parquet")
KEPT: tuple[tuple[int, int], ...] = ()


def table(rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    x = numbers.standard_normal((rng.choice((3, 70, 90)), rng.choice((1, 4, 12))))
    kind = rng.choice((np.float64, np.float32, np.float16, np.int64, np.uint8, bool))
    return x.astype(kind), (x[:, 0] > 0).astype(rng.choice((float, int, bool)))


def write(rng: random.Random, kind: str, folder: Path) -> Path:
    """A sound file, from which a mutation starts."""
    x, y = table(rng)
    path = folder / f"table.{kind}"
    if kind == "csv":
        names = [f"c{i}" for i in range(x.shape[1])] + ["label"]
        lines = [",".join(map(str, row)) for row in np.column_stack([x, y]).tolist()]
        path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    elif kind == "npz":
        rng.choice((np.savez, np.savez_compressed))(path, x=x, y=y)
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as parquet

        columns = [pa.array(column) for column in x.T] + [pa.array(y)]
        names = [f"c{i}" for i in range(x.shape[1])] + ["label"]
        if rng.random() < 0.2:
            names[0] = names[-1]
        parquet.write_table(pa.Table.from_arrays(columns, names=names), path)
    else:
        path = folder / f"t-images-{kind}"
        pixels = (np.abs(x.astype(float)) * 50).astype(np.uint8)
        head = struct.pack(">HBBII", 0, 8, 2, *pixels.shape)
        labels = struct.pack(">HBBI", 0, 8, 1, len(y)) + y.astype(np.uint8).tobytes()
        opened = gzip.open if kind.endswith("gz") else open
        with opened(path, "wb") as file:
            file.write(head + pixels.tobytes())
        with opened(folder / path.name.replace("images", "labels"), "wb") as file:
            file.write(labels)
    return path


def mutate(rng: random.Random, path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        kind = rng.randrange(7)
        at = rng.randrange(len(raw)) if raw else 0
        if kind <= 1 and raw:
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 2 and raw:
            raw[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"))
        elif kind == 3:
            del raw[at:]
        elif kind == 4:
            raw[at:at] = rng.choice((b"\0", b"nan", b"1e999", b",", b"\n", b'"', b"\xff\xfe", b"$"))
        elif kind == 5:
            end = min(len(raw), at + rng.randrange(1, 200))
            raw[at:at] = raw[at:end] * rng.choice((1, 3))
        else:
            raw[:40] = bytes(rng.randrange(256) for _ in range(min(40, len(raw))))
    path.write_bytes(bytes(raw))


def check(seed: int, number: int, folder: Path) -> bool:
    """Whether it could be read; raises what is not ours, and AssertionError beyond a limit."""
    rng = random.Random(f"{seed} {number}")
    kind = rng.choice(KINDS)
    path = write(rng, kind, folder)
    if rng.random() < 0.95:
        mutate(rng, path)
    if kind == "npz" and rng.random() < 0.1:
        _lie(path)
    start, before = time.process_time(), peak()
    readable = False
    try:
        read_table(path)
        readable = True
    except OnegradError as error:
        assert 0 < len(str(error)) < 40_000
    if kind in ("csv", "npz"):
        try:
            File(path=path)
        except OnegradError as error:
            assert 0 < len(str(error)) < 40_000
    took = time.process_time() - start
    assert took < SECONDS, f"took {took:.1f} s"
    assert peak() - before < MEGABYTES, f"{peak() - before:.0f} MB more"
    return readable


def _lie(path: Path) -> None:
    """An archive whose members say that they are larger than they are, or encrypted."""
    if not zipfile.is_zipfile(path):
        return
    raw = bytearray(path.read_bytes())
    at = raw.rfind(b"PK\x01\x02")
    if at >= 0 and len(raw) > at + 28:
        raw[at + 8] |= 1
        raw[at + 24 : at + 28] = b"\xff\xff\xff\x7f"
    path.write_bytes(bytes(raw))


if __name__ == "__main__":
    long_run(check, *map(int, sys.argv[1:]))
