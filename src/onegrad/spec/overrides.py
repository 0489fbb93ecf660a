"""A spec's tables, changed before they are read: `--set key=value` and `--quick`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from onegrad.errors import SpecError
from onegrad.spec.fields import RIVALS, is_whole, override, parse_toml
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

_VALUES, _SEEDS = 4, 5  # values of a swept key, repetitions
_LARGE, _LARGE_SEEDS = 1500, 2  # one repetition at so many inputs takes a minute
_PRECISION = 0.01  # precision of seeds = "auto"
_COARSE = 0.03  # accuracy of the theory of images: a minute a point otherwise


def quick_tables(tables: Tables) -> Tables:
    """A quick version of an experiment: some of its points, at most five repetitions.

    Sizes, models and theory stay: θ, η and the labels' scale are powers of n, so that smaller
    sizes would be another problem. At most four values of each swept key are kept, published ones
    where there are any, and every name. `seeds = "auto"` stops at standard errors of 1 %.
    """
    sweep = _sweep(tables)
    zipped = sweep.pop(ZIP, {})
    figure = _inner(tables, "figure").get("published", "")
    lists: dict[str, Any] = {key: _few(key, v, figure) for key, v in flat(sweep).items()}
    if isinstance(zipped, Mapping) and zipped:
        together = flat(zipped)
        named = any(_are_names(values) for values in together.values())
        lists[ZIP] = together if named else {k: _spaced(v) for k, v in together.items()}
    compare, data = _inner(tables, "compare"), _inner(tables, "data")
    seeds = compare.get("seeds", _SEEDS)
    if seeds == "auto":
        precision = compare.get("precision", _PRECISION)
        coarser = max(precision, _PRECISION) if isinstance(precision, float) else precision
        changed = override(tables, "compare.precision", coarser)
    else:
        large = is_whole(data.get("dim")) and data["dim"] >= _LARGE
        few = _LARGE_SEEDS if large else _SEEDS
        changed = override(tables, "compare.seeds", min(seeds, few) if is_whole(seeds) else seeds)
    if data.get("model") in ("fashion-mnist", "digits", "file"):
        changed = override(changed, "compare.accuracy", _COARSE)
    return {**changed, "sweep": lists} if lists else changed


def _inner(tables: Tables, table: str) -> Mapping[str, Any]:
    value = tables.get(table, {})
    return value if isinstance(value, Mapping) else {}


def _few(key: str, values: Any, figure: Any) -> Any:
    """At most four values; of those with a published point where there are any."""
    if not isinstance(values, list | tuple) or _are_names(values):
        return values
    if isinstance(figure, str) and figure:
        from onegrad.spec.published import published_names, published_places

        places = published_places(figure, key) if figure in published_names() else []
        values = [v for v in values if any(_near(v, place) for place in places)] or values
    return _spaced(values)


def _are_names(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(v, str) for v in values)


def _near(value: Any, place: float) -> bool:
    first = value[0] if isinstance(value, list | tuple) and value else value
    return isinstance(first, int | float) and abs(first - place) <= 1e-3 * max(1.0, abs(place))


def _spaced(values: Any) -> Any:
    if not isinstance(values, list | tuple) or len(values) <= _VALUES:
        return values
    last = len(values) - 1
    return [values[round(i * last / (_VALUES - 1))] for i in range(_VALUES)]
