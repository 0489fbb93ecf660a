"""A preset at small sizes, for tests and thumbnails: seconds, with the theory for finite sizes.

Not what `--quick` does: θ, η and the labels' scale are powers of n, so this is another problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from onegrad.spec.fields import override
from onegrad.spec.sweep import ZIP, flat

Tables = Mapping[str, Any]

_SIZES = (
    "data.dim", "training.samples", "training.total", "training.step_samples", "network.width",
    "compare.test_samples",
)  # fmt: skip
_ACCURACY = 0.029  # the coarsest of which the theory corrects for finite sizes
_DIM, _SAMPLES, _SEEDS, _VALUES, _NAMES = 100, 150, 3, 3, 2


def small_tables(tables: Tables) -> Tables:
    """Sizes cut in proportion, and with them rates that count per neuron; three values or two
    names a key, three seeds."""
    sweep = dict(_inner(tables, "sweep"))
    zipped = flat(sweep.pop(ZIP, {}))
    small = {
        key: values[:_NAMES] if _are_names(values) else _few(values, key in _SIZES)
        for key, values in flat(sweep).items()
    }
    sizes_advance = any(key in _SIZES for key in zipped)
    zipped = {key: _few(values, sizes_advance) for key, values in zipped.items()}
    factor = _factor(tables, small | zipped)
    changed = tables
    for key in _SIZES:
        table, name = key.split(".")
        value = _inner(tables, table).get(name)
        if _is_whole(value):
            changed = override(changed, key, _scaled(value, factor))
    for key, value in (("seeds", _SEEDS), ("accuracy", _ACCURACY)):
        changed = override(changed, f"compare.{key}", value)
    changed = override(changed, "figure.published", "") if "figure" in tables else changed
    lists = {key: _scaled_list(key, values, factor) for key, values in small.items()}
    if zipped:
        lists[ZIP] = {k: _scaled_list(k, values, factor) for k, values in zipped.items()}
    changed = {**changed} | ({"sweep": lists} if lists else {})
    return _with_scaled_rates(changed, factor)


_RATE, _OPTIMISER = "training.rate", "training.optimiser"


def _with_scaled_rates(tables: Tables, factor: float) -> Tables:
    """A step is W + (η/k)·G in the mixture convention: with fewer neurons η shrinks alike. Not so
    where G is normalised (`sign`, `adam`, `muon`)."""
    if _inner(tables, "network").get("convention", "mixture") != "mixture":
        return tables
    training = _inner(tables, "training")
    usual = training.get("optimiser", "gd")
    if "rate" in training:
        tables = override(tables, _RATE, _scaled_rate(training["rate"], usual, factor))
    sweep = dict(_inner(tables, "sweep"))
    zipped = dict(sweep.get(ZIP, {})) if isinstance(sweep.get(ZIP, {}), Mapping) else {}
    if isinstance(rates := sweep.get(_RATE), list | tuple):
        sweep[_RATE] = [_scaled_rate(rate, usual, factor) for rate in rates]
    if isinstance(rates := zipped.get(_RATE), list | tuple):
        used = zipped.get(_OPTIMISER)
        used = used if isinstance(used, list | tuple) else [usual] * len(rates)
        pairs = zip(rates, used, strict=False)
        sweep[ZIP] = {**zipped, _RATE: [_scaled_rate(*pair, factor) for pair in pairs]}
    return {**tables, "sweep": sweep} if sweep else tables


def _scaled_rate(rate: Any, optimiser: Any, factor: float) -> Any:
    if optimiser not in ("gd", "kfac"):
        return rate
    if isinstance(rate, list | tuple):  # one for each step
        return [_scaled_rate(one, optimiser, factor) for one in rate]
    return rate * factor if isinstance(rate, int | float) and not isinstance(rate, bool) else rate


def _inner(tables: Tables, table: str) -> Mapping[str, Any]:
    value = tables.get(table, {})
    return value if isinstance(value, Mapping) else {}


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _factor(tables: Tables, swept: Mapping[str, Any]) -> float:
    """By how much sizes shrink: n to 100 (the largest to 200 if it is swept), or m to 150 where the
    data fix n."""
    for key, target in (("data.dim", _DIM), ("training.samples", _SAMPLES)):
        table, name = key.split(".")
        values = swept.get(key, [_inner(tables, table).get(name)])
        listed = values if isinstance(values, list | tuple) else []
        sizes = [v for v in listed if _is_whole(v)]
        if sizes:
            return min(1.0, (2 if key in swept else 1) * target / max(sizes))
    return 1.0


def _scaled(value: int, factor: float) -> int:
    return max(1, round(value * factor))


def _scaled_list(key: str, values: Any, factor: float) -> Any:
    if key not in _SIZES or not isinstance(values, list | tuple):
        return values
    return [_scaled(v, factor) if _is_whole(v) else v for v in values]


def _are_names(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(v, str) for v in values)


def _few(values: Any, smallest: bool = False) -> Any:
    """The ends and the middle of a list, or its beginning: the sizes that cost least."""
    if not isinstance(values, list | tuple) or len(values) <= _VALUES:
        return values
    if smallest:
        return list(values[:_VALUES])
    last = len(values) - 1
    return [values[round(i * last / (_VALUES - 1))] for i in range(_VALUES)]
