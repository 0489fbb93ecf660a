"""Optimisers of the first layer by the names that a spec knows (spec/tables.py): one file each."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

from onegrad.simulate.network.optimisers.optimiser import Optimiser, State
from onegrad.spec import tables

OPTIMISERS: dict[str, Optimiser] = {
    name: import_module(f"{__name__}.{name}").OPTIMISER for name in get_args(tables.Optimiser)
}

__all__ = ["OPTIMISERS", "Optimiser", "State"]
