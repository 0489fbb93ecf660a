"""The sentences of the report. Each is empty where it would not be true or would say nothing."""

from __future__ import annotations

import math

from onegrad.tabular.learning.curve import CurvePoint, LearningCurve
from onegrad.tabular.report.analysis import CONSTANT, CUT, Analysis, Difference, unequal

# Least predicted fall of the error: 4 % of the corpus' 308 curves that stay level are above it.
_HELPS = 0.25
_PRECISE = 0.05  # half-width of a difference up to which it may be called none


def data_sentence(analysis: Analysis) -> str:
    table = analysis.table
    kind = f"“{table.label}” names one of {len(table.classes)} classes"
    if table.task == "regression":
        kind = f"the number “{table.label}” is to be predicted"
    count = table.x.shape[1]
    return f"{table.total:,} rows with {count:,} input{'s' * (count != 1)} each; {kind}."


def failed_sentence(curve: LearningCurve) -> str:
    test = curve.backtest
    if test is None or not test.failed:
        return ""
    said, seen = (_number(curve.score.of(error)) for error in (test.predicted, test.measured))
    return (
        f"The forecast failed on your own rows: from {test.from_rows:,} of them it would have been "
        f"{said} for {curve.fitted:,}, and {seen} was measured. Its bars are wider for that; do "
        "not rely on it."
    )


def rows_sentence(curve: LearningCurve) -> str:
    """The answer: what to expect of all rows, twice and 8 times as many."""
    ahead = curve.ahead()
    if not ahead:
        return (
            f"The file has {curve.rows:,} rows and fits had {curve.fitted:,}: forecasts were never "
            "checked so far."
        )
    said = f"{curve.model}: with all {curve.rows:,} rows we expect {curve.score.name} = "
    said += _point(ahead[0])
    for point in ahead[1:2] + ahead[3:4]:
        said += f", with {point.rows // curve.rows} times as many {_point(point)}"
    return f"{said}. In brackets: what should hold 95 % of scores."


def verdict_sentence(curve: LearningCurve) -> str:
    """Whether collecting more is worth it for this model."""
    ahead = curve.ahead()
    if len(ahead) < 2:
        return ""
    times = ahead[-1].rows // curve.rows
    ratio, low, _ = curve.change(times)
    opening = "How much more rows help is uncertain"
    if helps(curve, times):
        opening = "More rows are likely to help"
    return (
        f"{opening}: {times} times as many would take about {1 - ratio:.0%} off its error, and "
        f"hardly more than {1 - low:.0%}."
    )


def helps(curve: LearningCurve, times: float) -> bool:
    """Whether so many times the rows take a good part of the error away."""
    failed = curve.backtest is not None and curve.backtest.failed
    return not failed and curve.change(times)[0] < 1 - _HELPS


def method_sentence(curve: LearningCurve) -> str:
    """Which forecast it is, and how it did on the user's own subsets."""
    if curve.backtest is None:
        return (
            f"Forecast by the {curve.method}. There are too few rows to try it on a part of them."
        )
    others = [name for name in curve.methods if name != curve.method]
    beside = "".join(f"; the {name} was off by {curve.missed(name):.0%}" for name in others)
    return (
        f"Forecast by the {curve.method}. Tried on your own rows, from a half and a quarter of "
        f"them to {curve.fitted:,}, its error was off by {curve.missed(curve.method):.0%}{beside}."
    )


def best_sentence(analysis: Analysis) -> str:
    """The best model, and those that may be as good."""
    best = analysis.best
    others = [one for one in analysis.models if one not in (best, CONSTANT, CUT)]
    alike = [one for one in others if not _sure(analysis.lead(best, one))]
    value = _number(analysis.models[best].values.mean())
    rest = "all others are worse beyond the noise"
    if alike:
        rest = f"not worse beyond the noise: {', '.join(alike)}"
    if alike == others:
        rest = "no other model is worse beyond the noise"
    return f"Best on held-out rows: {best}, {analysis.score.name} = {value}; {rest}."


def constant_sentence(analysis: Analysis) -> str:
    """Said where no model learned anything that ten splits would show."""
    lead = analysis.lead(analysis.best, CONSTANT)
    if lead.mean > 0 and _sure(lead):
        return ""
    return (
        f"No model is better than the best constant beyond the noise (best: {size(lead)} of "
        f"{analysis.score.name}): these rows do not show that the columns say anything."
    )


def unequal_sentence(analysis: Analysis) -> str:
    table = analysis.table
    if not unequal(table):
        return ""
    return (
        f"Classes are unequal (the largest: {table.classes[0]}), so scores are balanced "
        "accuracies (the mean over classes), of models that weigh classes equally."
    )


def found_sentence(analysis: Analysis) -> str:
    """The direction of our step in the names of the columns, where a step was taken."""
    if not analysis.found:
        return ""
    terms = " ".join(
        f"{'−' if mean < 0 else '+'} {abs(mean):.2f} (± {error:.2f})·“{name}”"
        for name, mean, error in analysis.found[:5]
    )
    more = len(analysis.found) - 5
    also = f", and {more} smaller terms" if more > 0 else ""
    return (
        "By leave-one-out, one-step takes its gradient step here. What it found, columns in units "
        f"of their standard deviations: {terms.removeprefix('+ ')}{also}."
    )


def tails_sentence(analysis: Analysis) -> str:
    """Heavy tails of the inputs, and what cutting them did to our model."""
    names = analysis.tails
    if not names:
        return ""
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    lead = analysis.lead(CUT, "one-step")
    if _sure(lead):
        verdict = f"Cutting them {'helps' if lead.mean > 0 else 'harms'} one-step"
    elif lead.half < _PRECISE:
        verdict = "Cutting them makes no difference to one-step beyond the noise"
    else:
        verdict = "Splits do not agree whether cutting them helps one-step"
    return (
        f"Heavy tails in {some}: rows more than ten robust standard deviations out. {verdict}: "
        f"{size(lead)} of {analysis.score.name}."
    )


def label_tail_sentence(analysis: Analysis) -> str:
    count, share = analysis.label_tail
    if not count:
        return ""
    return (
        f"“{analysis.table.label}” itself has a heavy tail: {count:,} of {len(analysis.table.y):,} "
        f"rows have {share:.0%} of its variance, so scores hang on few rows."
    )


def _sure(lead: Difference) -> bool:
    return abs(lead.mean) > lead.half


def size(lead: Difference) -> str:
    """With two digits of its half-width."""
    digits = _digits(lead.half)
    return f"{lead.mean:+.{digits}f} ± {lead.half:.{digits}f}"


def _number(value: float) -> str:
    """With two digits of 1 − value."""
    return f"{value:.{_digits(1 - value)}f}"


def _digits(value: float) -> int:
    """Decimals, from 3 to 5, that show two digits of it."""
    return min(max(3, 1 - math.floor(math.log10(max(abs(value), 1e-6)))), 5)


def _point(point: CurvePoint) -> str:
    return f"{_number(point.score)} ({_number(point.low)} to {_number(point.high)})"
