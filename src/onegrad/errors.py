"""Errors whose messages are advice: what is wrong, with which value, what to do instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class OnegradError(Exception):
    """Base of everything that onegrad raises on purpose; the command line prints it plainly."""


@dataclass(frozen=True)
class Problematic:
    """One thing that is wrong in a spec: the key, its value, what is allowed, a suggestion."""

    key: str
    value: object
    allowed: str
    suggestion: str = ""

    def __str__(self) -> str:
        shown = (
            "(missing)"
            if self.value is MISSING or self.value is None
            else f"= {_short(self.value)}"
        )
        text = f"{self.key} {shown}: {self.allowed}."
        stop = "" if self.suggestion.endswith(("?", ".")) else "."
        return f"{text} {self.suggestion}{stop}" if self.suggestion else text


class SpecError(OnegradError, ValueError):
    """A spec, or a part of a Problem built in Python, that cannot be used as it is."""

    def __init__(self, problems: Iterable[Problematic]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @classmethod
    def of(cls, key: str, value: object, allowed: str, suggestion: str = "") -> SpecError:
        return cls([Problematic(key, value, allowed, suggestion)])


class AssumptionError(OnegradError, ValueError):
    """A formula was asked for outside the assumptions that it needs."""


class ConvergenceError(OnegradError, ArithmeticError):
    """A numerical method did not reach the accuracy that was asked for."""


@dataclass(frozen=True)
class Failure:
    """Why a number is missing, where others go on: the kind of error, and its advice.

    Functions that compute many things at once return a Failure in the place of what failed; those
    that compute one thing raise `error`, unless they are told `throw=False`.
    """

    error: OnegradError

    def __str__(self) -> str:
        return str(self.error)


class _Missing:
    def __repr__(self) -> str:
        return "(missing)"


MISSING = _Missing()


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A suggestion, or nothing if no known word is near.

    >>> did_you_mean("strenght", ["strength", "weighting"])
    'Did you mean "strength"?'
    """
    near = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
