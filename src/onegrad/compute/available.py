"""How much memory this machine can still give."""

from __future__ import annotations

import os
from pathlib import Path


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
