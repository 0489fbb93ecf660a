"""Teachers that depend on one or two directions: what one gradient step finds and others do not.

python examples/one_step_regression.py [--rows 20000] [--inputs 200] [--width 500]

Inputs are N(0, I). Labels are polynomials of degree 3 at most of s = u·x and t = v·x, of variance
one, with noise of standard deviation 0.1. All models have as many features and choose their ridge;
the kernel width is the best of three on the test set, to the kernels' advantage. Errors are test
errors in units of the variance of the labels, without their noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

import onegrad as og
from onegrad.gaussian.polynomials import orthonormal_hermite

RIDGES = 10.0 ** np.arange(-6, 6)


def teachers(s: np.ndarray, t: np.ndarray) -> dict[str, np.ndarray]:
    """Labels of variance one by name; the last two have no linear part, the last no quadratic."""
    _, s1, s2, s3 = orthonormal_hermite(3, s)
    _, t1, t2, t3 = orthonormal_hermite(3, t)
    return {
        "H₁(s) + H₂(s) + H₃(s)": (s1 + s2 + s3) / 3**0.5,
        "H₁(s) + H₃(s)": (s1 + s3) / 2**0.5,
        "H₁(s) + H₂(s) + H₁(t) + H₃(t)": (s1 + s2 + t1 + t3) / 2,
        "s + st + H₂(s)t": (s1 + s1 * t1 + s2 * t1) / 3**0.5,
        "H₁(s) + H₂(t)": (s1 + t2) / 2**0.5,
        "st": s1 * t1,
        "H₂(s)": s2,
        "H₃(s)": s3,
    }


def compare(
    rows: int = 20_000,
    inputs: int = 200,
    width: int = 500,
    seed: int = 0,
    gammas: tuple[float, ...] = (0.1, 0.5, 2.0),
    only: str = "",
) -> Iterator[tuple[str, dict[str, float], float]]:
    """Teacher, test error of each model, chosen rate; kernels are exp(−γ|x − x'|²/n)."""
    rng = np.random.default_rng(seed)
    u, v = np.linalg.qr(rng.standard_normal((inputs, 2)))[0].T
    x, x_test = rng.standard_normal((rows, inputs)), rng.standard_normal((5000, inputs))
    noise = 0.1 * rng.standard_normal(rows)
    truth = teachers(x_test @ u, x_test @ v)
    for name, clean in teachers(x @ u, x @ v).items():
        if only and only != name:
            continue
        y, y_test = clean + noise, truth[name]

        def error(model, y=y, y_test=y_test) -> float:
            return float(np.mean((y_test - model.fit(x, y).predict(x_test)) ** 2) / y_test.var())

        one_step = og.OneStepRegressor(width, random_state=seed)
        errors = {
            "one step": error(one_step),
            "random features": error(og.OneStepRegressor(width, rate=0, random_state=seed)),
            "linear": error(RidgeCV(RIDGES)),
        }
        for label, make in (("RBF features", RBFSampler), ("Nyström", Nystroem)):
            features = [
                make(gamma=g / inputs, n_components=width, random_state=seed) for g in gammas
            ]
            errors[label] = min(error(make_pipeline(f, RidgeCV(RIDGES))) for f in features)
        yield name, errors, one_step.rate_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--width", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    for i, (name, errors, rate) in enumerate(compare(a.rows, a.inputs, a.width, a.seed)):
        if not i:
            print("| teacher | " + " | ".join(errors) + " | rate |\n" + "|---" * 7 + "|")
        print(f"| {name} | " + " | ".join(f"{e:.3f}" for e in errors.values()) + f" | {rate:g} |")


if __name__ == "__main__":
    main()
