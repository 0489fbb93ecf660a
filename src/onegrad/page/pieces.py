"""What a request is made of: pieces that are computed one by one, or some of them together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onegrad.page.requests import Request
from onegrad.page.steps import COUNTS, VERSUS, step_tables
from onegrad.page.untrained import tables_without_step

_SHARED = ("theory", "map", "spikes")  # kinds of which one task may hold several
_DRAFTS = (3, 10)  # draft points in one task: few enough to keep all workers busy
_FINE = 4  # accurate points in one task: a cancelled one ends soon
_Pieces = list[tuple[str, Mapping[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Piece:
    """One answer that a request waits for."""

    index: int
    kind: str
    tables: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What the answer depends on, for the cache."""
        problem = {k: v for k, v in self.tables.items() if k not in ("name", "figure")}
        return json.dumps([self.kind, problem, dict(self.options)], sort_keys=True)


def chunks(pieces: list[Piece], workers: int) -> list[list[Piece]]:
    """Pieces that are cheaper together: points of theory, drafts shared among all workers."""
    together: list[list[Piece]] = []
    most = min(max(-(-len(pieces) // workers), _DRAFTS[0]), _DRAFTS[1])
    for piece in pieces:
        last = together[-1][-1] if together else None
        if (
            last is None
            or piece.kind not in _SHARED
            or (last.kind, last.options) != (piece.kind, piece.options)
            or len(together[-1]) >= (most if piece.options.get("coarse") else min(most, _FINE))
        ):
            together.append([])
        together[-1].append(piece)
    return together


def pieces_of(request: Request) -> list[Piece]:
    """The pieces of a request, in the order in which the page counts them."""
    return [Piece(index, *piece) for index, piece in enumerate(_listed(request))]


def _listed(request: Request) -> _Pieces:
    message = request.message
    assert request.experiment is not None
    compare = request.experiment.compare
    seed = compare.seed
    coarse: dict[str, Any] = {"coarse": message.coarse}
    asked = coarse | {"seed": seed}
    if not message.coarse:
        asked |= {"accuracy": compare.accuracy, "finite_size": compare.finite_size}
    gain = message.gain
    if message.type == "curve":
        points: _Pieces = [("theory", tables, asked) for tables in request.points]
        points += [("theory", t, asked) for t in _untrained(request)] if gain else []
        limit = asked | {"method": "isotropic-limit"}
        return points + [("theory", t, limit) for t in request.points if message.limit]
    if message.type == "map":
        return [("map", tables, asked | {"gain": gain}) for tables in request.points]
    alone = {key: value for key, value in request.tables.items() if key != "sweep"}
    if message.type in ("features", "picture"):
        where = coarse | {"direction": message.direction, "component": message.component}
        both: _Pieces = [("features", alone, where | {"step": step}) for step in (True, False)]
        if message.type == "features":
            return both
        untrained = tables_without_step(request.experiment.points[0].problem)
        errors: _Pieces = [("point", tables, asked) for tables in (alone, untrained)]
        return [*both, ("data", alone, {}), *errors]
    if message.type == "spectrum":
        path = request.points if "sweep" in request.tables else ()
        return [("spectrum", alone, {}), *(("spikes", tables, {}) for tables in path)]
    if message.type in ("draw", "neurons"):
        return [(message.type, alone, {"seed": seed})]
    if message.type == "steps":
        problem = request.experiment.points[0].problem
        known: dict[str, Any] = {"seed": seed, "equal": message.versus == "optimiser"}
        where = coarse | {"direction": message.direction, "component": message.component} | known
        listed = [
            step_tables(problem, message.versus, option, steps)
            for steps in COUNTS
            for option in VERSUS[message.versus]
        ]
        theory: _Pieces = [("steps-theory", one, known) for one in listed]
        return [("steps", one, where) for one in listed] + theory
    # seed by seed, so that the first dots of every curve arrive early
    return [
        ("repetition", tables, {"seed": seed})
        for seed in range(request.experiment.compare.largest_count)
        for tables in request.points
    ]


def _untrained(request: Request) -> list[dict[str, Any]]:
    """Every point without the step, as random features."""
    assert request.experiment is not None
    return [tables_without_step(point.problem) for point in request.experiment.points]
