"""The models that can be compared, by name: the network, its equivalents, baselines, theories.

Every file of this folder that has a MODEL is one, theories.py has several; the network comes first.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from onegrad.simulate.models import theories
from onegrad.simulate.models.base import Model

_ORDER = (
    "network", "hermite", "conditional-gaussian", "spiked", "gaussian", "random-features", "linear",
    "kernel", "theory", "theory-limit", "isotropic-limit", "surrogate",
)  # fmt: skip


class Records(dict[str, Model]):
    """The models by name; variants such as hermite:1 are found too, but not listed."""

    def __missing__(self, name: str) -> Model:
        found = self._variant(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._variant(str(name)) is not None

    def _variant(self, name: str) -> Model | None:
        family, _, rest = name.partition(":")
        make = self[family].variant if rest and super().__contains__(family) else None
        return make(rest) if make else None


def _found() -> Records:
    modules = (import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__))
    records = [*theories.MODELS, *(m.MODEL for m in modules if hasattr(m, "MODEL"))]
    rank = {name: i for i, name in enumerate(_ORDER)}
    records.sort(key=lambda r: (r.theory is not None, rank.get(r.name, len(rank))))
    return Records({record.name: record for record in records})


MODELS = _found()
SIMULATED = tuple(name for name, model in MODELS.items() if model.theory is None)
THEORIES = tuple(name for name, model in MODELS.items() if model.theory is not None)
VARIANTS = tuple(model.variants for model in MODELS.values() if model.variants)
