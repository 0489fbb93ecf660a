"""One giant step with step and readout on one sample, beside plain NumPy written from the facts of
Dandi et al. (2023) alone."""

import numpy as np
import pytest

import onegrad as og
from onegrad.spec.presets import read_spec


def teacher(z):
    """H₁ + H₂/2 + H₄/24."""
    return z + (z**2 - 1) / 2 + (z**4 - 6 * z**2 + 3) / 24


def plain_run(rng, d, p, n, preprocess, tests=10_000):
    """Test error of one draw: f = p^(−½) Σ a relu(w·x), rate 10·√n·√p, ridge 1 beside a sum."""
    directions = np.linalg.qr(rng.standard_normal((d, 2)))[0]

    def labelled(count):
        x = rng.standard_normal((count, d))
        return x, teacher(x @ directions).mean(axis=1)

    x, y = labelled(n)
    mean, linear = (y.mean(), x.T @ y / n) if preprocess == "linear" else (0.0, np.zeros(d))
    target = y - mean - x @ linear
    w = rng.standard_normal((p, d)) / np.sqrt(d)
    a = rng.standard_normal(p) / np.sqrt(p)
    h = x @ w.T
    off = np.maximum(h, 0) @ a / np.sqrt(p) - target
    w -= 10 * np.sqrt(n * p) * ((off[:, None] * (h > 0)).T @ x / n) * (a / np.sqrt(p))[:, None]

    def features(inputs):
        return np.maximum(inputs @ w.T, 0) / np.sqrt(p)

    phi = features(x)
    readout = np.linalg.solve(phi.T @ phi + np.eye(p), phi.T @ target)
    fresh, truth = labelled(tests)
    return np.mean((features(fresh) @ readout + mean + fresh @ linear - truth) ** 2)


@pytest.mark.parametrize("preprocess", ["none", "linear"])
@pytest.mark.parametrize("power", [1.3, 1.65])
@pytest.mark.parametrize(
    ("d", "seeds"), [(48, 16), pytest.param(512, 3, marks=pytest.mark.slow, id="published size")]
)
def test_one_giant_step(d, seeds, power, preprocess):
    p, n = 2 * d, round(d**power)
    tables = read_spec("dandi2023/one-step")
    problem = og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": d},
        "labels": tables["labels"] | {"preprocess": preprocess},
        "network": tables["network"] | {"width": p},
        "training": {"samples": n, "reuse": True, "rate": 10 * np.sqrt(n * p), "ridge": 1 / n},
    })  # fmt: skip
    ours = og.simulate(problem, seeds=seeds).test_error
    rng = np.random.default_rng(5)
    plain = [plain_run(rng, d, p, n, preprocess) for _ in range(seeds)]
    error = np.hypot(ours.standard_error, np.std(plain, ddof=1) / np.sqrt(seeds))
    assert abs(ours.mean - np.mean(plain)) < 4 * error


def test_the_preset_has_the_same_scales():
    """Ridge 1 beside a sum over samples is 1/n beside a mean; the rate is 10·√n·√p."""
    for name, p in (("one-step", 1024), ("one-step-half", 512)):
        zipped = read_spec(f"dandi2023/{name}")["sweep"]["zip"]
        n = np.array(zipped["training.samples"], float)
        assert np.array(zipped["training.ridge"]) * n == pytest.approx(1, rel=1e-4)
        assert zipped["training.rate"] == pytest.approx(10 * np.sqrt(n * p), rel=1e-4)
