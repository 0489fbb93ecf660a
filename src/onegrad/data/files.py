"""Files of somebody else: what kind of thing a path is, and how large its contents may become."""

from __future__ import annotations

import math
import stat
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from onegrad.compute.available import available_bytes
from onegrad.errors import SpecError, did_you_mean

LARGE = 1_000_000_000  # bytes that a compressed file may always unpack to
_RATIO = 20  # times its size on disk that a larger file may unpack to
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_file(path: Path, key: str, wanted: str) -> None:
    """Refuse what is not an ordinary file, with what it is; `wanted` says what to give instead."""
    try:
        mode = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, FileNotFoundError):
            raise SpecError.of(
                key, str(path), "no such file (relative paths start where onegrad runs)",
                did_you_mean(path.name, _beside(path)) or f"Give {wanted}",
            ) from None  # fmt: skip
        reason = getattr(error, "strerror", None) or error
        raise SpecError.of(
            key, str(path), f"cannot be opened ({reason})", f"Give {wanted}"
        ) from None
    if mode != stat.S_IFREG:
        kind = _KINDS.get(mode, "not an ordinary file")
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
            return _member(archive, path, "x", key), _member(archive, path, "y", key)
    except SpecError:
        raise
    except NotImplementedError as error:
        raise _not_npz(path, key, f"its compression is not known here: {error}") from None
    except (BadZipFile, ValueError, OSError, EOFError, TypeError, RuntimeError, OverflowError,
            MemoryError, SyntaxError, RecursionError, ArithmeticError) as error:  # fmt: skip
        raise _not_npz(path, key, f"{error or type(error).__name__}") from None
    except Exception as error:  # zlib, lzma and bz2 have kinds of their own
        raise _not_npz(path, key, f"it is damaged: {error}") from None


def _not_npz(path: Path, key: str, why: str) -> SpecError:
    return SpecError.of(
        key, str(path), f"must be an NPZ archive with number arrays x and y ({why[:200]})",
        "Write it with numpy.savez(path, x=x, y=y)",
    )  # fmt: skip


def _member(archive: ZipFile, path: Path, name: str, key: str) -> np.ndarray:
    entry = _entry(archive, name)
    if entry.flag_bits & 1:
        raise ValueError(f"{entry.filename} is encrypted")
    check_size(path, key, entry.file_size)
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:  # later ones are for tables with names in other scripts
            raise ValueError(f"{entry.filename} is of NPY version {version}")
        shape, fortran, dtype = readers[version](stream)
        _check_shape(entry.filename, shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        if size != entry.file_size - stream.tell():
            raise ValueError(
                f"{entry.filename} has {entry.file_size - stream.tell()} bytes of numbers where "
                f"its header says {shape}"
            )
        raw = stream.read(size)
        if len(raw) != size or stream.read(1):
            raise ValueError(f"{entry.filename} does not have the size that the archive says")
    array = np.frombuffer(raw, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _entry(archive: ZipFile, name: str) -> ZipInfo:
    for known in (f"{name}.npy", name):
        if known in archive.namelist():
            return archive.getinfo(known)
    there = ", ".join(entry.removesuffix(".npy") for entry in archive.namelist()[:12])
    raise ValueError(f"it has no array {name}; it has {there or 'nothing'}")


def _check_shape(name: str, shape: Sequence[int], dtype: np.dtype) -> None:
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, not numbers")
    if dtype.itemsize == 0 or not all(isinstance(n, int) and 0 <= n < 2**48 for n in shape):
        raise ValueError(f"{name} says that its shape is {shape}")
