"""The law of learning curves, and the widths of its bars, from measured curves.

    python -m benchmarks.corpus fit results/corpus.jsonl      # writes tabular/learning/corpus.json
    python -m benchmarks.corpus check results/held_out.jsonl  # back-test of what is shipped

The files are those of benchmarks/learning_curves.py. Nothing of the held-out tables is in the fit.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from onegrad.tabular.learning.forecast import (
    FAMILIES,
    Curve,
    Forecast,
    Law,
    Shape,
    curve_of_splits,
    laws,
    power_law,
)
from onegrad.tabular.learning.more_rows import level_path, mean_path, tuned_error
from onegrad.tabular.report.words import helps

CORPUS = Path(__file__).parent.parent / "src/onegrad/tabular/learning/corpus.json"
RATIOS = (1, 2, 4, 8)
BLENDS = (0.0, 0.3, 0.5, 0.7)
GROUPS = (120.0, 1e9)  # rows known, upper limits
START = Law(0.1, 0.2, 0.0, 0.1, 0.8, 0.05, 2.0, 0.7, 0.7, 4.0)


@dataclass(frozen=True)
class Case:
    """One curve with the truth at more rows; noise and scatter: of the truth, relative."""

    table: str
    model: str
    base: int
    family: str
    curve: Curve
    truth: dict[int, float]
    noise: dict[int, float]
    shape: Shape | None


def cases(path: Path, family: str) -> list[Case]:
    found = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        if family not in one["truth"]["1"]:
            continue
        subsets = [s for s in one["subsets"] if np.isfinite(s["errors"][family]).all()]
        curve = curve_of_splits(
            [s["rows"] for s in subsets], [np.array(s["errors"][family]) for s in subsets],
            family, subsets[-1]["judged"],
        )  # fmt: skip
        truth, noise, pairs = {}, {}, []
        for factor in RATIOS:
            means, errors = one["truth"][str(factor)][family]
            floor = 0.5 / 1000
            truth[factor] = max(float(np.mean(means)), floor)
            noise[factor] = float(np.mean(errors)) / truth[factor]
            if len(means) == 2:
                a, b = np.log(np.maximum(means, floor))
                pairs.append((a - b) ** 2 / 2)
        scatter = float(np.mean(pairs)) if pairs else 0.0
        for factor in RATIOS:
            fits = len(one["truth"][str(factor)][family][0])
            noise[factor] = math.hypot(noise[factor], math.sqrt(scatter / fits))
        shape = theory_of(subsets[-1]) if one["model"] == "one-step" else None
        case = Case(one["table"], one["model"], one["base"], family, curve, truth, noise, shape)
        found.append(case)
    return found


def theory_of(subset: dict[str, Any]) -> Shape:
    rows = subset["rows"]
    paths = [
        [level_path(*(np.array(a) for a in rate), rows) for rate in split]
        for split in subset["paths"]
    ]
    joined = mean_path(paths)
    return lambda n: math.log(tuned_error(joined, n))


def likelihood(law: Law, group: Sequence[Case]) -> float:
    """Of the measured errors and the truth together, the level free."""
    total = 0.0
    for one in group:
        rows = np.concatenate([one.curve.rows, [f * one.base for f in RATIOS]])
        logs = np.log(np.concatenate([one.curve.errors, [one.truth[f] for f in RATIOS]]))
        count = len(one.curve.rows)
        u = np.log2(rows / one.curve.known)
        cov = law.covariance(u, u) - 900.0
        cov[:count, :count] += law.noise_covariance(one.curve.noise)
        noise = np.array([one.noise[f] for f in RATIOS])
        cov[count:, count:] += np.outer(noise, noise) * (0.6 + 0.4 * np.eye(len(noise)))
        left = logs - law.expected(rows, one.curve.known, one.shape)
        # contrasts with the largest subset
        pick = np.delete(np.eye(len(rows)), count - 1, axis=0)
        pick[:, count - 1] = -1.0
        cov, left = pick @ cov @ pick.T, pick @ left
        n, nu = len(left), law.freedom
        sign, logdet = np.linalg.slogdet(cov)
        square = left @ np.linalg.solve(cov, left)
        total += (
            gammaln((nu + n) / 2) - gammaln(nu / 2) - n / 2 * math.log(nu * math.pi)
            - logdet / 2 - (nu + n) / 2 * math.log1p(square / nu)
        )  # fmt: skip
        if sign <= 0:
            return -1e9
    return total


def fitted(group: Sequence[Case], theory: bool, start: Law = START, rounds: int = 5) -> Law:
    def law_of(p: np.ndarray) -> Law:
        e = np.exp(p)
        damping = float(np.clip(1 / (1 + np.exp(-p[4])), 0.05, 0.98))
        return Law(
            float(e[0]), float(e[1]) + 0.02, float(e[2]) if theory else 0.0, float(e[3]), damping,
            float(e[5]), 1.01 + float(e[6]), float(e[7]), float(e[8]),
            float(np.clip(e[9], 1.5, 60.0)),
        )  # fmt: skip

    first = np.log([start.slope, start.fading, 0.7, start.scatter, 4.0, start.drift,
                    start.rough - 1, start.noise, start.common, start.freedom])  # fmt: skip
    if theory:
        first[0] = math.log(0.02)

    def cost(p: np.ndarray) -> float:
        prior = 0.5 * float((((p - first) / 3) ** 2).sum())
        return prior - likelihood(law_of(p), group)

    best = minimize(cost, first, method="Powell", options={"maxiter": rounds, "xtol": 0.02,
                                                           "ftol": 1e-4})  # fmt: skip
    return law_of(best.x)


def misses(law: Law, group: Sequence[Case]) -> list[dict[str, float]]:
    """log(predicted/true) by ratio, in units of its standard deviation and plainly."""
    found = []
    for one in group:
        forecast = Forecast(law, one.curve, one.shape if law.follows else None)
        rows = np.array([f * one.base for f in RATIOS], float)
        mean, covariance = forecast.at(rows)
        spread = np.sqrt(np.diag(covariance))
        plain = power_law(one.curve)
        for f, m, s in zip(RATIOS, mean, spread, strict=True):
            log_true = math.log(one.truth[f])
            found.append({
                "ratio": f, "base": one.base, "miss": m - log_true, "spread": s,
                "noise": one.noise[f], "no_change": math.log(one.curve.errors[-1]) - log_true,
                "power": math.log(plain(f * one.base)) - log_true,
                "theory": (one.shape(f * one.base) - log_true) if one.shape else math.nan,
            })  # fmt: skip
    return found


def bars_of(found: Sequence[dict[str, float]]) -> tuple[Any, ...]:
    """68 and 95 % quantiles of |miss| in units of its standard deviation, by rows and ratio; the
    noise of the truth is taken off first (in quadrature, on average)."""
    bars = []
    low = 0.0
    for limit in GROUPS:
        rows = []
        for ratio in RATIOS:
            part = [o for o in found if o["ratio"] == ratio and low < o["base"] <= limit]
            if len(part) < 20:
                part = [o for o in found if o["ratio"] == ratio]
            rows.append((float(ratio), *(_factor(part, share) for share in (0.683, 0.954))))
        bars.append((limit, tuple(rows)))
        low = limit
    return tuple(bars)


def _factor(part: Sequence[dict[str, float]], share: float) -> float:
    """q so that |miss| < q·spread, widened by the truth's noise, holds with this share."""
    multiple = 1.0 if share < 0.8 else 2.0
    low, high = 0.05, 20.0
    for _ in range(40):
        q = math.sqrt(low * high)
        inside = np.mean([
            abs(o["miss"]) < math.hypot(q * o["spread"], multiple * o["noise"]) for o in part
        ])  # fmt: skip
        low, high = (q, high) if inside < share else (low, q)
    return round(q, 3)


def fit(path: Path) -> None:
    shipped: dict[str, Law] = {}
    together: list[Case] = []
    for family in FAMILIES:
        group = cases(path, family)
        together += group
        shipped[family] = finished(fitted(group[::2], False), group)
        ours = [one for one in group if one.shape is not None]
        shipped[f"{family}+theory"] = finished(fitted(ours, True), ours)
        print(family, shipped[family].blend, shipped[f"{family}+theory"].blend, flush=True)
    shipped["other"] = replace(shipped["r2"], bars=widest([shipped[name] for name in FAMILIES]))
    rounded = json.loads(
        json.dumps({name: asdict(law) for name, law in shipped.items()}),
        parse_float=lambda text: float(f"{float(text):.4g}"),
    )
    counts = {"tables": len({one.table for one in together}), "curves": len(together)}
    lines = [f'  "{name}": {json.dumps(law)}' for name, law in rounded.items()]
    text = ",\n".join(lines)
    CORPUS.write_text(f'{{"corpus": {json.dumps(counts)}, "laws": {{\n{text}\n}}}}\n')


def widest(three: Sequence[Law]) -> tuple[Any, ...]:
    """Bars for scores that the corpus does not have."""
    return tuple(
        (limit, tuple(
            (row[0], *(max(law.bars[i][1][j][k] for law in three) for k in (1, 2)))
            for j, row in enumerate(rows)
        ))
        for i, (limit, rows) in enumerate(three[0].bars)
    )  # fmt: skip


def finished(law: Law, group: Sequence[Case]) -> Law:
    """With the weight of the plain power law that has the least mean miss, and the bars."""
    found = misses(law, group)
    means = [
        np.mean([abs((1 - w) * o["miss"] + w * o["power"]) for o in found if o["ratio"] > 1])
        for w in BLENDS
    ]
    law = replace(law, blend=BLENDS[int(np.argmin(means))])
    left = [o | {"miss": (1 - law.blend) * o["miss"] + law.blend * o["power"]} for o in found]
    return replace(law, bars=bars_of(left))


def summary(found: Sequence[dict[str, float]], law: Law) -> list[str]:
    """Median and mean of |log(predicted/true)| in %, and the shares inside the bars."""
    lines = []
    for ratio in RATIOS[1:]:
        part = [o for o in found if o["ratio"] == ratio]
        cells = []
        for key in ("miss", "no_change", "power", "theory"):
            left = 100 * np.abs([o[key] for o in part])
            cells.append(f"{np.median(left):5.1f} ({left.mean():5.1f})")
        inside = []
        for i, multiple in ((0, 1.0), (1, 2.0)):
            inside.append(100 * np.mean([
                abs(o["miss"]) < math.hypot(law.bar(o["base"], ratio)[i] * o["spread"],
                                            multiple * o["noise"])
                for o in part
            ]))  # fmt: skip
        lines.append(f"{ratio}: " + " | ".join(cells) + " | {:.0f} {:.0f}".format(*inside))
    return lines


def check(path: Path) -> None:
    said: dict[str, list[bool | None]] = {"falls": [], "level": []}
    for family in FAMILIES:
        group = cases(path, family)
        for name, chosen in (("others", False), ("ours", True)):
            part = [one for one in group if (one.shape is not None) == chosen]
            law = laws()[family + "+theory" * chosen]
            print(family, name, len(part), "law | no change | power law | theory | 1σ 2σ")
            print("\n".join(summary(misses(law, part), law)))
            if chosen:
                plain = laws()[family]
                print("  ours by the law without theory")
                print("\n".join(summary(misses(plain, part), plain)), flush=True)
            for one in part:
                forecast = Forecast(law, one.curve, one.shape if law.follows else None)
                left = one.truth[8] / one.truth[1]
                verdict = helps(*forecast.change(one.base, 8 * one.base))
                if left < 0.8 or left > 0.9:
                    said["falls" if left < 0.8 else "level"].append(verdict)
    right, false = said["falls"].count(True), said["level"].count(True)
    print(
        f"more rows help: said of {right} of {len(said['falls'])} curves that fall by 20 % at 8 "
        f"times the rows, and of {false} of {len(said['level'])} that fall by less than 10 %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fit", "check"])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    {"fit": fit, "check": check}[options.what](options.file)


if __name__ == "__main__":
    main()
