"""Any estimator on nested subsets of the rows: its errors on the rows that each split holds out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit, check_cv
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from onegrad.compute.backend import Array
from onegrad.errors import SpecError

MOST_ROWS = 10_000  # fitted to
SPLITS = 5
_MOST_TEST = 4000  # rows that judge one split
_HALVINGS = 4  # halvings of the largest subset
_SMALLEST = 16  # rows of the smallest subset

Scorer = Callable[[Any, Any, Any], float]
Path = tuple[Array, Array, Array]  # ridges, leave-one-out errors, eigenvalues
Fit = tuple[list[float], tuple[Path, ...], float]  # errors, paths, CPU seconds

_UNBOUNDED = ("mutual_info_score", "positive_likelihood_ratio")  # scores without a best value


@dataclass(frozen=True)
class Score:
    """A scorer, and its best value: the error that is forecast is best − score.

    family : whose law is used: accuracy, log_loss, r2, or other
    """

    name: str
    scorer: Scorer
    best: float
    family: str

    def of(self, error: float) -> float:
        return self.best - error


@dataclass(frozen=True)
class Subset:
    """All splits at one number of rows.

    errors : for each score, that of every split (NaN where it could not be computed)
    judged : held-out rows of all splits together
    again : how often each of them is judged, on average
    paths : of our own estimators, for each split and every rate: leave-one-out errors over the
        variance of the labels
    """

    rows: int
    errors: Mapping[str, Array]
    judged: int
    again: float = 1.0
    paths: tuple[tuple[Path, ...], ...] = ()


@dataclass(frozen=True)
class Splits:
    """Which rows are fitted and held out; ordered: fitted rows in the order in which subsets take
    them; kind: random, groups or time."""

    ordered: tuple[np.ndarray, ...]
    tests: tuple[np.ndarray, ...]
    kind: str

    @property
    def largest(self) -> int:
        return min(MOST_ROWS, *(len(rows) for rows in self.ordered))

    @property
    def judged(self) -> int:
        return len(np.unique(np.concatenate(self.tests)))

    @property
    def again(self) -> float:
        return sum(map(len, self.tests)) / self.judged

    @property
    def sizes(self) -> tuple[int, ...]:
        """Halves of halves of the largest number of rows, smallest first."""
        return tuple(sorted({max(_SMALLEST, self.largest // 2**j) for j in range(_HALVINGS + 1)}))


def score_of(estimator: Any, scoring: Any) -> Score:
    """scoring : the name of a scorer of scikit-learn, a callable, or None for the estimator's own
    score (accuracy or R²)."""
    scorer = check_scoring(estimator, scoring=scoring)
    if scoring is None:
        family = "accuracy" if is_classifier(estimator) else "r2"
        return Score("accuracy" if family == "accuracy" else "R²", scorer, 1.0, family)
    if not isinstance(scoring, str):
        name = getattr(scoring, "__name__", type(scoring).__name__)
        return Score(name, scorer, float("nan"), "other")  # its best value shows in its values
    if scoring in _UNBOUNDED:
        raise SpecError.of(
            "scoring", scoring, "must be a score whose best value is known: 1, or 0 for neg_…",
            "For example accuracy, neg_log_loss, roc_auc, r2",
        )  # fmt: skip
    families = {"accuracy": "accuracy", "r2": "r2", "neg_log_loss": "log_loss",
                "neg_mean_squared_error": "r2"}  # fmt: skip
    name = "R²" if scoring == "r2" else scoring
    best = 0.0 if scoring.startswith("neg_") else 1.0
    return Score(name, scorer, best, families.get(scoring, "other"))


def splits_of(x: Any, y: np.ndarray, classes: bool, cv: Any, groups: Any, seed: int) -> Splits:
    """cv : None or a number of folds (shuffled, of whole groups where `groups` are given), "time"
    (rows are in the order of time: four blocks of the last fifth are judged, each by a fit to rows
    before it), or a splitter of scikit-learn."""
    kind = "random" if groups is None else "groups"
    if isinstance(cv, str) and cv != "time":
        raise SpecError.of("cv", cv, 'must be "time", a number of folds or a splitter')
    count = SPLITS if cv is None else cv
    if cv == "time":
        cv = TimeSeriesSplit(4, test_size=max(1, len(y) // 20))
    elif not isinstance(count, int):
        cv = check_cv(cv, y, classifier=classes)
    elif groups is not None:
        cv = GroupKFold(count)
    elif classes:
        most = int(np.unique(y, return_counts=True)[1].max())
        cv = StratifiedKFold(max(2, min(count, most)), shuffle=True, random_state=seed)
    else:
        cv = KFold(count, shuffle=True, random_state=seed)
    kind = "time" if isinstance(cv, TimeSeriesSplit) else kind
    rng = check_random_state(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
        pairs = list(cv.split(x, y, groups))
    ordered, tests = [], []
    for train, test in pairs:
        ordered.append(_ordered(np.asarray(train), y, classes, kind, groups, rng))
        kept = np.asarray(test)
        tests.append(rng.permutation(kept)[:_MOST_TEST] if len(kept) > _MOST_TEST else kept)
    return Splits(tuple(ordered), tuple(tests), kind)


def _ordered(
    rows: np.ndarray, y: np.ndarray, classes: bool, kind: str, groups: Any, rng: Any
) -> np.ndarray:
    """Rows so that every leading part is a sample: the latest ones, whole groups, or at random
    with the shares of all classes."""
    if kind == "time":
        return np.sort(rows)[::-1]
    shuffled = rng.permutation(rows)
    if kind == "groups":
        of = np.asarray(groups)[shuffled]
        place = {name: i for i, name in enumerate(rng.permutation(np.unique(of)))}
        return shuffled[np.argsort([place[name] for name in of], kind="stable")]
    if not classes:
        return np.asarray(shuffled)
    key = np.empty(len(rows))
    for name in np.unique(y[shuffled]):
        here = np.flatnonzero(y[shuffled] == name)
        key[here] = (np.arange(len(here)) + rng.random()) / len(here)
    return np.asarray(shuffled[np.argsort(key, kind="stable")])


def rows_of(x: Any, rows: np.ndarray) -> Any:
    return x.iloc[rows] if hasattr(x, "iloc") else x[rows]


def measure(
    estimator: Any, data: tuple[Any, np.ndarray], scores: Sequence[Score], splits: Splits,
    say: Callable[[str], None] = lambda text: None, largest: Sequence[Fit] | None = None,
) -> list[Subset]:  # fmt: skip
    """Every size, every split. A size at which a fit fails (too few rows for the estimator) is
    left out, but not the largest.

    largest : the fits of the largest size, where they are known
    """
    found: list[Subset] = []
    for size in splits.sizes:
        last = size == splits.largest
        say(f"the curve: fitting {size:,} rows")
        try:
            fits = (last and largest) or fit_all(estimator, data, size, splits, scores)
        except Exception:
            if last:
                raise
            continue
        errors = {
            score.name: np.array([fit[0][i] for fit in fits]) for i, score in enumerate(scores)
        }
        paths = tuple(fit[1] for fit in fits if fit[1])
        found.append(Subset(size, errors, splits.judged, splits.again, paths))
    return found


def fit_all(
    estimator: Any, data: tuple[Any, np.ndarray], size: int, splits: Splits,
    scores: Sequence[Score],
) -> list[Fit]:  # fmt: skip
    """To the first rows of every split."""
    return [
        fit_and_judge(estimator, data, rows[:size], test, scores)
        for rows, test in zip(splits.ordered, splits.tests, strict=True)
    ]


def fit_and_judge(
    estimator: Any, data: tuple[Any, np.ndarray], rows: np.ndarray, test: np.ndarray,
    scores: Sequence[Score],
) -> Fit:  # fmt: skip
    """Errors on the rows `test`, paths of our own estimators, CPU seconds of the fit."""
    x, y = data
    model = clone(estimator)
    last = last_step(model)
    if hasattr(last, "_keeps_paths"):
        last._keeps_paths = True
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):  # waiting threads use CPU time
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model.fit(rows_of(x, rows), y[rows])
        seconds = time.process_time() - start
        inputs, labels = rows_of(x, test), y[test]
        errors = [_error(score, model, inputs, labels) for score in scores]
    return errors, tuple(getattr(last, "_paths", ())), seconds


def last_step(model: Any) -> Any:
    return last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


def _error(score: Score, model: Any, x: Any, y: np.ndarray) -> float:
    try:
        value = float(score.scorer(model, x, y))
    except ValueError:  # a class among the held-out rows that the fit has not seen
        return float("nan")
    return (0.0 if np.isnan(score.best) else score.best) - value
