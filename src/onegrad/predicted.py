"""What a theory says about one problem: numbers, how they came about, how far to trust them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, Failure
from onegrad.real_data import RealPrediction
from onegrad.theory.isotropic.closed_form import IsotropicPrediction
from onegrad.theory.learned import LearnedFunction, learned_function
from onegrad.theory.options import Theory
from onegrad.theory.resolution import Solution
from onegrad.theory.size_bound import finite_size_bound

_FINITE_SIZE = "What is left at finite size is of order 1/n."
_UNSETTLED = " A finer resolution would take long: the accuracy asked for was not reached."


@dataclass(frozen=True)
class Prediction:
    """Deterministic errors of a problem, how they were obtained and how far to trust them.

    test_error, train_error : mean squared errors; NaN where the theory failed
    train_objective : training error plus λ_eff‖a‖²
    method : the name of the theory
    assumptions : what it assumes and how it was computed, in sentences
    status : "ok", "draft" (one coarse resolution), "not settled" (the numerics are further off than
        the accuracy asked for; real data: a higher rank still moves it) or "failed"
    error_estimate : relative, the larger of test and train: of the quadrature, plus what is left
        in 1/n (real data: of the numerics); NaN for a draft
    error : why there are no numbers, and what to do about it; empty unless the status is "failed"
    misclassification : P(sign f(x) ≠ y) where labels are ±1 and the theory knows it, else None
    solution : fixed point, nodes and neurons of the conditional theory, where that was used
    """

    test_error: float
    train_error: float
    train_objective: float
    method: str
    assumptions: tuple[str, ...] = ()
    status: str = "ok"
    error_estimate: float = math.nan
    error: str = ""
    misclassification: float | None = None
    solution: Solution | None = field(default=None, repr=False, compare=False)

    @property
    def component_test(self) -> tuple[float, ...] | None:
        """Test error within each component; None without the conditional theory."""
        return None if self.solution is None else _floats(self.solution.component_test)

    @property
    def component_train(self) -> tuple[float, ...] | None:
        """Training error within each component; None without the conditional theory."""
        return None if self.solution is None else _floats(self.solution.component_train)

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that `learned` knows here; none without the conditional theory."""
        return () if self.solution is None else tuple(self.solution.geometry.directions)

    def learned(
        self, direction: str = "teacher", component: int = 0, degree: int = 6
    ) -> LearnedFunction:
        """E[f(x)|û·x] along "teacher" or a spike ("spike 1.1"), and its Hermite coefficients."""
        if self.solution is None:
            raise AssumptionError(
                'the learned function comes with the conditional theory: method = "conditional"'
            )
        return learned_function(self.solution, direction, component, degree)

    def by_projection(self) -> dict[str, Array]:
        """Errors node by node over the projections κ of a sample on the few directions.

        Columns: weight, component, kappa (S × r, in the solution's own basis; lengths along the
        last axes where `solution.geometry` has groups of directions that are alike), prediction
        E[f|κ], variance Var[f|κ], test_error and train_error given κ.
        """
        if self.solution is None:
            raise AssumptionError(
                'errors by projection come with the conditional theory: method = "conditional"'
            )
        where, errors = self.solution.where, self.solution.by_node
        return {
            "weight": where.weights,
            "component": where.component,
            "kappa": where.kappa,
            "prediction": errors.prediction,
            "variance": errors.variance,
            "test_error": errors.node_test,
            "train_error": errors.node_train,
        }

    def as_json(self, by_projection: bool = False) -> dict[str, Any]:
        """What `onegrad predict --json` adds to a row: method, error estimate, assumptions, …"""
        record: dict[str, Any] = {
            "method": self.method,
            "error_estimate": None if math.isnan(self.error_estimate) else self.error_estimate,
            "assumptions": list(self.assumptions),
            "component_test": self.component_test,
            "component_train": self.component_train,
            "misclassification": self.misclassification,
        }
        if by_projection and self.solution is not None:
            nodes = self.by_projection()
            record["by_projection"] = {name: column.tolist() for name, column in nodes.items()}
        return {
            key: value
            for key, value in record.items()
            if value is not None or key == "error_estimate"
        }


def of_failure(failure: Failure, theory: Theory) -> Prediction:
    """No numbers, and the advice why."""
    nan = math.nan
    return Prediction(nan, nan, nan, theory.method, (), "failed", nan, str(failure))


def of_closed_form(result: IsotropicPrediction, checked: Prediction | None) -> Prediction:
    """The isotropic closed form's errors and regime.

    checked : the conditional theory's answer, which assumes less: the difference is the error
        estimate. Without it the closed form is a draft
    """
    name = f"isotropic closed form, {result.method}, regime ℓ = {result.regime}"
    errors = (result.test_error, result.train_error, result.train_objective)
    closed = Prediction(*errors, name, (*result.assumptions, _FINITE_SIZE), "draft")
    if checked is None:
        return closed
    apart = difference(closed, checked)
    compared = f"The conditional theory is {100 * apart:.2g} % apart."
    return replace(
        closed, status="ok", error_estimate=apart + checked.error_estimate,
        assumptions=(*closed.assumptions, compared),
    )  # fmt: skip


def difference(one: Prediction, other: Prediction) -> float:
    """Relative, the larger of test and train."""
    pairs = (one.test_error, other.test_error), (one.train_error, other.train_error)
    return max(abs(a - b) / max(abs(b), 1e-300) for a, b in pairs)


def of_real_data(result: RealPrediction) -> Prediction:
    """The semi-parametric theory's errors, or those of a fitted mixture."""
    found = result.result
    status = "ok" if found.settled else "not settled"
    return Prediction(*found.errors, result.name, result.assumptions, status, found.error_estimate)


def of_solution(solution: Solution, theory: Theory, seed: int) -> Prediction:
    """The conditional theory's solution, with what was drawn for it."""
    problem, drawn = solution.task.problem, solution.task.geometry.basis is not None
    hybrid = theory.method == "hybrid"
    data = (
        "Isotropic Gaussian data"
        if problem.data.isotropic
        else "Gaussian mixture with spiked covariances"
    )
    where = f"the overlaps of the draw with seed {seed}" if drawn else "typical overlaps at this n"
    source = f"neurons of the first step drawn with seed {seed}" if hybrid else "any step"
    size = f"{solution.types} types of neurons, {solution.nodes} nodes"
    if solution.status == "draft":
        numerics, estimate = f"{size}, one coarse resolution.", math.nan
    else:
        left = finite_size_bound(solution)
        estimate = solution.error_estimate + left
        numerics = (
            f"{size}, two resolutions compared: they differ by "
            f"{100 * solution.error_estimate:.2g} %; what is left in 1/n may be {100 * left:.2g} %."
        )
        if solution.status == "not settled":
            numerics += _UNSETTLED
    return Prediction(
        solution.test_error,
        solution.train_error,
        solution.train_objective,
        "conditional Gaussian theory" + (", hybrid" if hybrid else ""),
        (
            f"{data}; n, k, m large with fixed ratios. {_FINITE_SIZE}",
            f"Conditional Gaussian equivalence, {source}; {where}.",
            numerics,
        ),
        solution.status,
        estimate,
        misclassification=solution.misclassification,
        solution=solution,
    )


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
