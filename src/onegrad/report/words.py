"""The sentences of the report: each says what one sees to somebody who is new to it."""

from __future__ import annotations

from onegrad.data.spikes import FEWEST_COLUMNS
from onegrad.problem import needed_degree
from onegrad.report.analysis import Analysis, Curve
from onegrad.results.rows import Estimate


def data_sentence(analysis: Analysis) -> str:
    table, (rows, columns) = analysis.table, analysis.table.x.shape
    if table.task == "regression":
        kind = f"the number “{table.label}” is to be predicted"
    else:
        kind = f"“{table.label}” names one of {len(table.classes)} classes"
    return f"{rows:,} samples with {_inputs(columns)} each; {kind}."


def spikes_sentence(analysis: Analysis) -> str:
    spikes = analysis.prepared.spikes
    columns = analysis.prepared.x.shape[1]
    if columns < FEWEST_COLUMNS:
        return (
            f"With {_inputs(columns)} there is no crowd of noise directions to stand out from, so "
            "spikes are not counted; the curves below are as good as ever."
        )
    if spikes.count == 0:
        return (
            "No direction varies more than pure noise would: to the network these inputs look the "
            "same in all directions, and only the labels can give it a direction to learn."
        )
    strongest = ", ".join(f"{s:.3g}" for s in spikes.strengths[:3])
    some = "direction varies" if spikes.count == 1 else "directions vary"
    return (
        f"{spikes.count} {some} more than noise would; the strongest by {strongest} times the "
        "noise level on top of it. These are the spikes that a gradient step sees first."
    )


def standing_sentence(analysis: Analysis) -> str:
    place = analysis.standing
    if place is None:
        return (
            "Without spikes the data alone contribute nothing to the strength β; it is the "
            "learning rate that decides which polynomial degree the network can learn."
        )
    theta = f"The strongest spike is θ = {place.theta:.3g} = n^{place.data_exponent:.2f}"
    first, needed = place.degree(1.0), needed_degree(place.strength(1.0))
    if needed is None:
        return (
            f"{theta}: so strong that no polynomial of fixed degree describes the network, even "
            "with a learning rate of 1. Use the conditional Gaussian model or the network itself; "
            "the learning rate matters less than the data's own structure."
        )
    if needed > first:
        return (
            f"{theta}. At a learning rate of 1 no polynomial of degree below {needed} describes "
            f"what the network can learn; the polynomial model here has degree {first} at most."
        )
    reach = [
        f"degree {degree} up to η = {place.largest_rate(degree):.3g}"
        for degree in range(first, 4)
        if place.largest_rate(degree) > 1
    ]
    ranges = f" ({', '.join(reach)})" if reach else ""
    return (
        f"{theta}. At a learning rate of 1 a polynomial of degree {first} describes what the "
        f"network can learn; larger rates reach higher degrees{ranges}."
    )


def width_sentence(analysis: Analysis) -> str:
    errors = analysis.width.measured["network"]
    best = min(range(len(errors)), key=lambda i: errors[i].mean)
    enough = _enough(analysis.width.values, errors)
    neurons = round(enough * analysis.samples)
    return (
        f"The test error is lowest at k/m = {analysis.width.values[best]:g}; from about "
        f"{neurons} neurons (k/m = {enough:g}) more width changes it by less than 5 %."
        f"{_agreement(analysis.width)}"
    )


def sample_sentence(analysis: Analysis) -> str:
    errors = analysis.sample.measured["network"]
    sizes = analysis.sample.values
    if len(sizes) < 2:
        return "Too few samples for a curve." + _agreement(analysis.sample)
    drop = 1 - errors[-1].mean / errors[-2].mean
    more = "more samples would still help" if drop > 0.05 else "more samples would hardly help"
    return (
        f"From {sizes[-2]:g} to {sizes[-1]:g} samples the error falls by {max(drop, 0.0):.0%}: "
        f"{more}.{_agreement(analysis.sample)}"
    )


def rate_sentence(analysis: Analysis) -> str:
    errors, rates = analysis.rates.measured["network"], analysis.rates.values
    best = min(range(len(errors)), key=lambda i: errors[i].mean)
    near = [
        rate
        for rate, e in zip(rates, errors, strict=True)
        if e.mean <= errors[best].mean + 2 * _noise(errors[best])
    ]
    span = f"η = {near[0]:g}" if len(near) == 1 else f"η from {near[0]:g} to {near[-1]:g}"
    return (
        f"Recommended: {span}; within it the test error is the lowest that we measured, up to its "
        f"noise.{_agreement(analysis.rates)}"
    )


def gain_sentence(analysis: Analysis) -> str:
    features, linear = analysis.changes["random-features"], analysis.changes["linear"]
    return (
        f"One step changes the test error by {_change(features)} against random features of the "
        f"same width, and by {_change(linear)} against a linear model (minus is better)."
    )


def _enough(values: tuple[float, ...], errors: tuple[Estimate, ...]) -> float:
    """The smallest setting from which all larger ones stay within 5 % of the last."""
    last = errors[-1].mean
    enough = values[-1]
    for value, error in zip(reversed(values), reversed(errors), strict=True):
        if abs(error.mean / last - 1) > 0.05:
            break
        enough = value
    return enough


def _agreement(curve: Curve) -> str:
    if curve.gap is None:
        return ""
    return f" Theory and measurement are {curve.gap:.1%} apart (median over the curve)."


def _change(change: Estimate) -> str:
    noise = _noise(change)
    verdict = "" if abs(change.mean) > 2 * noise else ", no more than the noise"
    mean = round(change.mean, 2) + 0.0  # never "-0%"
    return f"{mean:+.0%} (± {noise:.0%}{verdict})"


def _inputs(count: int) -> str:
    return f"{count:,} input{'s' if count != 1 else ''}"


def _noise(estimate: Estimate) -> float:
    return estimate.standard_error if estimate.standard_error == estimate.standard_error else 0.0
