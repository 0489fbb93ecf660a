"""From the [sweep] of a spec to the settings of its points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onegrad.errors import Problematic, SpecError, did_you_mean

ZIP = "zip"  # [sweep.zip]: lists that advance together
_MOST_POINTS = 100_000


@dataclass(frozen=True)
class Axis:
    """One direction of the grid: one key, or several whose lists advance together."""

    keys: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]  # one tuple per step, one value per key

    @property
    def zipped(self) -> bool:
        return len(self.keys) > 1


def flat(sweep: Mapping[str, Any]) -> dict[str, Any]:
    """Accept "network.width" = […] and [sweep.network] width = […] alike."""
    found: dict[str, Any] = {}
    for key, value in sweep.items():
        if isinstance(value, Mapping):
            found.update({f"{key}.{k}": v for k, v in flat(value).items()})
        else:
            found[key] = value
    return found


def read_axes(sweep: Mapping[str, Any], known: Sequence[str]) -> tuple[Axis, ...]:
    """The directions of the grid that a [sweep] table spans, checked."""
    free = flat({k: v for k, v in sweep.items() if k != ZIP})
    table = sweep.get(ZIP, {})
    if not isinstance(table, Mapping):
        raise SpecError.of(
            f"sweep.{ZIP}", table, "must be a table of lists of equal length",
            f"Write [sweep.{ZIP}] and its keys",
        )  # fmt: skip
    zipped = flat(table)
    for key in [k for k in zipped if k in free]:
        raise SpecError.of(
            f"sweep.{key}", free[key], f"is in [sweep.{ZIP}] too", "Keep one of the two"
        )
    axes = []
    for key, values in free.items():
        _check_list(f"sweep.{key}", key, values, known)
        axes.append(_axis(f"sweep.{key}", {key: values}))
    if zipped:
        name = f"sweep.{ZIP}"
        for key, values in zipped.items():
            _check_list(f"{name}.{key}", key, values, known)
        lengths = {key: len(values) for key, values in zipped.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key}: {length}" for key, length in lengths.items())
            raise SpecError.of(
                name, shown, "lists that advance together must have the same number of values",
                f"Cut them to {min(lengths.values())} each, or move a key to [sweep] for a grid",
            )  # fmt: skip
        axes.append(_axis(name, zipped))
    count = math.prod(len(axis.values) for axis in axes)
    if count > _MOST_POINTS:
        raise SpecError.of(
            "sweep", f"{count} points", f"must have at most {_MOST_POINTS} points",
            "Shorten the lists",
        )  # fmt: skip
    return tuple(axes)


def _check_list(name: str, key: str, values: Any, known: Sequence[str]) -> None:
    if key not in known:
        homes = [k for k in known if k.rpartition(".")[2] == key.rpartition(".")[2]]
        raise SpecError.of(
            name, values, "is not a key of the problem (write it as table.key)",
            did_you_mean(key, known) or (f'Write "{homes[0]}"' if homes else ""),
        )  # fmt: skip
    if not isinstance(values, list | tuple) or not values:
        raise SpecError.of(
            name, values, "must be a list of at least one value",
            f'For example "{key}" = [{values!r}]' if values else "Remove the line or add values",
        )  # fmt: skip


def _axis(name: str, lists: Mapping[str, Sequence[Any]]) -> Axis:
    steps = tuple(zip(*lists.values(), strict=True))
    if len({repr(step) for step in steps}) < len(steps):
        shown = [step[0] if len(step) == 1 else list(step) for step in steps]
        raise SpecError.of(name, shown, "must list each value once", "Remove the repeated ones")
    return Axis(tuple(lists), steps)


def settings_of(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """The swept keys of every point, the first key slowest."""
    for steps in itertools.product(*(axis.values for axis in axes)):
        yield {
            key: value
            for axis, step in zip(axes, steps, strict=True)
            for key, value in zip(axis.keys, step, strict=True)
        }


def in_sweep(
    error: SpecError, settings: Mapping[str, Any], axes: Sequence[Axis], everywhere: bool
) -> SpecError:
    """The error with the sweep's key, or the point at which it occurs, added."""
    names = {
        key: f"sweep.{ZIP}.{key}" if axis.zipped else f"sweep.{key}"
        for axis in axes
        for key in axis.keys
    }
    point = ", ".join(f"{key} = {value}" for key, value in settings.items())
    problems = []
    for p in error.problems:
        key = p.key.partition("[")[0]
        if key in names:
            problems.append(Problematic(names[key] + p.key[len(key) :], *_rest(p)))
        elif everywhere:
            problems.append(p)
        else:
            where = f"{p.allowed} (at {point} of the sweep)"
            problems.append(Problematic(p.key, p.value, where, p.suggestion))
    return SpecError(problems, error.more)


def _rest(problem: Problematic) -> tuple[object, str, str]:
    return problem.value, problem.allowed, problem.suggestion
