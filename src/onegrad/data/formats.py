"""Files of numbers, NPZ and IDX: what a path is, and how large its contents may become."""

from __future__ import annotations

import gzip
import math
import stat
import zlib
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from onegrad.compute.memory import available_bytes
from onegrad.errors import SpecError, did_you_mean

LARGE = 1_000_000_000  # bytes that a compressed file may always unpack to
_RATIO = 20  # times its size on disk that a larger file may unpack to
# the third byte of a file names the type of its numbers, most significant byte first
_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def check_file(path: Path, key: str, wanted: str) -> None:
    """Refuse what is not an ordinary file, with what it is; `wanted` says what to give instead."""
    try:
        mode = stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError:
        raise SpecError.of(
            key, str(path), "no such file (relative paths start where onegrad runs)",
            did_you_mean(path.name, _beside(path)) or f"Give {wanted}",
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise SpecError.of(
            key, str(path), f"cannot be opened ({reason})", f"Give {wanted}"
        ) from None
    if mode != stat.S_IFREG:
        kind = "a directory" if mode == stat.S_IFDIR else "no ordinary file"
        raise SpecError.of(key, str(path), f"is {kind}, not a file of data", f"Give {wanted}")


def _beside(path: Path, most: int = 1000) -> list[str]:
    try:
        return [p.name for p, _ in zip(path.parent.iterdir(), range(most), strict=False)]
    except OSError:
        return []


def check_size(path: Path, key: str, declared: int) -> None:
    """Refuse a file that says it unpacks to more than a gigabyte and twenty times its size, or to
    more than there is memory for."""
    available = available_bytes()
    if declared > max(LARGE, _RATIO * path.stat().st_size) or (
        available is not None and declared > available
    ):
        raise SpecError.of(
            key, str(path), f"says that it unpacks to {declared / 1e9:.3g} GB, and it has "
            f"{path.stat().st_size / 1e6:.3g} MB",
            "Store a part of it, or the arrays in single precision",
        )  # fmt: skip


def read_npz(path: Path, key: str = "data.path") -> tuple[np.ndarray, np.ndarray]:
    """The arrays x and y of an archive, in the type they are stored in.

    Sizes are checked before anything is unpacked; objects, which could run code, are refused.
    """
    try:
        with ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.removesuffix(".npy") in ("x", "y"):
                    check_size(path, key, entry.file_size)
        with np.load(path, allow_pickle=False) as arrays:
            for name in ("x", "y"):
                if name not in arrays:
                    there = ", ".join(arrays.files[:12]) or "nothing"
                    raise ValueError(f"it has no array {name}; it has {there}")
            x, y = arrays["x"], arrays["y"]
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            raise ValueError("x and y are no arrays")
        return x, y
    except SpecError:
        raise
    except Exception as error:  # zlib, lzma, bz2, zipfile and NumPy raise their own exception types
        why = f"{error or type(error).__name__}"[:200]
        raise SpecError.of(
            key, str(path), f"must be an NPZ archive with number arrays x and y ({why})",
            "Write it with numpy.savez(path, x=x, y=y)",
        ) from None  # fmt: skip


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
            key, str(path.parent), f"{path.name} cannot be read ({error})",
            "Fetch the file again: it is damaged",
        ) from None  # fmt: skip


def _header(raw: bytes) -> tuple[np.dtype, tuple[int, ...], int] | None:
    """Type and shape of the numbers, and where they begin; None if this is no IDX header."""
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES:
        return None
    end = 4 + 4 * raw[3]
    if end == 4 or len(raw) < end:
        return None
    return np.dtype(_TYPES[raw[2]]), tuple(np.frombuffer(raw[4:end], ">u4").tolist()), end


def _declared(head: bytes) -> int:
    """Bytes of numbers that follow this header; none if it is no header."""
    found = _header(head)
    return 0 if found is None else math.prod(found[1]) * found[0].itemsize


def parse_idx(raw: bytes, name: str, key: str = "data.path") -> np.ndarray:
    """The array in an IDX file; refused if the header and the length disagree.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "two numbers").tolist()
    [7, 9]
    """
    found = _header(raw)
    if found is None:
        raise SpecError.of(key, name, "is not an IDX file", "Give the file as it was published")
    dtype, shape, start = found
    if len(raw) - start != math.prod(shape) * dtype.itemsize:
        raise SpecError.of(
            key, name, f"has {len(raw) - start} bytes of numbers where its header says {shape}",
            "Fetch the file again: it is cut short or damaged",
        )  # fmt: skip
    return np.frombuffer(raw, dtype, offset=start).reshape(shape)


def read_idx(path: str | Path, key: str = "data.path") -> np.ndarray:
    """The array in an IDX file, compressed or not."""
    return parse_idx(read_bytes(Path(path), key), str(path), key)
