"""A page's message: read by the spec's own rules, within the page's bounds, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from onegrad.errors import SpecError
from onegrad.page.bounds import (
    DATA_MODELS,
    MESSAGE_BYTES,
    POINTS,
    RUNS,
    check_draw,
    check_simulation,
    check_steps,
    check_theory,
)
from onegrad.spec.experiment import Experiment
from onegrad.spec.fields import Section, Whole, override
from onegrad.spec.sweep import ZIP

Kind = Literal[
    "curve", "map", "spectrum", "features", "neurons", "steps", "picture", "simulate", "draw",
    "spec", "stop",
]  # fmt: skip
SIMULATIONS = ("simulate", "draw")


class Message(Section):
    """What a page may send; `spec` is checked separately."""

    type: Kind = Field(description="what is asked for", examples=["curve"])
    id: Whole = Field(ge=0, le=2**53, description="number of the request", examples=[1])
    spec: dict[str, Any] = Field(default_factory=dict, description="the tables of a spec")
    coarse: bool = Field(default=False, description="few nodes, fast", examples=[True])
    gain: bool = Field(default=False, description="random features beside it", examples=[True])
    limit: bool = Field(default=False, description="the limit of large n too", examples=[True])
    direction: str = Field(
        default="teacher", max_length=40, description="a direction's name", examples=["teacher"]
    )
    component: Whole = Field(default=0, ge=0, le=99, description="a component", examples=[0])
    stops: Literal["simulate", "curve"] = Field(
        default="simulate", description="what a stop stops", examples=["curve"]
    )
    versus: Literal["batch", "optimiser"] = Field(
        default="batch", description="what steps are compared by", examples=["batch"]
    )


@dataclass(frozen=True)
class Request:
    """A valid message: its experiment, and the tables of each of its points."""

    message: Message
    tables: dict[str, Any]
    experiment: Experiment | None
    points: tuple[dict[str, Any], ...]


def channel_named(kind: str) -> str:
    """Where a kind of message is answered: its pictures do not wait for a curve's end."""
    if kind == "picture":
        return "picture"
    return "simulation" if kind in SIMULATIONS else "theory"


def request_number(text: str) -> int | None:
    """The id of a message that may be wrong otherwise, so that the page knows which one it was."""
    try:
        number = json.loads(text)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return number if type(number) is int else None


def read_request(text: str) -> Request:
    """The request, or a SpecError that says what is wrong with it."""
    if len(text) > MESSAGE_BYTES:
        raise SpecError.of(
            "message", f"{len(text)} characters", f"must have at most {MESSAGE_BYTES}",
            "Send one request at a time",
        )  # fmt: skip
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise SpecError.of(
            "message", text[:40], "must be a JSON object", 'For example {"type": "curve", "id": 1}'
        ) from None
    if not isinstance(raw, dict):
        raise SpecError.of("message", raw, "must be a JSON object", 'For example {"type": "stop"}')
    message = Message(**raw)
    if message.type == "stop":
        return Request(message, {}, None, ())
    tables = dict(message.spec)
    sweep = _sweep_of(tables)
    _refuse_what_is_outside(tables, sweep)
    experiment = Experiment.from_tables(tables)
    for point in experiment.points:
        if message.type in ("simulate", "neurons"):
            check_simulation(point.problem)
        elif message.type == "draw":
            check_draw(point.problem)
        elif message.type == "steps":
            check_steps(point.problem)
        elif message.type != "spec":
            check_theory(point.problem)
    _check_counts(message, experiment)
    points = tuple(_tables_at(tables, p.settings) for p in experiment.points)
    return Request(message, tables, experiment, points)


def _sweep_of(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The swept keys, their number of points checked before any of them is built."""
    sweep = tables.get("sweep", {})
    if not isinstance(sweep, Mapping) or not isinstance(sweep.get(ZIP, {}), Mapping):
        raise SpecError.of("sweep", sweep, "must be a table of lists", "Write [sweep]")
    tied = sweep.get(ZIP, {})
    alone = {key: values for key, values in sweep.items() if key != ZIP}
    lengths = {k: len(v) for k, v in (*alone.items(), *tied.items()) if isinstance(v, list)}
    count = math.prod(lengths.get(key, 1) for key in alone)
    count *= max((lengths.get(key, 1) for key in tied), default=1)
    if count > POINTS:
        raise SpecError.of(
            "sweep", f"{count} points", f"must have at most {POINTS} on the page",
            "Use `onegrad run`",
        )  # fmt: skip
    return alone | dict(tied)


def _refuse_what_is_outside(tables: Mapping[str, Any], sweep: Mapping[str, Any]) -> None:
    """A page never names a file or a device: only data that are drawn, on the processor."""
    data = tables.get("data")
    model = data.get("model") if isinstance(data, Mapping) else None
    if model not in DATA_MODELS:
        raise SpecError.of(
            "data.model", model, f"must be one of {', '.join(DATA_MODELS)} on the page",
            "Use `onegrad run` for data of your own",
        )  # fmt: skip
    compare = tables.get("compare")
    if isinstance(compare, Mapping) and compare.get("device", "cpu") != "cpu":
        raise SpecError.of(
            "compare.device", compare["device"], 'must be "cpu" on the page', "Use `onegrad run`"
        )
    for key in ("data.model", "data.path", "compare.device"):
        if key in sweep:
            raise SpecError.of(f"sweep.{key}", sweep[key], "cannot be swept on the page")


def _check_counts(message: Message, experiment: Experiment) -> None:
    if message.type != "simulate":
        return
    if not experiment.compare.simulated:
        raise SpecError.of(
            "compare.models", list(experiment.compare.models), "must name a simulated model",
            'For example ["network"]',
        )  # fmt: skip
    seeds = experiment.compare.seeds
    if seeds == "auto":
        raise SpecError.of("compare.seeds", seeds, "must be a number on the page", "For example 10")
    runs = len(experiment.points) * seeds
    if runs > RUNS:
        raise SpecError.of(
            "compare.seeds", seeds,
            f"times {len(experiment.points)} points must be at most {RUNS} on the page",
            f"For example {max(1, RUNS // len(experiment.points))}",
        )  # fmt: skip


def _tables_at(tables: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of one point: the swept keys set, no sweep left."""
    changed: dict[str, Any] = {k: v for k, v in tables.items() if k != "sweep"}
    for key, value in settings.items():
        changed = override(changed, key, value)
    return changed
