"""The estimators beside others on the tables of tables.py: log loss, accuracy or R², CPU seconds.

    python -m benchmarks.estimators --folder /usr/lib/R --out results/estimators.json

1000 rows to fit, up to 1500 others to judge; inputs standardised; settings as in `models`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import onegrad as og
from benchmarks.tables import CORPUS, HELD_OUT, tables
from onegrad.tabular.reading.table import Table

RATES = (0.0, 1.0, 8.0, 64.0)


def models(task: str, dim: int, seed: int) -> dict[str, Any]:
    rbf = Nystroem(gamma=0.5 / dim, n_components=300, random_state=seed)
    if task == "regression":
        linear = RidgeCV(np.geomspace(1e-3, 1e4, 15))
        return {
            "OneStep": og.OneStepRegressor(500, random_state=seed),
            "OneStep, every rate": og.OneStepRegressor(500, rate=RATES, random_state=seed),
            "OneStep, rate=0": og.OneStepRegressor(500, rate=0.0, random_state=seed),
            "OneStep × 4": og.OneStepRegressor(500, n_estimators=4, random_state=seed),
            "linear": linear,
            "RBF features": make_pipeline(rbf, linear),
            "HistGradientBoosting": HistGradientBoostingRegressor(random_state=seed),
            "ExtraTrees": ExtraTreesRegressor(random_state=seed),
            "MLP": MLPRegressor(max_iter=200, random_state=seed),
        }
    return {
        "OneStep": og.OneStepClassifier(500, random_state=seed),
        "OneStep, every rate": og.OneStepClassifier(500, rate=RATES, random_state=seed),
        "OneStep, rate=0": og.OneStepClassifier(500, rate=0.0, random_state=seed),
        "OneStep × 4": og.OneStepClassifier(500, n_estimators=4, random_state=seed),
        "linear": LogisticRegression(max_iter=300),
        "RBF features": make_pipeline(rbf, LogisticRegression(max_iter=300)),
        "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=50, random_state=seed),
        "ExtraTrees": ExtraTreesClassifier(random_state=seed),
        "MLP": MLPClassifier(max_iter=200, random_state=seed),
    }


def one_table(name: str, table: Table, seed: int) -> list[dict[str, Any]]:
    order = np.random.default_rng(seed).permutation(len(table.y))
    count = min(1000, 2 * len(order) // 3)
    train, test = order[:count], order[count : count + 1500]
    if table.task == "classification":
        test = test[np.isin(table.y[test], table.y[train])]
    found = []
    for model, one in models(table.task, table.x.shape[1], seed).items():
        start = time.process_time()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            fitted = make_pipeline(StandardScaler(), one).fit(table.x[train], table.y[train])
            seconds = time.process_time() - start
            score = fitted.score(table.x[test], table.y[test])
            row = {"table": name, "task": table.task, "seed": seed, "model": model}
            row |= {"seconds": seconds, "score": score}
            if table.task == "classification":
                chances = np.clip(fitted.predict_proba(table.x[test]), 1e-12, 1)
                row["log_loss"] = log_loss(table.y[test], chances, labels=fitted.classes_)
        found.append(row)
    return found


def summary(rows: list[dict[str, Any]]) -> str:
    """Means over tables, ± their standard deviation from seed to seed; rank by accuracy or R²."""
    names = list(dict.fromkeys(row["model"] for row in rows))
    lines = ["| model | accuracy | log loss | R² | mean rank | CPU seconds |", "|---" * 6 + "|"]
    for one in rows:
        others = [
            r["score"] for r in rows if (r["table"], r["seed"]) == (one["table"], one["seed"])
        ]
        one["rank"] = 1 + sum(score > one["score"] for score in others)
    for name in names:
        own = [row for row in rows if row["model"] == name]
        classes = [row for row in own if row["task"] == "classification"]
        numbers = [row | {"score": max(row["score"], -1)} for row in own if row not in classes]
        cells = [
            _spread(classes, "score"), _spread(classes, "log_loss"), _spread(numbers, "score"),
            _spread(own, "rank", 1), f"{np.mean([r['seconds'] for r in own]):.2f}",
        ]  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(rows: list[dict[str, Any]], key: str, digits: int = 3) -> str:
    seeds = sorted({row["seed"] for row in rows})
    means = [np.mean([row[key] for row in rows if row["seed"] == seed]) for seed in seeds]
    text = f"{np.mean(means) if means else np.nan:.{digits}f}"
    return text + (f" ± {np.std(means, ddof=1):.{digits}f}" if len(means) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/usr/lib/R"))
    parser.add_argument("--out", type=Path, default=Path("results/estimators.json"))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name, table in (*tables(options.folder, CORPUS), *tables(options.folder, HELD_OUT)):
        for seed in range(options.seeds):
            rows += one_table(name, table, seed)
            print(name, seed, flush=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(summary(rows))


if __name__ == "__main__":
    main()
