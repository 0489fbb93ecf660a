"""Errors whose messages are advice: what is wrong, with which value, what to do instead."""

from __future__ import annotations

import contextlib
import difflib
import functools
import itertools
import platform
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Limits of the search for a similar name: beyond, it takes seconds
_LONGEST_WORD, _MOST_WORDS = 100, 2000
MOST_PROBLEMS = 20  # problems listed in one error
_MOST_LISTED = 60  # most allowed names listed in a message


class OnegradError(Exception):
    """Base class of onegrad's own errors; the command line prints their message alone."""


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
        text = f"{_plain(self.key, 120)} {shown}: {_plain(self.allowed, 3000)}."
        stop = "" if self.suggestion.endswith(("?", ".")) else "."
        return f"{text} {_plain(self.suggestion, 1000)}{stop}" if self.suggestion else text


class SpecError(OnegradError, ValueError):
    """A spec, or a part of a Problem built in Python, that cannot be used as it is.

    more : number of further problems that the message does not list
    """

    def __init__(self, problems: Iterable[Problematic], more: int = 0) -> None:
        self.problems, self.more = tuple(problems), more
        lines = [str(problem) for problem in self.problems]
        super().__init__("\n".join([*lines, f"… and {more:,} more." if more else ""]).rstrip())

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Problematic, ...], int]]:
        return type(self), (self.problems, self.more)

    @classmethod
    def of(cls, key: str, value: object, allowed: str, suggestion: str = "") -> SpecError:
        return cls([Problematic(key, value, allowed, suggestion)])

    @classmethod
    def choice(
        cls, key: str, value: object, known: Collection[str], suggestion: str = ""
    ) -> SpecError:
        """An error about a value that is not allowed; the nearest allowed one is suggested."""
        listed = ", ".join(itertools.islice(known, _MOST_LISTED)) or "none"
        listed += ", …" * (len(known) > _MOST_LISTED)
        near = did_you_mean(value, known)
        return cls.of(key, value, f"must be from {listed}", near or suggestion)


class AssumptionError(OnegradError, ValueError):
    """The problem does not satisfy an assumption that the requested method needs."""


class ConvergenceError(OnegradError, ArithmeticError):
    """A numerical method did not reach the accuracy that was asked for."""


@dataclass(frozen=True)
class Failure:
    """Why a number is missing, where others go on: the kind of error, and its advice.

    Functions that compute many things at once return a Failure in the place of what failed; those
    that compute one thing raise `error`, unless they are told `throw=False`.
    kind : for code that goes on in another way; "" where there is none
    """

    error: OnegradError
    kind: str = ""

    def __str__(self) -> str:
        return str(self.error)


class UnexpectedError(OnegradError):
    """What nobody foresaw, and no number: a fault of onegrad, or of a function that it was given.

    report : what somebody who mends it needs: versions and the traceback
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(message)
        self.report = report

    def __reduce__(self) -> tuple[type[UnexpectedError], tuple[str, str]]:
        return type(self), (str(self), self.report)


def ours(error: Exception) -> OnegradError:
    """The error itself if it is ours; else what can be said about it."""
    if isinstance(error, OnegradError):
        return error
    told = _plain(f"{type(error).__name__}: {error}", 300)
    if isinstance(error, MemoryError):
        return OnegradError(f"there is not enough memory for this ({told}). Take smaller sizes")
    import numpy
    import scipy

    from onegrad import __version__

    system = f"Python {platform.python_version()}, {platform.platform()}"
    libraries = f"onegrad {__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}"
    text = "".join(traceback.format_exception(error))
    return UnexpectedError(
        f"an unexpected error ({told}): no number was returned. It is a fault of onegrad, unless "
        "it comes from a function of yours",
        f"{libraries}, {system}\n{text}",
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of floating-point arithmetic, unless somebody asked for them as errors."""
    with warnings.catch_warnings():
        asked = (
            action
            for action, message, category, module, _ in warnings.filters
            if issubclass(RuntimeWarning, category) and message is module is None
        )
        if next(asked, "default") != "error":
            warnings.simplefilter("ignore", RuntimeWarning)
        yield


def verb(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The boundary of the package: what leaves a public function is an error of ours.

    Not changed: wrong arguments (TypeError), files and libraries (OSError, ImportError), warnings
    that somebody asked for as errors.
    Floating-point warnings are not shown: what is not finite has the status "failed".
    """

    @functools.wraps(function)
    def bounded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            with quiet():
                return function(*args, **kwargs)
        except (OnegradError, OSError, ImportError, UserWarning):
            raise
        except Exception as error:
            trace = error.__traceback__
            if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
                raise  # raised by the signature, not by the function: leave it
            raise ours(error) from error

    return bounded


class _Missing:
    def __repr__(self) -> str:
        return "(missing)"


MISSING = _Missing()


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A suggestion, or nothing if no known word is near.

    >>> did_you_mean("strenght", ["strength", "weighting"])
    'Did you mean "strength"?'
    """
    text = _short(word) if not isinstance(word, str) else word
    if len(text) > _LONGEST_WORD:
        return ""
    near = difflib.get_close_matches(text, itertools.islice(known, _MOST_WORDS), n=1, cutoff=0.6)
    return f'Did you mean "{near[0]}"?' if near else ""


def _short(value: object, limit: int = 60) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # digits or brackets by the thousand
        text = f"(a very long {type(value).__name__})"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(text: str, limit: int) -> str:
    """Without control characters, which a terminal would obey, and not longer than a screen."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
