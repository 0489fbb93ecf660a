"""One page of Markdown on how accurate the theory is: docs/accuracy.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .compare import BAND, MAIN, OTHERS, SIGMAS, Compared

_SHORT = {"test_error": "test", "train_error": "train", "train_objective": "objective"}
_MOVED = 0.003  # relative change of an answer that is listed

CLASSES = {
    "audit": "the law of `onegrad audit`: mixtures and isotropic data, one index, squared loss",
    "losses": "logistic, hinge, squared hinge, Huber and absolute loss; some labels flipped",
    "bulks": "power-law and two-level bulks, with and without spikes and means",
    "indices and classes": "two and three indices; one-hot classes; means placed freely; flips",
    "steps and optimisers": "two and three steps; sign, Adam, Muon, K-FAC",
    "users": "points of the built-in experiments at n = 200 to 2000, and their neighbourhood",
    "equal weights": "spikes of equal strength and weight: a multiple leading eigenvalue of Σ̄",
    "bulks, few samples": "bulks that are not flat with m < n",
    "audit-2": "another generator: equal weights in 40 %, up to 4 components of up to 4 spikes",
}


def page(found: Sequence[Compared], before: Sequence[Compared] = (), all_problems: int = 0) -> str:
    """Tables by class and by engine, dishonest answers, refusals, times, the worst problems.

    all_problems : how many there are, where fewer were predicted
    """
    parts = [
        "# Accuracy of the theory",
        _head(found, max(all_problems, len(found))),
        "## By class of problem\n\n" + _shares(found, lambda one: one.kind),
        _classes(found),
        "## By engine\n\n" + _shares([one for one in found if one.answered], lambda o: o.engine),
        "## Other numbers\n\n" + _others(found),
        "## What answers state\n\n" + _estimates(found),
        "## Times\n\n" + _times(found),
        _before(found, before),
        "## Dishonest answers\n\n" + _dishonest(found),
        "## No answer\n\n" + _refusals(found),
        "## Farthest from the simulation\n\n" + _worst(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(found: Sequence[Compared], total: int) -> str:
    errors = [one.problem["simulated"]["test_error"] for one in found]
    relative = np.array([100 * e / abs(mean) for mean, e in errors if mean])
    middle, most = np.quantile(relative, (0.5, 0.9))
    known = float(np.mean(relative <= 1.0))
    count = [one.problem["repetitions"] for one in found]
    some = f"{len(found)}" if total == len(found) else f"{len(found)} of {total}"
    return (
        f"{some} frozen problems (`evidence/`), simulated once with {min(count)} to "
        f"{max(count)} networks each, are predicted by this version. The standard error of the "
        f"simulated test error has a median of {middle:.2g} % and is below {most:.2g} % in 90 % of "
        f"the problems; in {100 * known:.0f} % it is 1 % or less. Theory and simulation share no "
        "random number, except what belongs to the problem itself: directions that are fixed. "
        "Written by `make evidence`.\n\n"
        f"A prediction p of a simulated mean s ± e is *in the band* if |p − s| ≤ {100 * BAND:g} % "
        f"of s + {SIGMAS:g}e. It is *dishonest* if |p − s| − {SIGMAS:g}e exceeds the error that it "
        f"states, in test or training error. With {SIGMAS:g} standard errors of normal means, "
        "6 in 100,000 would look so by bad luck; of the means of 20 repetitions, 8 in 10,000."
    )


def _shares(found: Sequence[Compared], key: Callable[[Compared], str]) -> str:
    head = ["", "problems", "answered", *(f"{_SHORT[q]} in band" for q in MAIN), "all three",
            "dishonest", "median ∣deviation∣, test", "90 %"]  # fmt: skip
    rows = []
    for name, part in [*_parts(found, key), ("**all**", list(found))]:
        good = [one for one in part if one.answered]
        cells = [name, str(len(part)), str(len(good))]
        if good:
            cells += [_percent(one.in_band(q) for one in good) for q in MAIN]
            cells.append(_percent(all(one.in_band(q) for q in MAIN) for one in good))
            cells.append(str(sum(one.dishonest for one in good)))
            off = [abs(100 * one.deviation("test_error")) for one in good]
            cells += [f"{v:.2g} %" for v in np.nanquantile(off, (0.5, 0.9))]
        rows.append(cells)
    return _table(head, rows)


def _parts(
    found: Sequence[Compared], key: Callable[[Compared], str]
) -> list[tuple[str, list[Compared]]]:
    parts: dict[str, list[Compared]] = {}
    for one in found:
        parts.setdefault(key(one), []).append(one)
    order = list(CLASSES)
    return sorted(parts.items(), key=lambda p: order.index(p[0]) if p[0] in order else len(order))


def _classes(found: Sequence[Compared]) -> str:
    present = {one.kind for one in found}
    return "\n".join(f"- *{name}*: {what}." for name, what in CLASSES.items() if name in present)


def _others(found: Sequence[Compared]) -> str:
    """Numbers that no error estimate is about."""
    rows = []
    for name in OTHERS:
        own = [one for one in found if one.both(name) is not None]
        if own:
            off = [abs(100 * one.deviation(name)) for one in own]
            beyond = sum(one.surely_off(name) > one.estimate for one in own)
            cells = [name, str(len(own)), _percent(one.in_band(name) for one in own)]
            rows.append([*cells, *(f"{v:.2g} %" for v in np.nanquantile(off, (0.5, 0.9))),
                         str(beyond)])  # fmt: skip
    head = ["", "problems", "in band", "median ∣deviation∣", "90 %", "beyond the stated error"]
    note = "The stated error is that of test and training error; of these numbers it is no promise."
    return f"{note}\n\n{_table(head, rows)}" if rows else "None."


def _estimates(found: Sequence[Compared]) -> str:
    head = ["", "answers", "median", "above 5 %", "above 20 %", "none stated"]
    rows = []
    good = [one for one in found if one.answered]
    for name, part in [*_parts(good, lambda one: one.kind), ("**all**", good)]:
        stated = [one.estimate for one in part if not math.isnan(one.estimate)]
        cells = [name, str(len(part)), f"{100 * float(np.median(stated)):.2g} %" if stated else "–"]
        cells += [_percent(e > limit for e in stated) for limit in (0.05, 0.2)]
        rows.append([*cells, str(len(part) - len(stated))])
    return _table(head, rows)


def _times(found: Sequence[Compared]) -> str:
    head = ["seconds of one core", "median", "90 %", "99 %", "worst", "above 10 s", "memory, worst"]
    rows = []
    for name, part in [*_parts(found, lambda one: one.kind), ("**all**", list(found))]:
        times = [one.seconds for one in part]
        cells = [name, *(f"{v:.2g}" for v in np.quantile(times, (0.5, 0.9, 0.99, 1.0)))]
        peak = max((one.answer.get("peak_mb", 0) for one in part), default=0)
        rows.append([*cells, str(sum(t > 10 for t in times)), f"{peak / 1024:.1f} GB"])
    return _table(head, rows)


def _before(found: Sequence[Compared], before: Sequence[Compared]) -> str:
    """The same problems with an earlier version."""
    known = {one.id: one for one in before}
    pairs = [(one, known[one.id]) for one in found if one.id in known]
    if not pairs:
        return ""
    head = ["", "problems", "all three in band: before", "now", "dishonest: before", "now",
            "no answer: before", "now", "states > 20 %: before", "now",
            "moved by more than 0.3 %"]  # fmt: skip
    rows = []
    kinds = _parts([new for new, _ in pairs], lambda one: one.kind)
    for name, part in [*kinds, ("**all**", [new for new, _ in pairs])]:
        sides = [known[one.id] for one in part], part
        cells = [name, str(len(part))]
        for test in (_band_share, _dishonest_count, _unanswered_count, _uncertain_share):
            cells += [test(side) for side in sides]
        moved = [one.moved(known[one.id]) > _MOVED for one in part]
        rows.append([*cells, _percent(moved)])
    return "## Before and now\n\nBefore: `evidence/before.jsonl`.\n\n" + _table(head, rows)


def _band_share(part: Sequence[Compared]) -> str:
    return _percent(all(one.in_band(q) for q in MAIN) for one in part if one.answered)


def _dishonest_count(part: Sequence[Compared]) -> str:
    return str(sum(one.dishonest for one in part))


def _unanswered_count(part: Sequence[Compared]) -> str:
    return str(sum(not one.answered for one in part))


def _uncertain_share(part: Sequence[Compared]) -> str:
    return _percent(one.estimate > 0.2 for one in part if one.answered)


def _dishonest(found: Sequence[Compared]) -> str:
    lying = sorted((one for one in found if one.dishonest), key=lambda o: o.estimate - o.proven)
    if not lying:
        return "None."
    head = ["problem", "engine", "off for sure", "stated", "test", "train"]
    return _table(head, [
        [one.id, one.engine, f"{100 * one.proven:.2g} %", f"{100 * one.estimate:.2g} %", *_off(one)]
        for one in lying
    ])  # fmt: skip


def _off(one: Compared) -> list[str]:
    """Deviations of test and training error with the simulation's standard errors."""
    cells = []
    for name in ("test_error", "train_error"):
        both = one.both(name)
        error = 100 * both[2] / abs(both[1]) if both and both[1] else math.nan
        cells.append(f"{100 * one.deviation(name):+.2f} ({error:.2f}) %")
    return cells


def _refusals(found: Sequence[Compared]) -> str:
    none = [one for one in found if not one.answered]
    if not none:
        return "Every problem has one."
    groups: dict[str, list[Compared]] = {}
    for one in none:
        why = one.answer.get("refusal") or f"over the limit of {one.status}"
        groups.setdefault(re.sub(r"\d[\d.e+-]*", "#", f"{one.status}: {why}"), []).append(one)
    rows = sorted(groups.items(), key=lambda entry: -len(entry[1]))
    head = f"{len(none)} of {len(found)} problems."
    return head + "\n\n" + "\n".join(
        f"- {len(part)}: {text.partition(': ')[2] if text.startswith('refused') else text} "
        f"({', '.join(one.id for one in part[:6])}{', …' * (len(part) > 6)})"
        for text, part in rows
    )  # fmt: skip


def _worst(found: Sequence[Compared], count: int = 15) -> str:
    outside = [o for o in found if o.answered and not all(o.in_band(q) for q in MAIN)]
    outside.sort(key=lambda one: -one.worst)
    if not outside:
        return "Every answer is in the band."
    head = ["problem", "engine", "stated", "test", "train", "seconds"]
    rows = [
        [one.id, one.engine, f"{100 * one.estimate:.2g} %", *_off(one), f"{one.seconds:.2g}"]
        for one in outside[:count]
    ]
    of = (
        f"{len(outside)} answers are outside the band in one of the three numbers; standard errors "
        "in brackets."
    )
    return f"{of}\n\n{_table(head, rows)}"


def moves(found: Sequence[Compared], base: Sequence[Compared]) -> str:
    """Problem by problem, what changed by more than 0.3 % against an earlier run."""
    known = {one.id: one for one in base}
    pairs = [(one, known[one.id]) for one in found if one.id in known]
    changed = [(new.moved(old), new, old) for new, old in pairs]
    changed = sorted((c for c in changed if c[0] > _MOVED), key=lambda c: -c[0])
    rows = []
    for size, new, old in changed:
        for side, one in (("before", old), ("now", new)):
            stated = "–" if math.isnan(one.estimate) else f"{100 * one.estimate:.2g} %"
            state = ("dishonest" if one.dishonest else one.status) if one.answered else one.status
            first = [new.id, f"{100 * size:.2g} %"] if side == "before" else ["", ""]
            rows.append([*first, side, *_off(one), stated, state, f"{one.seconds:.2g}"])
    head = ["problem", "moved", "", "test", "train", "stated", "", "seconds"]
    share = f"{len(changed)} of {len(pairs)} answers moved by more than {100 * _MOVED:g} %"
    worse = [new.id for _, new, old in changed if new.dishonest and not old.dishonest]
    better = [new.id for _, new, old in changed if old.dishonest and not new.dishonest]
    text = (
        f"{share}; newly dishonest: {', '.join(worse) or 'none'}; no more: "
        f"{', '.join(better) or 'none'}."
    )
    return text + ("\n\n" + _table(head, rows) if rows else "") + "\n"


def _percent(flags: Iterable[bool]) -> str:
    given = list(flags)
    return f"{100 * sum(given) / len(given):.1f} %" if given else "–"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in a terminal too."""
    full = [[*row, *[""] * (len(head) - len(row))] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in full) for i in range(len(head))]
    text = [
        " | ".join(
            c.rjust(w) if i else c.ljust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in full
    ]
    rule = "|".join("-" * (w + 1) + ":" if i else ":" + "-" * (w + 1) for i, w in enumerate(widths))
    return "\n".join([f"| {text[0]} |", f"|{rule}|", *(f"| {line} |" for line in text[1:])])
