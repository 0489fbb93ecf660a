"""Accuracy and time of OneStepClassifier against classifiers of scikit-learn.

python examples/compare_classifiers.py digits
python examples/compare_classifiers.py fashion-mnist          # some minutes on two cores
python examples/compare_classifiers.py fashion-mnist --rows 5000 --width 500

Ridges and kernel widths of the others are chosen on a part of the training rows (--tuning-rows);
that time is not counted. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import onegrad as og
from onegrad.data.fashion_mnist import load_fashion_mnist

KERNEL_ROWS = 6000  # kernel ridge takes memory and time of the square and the cube of its rows


class KernelRidgeClassifier(ClassifierMixin, BaseEstimator):
    """Kernel ridge regression on one output for each class."""

    def __init__(self, alpha: float = 1e-2, gamma: float = 1.0) -> None:
        self.alpha, self.gamma = alpha, gamma

    def fit(self, x: np.ndarray, y: np.ndarray) -> KernelRidgeClassifier:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = KernelRidge(alpha=self.alpha, kernel="rbf", gamma=self.gamma)
        self.model_.fit(x, np.eye(len(self.classes_))[codes])
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.classes_[self.model_.predict(x).argmax(axis=1)]


def data(name: str, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training inputs and labels, test inputs and labels; pixels between 0 and 1."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
        parts = train_test_split(x / 16, y, test_size=500, random_state=0, stratify=y)
        return parts[0][:rows], parts[2][:rows], parts[1], parts[3]
    x, y = load_fashion_mnist()
    x = x / np.float32(255)
    return x[:60_000][:rows], y[:60_000][:rows], x[60_000:], y[60_000:]


def contestants(
    x: np.ndarray, width: int, seed: int
) -> Iterator[tuple[str, BaseEstimator, dict[str, list[float]], int]]:
    """Name, model, what is to be tuned, most rows."""
    everything = len(x)
    scale = 1 / (x.shape[1] * x[:5000].var())
    gammas, alphas = [0.1 * scale, 0.3 * scale, scale], [1e-2, 1e-1, 1.0, 10.0]
    yield "logistic regression", LogisticRegression(max_iter=100), {"C": [0.03, 0.3, 3]}, everything
    yield (
        f"RBF features ({width}) + ridge",
        make_pipeline(RBFSampler(n_components=width, random_state=seed), RidgeClassifier()),
        {"rbfsampler__gamma": gammas, "ridgeclassifier__alpha": alphas},
        everything,
    )
    kernel = KernelRidgeClassifier()
    yield "kernel ridge", kernel, {"gamma": gammas, "alpha": alphas}, KERNEL_ROWS
    hidden, epochs = min(width, 500), 20 if everything > 10_000 else 200
    network = MLPClassifier((hidden,), max_iter=epochs, random_state=seed)
    yield f"MLPClassifier ({hidden}), {epochs} epochs", network, {}, everything
    plain = og.OneStepClassifier(width, rate=0, random_state=seed)
    yield f"random features ({width}), rate = 0", plain, {}, everything
    one_step = og.OneStepClassifier(width, random_state=seed)
    yield f"OneStepClassifier ({width})", one_step, {}, everything


def compare(
    name: str, width: int = 2000, rows: int = 60_000, tuning_rows: int = 6000, seed: int = 0
) -> Iterator[tuple[str, int, float, float]]:
    """Name, rows used, accuracy on the test set, CPU seconds of the fit."""
    x, y, x_test, y_test = data(name, rows)
    few = np.random.default_rng(seed).permutation(len(x))
    split = ShuffleSplit(1, test_size=0.3, random_state=seed)
    for label, model, grid, most in contestants(x, width, seed):
        with warnings.catch_warnings():
            # so many iterations and epochs are what is timed here
            warnings.simplefilter("ignore", ConvergenceWarning)
            if grid:
                search = GridSearchCV(model, grid, cv=split, refit=False)
                search.fit(x[few[:tuning_rows]], y[few[:tuning_rows]])
                model = clone(model).set_params(**search.best_params_)
            used = few[:most] if most < len(x) else slice(None)
            start = time.process_time()
            model.fit(x[used], y[used])
            seconds = time.process_time() - start
        yield label, min(most, len(x)), float((model.predict(x_test) == y_test).mean()), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=["digits", "fashion-mnist"])
    parser.add_argument("--width", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=60_000, help="training rows at most")
    parser.add_argument("--tuning-rows", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    print(f"| {a.data} | rows | test accuracy | fit, CPU seconds |\n|---|---|---|---|")
    for label, used, accuracy, seconds in compare(a.data, a.width, a.rows, a.tuning_rows, a.seed):
        print(f"| {label} | {used} | {accuracy:.2%} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
