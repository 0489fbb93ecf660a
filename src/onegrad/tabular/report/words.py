"""The sentences of the report. Each is empty where it would not be true or would say nothing."""

from __future__ import annotations

import math

import numpy as np

from onegrad.results.estimates import Estimate
from onegrad.tabular.learning.curve_point import CurvePoint
from onegrad.tabular.report.analysis import Analysis
from onegrad.tabular.report.number_texts import digits_of, measured_text, short, signed
from onegrad.tabular.report.scores import (
    CONSTANT,
    CUT,
    LOGARITHM,
    STEP,
    UNCUT,
    measure_name,
    unequal,
)

_SURE = 3.0  # standard errors beyond which a difference between splits is one
_HARDLY = 0.9  # of the error that is left at least where twice the rows would hardly help
_ALIKE = 3.0  # ratio of standard deviations up to which columns are taken in their own unit


def data_sentence(analysis: Analysis) -> str:
    table, (rows, columns) = analysis.table, analysis.table.x.shape
    if table.task == "regression":
        kind = f"the number “{table.label}” is to be predicted"
    else:
        kind = f"“{table.label}” names one of {len(table.classes)} classes"
    inputs = f"{columns:,} input{'s' if columns != 1 else ''}"
    return f"{rows:,} rows with {inputs} each; {kind}."


def rows_sentence(analysis: Analysis) -> str:
    """The answer: what twice and the farthest checked number of rows would do to the error."""
    ahead = analysis.curve.ahead()
    if len(ahead) < 2:
        return ""
    now, twice, far = ahead[0], ahead[1], ahead[-1]
    if math.isfinite(now.accuracy):
        first, shown = f"an accuracy of {now.accuracy:.1%}", _accuracy
    else:
        digits = digits_of(min(point.error for point in ahead))
        first, shown = f"R² = {now.r2:.{digits}f}", lambda point: _r2(point, digits)
    said = (
        f"We expect {first} with the {now.rows:,} rows at hand; {shown(twice)} with twice as many"
    )
    if far.rows > twice.rows:
        said += f" and {shown(far)} with {far.rows // now.rows} times as many ({far.rows:,})"
    return f"{said}. {_constant(analysis)}"


def _constant(analysis: Analysis) -> str:
    table = analysis.table
    if table.task == "regression":
        return "The best constant has R² = 0."
    share = float(np.mean(table.y == table.classes[0]))
    return f"Always saying “{table.classes[0]}” is right in {share:.1%} of the rows."


def verdict_sentence(analysis: Analysis) -> str:
    """Whether collecting more is worth it for this model, if the bar of the change says so."""
    curve = analysis.curve
    ahead = curve.ahead()
    if len(ahead) < 2:
        return ""
    times = ahead[-1].rows // curve.rows
    ratio, low, high = curve.change(times)
    if high < 1:
        off = f"{1 - ratio:.0%} ({1 - high:.0%} to {1 - low:.0%})"
        return (
            f"More rows help this model, beyond the error bar: {times} times as many would take "
            f"{off} off its squared error."
        )
    if curve.change(2)[1] > _HARDLY:
        return (
            "Twice as many rows would take less than a tenth off the squared error of this model."
        )
    return "Whether more rows help by much is within the error bar."


def backtest_sentence(analysis: Analysis) -> str:
    test = analysis.curve.backtest
    if test is None:
        return ""
    off = test.predicted / test.measured - 1
    law = abs(test.power_law / test.measured - 1)
    share = round(test.rows / test.from_rows)
    low, high = (test.predicted * math.exp(sign * 2 * test.spread) for sign in (-1, 1))
    measured = measured_text(test.measured, analysis.curve.subsets[-1].standard_error)
    return (
        f"Tried on your own rows: from {test.from_rows:,} of them (1 in {share}) we would have "
        f"predicted a relative error of {short(test.predicted)} ({short(low)} to {short(high)}) "
        f"for {test.rows:,}; measured: {measured}, so we were off by {abs(off):.0%} (a power law "
        f"by {law:.0%})."
    )


def unchecked_sentence(analysis: Analysis) -> str:
    curve = analysis.curve
    if curve.backtest is not None:
        return ""
    return (
        f"With {curve.rows:,} rows there is no quarter to predict from, so the forecast could not "
        "be tried on these data."
    )


def step_sentence(analysis: Analysis) -> str:
    """Does the step help, with and without it on the same held-out rows."""
    gain = analysis.gain
    if gain is None or not math.isfinite(gain.standard_error):
        return ""
    name = measure_name(analysis.table)
    size = f"{signed(gain)} of {name}"
    if gain.mean > _SURE * gain.standard_error:
        return f"The gradient step helps: {size} over the same network without it."
    if gain.mean < -_SURE * gain.standard_error:
        return f"The gradient step does harm here: {size} against the same network without it."
    return f"The gradient step makes no difference beyond the noise: {size}."


def width_sentence(analysis: Analysis) -> str:
    widths = analysis.widths
    if analysis.width == max(widths):
        return f"Use {analysis.width:,} neurons or more: that was the widest tried, and the best."
    return (
        f"{analysis.width:,} neurons are enough: up to {max(widths):,}, no width has an error more "
        "than 2 % smaller."
    )


def rate_sentence(analysis: Analysis) -> str:
    rates = analysis.curve.subsets[-1].rates
    agreed = int(np.sum(rates == analysis.rate))
    if analysis.rate == 0:
        return "Leave-one-out chose rate 0: random features without a step."
    return (
        f"Leave-one-out chose rate = {analysis.rate:g} in {agreed} of {len(rates)} splits (the "
        "estimator's own unit: how far the step moves the neurons' inputs, over what they were)."
    )


def beaten_sentence(analysis: Analysis) -> str:
    """Said where another model is better beyond the noise."""
    ahead = []
    for name in analysis.scores:
        lead = analysis.lead(name, STEP)
        if name in (STEP, CUT, UNCUT, LOGARITHM) or lead is None:
            continue
        if math.isfinite(lead.standard_error) and lead.mean > _SURE * lead.standard_error + 1e-12:
            ahead.append((lead, name))
    if not ahead:
        return ""
    lead, name = max(ahead)
    return f"Better on these rows: {name}, by {signed(lead)} of {measure_name(analysis.table)}."


def constant_sentence(analysis: Analysis) -> str:
    """Said where nothing was learned at all."""
    lead = analysis.lead(STEP, CONSTANT)
    if lead is None:
        return ""
    if lead.mean > _SURE * (lead.standard_error if math.isfinite(lead.standard_error) else 0.0):
        return ""
    return (
        "The network is not better than the best constant beyond the noise: there is no sign that "
        "it found anything in these columns."
    )


def unequal_sentence(analysis: Analysis) -> str:
    if not unequal(analysis.table):
        return ""
    table = analysis.table
    share = float(np.mean(table.y == table.classes[0]))
    classes = "both classes" if len(table.classes) == 2 else f"all {len(table.classes)} classes"
    return (
        f"{share:.0%} of the rows are of class {table.classes[0]}: always saying so would be right "
        f"that often, so models are compared by balanced accuracy (the mean over {classes}) with "
        "weighted classes. The learning curve above has plain accuracies."
    )


def tails_sentence(analysis: Analysis) -> str:
    """Heavy tails of the inputs, and what cutting them did."""
    columns = analysis.tails.inputs
    if not columns:
        return ""
    names = [analysis.table.names[i] for i in columns]
    some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    text = f"Heavy tails in {some}: rows more than ten robust standard deviations out."
    text += _tried("Cutting them (clip=5)", analysis.cut_helps, analysis)
    if analysis.clip is None:
        text += " Inputs are left as they are in this report: that was better on every split."
    return text


def label_tail_sentence(analysis: Analysis) -> str:
    """A heavy tail of the label, and what its logarithm did."""
    tails, label = analysis.tails, analysis.table.label
    if not tails.label:
        return ""
    text = (
        f"“{label}” itself has a heavy tail: {tails.label:,} of {len(analysis.table.y):,} rows "
        f"have {tails.share:.0%} of its variance, so errors hang on few rows."
    )
    return text + _tried(f"Fitting log({label}) instead", analysis.logarithm_helps, analysis)


def _tried(what: str, gain: Estimate | None, analysis: Analysis) -> str:
    if gain is None or not math.isfinite(gain.standard_error):
        return ""
    size = f"{signed(gain)} of {measure_name(analysis.table)}"
    if gain.mean > _SURE * gain.standard_error:
        return f" {what} helps: {size}."
    if gain.mean < -_SURE * gain.standard_error:
        return f" {what} does harm: {size}."
    return f" {what} was tried and makes no difference beyond the noise: {size}."


def found_sentence(analysis: Analysis) -> str:
    """The direction in the names of the columns; of a single column there is no choice."""
    found, names = analysis.found, analysis.table.names
    if len(names) == 1:
        return ""
    certain = found.certain
    if not len(certain):
        return "The step found no direction that stands out of the noise."
    spread = found.spread[certain]
    own = bool(spread.max() < _ALIKE * spread.min())
    factor = spread[0] / found.spread if own else np.ones(len(names))
    terms = []
    for place, i in enumerate(certain[:5]):
        value = float(found.coefficients[i] * factor[i])
        error = float(found.errors[i] * factor[i])
        sign = "−" if value < 0 else "+" * (place > 0)
        size = "" if place == 0 else f"{abs(value):.2f} (± {error:.2f})·"
        name = f"“{names[i]}”" if " " in names[i] else names[i]
        terms.append(f"{sign} {size}{name}".strip())
    more = f", and {len(certain) - 5} smaller terms" if len(certain) > 5 else ""
    unit = "" if own else ", columns in units of their standard deviations"
    also = "" if found.share > 0.5 else f" It is {found.share:.0%} of the step; the rest is spread."
    return f"What the step found: {' '.join(terms)}{more}{unit}.{also}"


def _accuracy(point: CurvePoint) -> str:
    return f"{point.accuracy:.1%} ({point.accuracy_low:.1%} to {point.accuracy_high:.1%})"


def _r2(point: CurvePoint, digits: int) -> str:
    low, high = 1 - point.high, 1 - point.low
    return f"{point.r2:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def snippet(analysis: Analysis) -> str:
    """scikit-learn code with the advice in it."""
    kind = "OneStepRegressor" if analysis.table.task == "regression" else "OneStepClassifier"
    options = [f"width={analysis.width}"]
    if analysis.clip is not None:
        options.append(f"clip={analysis.clip:g}")
    if unequal(analysis.table):
        options.append('class_weight="balanced"')
    return (
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "import onegrad as og\n\n"
        f"step = og.{kind}({', '.join(options)})\n"
        "model = make_pipeline(StandardScaler(), step)\n"
        "model.fit(X, y)  # rate and ridge are chosen by leave-one-out"
    )
