"""Memory of this machine: how much it can still give, and what is kept of what was freed."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path

_MMAP_THRESHOLD, _LARGEST = -3, 1 << 25  # bytes: the most that glibc allows
_TRIM_THRESHOLD, _KEPT = -1, 1 << 30


def available_bytes() -> int | None:
    """Memory that this process can still get, or None where the machine does not tell: what is free
    or can be freed, and what limits of a container, a queue or `ulimit -v` leave."""
    known = [found for found in (_of_machine(), _of_group(), _of_process()) if found is not None]
    return max(0, min(known)) if known else None


def _of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_group(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Of the control group (version 2), as the containers and queues of Linux set it."""
    try:
        group = Path("/proc/self/cgroup").read_text(encoding="ascii").strip().rpartition("::/")[2]
        for folder in (root / group, root):
            if (folder / "memory.max").exists():
                most = (folder / "memory.max").read_text(encoding="ascii").strip()
                used = int((folder / "memory.current").read_text(encoding="ascii"))
                freed = 0
                for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
                    if line.startswith("inactive_file "):
                        freed = int(line.split()[1])
                return None if most == "max" else int(most) - used + freed
    except (OSError, ValueError):
        pass
    return None


def _of_process() -> int | None:
    try:
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return most - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None


@lru_cache(maxsize=1)
def keep_freed_arrays() -> None:
    """From now on the C library keeps arrays of up to 32 MiB that this process frees.

    Unless told so, glibc gives them back to the system, which clears the memory of every new one:
    5 to 10 % of the processor time of a repetition at n = 1000. Other C libraries go their own way.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)
