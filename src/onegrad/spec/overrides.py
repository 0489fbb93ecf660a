"""A spec's tables, changed before they are read: `--set key=value` and `--quick`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from onegrad.errors import SpecError
from onegrad.spec.fields import RIVALS, override, parse_toml
from onegrad.spec.sweep import ZIP, flat

Tables = Mapping[str, Any]


def parse_change(text: str) -> tuple[str, Any]:
    """`key=value` with a TOML value; a bare word is a text.

    >>> parse_change("compare.seeds=5"), parse_change("network.activation=tanh")
    (('compare.seeds', 5), ('network.activation', 'tanh'))
    >>> parse_change("sweep.network.width_ratio=[0.5, 1]")
    ('sweep.network.width_ratio', [0.5, 1])
    """
    key, equals, value = text.partition("=")
    key, value = key.strip().replace('"', ""), value.strip()
    if not equals or not key or not value:
        raise SpecError.of(
            "--set", text, "must be key=value with the key's table",
            "For example --set compare.seeds=5",
        )  # fmt: skip
    try:
        return key, parse_toml(f"value = {value}")["value"]
    except ValueError:
        if re.fullmatch(r"[A-Za-z./~][\w./ -]*(\(.*\))?", value):
            return key, value
    raise SpecError.of(
        "--set", text, "the value must be written as in TOML: 0.5, true, [1, 2], [\"relu\"]",
        "In a shell, put quotes around the whole: --set 'sweep.network.activation=[\"relu\"]'",
    )  # fmt: skip


def with_changes(tables: Tables, changes: Iterable[str]) -> Tables:
    """Set keys in the order given; what is set by hand is no longer swept."""
    for text in changes:
        key, value = parse_change(text)
        if key.startswith("sweep."):
            tables = _set_sweep(tables, key.removeprefix("sweep."), value)
            continue
        if key.count(".") > 1:
            raise SpecError.of(
                key, value, "is not a known key; keys are table.key or sweep.table.key",
                f"Write {'.'.join(key.split('.')[:2])}",
            )  # fmt: skip
        tables = override(_unswept(tables, key, text), key, value)
    return tables


def _sweep(tables: Tables) -> dict[str, Any]:
    sweep = tables.get("sweep", {})
    return dict(sweep) if isinstance(sweep, Mapping) else {}


def _set_sweep(tables: Tables, key: str, value: Any) -> Tables:
    if not key.startswith(f"{ZIP}."):
        tables = _unswept(tables, key, f"sweep.{key}")
        sweep = _sweep(tables)
        zipped = sweep.pop(ZIP, None)
        sweep = flat(sweep) | {key: value}
        return {**tables, "sweep": sweep | ({ZIP: zipped} if zipped else {})}
    sweep = _sweep(tables)
    zipped = flat(sweep.get(ZIP, {})) | {key.removeprefix(f"{ZIP}."): value}
    return {**tables, "sweep": sweep | {ZIP: zipped}}


def _unswept(tables: Tables, key: str, text: str) -> Tables:
    """Without a sweep over this key or a rival of it, which would win over the value set."""
    rivals = {key}.union(*(group for group in RIVALS if key in group))
    sweep = _sweep(tables)
    zipped = sweep.pop(ZIP, {})
    free = flat(sweep)
    for rival in rivals & set(flat(zipped) if isinstance(zipped, Mapping) else {}):
        raise SpecError.of(
            "--set", text, f"{rival} advances together with other keys in [sweep.{ZIP}]",
            f"Set sweep.{ZIP}.{rival} to a list of the same length",
        )  # fmt: skip
    if not rivals & set(free):
        return tables
    kept = {k: v for k, v in free.items() if k not in rivals}
    return {**tables, "sweep": kept | ({ZIP: zipped} if zipped else {})}


# --- quick ------------------------------------------------------------------------------

_SIZES = (
    "data.dim", "training.samples", "training.step_samples", "network.width",
    "compare.test_samples",
)  # fmt: skip
_LARGEST = 10_000_000  # size that a spec may have
_DRAFT = 0.03  # the accuracy from which on `predict` draws theory curves in milliseconds
_NO_DRAFT = (
    0.029  # with the 1/n correction, which is 10 to 20 % of errors at such sizes on a power law
)
_QUICK_DIM, _QUICK_SAMPLES, _QUICK_SEEDS, _QUICK_VALUES, _QUICK_NAMES = 100, 150, 3, 3, 2


def quick_tables(tables: Tables) -> Tables:
    """The same experiment in seconds: sizes cut in proportion, and with them rates that count per
    neuron; three values or two names a key, three seeds, a draft of the theory (on a bulk that is
    not flat a coarse one with its 1/n correction)."""
    sweep = _sweep(tables)
    zipped = sweep.pop(ZIP, {})
    small = {
        key: values[:_QUICK_NAMES] if _are_names(values) else _few(values, key in _SIZES)
        for key, values in flat(sweep).items()
    }
    zipped = flat(zipped) if isinstance(zipped, Mapping) else {}
    sizes_advance = any(key in _SIZES for key in zipped)
    zipped = {key: _few(values, sizes_advance) for key, values in zipped.items()}
    factor = _factor(tables, small | zipped)
    changed = tables
    for key in _SIZES:
        table, name = key.split(".")
        value = _inner(tables, table).get(name)
        if _is_whole(value):
            changed = override(changed, key, _scaled(value, factor))
    seeds = _inner(tables, "compare").get("seeds", 0)
    few = min(seeds, _QUICK_SEEDS) if _is_whole(seeds) and seeds > 0 else _QUICK_SEEDS
    draft = "spectrum" not in _inner(tables, "data")
    accuracy = _DRAFT if draft else _NO_DRAFT
    changed = override(override(changed, "compare.seeds", few), "compare.accuracy", accuracy)
    if _inner(tables, "figure").get("published"):  # of another size
        changed = override(changed, "figure.published", "")
    said = "quick: sizes, points and seeds cut down"
    said += ", a draft of the theory without 1/n" if draft else ""
    name = f"{tables.get('name', 'experiment')} ({said})"
    lists = {key: _scaled_list(key, values, factor) for key, values in small.items()}
    if zipped:
        lists[ZIP] = {k: _scaled_list(k, values, factor) for k, values in zipped.items()}
    changed = {**changed, "name": name} | ({"sweep": lists} if lists else {})
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
    sweep = _sweep(tables)
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
    for key, target in (("data.dim", _QUICK_DIM), ("training.samples", _QUICK_SAMPLES)):
        table, name = key.split(".")
        values = swept.get(key, [_inner(tables, table).get(name)])
        listed = values if isinstance(values, list | tuple) else []
        sizes = [v for v in listed if _is_whole(v) and 1 <= v <= _LARGEST]  # others are refused
        if sizes:
            return min(1.0, (2 if key in swept else 1) * target / max(sizes))
    return 1.0


def _scaled(value: int, factor: float) -> int:
    return max(1, round(value * factor)) if 1 <= value <= _LARGEST else value


def _scaled_list(key: str, values: Any, factor: float) -> Any:
    if key not in _SIZES or not isinstance(values, list | tuple):
        return values
    return [_scaled(v, factor) if _is_whole(v) else v for v in values]


def _are_names(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(v, str) for v in values)


def _few(values: Any, smallest: bool = False) -> Any:
    """The ends and the middle of a list, or its beginning: the sizes that cost least."""
    if not isinstance(values, list | tuple) or len(values) <= _QUICK_VALUES:
        return values
    if smallest:
        return list(values[:_QUICK_VALUES])
    last = len(values) - 1
    return [values[round(i * last / (_QUICK_VALUES - 1))] for i in range(_QUICK_VALUES)]
