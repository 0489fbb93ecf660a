"""The models that can be compared, by name: the network, its equivalents, baselines, theories.

Every file of this folder that has a MODEL is one; the network comes first.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from onegrad.models.base import Model

_ORDER = (
    "network", "hermite", "conditional-gaussian", "spiked", "gaussian", "random-features", "linear",
    "kernel", "theory", "theory-limit", "surrogate",
)  # fmt: skip


def _found() -> dict[str, Model]:
    modules = (import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    records = [m.MODEL for m in modules if hasattr(m, "MODEL")]
    rank = {name: i for i, name in enumerate(_ORDER)}
    records.sort(key=lambda r: (r.theory is not None, rank.get(r.name, len(rank))))
    return {record.name: record for record in records}


MODELS: dict[str, Model] = _found()
SIMULATED = tuple(name for name, model in MODELS.items() if model.theory is None)
THEORIES = tuple(name for name, model in MODELS.items() if model.theory is not None)
