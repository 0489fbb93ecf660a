"""Where the theory of types refuses or is uncertain: that of first layers drawn and trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onegrad.errors import Failure, OnegradError
from onegrad.predict.layers import LeftOpen, predict_layers
from onegrad.predict.prediction import LAYERS, Prediction
from onegrad.predict.wording import of_solution
from onegrad.problem import Problem
from onegrad.theory.chance import Chance
from onegrad.theory.options import ACCURATE, Theory
from onegrad.theory.task import Solution, Task

_UNCERTAIN = 0.03  # error estimate from which on first layers are drawn, too
_DRAWN_WIDTH = 1000  # neurons up to which that takes seconds
_WIDE = 2000  # up to which it takes less time than types with very long rules
_MUCH = 0.2  # error estimate of layers above which types are finished, up to some long patience
_PATIENCE = 1.5e6  # types × nodes: about a second
LONG_PATIENCE = 3 * _PATIENCE
_UNKNOWN = " and has no correction for finite sizes here"


@dataclass(frozen=True)
class DrawnLayers:
    """The theory of drawn first layers of one problem, computed once and when it is asked for."""

    problem: Problem
    theory: Theory
    seed: int

    @cached_property
    def found(self) -> Prediction | None:
        """None where it fails, or more was asked than draws can give."""
        return self._predicted(math.inf)

    def within(self, enough: float) -> Prediction | None:
        """The same if its estimate is below `enough`; given up as soon as one layer tells that it
        is not."""
        known = vars(self)
        if "found" not in known and enough > known.get("least", 0.0):
            try:
                found = self._predicted(enough)
            except LeftOpen as given_up:
                known["least"] = given_up.least
            else:
                known["found"] = found
        found = known.get("found")
        return found if found is not None and found.error_estimate < enough else None

    def _predicted(self, enough: float) -> Prediction | None:
        if self.theory.overlaps == "typical" or self.theory.accuracy < ACCURATE:
            return None
        try:
            return predict_layers(self.problem, self.theory, self.seed, enough=enough)
        except LeftOpen:
            raise
        except (OnegradError, np.linalg.LinAlgError):
            return None

    @property
    def patience(self) -> float:
        """Types × nodes of the theory without a draw, of all points of a law together, beyond which
        layers are asked instead."""
        if self.may_help:
            return _PATIENCE
        return LONG_PATIENCE if self._may_help_up_to(_WIDE) else math.inf

    @property
    def impatient(self) -> bool:
        """Whether the theory without a draw was left for layers that have no answer, or leave much
        open themselves."""
        found = self.found if self.may_help else None
        return self.may_help and (found is None or found.error_estimate > _MUCH)

    @property
    def may_help(self) -> bool:
        """Whether layers may take the place of an answer, within seconds."""
        return self._may_help_up_to(_DRAWN_WIDTH)

    def _may_help_up_to(self, width: int) -> bool:
        theory, problem = self.theory, self.problem
        drawn = theory.method == "auto" and theory.overlaps == "auto" and theory.finite_size
        drawn = drawn and theory.accuracy >= ACCURATE
        return drawn and problem.width <= width and problem.loss.name == "squared"


def drawn_instead(layers: DrawnLayers, refused: Failure) -> Prediction | Failure:
    """The theory of drawn first layers, where that of types has `refused`; its reason if this
    has no answer either."""
    found = layers.found
    if found is None:
        return refused
    reason = f"First layers are drawn, because the theory without a draw refuses: {refused.error}"
    return replace(found, assumptions=(*found.assumptions, reason))


def _is_uncertain(layers: DrawnLayers, answer: Prediction) -> bool:
    """Whether first layers that are drawn may say more, within seconds: sizes leave much open, the
    rules of types do, or nothing is known of the terms of order 1/n."""
    if not layers.may_help or answer.solution is None:
        return False
    least = layers.theory.accuracy if _uncorrected(answer) else _UNCERTAIN
    return answer.error_estimate > least


def drawn_if_better(layers: DrawnLayers, answer: Prediction) -> Prediction | None:
    """The theory of drawn first layers where types are uncertain and its estimate is smaller: it
    knows the neurons as they are, where that of types expands in 1/k how they fluctuate.

    Without a correction the estimate of types has a bound for it that is empirical, and was half
    of the truth in a problem of the audit: there theirs need only be small.
    """
    if answer.method == LAYERS or not _is_uncertain(layers, answer):
        return None
    enough = max(answer.error_estimate, _UNCERTAIN if _uncorrected(answer) else 0.0)
    if (found := layers.within(enough)) is None:
        return None
    reason = (
        "First layers are drawn, because the theory without a draw is uncertain by "
        f"{100 * answer.error_estimate:.3g} %{_UNKNOWN * _uncorrected(answer)}."
    )
    return replace(
        found, assumptions=(*found.assumptions, reason), solution=answer.solution,
        label_variance=answer.label_variance,
    )  # fmt: skip


def without_drawn(
    layers: Sequence[DrawnLayers],
    asked: dict[int, tuple[Chance, Task]],
    solutions: Sequence[Solution | Failure],
    answers: dict[int, Prediction | Failure],
) -> list[Solution | Failure]:
    """The solutions of problems that are left, the others answered by drawn layers."""
    left: list[Solution | Failure] = []
    for (i, (chance, _)), one in zip(list(asked.items()), solutions, strict=True):
        drawn = None
        if chance.variables and isinstance(one, Solution):
            drawn = drawn_if_better(layers[i], of_solution(one, layers[i].theory, layers[i].seed))
        if drawn is None:
            left.append(one)
        else:
            answers[i] = drawn
            del asked[i]
    return left


def _uncorrected(answer: Prediction) -> bool:
    assert answer.solution is not None
    correction = answer.solution.correction
    return correction is None or (correction.size == 0 and bool(correction.left_out))
