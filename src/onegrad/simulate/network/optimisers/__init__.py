"""Optimisers of the first layer by name: one file each."""

from __future__ import annotations

from onegrad.simulate.network.optimisers import adam, gd, kfac, muon, sign
from onegrad.simulate.network.optimisers.optimiser import Optimiser, State

OPTIMISERS: dict[str, Optimiser] = {
    module.OPTIMISER.name: module.OPTIMISER for module in (gd, sign, adam, muon, kfac)
}

__all__ = ["OPTIMISERS", "Optimiser", "State"]
