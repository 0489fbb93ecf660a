"""Texts that mean numbers: amounts with a currency or thousands separators, shares, and dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

Reader = Callable[[str], float | None]

_SIZES = (
    {"k": 1e3, "K": 1e3}
    | dict.fromkeys(("M", "mn", "million"), 1e6)
    | dict.fromkeys(("bn", "B", "billion"), 1e9)
)
_MOSTLY = 0.95  # share of the texts that must be readable for a column of numbers
_UNIT = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR)"


def _amounts(thousands: str, decimal: str) -> re.Pattern[str]:
    """A sign or a bracket, a currency, digits in groups, a fraction; a unit, % or k, M, bn."""
    digits = rf"(?:\d{{1,3}}(?:[{thousands}]\d{{3}})+|\d+|(?={decimal}\d))(?:{decimal}\d+)?"
    size = "|".join(_SIZES)
    return re.compile(
        rf"[-+(]?\s*{_UNIT}?\s*[-+]?({digits}(?:[eE][-+]?\d+)?)\s*({size})?\s*(?:{_UNIT}|%)?\)?"
    )


_POINT, _COMMA = _amounts(",' \u00a0\u202f", r"\."), _amounts(".' \u00a0\u202f", ",")
_FRACTION = re.compile(r"\D*0,\d+\D*")  # "0,125" is no group of thousands
_DATES = {
    "%d/%m/%Y": "day/month/year", "%m/%d/%Y": "month/day/year", "%d.%m.%Y": "day.month.year",
    "%Y/%m/%d": "year/month/day", "%d-%m-%Y": "day-month-year", "%d %b %Y": "day month year",
    "%b %d, %Y": "month day, year",
}  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")


def numbers_in_texts(column: np.ndarray) -> tuple[np.ndarray, str] | None:
    """The column as numbers (NaN: a gap) and what its texts were; None if they are just texts."""
    given = [str(text) for text in column if text != ""]
    if not given:
        return None
    for reader, what in (_amount_reader(given[:200]), _date_reader(given[:200])):
        if reader is None:
            continue
        read = [reader(str(text)) if text != "" else None for text in column]
        values = np.array([np.nan if value is None else value for value in read])
        if np.isfinite(values[column != ""]).mean() >= _MOSTLY:
            return values, what
    return None


def _amount_reader(texts: Sequence[str]) -> tuple[Reader | None, str]:
    """By the one way of writing fractions that reads nearly all; a point where both do."""
    texts = [_plain(text) for text in texts]
    point, comma = (
        np.mean([form.fullmatch(text) is not None for text in texts]) for form in (_POINT, _COMMA)
    )
    fractions = any(_FRACTION.fullmatch(text) for text in texts)
    if comma >= _MOSTLY and (comma > point or fractions):
        return lambda text: _amount(text, _COMMA, ","), "amounts with a decimal comma"
    if point >= _MOSTLY:
        return lambda text: _amount(text, _POINT, "."), "amounts read as numbers"
    return None, ""


def _plain(text: str) -> str:
    return text.replace("−", "-")


def _amount(text: str, form: re.Pattern[str], decimal: str) -> float | None:
    text = _plain(text)
    found = form.fullmatch(text)
    if found is None:
        return None
    digits = re.sub(rf"[^\d{decimal}eE+-]", "", found[1]).replace(decimal, ".")
    size = float(digits) * _SIZES.get(found[2], 1.0)
    before = text[: found.start(1)]
    return -size if "-" in before or "(" in before else size


def _date_reader(texts: Sequence[str]) -> tuple[Reader | None, str]:
    """Days since 1970 of a text, by the one way of writing dates that reads nearly all of them."""

    def iso(text: str) -> float | None:
        try:
            return _days(datetime.fromisoformat(text))
        except ValueError:
            return None

    def written(form: str) -> Reader:
        def read(text: str) -> float | None:
            try:
                return _days(datetime.strptime(text, form))
            except ValueError:
                return None

        return read

    readers: list[tuple[Reader, str]] = [(iso, "dates read as days")]
    for form, name in _DATES.items():
        readers += [(written(form + time), f"dates ({name}) read as days") for time in _TIMES]
    if all(len(text) >= 8 for text in texts):
        for reader, what in readers:
            if np.mean([reader(text) is not None for text in texts]) >= _MOSTLY:
                return reader, what
    return None, ""


def _days(moment: datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() / 86_400
