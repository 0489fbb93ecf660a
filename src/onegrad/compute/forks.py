"""A process that forks while its threads compute: what they hold, nobody would ever give back."""

from __future__ import annotations

import functools
import os
import sys
import threading


def _unlock_cached_properties() -> None:
    """Python 3.11 computes every `functools.cached_property` under a lock of the class; from 3.12
    on there is none. In the child of a fork those of this package are made anew."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("onegrad."):
            continue
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == name:
                for member in vars(kind).values():
                    if isinstance(member, functools.cached_property) and hasattr(member, "lock"):
                        member.lock = threading.RLock()


if hasattr(os, "register_at_fork") and sys.version_info < (3, 12):
    os.register_at_fork(after_in_child=_unlock_cached_properties)
