"""Back-test of `og.learning_curve` on real tables: predicted from few rows, measured on others.

    python -m benchmarks.learning_curves measure --folder /usr/lib/R --out results/corpus.jsonl
    python -m benchmarks.learning_curves measure --held-out … --out results/held_out.jsonl

For every table, model and seed a curve is measured on `base` rows as `og.learning_curve` does.
Truth are fits to 1, 2, 4 and 8 times as many rows that it has not seen, judged on rows of neither.
One line of JSON for each; lines that are there are not measured again.
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
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import onegrad as og
from benchmarks.tables import CORPUS, HELD_OUT, tables
from onegrad.tabular.learning import measure
from onegrad.tabular.reading.table import Table

FACTORS = {1: 1, 2: 2, 4: 1, 8: 1}  # times the rows known: fits
_MOST_TEST = 3000
_MOST_CLASSES, _LEAST_SHARE = 8, 0.03
_MOST_COLUMNS, _LEAST_BASE = 200, 80


def models(task: str, dim: int, seed: int) -> dict[str, Any]:
    """Six estimators at cheap settings; each on one thread."""
    rbf = Nystroem(gamma=0.5 / dim, n_components=100, random_state=seed)
    part = min(1.0, 60 / dim)  # columns that boosted trees look at in a split
    if task == "regression":
        linear: Any = RidgeCV(np.geomspace(1e-3, 1e4, 15))
        found = {
            "one-step": og.OneStepRegressor(500, random_state=seed),
            "linear": linear,
            "rbf": make_pipeline(rbf, linear),
            "neighbours": KNeighborsRegressor(15),
            "random-forest": RandomForestRegressor(25, min_samples_leaf=3, random_state=seed),
            "hist-gradient-boosting": HistGradientBoostingRegressor(
                max_iter=60, max_features=part, random_state=seed
            ),
        }
    else:
        linear = LogisticRegression(max_iter=200)
        found = {
            "one-step": og.OneStepClassifier(500, random_state=seed),
            "linear": linear,
            "rbf": make_pipeline(rbf, linear),
            "neighbours": KNeighborsClassifier(15),
            "random-forest": RandomForestClassifier(25, min_samples_leaf=3, random_state=seed),
            "hist-gradient-boosting": HistGradientBoostingClassifier(
                max_iter=40, max_features=part, random_state=seed
            ),
        }
    return {name: make_pipeline(StandardScaler(), model) for name, model in found.items()}


def usable(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """At most 200 columns; rows of the largest classes: a class must be in every subset."""
    x, count = table.x, table.x.shape[1]
    if count > _MOST_COLUMNS:
        x = x[:, np.random.default_rng(0).choice(count, _MOST_COLUMNS, replace=False)]
    if table.task == "regression":
        return x, table.y
    names, counts = np.unique(table.y, return_counts=True)
    largest = names[np.argsort(-counts)][:_MOST_CLASSES]
    kept = np.isin(table.y, [n for n in largest if (table.y == n).mean() > _LEAST_SHARE])
    return x[kept], table.y[kept]


def one_curve(
    data: tuple[np.ndarray, np.ndarray], task: str, model: str, base: int, seed: int
) -> dict[str, Any]:
    """What is measured on `base` rows, and the truth at more."""
    x, y = data
    start = time.process_time()
    order = np.random.default_rng([seed, base]).permutation(len(y))
    held_out = min(_MOST_TEST, len(order) // 5)
    test, known, fresh = np.split(order, [held_out, held_out + base])
    estimator = models(task, x.shape[1], seed)[model]
    scoring = ("r2",) if task == "regression" else ("accuracy", "neg_log_loss")
    scores = [measure.score_of(estimator, one) for one in scoring]
    classes = task == "classification"
    splits = measure.splits_of(x[known], y[known], classes, None, None, seed)
    subsets = measure.measure(estimator, (x[known], y[known]), scores, splits)
    truth = {}
    for factor, fits in FACTORS.items():
        parts = []
        for i in range(fits):
            rows = fresh[i * factor * base : (i + 1) * factor * base]
            if len(rows) == factor * base:
                parts.append(_truth(estimator, (x, y), rows, test, classes))
        truth[factor] = {
            name: [[part[name][0] for part in parts], [part[name][1] for part in parts]]
            for name in parts[0]
        }
    return {
        "model": model, "task": task, "base": base, "seed": seed, "columns": x.shape[1],
        "subsets": [
            {"rows": one.rows, "judged": one.judged,
             "errors": {score.family: [round(float(e), 5) for e in one.errors[score.name]]
                        for score in scores},
             "paths": [[[_short(a) for a in rate] for rate in path] for path in one.paths]}
            for one in subsets
        ],
        "truth": truth, "cpu": round(time.process_time() - start, 2),
    }  # fmt: skip


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{v:.5g}") for v in values]


def _truth(
    estimator: Any, data: tuple[Any, Any], rows: np.ndarray, test: np.ndarray, classes: bool
) -> dict[str, tuple[float, float]]:
    """Errors, and their standard error because of the rows that judge."""
    from sklearn.base import clone

    x, y = data
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = clone(estimator).fit(x[rows], y[rows])
        if not classes:
            squares = (y[test] - model.predict(x[test])) ** 2 / y[test].var()
            losses = {"r2": squares}
        else:
            chances = model.predict_proba(x[test])
            right = chances[np.arange(len(test)), np.searchsorted(model.classes_, y[test])]
            eps = np.finfo(chances.dtype).eps
            losses = {"accuracy": model.predict(x[test]) != y[test],
                      "log_loss": -np.log(np.clip(right, eps, 1 - eps))}  # fmt: skip
    return {
        name: (float(loss.mean()), float(loss.std() / np.sqrt(len(test))))
        for name, loss in losses.items()
    }


def bases_of(rows: int, options: argparse.Namespace, seed: int) -> list[int]:
    """Rows known: all of the corpus that leave 8 times as many; of held-out tables one a seed."""
    most = int(rows * 0.8 // 9)
    if most < _LEAST_BASE:
        return []
    if options.held_out:
        return [min(options.bases[seed % len(options.bases)], most)]
    return sorted({b for b in options.bases if b <= most} | {min(options.bases[0], most)})


def measure_all(options: argparse.Namespace) -> None:
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if options.out.exists():
        for line in options.out.read_text().splitlines():
            one = json.loads(line)
            done.add((one["table"], one["model"], one["base"], one["seed"]))
    sources = HELD_OUT if options.held_out else CORPUS
    with options.out.open("a") as file:
        for name, table in tables(options.folder, sources):
            data = usable(table)
            for seed in range(options.seeds):
                for base in bases_of(len(data[1]), options, seed):
                    for model in models(table.task, table.x.shape[1], 0):
                        if (name, model, base, seed) in done:
                            continue
                        one = one_curve(data, table.task, model, base, seed)
                        file.write(json.dumps({"table": name} | one) + "\n")
                        file.flush()
                        print(name, model, base, seed, one["cpu"], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure"])
    parser.add_argument("--folder", type=Path, default=Path("/usr/lib/R"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", action="store_true", help="the tables HELD_OUT")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--bases", type=int, nargs="+", default=[200, 100])
    measure_all(parser.parse_args())


if __name__ == "__main__":
    main()
