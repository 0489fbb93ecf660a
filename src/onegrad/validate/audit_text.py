"""An audit as one page of Markdown, for the terminal, a file and the documentation alike."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from onegrad.results.rows import QUANTITIES
from onegrad.text.display import markdown_table
from onegrad.validate.audit_report import BAND, SIGMAS, Audit, Checked, times

_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_NAMES = {"test_error": "test", "train_error": "train", "train_objective": "objective"}


def audit_page(audit: Audit, worst: int = 10) -> str:
    """Shares, distributions, dishonest certainties, refusals, times, and the worst specs."""
    sizes = [one.dim for one in audit.problems]
    seeds = [one.seeds for one in audit.compared] or [0]
    parts = [
        f"# Audit: {len(audit.problems)} random problems",
        f"Seed {audit.seed}, n = {min(sizes)} to {max(sizes)}, {min(seeds)} to {max(seeds)} "
        f"simulated networks for each problem; {len(audit.compared)} problems have both a "
        f"prediction and a simulation. {_precision(audit)}",
        "Theory and simulation share no random number, except directions that are fixed. A "
        "prediction p of a simulated mean "
        "s ± e is in the band if |p − s| ≤ 1 % of s + 4e; a certainty is dishonest if |p − s| − 4e "
        "exceeds the error that the theory states. "
        f"`onegrad audit --problems {len(audit.problems)} --seed {audit.seed}` makes this page, "
        "and goes on where it stopped.",
        _shares(audit),
        _distribution(audit),
        _dishonest(audit),
        _refusals(audit),
        _times(audit),
        _worst(audit, worst),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _precision(audit: Audit) -> str:
    if not audit.compared:
        return ""
    simulated = [one.simulated["test_error"] for one in audit.compared]
    errors = [100 * s.standard_error / abs(s.mean) for s in simulated]
    middle, most = np.quantile(errors, (0.5, 0.9))
    return (
        f"Standard error of the simulated test error: median {middle:.2g} %, 90 % of them below "
        f"{most:.2g} %."
    )


def _shares(audit: Audit) -> str:
    rows = [
        [_NAMES[q], _percent(audit.share_in_band(q)), str(_outside(audit.compared, q))]
        for q in QUANTITIES
    ]
    outside = sum(not one.all_in_band for one in audit.compared)
    rows.append(["all three", _percent(audit.share_in_band()), str(outside)])
    band = f"{100 * BAND:g} % + {SIGMAS:g} standard errors"
    return f"## Within {band}\n\n" + markdown_table(
        ["error", "share within", "problems outside"], rows
    )


def _outside(problems: Iterable[Checked], quantity: str) -> int:
    return sum(not one.in_band(quantity) for one in problems)


def _distribution(audit: Audit) -> str:
    if not audit.compared:
        return ""
    head = ["|deviation|", *("max" if q == 1 else f"{100 * q:g} %" for q in _QUANTILES)]
    rows = []
    for q in QUANTITIES:
        percent = np.quantile(np.abs(100 * audit.deviations(q)), _QUANTILES)
        rows.append([f"{_NAMES[q]}, percent", *(f"{v:.2g}" for v in percent)])
    for q in QUANTITIES:
        sigmas = np.array([abs(one.sigmas(q)) for one in audit.compared])
        sigmas = sigmas[np.isfinite(sigmas)]
        cells = [f"{v:.2g}" for v in np.quantile(sigmas, _QUANTILES)] if len(sigmas) else []
        rows.append([f"{_NAMES[q]}, standard errors", *cells])
    means = ", ".join(
        f"{_NAMES[q]} {100 * float(np.median(audit.deviations(q))):+.2f} %" for q in QUANTITIES
    )
    return (
        "## Distribution of the deviations\n\n"
        "Prediction / simulated mean − 1; quantiles over the problems.\n\n"
        f"{markdown_table(head, rows)}\n\nMedian with its sign: {means}."
    )


def _dishonest(audit: Audit) -> str:
    found = sorted(audit.dishonest, key=lambda one: one.error_estimate - one.proven)
    share = _percent(len(found) / len(audit.compared)) if audit.compared else "–"
    lines = [
        "## Dishonest certainties",
        f"{len(found)} of {len(audit.compared)} predictions ({share}) are further off in test or "
        f"train, beyond {SIGMAS:g} standard errors, than their error estimate says. "
        f"{len(audit.unstated)} state none.",
    ]
    if found:
        rows = [
            [str(one.number), str(one.dim), f"{100 * one.proven:.2g} %",
             f"{100 * one.error_estimate:.1g} %", *_both(one)]
            for one in found[:20]
        ]  # fmt: skip
        head = ["problem", "n", "off for sure", "stated", "test", "train"]
        lines.append(markdown_table(head, rows))
        if len(found) > 20:
            lines.append(f"The first 20 of {len(found)}.")
    return "\n\n".join(lines)


def _both(one: Checked) -> list[str]:
    return [
        f"{100 * one.deviation(q):+.2f} % ({one.sigmas(q):+.1f} s.e.)"
        for q in ("test_error", "train_error")
    ]


def _refusals(audit: Audit) -> str:
    share = _percent(len(audit.refused) / len(audit.problems)) if audit.problems else "–"
    lines = ["## Refusals", f"{len(audit.refused)} problems ({share}) were refused."]
    lines += [
        f"- {len(numbers)}: {sentence} (problem{'s' * (len(numbers) > 1)} "
        f"{', '.join(map(str, numbers[:10]))}{', …' * (len(numbers) > 10)})"
        for sentence, numbers in audit.refusals()
    ]
    failed = [one for one in audit.problems if one.failure]
    lines += [f"- problem {one.number} could not be simulated: {one.failure}" for one in failed]
    return "\n\n".join(lines[:2]) + "".join(
        f"{chr(10) * (2 if i == 0 else 1)}{line}" for i, line in enumerate(lines[2:])
    )


def _times(audit: Audit) -> str:
    seconds = [one.seconds for one in audit.problems]
    found = times(seconds)
    slow = sum(s > 2 for s in seconds)
    shown = ", ".join(f"{name} {value:.2g} s" for name, value in found.items())
    return (
        f"## Time of a prediction\n\n{shown[0].upper() + shown[1:]}; {slow} of {len(seconds)} took "
        "more than 2 s."
    )


def _worst(audit: Audit, count: int) -> str:
    found = audit.worst(count)
    if not found:
        return ""
    parts = [f"## The worst {len(found)}", "By what is left of the deviation after 4 s.e."]
    for one in found:
        errors = ", ".join(
            f"{_NAMES[q]} {one.predicted[q]:.5g} predicted, {one.simulated[q]} simulated "
            f"({100 * one.deviation(q):+.2f} %, {one.sigmas(q):+.1f} s.e.)"
            for q in QUANTITIES
        )
        stated = "none" if math.isnan(one.error_estimate) else f"{100 * one.error_estimate:.2g} %"
        parts.append(
            f"### Problem {one.number}\n\n{errors}; error estimate {stated}; {one.seconds:.2g} s.\n"
            f"\n```toml\n{one.toml()}```"
        )
    return "\n\n".join(parts)


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f} %"
