"""Equivalent models against the network: paired, and closer as n grows."""

import numpy as np
import pytest

import onegrad as og
from onegrad.results.rows import Row
from onegrad.simulate.simulate import simulate
from tests.agreement.paper import setting, simulate_together

EQUIVALENTS = ("hermite", "conditional-gaussian")


@pytest.mark.slow
def test_equivalents_are_within_two_percent():
    problems = {name: setting(1000, name) for name in ("relu", "tanh", "sigmoid")}
    found = simulate_together(problems, ("network", *EQUIVALENTS), seeds=12)
    for outcome in found.values():
        for model in EQUIVALENTS:
            summary = outcome.estimates[model]
            for difference in (summary.test_difference, summary.train_difference):
                assert abs(difference.mean) < 0.02 + 2 * difference.standard_error
            assert abs(summary.test_difference.mean) < 0.02


def spread_of_difference(rows: list[Row], model: str) -> float:
    """Root mean square of the relative difference to the network, seed by seed."""
    network = {r.seed: r.test_error for r in rows if r.model == "network"}
    ratios = [r.test_error / network[r.seed] - 1 for r in rows if r.model == model]
    return float(np.sqrt(np.mean(np.square(ratios))))


@pytest.mark.slow
def test_the_difference_shrinks_with_n(capsys):
    sizes = {200: 48, 400: 24, 800: 12, 1600: 6}
    measured = {}
    for n, seeds in sizes.items():
        problems = {name: setting(n, name) for name in ("relu", "tanh")}
        found = simulate_together(problems, ("network", *EQUIVALENTS), seeds, controlled=False)
        for name, outcome in found.items():
            for model in EQUIVALENTS:
                spread = spread_of_difference(outcome.results.rows, model)
                measured.setdefault((name, model), []).append(spread)
    for (name, model), values in measured.items():
        slope = np.polyfit(np.log(list(sizes)), np.log(values), 1)[0]
        with capsys.disabled():
            shown = ", ".join(f"{v:.2%}" for v in values)
            print(f"\n{name} {model}: difference {shown} at n = {list(sizes)}: n^{slope:.2f}")
        assert slope < -0.5


@pytest.mark.slow
def test_one_degree_too_low_is_visibly_wrong():
    """α = 0, β = 0.66 asks for degree 2: only its square tells the components apart."""
    problem = setting(1000, "relu", 1.0, 0.66, 0.0, model="component")
    assert problem.degree == 2
    found = simulate(problem, ("network", "hermite", "hermite:1"), seeds=6).estimates
    right, wrong = found["hermite"], found["hermite:1"]
    assert abs(right.test_difference.mean) < 0.04
    assert wrong.test_difference.mean > 0.2 + 4 * wrong.test_difference.standard_error


@pytest.mark.slow
def test_the_conditional_model_has_its_spikes():
    """Teacher along the spikes, α = 0."""
    problem = setting(600, "relu", 1.0, 0.74, 0.0, direction="spikes")
    models = ("network", "conditional-gaussian")
    right = simulate(problem, models, seeds=6).difference("conditional-gaussian")
    assert abs(right.mean) < 0.03 + 2 * right.standard_error


def test_quick_agreement_in_every_run():
    """A small version of the above for `make quick`: n = 300, 4 standard errors + 4 %."""
    outcome = simulate(setting(300, "sigmoid"), ("network", *EQUIVALENTS), seeds=6)
    for model in EQUIVALENTS:
        difference = outcome.difference(model)
        assert abs(difference.mean) < 0.04 + 4 * difference.standard_error


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_equivalence_holds_for_losses_of_signs(loss):
    """Components that differ in their spikes alone, α = 0, β = .66: degree 2, and one less fails in
    every quantity (the control). Paired, seed by seed."""
    tables = setting(300, "relu", 1.0, 0.66, 0.0, model="component").model_dump()
    tables["training"] |= {"loss": loss, "ridge": 1e-3}
    problem = og.Problem(**tables)
    assert problem.loss.name == loss
    models = ("network", *EQUIVALENTS, "hermite:1")
    rows = simulate(problem, models, seeds=5).results.rows
    for quantity in ("train_loss", "test_loss", "misclassification"):
        values = {m: np.array([getattr(r, quantity) for r in rows if r.model == m]) for m in models}
        scale = values["network"].mean()
        gap = {m: (values[m] - values["network"]) / scale for m in models}
        error = {m: 4 * g.std(ddof=1) / np.sqrt(len(g)) for m, g in gap.items()}
        for model in EQUIVALENTS:
            assert abs(gap[model].mean()) < 0.03 + error[model]
        assert gap["hermite:1"].mean() > 0.03 + error["hermite:1"]
