"""The IDX format of the MNIST family: a magic number, the sizes, then raw numbers."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from onegrad.data.files import check_size
from onegrad.errors import SpecError

# the third byte of a file names the type of its numbers, most significant byte first
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_bytes(path: Path, key: str = "data.path") -> bytes:
    """The contents of an IDX file, decompressed if it is gzip: no more of them than one byte beyond
    the size that its header declares."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            head = stream.read(4)
            head += stream.read(4 * head[3]) if len(head) == 4 else b""
            declared = _declared(head)
            check_size(path, key, declared)
            return head + stream.read(declared + 1)
    except FileNotFoundError:
        raise SpecError.of(key, str(path), "no such file", "Check the path") from None
    except (OSError, EOFError, zlib.error, OverflowError, MemoryError) as error:
        raise SpecError.of(
            key,
            str(path.parent),
            f"{path.name} cannot be read ({error})",
            "Fetch the file again: it is damaged",
        ) from None


def _declared(head: bytes) -> int:
    """Bytes of numbers that follow this header; none if it is no header."""
    kind = _TYPES.get(head[2]) if len(head) >= 4 and head[:2] == b"\0\0" else None
    if kind is None or len(head) < 4 + 4 * head[3]:
        return 0
    return math.prod(np.frombuffer(head[4:], ">u4").tolist()) * np.dtype(kind).itemsize


def parse_idx(raw: bytes, name: str, key: str = "data.path") -> np.ndarray:
    """The array in an IDX file; refused if the header and the length disagree.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "two numbers").tolist()
    [7, 9]
    """
    kind = _TYPES.get(raw[2]) if len(raw) >= 4 and raw[:2] == b"\0\0" else None
    header = 4 + 4 * raw[3] if kind else 0
    if kind is None or raw[3] == 0 or len(raw) < header:
        raise SpecError.of(key, name, "is not an IDX file", "Give the file as it was published")
    shape = tuple(np.frombuffer(raw[4:header], ">u4").tolist())
    dtype = np.dtype(kind)
    if len(raw) - header != math.prod(shape) * dtype.itemsize:
        raise SpecError.of(
            key, name, f"has {len(raw) - header} bytes of numbers where its header says {shape}",
            "Fetch the file again: it is cut short or damaged",
        )  # fmt: skip
    return np.frombuffer(raw, dtype, offset=header).reshape(shape)


def read_idx(path: str | Path, key: str = "data.path") -> np.ndarray:
    """The array in an IDX file, compressed or not."""
    return parse_idx(read_bytes(Path(path), key), str(path), key)
