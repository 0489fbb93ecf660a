"""Step and readout on one sample, labels without their linear part, readouts of random signs."""

import numpy as np
import pytest

import onegrad as og

DIM, WIDTH, SAMPLES, RATE, SEEDS = 48, 64, 150, 6000.0, 80
LINK = [[0.0, 1.0, 0.25], [1.0, 0.0, 0.0], [0.25, 0.0, 0.0]]  # Σ_j (t_j + ¼·H₂(t_j))


def label(t: np.ndarray) -> np.ndarray:
    return (t + 0.25 * (t**2 - 1)).sum(axis=1)


def plain(seed: int, readout: str, preprocess: bool) -> float:
    """The test error of one network, in a few lines of NumPy."""
    rng = np.random.default_rng([seed, 7])
    x, teacher = rng.standard_normal((SAMPLES, DIM)), np.eye(DIM)[:, :2]
    y = label(x @ teacher)
    mean, slope = 0.0, np.zeros(DIM)
    if preprocess:
        mean = y.mean()
        slope = x.T @ (y - mean) / SAMPLES
    z = y - mean - x @ slope
    w = rng.standard_normal((WIDTH, DIM)) / np.sqrt(DIM)
    a = rng.standard_normal(WIDTH) if readout == "gaussian" else rng.choice([-1.0, 1.0], WIDTH)
    a = a / WIDTH
    p = x @ w.T
    error = z - np.maximum(p, 0) @ a
    w = w + RATE * (error[:, None] * a * (p > 0)).T @ x / SAMPLES
    f = np.maximum(x @ w.T, 0)
    b = np.linalg.solve(f.T @ f / SAMPLES + 0.1 * np.eye(WIDTH), f.T @ z / SAMPLES)
    test = rng.standard_normal((8000, DIM))
    outputs = np.maximum(test @ w.T, 0) @ b + mean + test @ slope
    return float(np.mean((outputs - label(test @ teacher)) ** 2))


def problem(readout: str = "gaussian", preprocess: str = "none", reuse: bool = True) -> og.Problem:
    return og.Problem.from_spec({
        "data": {"model": "isotropic", "dim": DIM},
        "labels": {"model": "multi-index", "link": LINK, "preprocess": preprocess},
        "network": {"convention": "mixture", "width": WIDTH, "readout": readout},
        "training": {"samples": SAMPLES, "ridge": 0.1 / WIDTH, "rate": RATE, "reuse": reuse},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("readout", "preprocess"), [("gaussian", "none"), ("signs", "none"), ("signs", "linear")]
)
def test_a_plain_network_agrees_and_other_samples_do_not(readout, preprocess):
    values = [plain(seed, readout, preprocess == "linear") for seed in range(SEEDS)]
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(SEEDS)

    def apart(other: og.Problem) -> float:
        found = og.simulate(other, seeds=SEEDS).test_error
        return abs(found.mean - mean) / np.hypot(error, found.standard_error)

    assert apart(problem(readout, preprocess)) < 4
    assert apart(problem(readout, preprocess, reuse=False)) > 4
    if readout == "signs":
        wrong = "none" if preprocess == "linear" else "linear"
        assert apart(problem(readout, wrong)) > 4


def test_the_exact_risk_is_that_of_a_large_test_set():
    one = problem(preprocess="linear")
    exact = og.simulate(one, seeds=4).test_error
    sampled = og.simulate(one, seeds=4, risk="sampled", test_samples=40_000).test_error
    assert sampled.mean == pytest.approx(exact.mean, rel=0.02)


def test_theory_refuses_with_the_key_and_data_that_have_no_such_linear_part():
    for change in ({"reuse": True}, {"preprocess": "linear"}, {"readout": "signs"}):
        one = problem(**({"reuse": False} | change))
        with pytest.raises(og.AssumptionError, match=next(iter(change))):
            og.predict(one)
    tables = problem().model_dump()
    tables["data"] = {"model": "mixture", "dim": DIM, "spread": 3.0}
    tables["labels"]["preprocess"] = "linear"
    with pytest.raises(og.SpecError, match="isotropic"):
        og.Problem.from_spec(tables)


def test_one_sample_has_one_size_and_serves_all_steps():
    tables = problem().model_dump()
    for wrong, key in (({"step_samples": 20}, "step_samples"), ({"steps": 2}, "batch")):
        with pytest.raises(og.SpecError, match=key):
            og.Problem.from_spec(tables | {"training": {**tables["training"], **wrong}})
