"""The law of learning curves, and the widths of its bars, from measured curves.

    python -m benchmarks.corpus fit results/corpus.jsonl      # writes tabular/learning/corpus.json
    python -m benchmarks.corpus check results/held_out.jsonl  # back-test of what is shipped

The files are those of benchmarks/learning_curves.py. Nothing of the held-out tables is in the fit.
`check` goes through `LearningCurve`, so the choice by back-tests and the verdict are in it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize

from onegrad.tabular.learning.curve import LearningCurve, theory_of
from onegrad.tabular.learning.forecast import Curve, Forecast, Law
from onegrad.tabular.learning.measure import Score, Subset
from onegrad.tabular.report.words import helps

CORPUS = Path(__file__).parent.parent / "src/onegrad/tabular/learning/corpus.json"
FAMILIES = ("accuracy", "log_loss", "r2")
RATIOS = (1, 2, 4, 8)
_FLOOR = 5e-4  # of an error: truth is judged on up to 3000 rows
_SMOOTH = 0.02  # of an absolute value
_START = np.array([0.3, 0.3, 1.5])  # weights, logit of the damping


@dataclass(frozen=True)
class Case:
    """One curve with the truth at 1, 2, 4 and 8 times as many rows, as logarithms.

    noise : standard errors of the truth, of the rows that judge and from fit to fit
    """

    table: str
    model: str
    curve: LearningCurve
    truth: np.ndarray
    noise: np.ndarray

    @property
    def ours(self) -> bool:
        return self.model == "one-step"


def cases(path: Path, family: str) -> list[Case]:
    found = []
    score = Score(family, lambda model, x, y: 0.0, 0.0 if family == "log_loss" else 1.0, family)
    for line in path.read_text().splitlines():
        one = json.loads(line)
        if family not in one["truth"]["1"]:
            continue
        subsets = tuple(
            Subset(s["rows"], {family: np.array(s["errors"][family])}, s["judged"], 1.0, _paths(s))
            for s in one["subsets"] if np.isfinite(s["errors"][family]).all()
        )  # fmt: skip
        fits, judges = ([one["truth"][str(r)][family][i] for r in RATIOS] for i in (0, 1))
        truth = np.log(np.maximum([np.mean(values) for values in fits], _FLOOR))
        twice = [np.diff(np.log(np.maximum(v, _FLOOR)))[0] for v in fits if len(v) == 2]
        scatter = float(np.mean(np.square(twice))) / 2 if twice else 0.0
        noise = [
            math.hypot(np.mean(judge) / math.exp(log), math.sqrt(scatter / len(values)))
            for judge, log, values in zip(judges, truth, fits, strict=True)
        ]
        curve = LearningCurve(one["base"], one["model"], score, subsets)
        found.append(Case(one["table"], one["model"], curve, truth, np.array(noise)))
    return found


def _paths(subset: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        tuple(tuple(np.array(a) for a in rate) for rate in split) for split in subset["paths"]
    )


def power_law(curve: Curve) -> Callable[[float], float]:
    """a + b·(rows/known)^−c through the errors, by least squares of their logarithms: what the
    forecast is compared with."""
    sizes, logs = curve.rows / curve.known, np.log(curve.errors)

    def left(p: np.ndarray) -> np.ndarray:
        return np.log(np.exp(p[0]) + np.exp(p[1]) * sizes ** -np.exp(p[2])) - logs

    last = logs[-1]
    fits = [
        least_squares(left, [last - 1.2, last - 0.4, start],
                      bounds=([last - 12, last - 12, -4], [last + 2, last + 2, 1]))
        for start in (-1.5, -0.7, 0.0)
    ]  # fmt: skip
    low, size, exponent = np.exp(min(fits, key=lambda fit: fit.cost).x)
    return lambda rows: float(low + size * (rows / curve.known) ** -exponent)


class Fit:
    """All numbers of a law: weights by the mean |miss|, widths by the quantiles of |miss|. Every
    table counts the same."""

    def __init__(self, group: Sequence[Case], theory: bool) -> None:
        self.group = group
        measured = [case.curve.measured for case in group]
        self.seen = np.array([one.falls() for one in measured])
        self.last = np.array([math.log(one.errors[-1]) for one in measured])
        self.known = np.array([one.known for one in measured])
        self.level = np.array([one.noise[-1] for one in measured])
        rows = np.array([[r * case.curve.rows for r in RATIOS] for case in group])
        self.u = np.log2(rows / self.known[:, None])
        self.truth = np.array([case.truth for case in group])
        self.noise = np.array([case.noise for case in group])
        counts = Counter(case.table for case in group)
        self.weight = np.array([1 / counts[case.table] for case in group])
        self.falls = np.zeros_like(self.u)
        if theory:
            for i, case in enumerate(group):
                shape = theory_of(case.curve.subsets[-1])
                self.falls[i] = [shape(self.known[i]) - shape(n) for n in rows[i]]

    def law(self, plain: Law | None = None) -> Law:
        """plain : the law without theory, of which only `follows` and factors on the bars change"""
        if plain is not None:
            laws = [replace(plain, follows=share) for share in np.arange(11) / 10]
            return self._with_bars(min(laws, key=self._cost), given=True)
        p = minimize(
            lambda p: self._cost(self._of(p)) + 0.01 * float(np.sum((p - _START)[:2] ** 2)),
            _START, method="Powell", options={"maxiter": 30, "xtol": 1e-3},
        ).x  # fmt: skip
        return self._with_bars(self._of(p))

    @staticmethod
    def _of(p: np.ndarray) -> Law:
        return Law((abs(float(p[0])), abs(float(p[1]))), float(0.4 + 0.59 / (1 + np.exp(-p[2]))))

    def _cost(self, law: Law) -> float:
        smooth = np.sqrt(self._misses(law)[:, 1:] ** 2 + _SMOOTH**2).mean(axis=1)
        return float(np.average(smooth, weights=self.weight))

    def _misses(self, law: Law) -> np.ndarray:
        slope = np.maximum(self.seen @ np.array(law.weights), 0.0)
        fall = slope[:, None] * self._far(law)
        return self.last[:, None] - fall - law.follows * (self.falls - fall) - self.truth

    def _far(self, law: Law) -> np.ndarray:
        rate = -math.log(law.damping)
        return np.asarray((1 - np.exp(-rate * self.u)) / rate)

    def _with_bars(self, law: Law, given: bool = False) -> Law:
        """given : whether the bars of `law` are only to be multiplied"""
        left, far = np.abs(self._misses(law)), self._far(law)
        parts = np.stack([np.broadcast_to(self.level[:, None], far.shape), np.ones_like(far), far])
        if given:
            half = np.linalg.norm(np.array(law.inner)[:, None, None] * parts, axis=0)
            wider = self._widths(left, half[None], self.noise, 0.683)[0]
            inner = tuple(wider * part for part in law.inner)
        else:
            inner = self._widths(left, parts, self.noise, 0.683)
        half = np.linalg.norm(np.array(inner)[:, None, None] * parts, axis=0)
        outer = self._widths(left, half[None], 2 * self.noise, 0.954)[0]
        change = np.abs(self._misses(law)[:, 3] - self._misses(law)[:, 0])
        spread = np.hypot(inner[0] * self.level, inner[2]) * (far[:, 3] - far[:, 0])
        noise = 2 * np.hypot(self.noise[:, 3], self.noise[:, 0])
        steep = self._widths(change, spread[None], noise, 0.954)[0]
        return replace(law, inner=inner, outer=outer, steep=steep)

    def _widths(
        self, left: np.ndarray, parts: np.ndarray, noise: np.ndarray, share: float
    ) -> tuple[Any, ...]:
        """Factors on `parts`: hypotenuse, with the truth's noise, is that quantile of |miss|."""
        weight = self.weight.reshape(-1, *[1] * (left.ndim - 1)) * np.ones_like(left)

        def cost(p: np.ndarray) -> float:
            squares = np.tensordot(np.exp(2 * p), parts**2, 1)
            over = left - np.sqrt(squares + noise**2)
            return float(np.average(np.maximum(share * over, (share - 1) * over), weights=weight))

        best = min(
            (minimize(cost, np.full(len(parts), s), method="Nelder-Mead",
                      options={"maxiter": 2000, "xatol": 1e-3, "fatol": 1e-7})
             for s in (-3.0, -1.5, 0.5)),
            key=lambda found: found.fun,
        )  # fmt: skip
        return tuple(float(v) for v in np.exp(best.x))


def fit(path: Path) -> None:
    shipped: dict[str, Law] = {}
    curves: set[tuple[str, str, int]] = set()
    for family in FAMILIES:
        group = cases(path, family)
        curves |= {(case.table, case.model, case.curve.rows) for case in group}
        shipped[family] = Fit(group, False).law()
        ours = [case for case in group if case.ours]
        shipped[f"{family}+theory"] = Fit(ours, True).law(shipped[family])
    three = [shipped[name] for name in FAMILIES]
    shipped["other"] = replace(  # scores that the corpus does not have
        shipped["r2"], inner=tuple(np.max([law.inner for law in three], axis=0).tolist()),
        outer=max(law.outer for law in three), steep=max(law.steep for law in three),
    )  # fmt: skip
    rounded = json.loads(
        json.dumps({name: asdict(law) for name, law in shipped.items()}),
        parse_float=lambda text: float(f"{float(text):.4g}"),
    )
    text = ",\n".join(f'  "{name}": {json.dumps(law)}' for name, law in rounded.items())
    counts = json.dumps({"tables": len({one[0] for one in curves}), "curves": len(curves)})
    CORPUS.write_text(f'{{"corpus": {counts}, "laws": {{\n{text}\n}}}}\n')
    print(CORPUS.read_text())


def predicted(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the errors by `LearningCurve`, and their half-widths (2 × ratios)."""
    forecast = case.curve.forecast
    rows = [r * case.curve.rows for r in RATIOS]
    logs = np.array([forecast.log_error(n) for n in rows])
    return logs, np.array([forecast.bars(n) for n in rows]).T


def check(path: Path) -> None:
    """Median and mean of |log(predicted/true)| in %, the shares inside the bars, the verdict."""
    said: Counter[tuple[str, str]] = Counter()
    print("score | estimators | curves | × | forecast | no change | power law | inside 68, 95 %")
    for family in FAMILIES:
        group = cases(path, family)
        for name, part in (
            ("others", [case for case in group if not case.ours]),
            ("ours", [case for case in group if case.ours]),
        ):
            found = [predicted(case) for case in part]
            truth, noise = (np.array([getattr(c, key) for c in part]) for key in ("truth", "noise"))
            measured = [case.curve.measured for case in part]
            ways = {
                "forecast": np.array([logs for logs, _ in found]),
                "no change": np.array([[math.log(one.errors[-1])] * 4 for one in measured]),
                "power": np.array([
                    [math.log(power_law(one)(r * case.curve.rows)) for r in RATIOS]
                    for one, case in zip(measured, part, strict=True)
                ]),
            }  # fmt: skip
            if name == "ours":
                for case in part:
                    said["method", case.curve.method] += 1
                ways |= {
                    method: np.array([
                        [_by(case, method).log_error(r * case.curve.rows) for r in RATIOS]
                        for case in part
                    ])
                    for method in part[0].curve.methods
                }  # fmt: skip
            left = {way: 100 * np.abs(logs - truth) for way, logs in ways.items()}
            bars = np.array([half for _, half in found])
            for i, ratio in enumerate(RATIOS[1:], 1):
                cells = [f"{np.median(v[:, i]):.1f} ({v[:, i].mean():.1f})" for v in left.values()]
                inside = [
                    np.mean(left["forecast"][:, i] / 100 < np.hypot(bars[:, k, i], m * noise[:, i]))
                    for k, m in ((0, 1.0), (1, 2.0))
                ]
                print(family, name, len(part), ratio, *cells,
                      ", ".join(f"{100 * share:.0f}" for share in inside), sep=" | ")  # fmt: skip
            for case in part:
                ratio = math.exp(case.truth[3] - case.truth[0])
                fall = "falls" if ratio < 0.8 else "level" if ratio > 0.9 else "between"
                said[fall, str(helps(case.curve, 8))] += 1
    print(dict(said))


def _by(case: Case, method: str) -> Forecast:
    return case.curve._forecast(method, case.curve.fitted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fit", "check"])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    {"fit": fit, "check": check}[options.what](options.file)


if __name__ == "__main__":
    main()
