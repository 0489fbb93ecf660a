"""What a theory says about one problem: numbers, how they came about, how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scipy.special import ndtri

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError
from onegrad.text.display import html_table, plots
from onegrad.theory.learned import LearnedFunction, LearnedMap, learned_function, learned_map
from onegrad.theory.open import Decision, Open
from onegrad.theory.readout.errors import Correction
from onegrad.theory.task import Solution

LAYERS = "matrix theory of the first layer"  # the name of a method


@dataclass(frozen=True)
class Prediction:
    """Deterministic errors of a problem, how they were obtained and how far to trust them.

    test_error, train_error : mean squared errors; NaN where the theory failed
    train_objective : training error plus λ_eff‖a‖²
    method : the name of the theory
    assumptions : what the numbers mean and what the theory assumes, in sentences
    numerics : how the numbers were computed, in sentences: types, nodes, resolutions
    status : "ok", "draft" (one coarse resolution), "not settled" (the numerics are further off than
        the accuracy asked for; real data: a higher rank still moves it) or "failed"
    error_estimate : relative, the larger of test and train: of the quadrature, plus what is left
        in 1/n after the finite-size correction or without it (real data: of the numerics); NaN for
        a draft
    error : why there are no numbers, and what to do about it; empty unless the status is "failed"
    test_error_se, train_error_se, misclassification_se : standard errors over first layers that
        were drawn (the last one: of several classes, and of a mean over draws of directions, labels
        or the step's chance); 0 where nothing is
    misclassification : P(sign f(x) ≠ y) where labels are ±1, P(largest output ≠ class) for one-hot
        classes, where the theory knows it; else None. `misclassification_estimate` is how far off
        it may be
    test_loss, train_loss : mean of the readout's own loss (`training.loss`), without penalty; for
        the squared loss the mean squared errors
    calibration : expected calibration error of 1/(1 + e^{−f}), of the logistic loss, else None
    median_test_error, spread_over_draws : median and standard deviation of the test error over
        random directions (spikes, means, teacher) and the chance parts of the first step. None
        where nothing was averaged over. Fluctuations between training sets are not included
    label_variance : Var y, the test error of the best constant; NaN where it is not known
    solution : fixed point, nodes and neurons of the conditional theory in the limit of large
        sizes (also its misclassification); None without that theory
    computed : computes the prediction of this point alone, if it was interpolated on a curve and
        has no `solution`
    open : what the error estimate is made of; it is the sum of these parts
    decisions : the numbers that decided how it was computed, and their limits (`why`)
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
    test_error_se: float = 0.0
    train_error_se: float = 0.0
    median_test_error: float | None = None
    spread_over_draws: float | None = None
    label_variance: float = math.nan
    solution: Solution | None = field(default=None, repr=False, compare=False)
    test_loss: float = math.nan
    train_loss: float = math.nan
    calibration: float | None = None
    computed: Callable[[], Prediction] | None = field(default=None, repr=False, compare=False)
    misclassification_se: float = 0.0
    open: Open = field(default=Open(), repr=False)
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    numerics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("test", "train"):  # losses of the squared loss are the errors
            if math.isnan(getattr(self, f"{name}_loss")):
                object.__setattr__(self, f"{name}_loss", getattr(self, f"{name}_error"))

    def __repr__(self) -> str:
        lines = [f"  {name:15} {value}" for name, value in self._described()]
        return "\n".join([f"Prediction by the {self.method}", *lines, *self.assumptions])

    def _repr_html_(self) -> str:
        title = f"Prediction by the {self.method}"
        return html_table(title, ("", ""), self._described(), self.assumptions)

    def _described(self) -> list[tuple[str, str]]:
        """Errors, and how far to trust them."""
        if self.status == "failed":
            return [("failed", self.error)]
        names = ["test_error", "train_error", "train_objective", "misclassification"]
        if self.test_loss != self.test_error:
            names = ["test_loss", "train_loss", *names, "calibration"]
        values = {name: getattr(self, name) for name in names}
        told = {name: f"{value:.6g}" for name, value in values.items() if value is not None}
        if off := self.misclassification_estimate:
            told["misclassification"] += f" ± {off:.2g}"
        lines = list(told.items())
        if math.isnan(self.error_estimate):
            return [*lines, ("error estimate", "none: a draft at one resolution")]
        settled = "" if self.status == "ok" else f" ({self.status})"
        parts = f": {self.open}" if self.open.total else ""
        return [*lines, ("error estimate", f"{100 * self.error_estimate:.2g} %{settled}{parts}")]

    @property
    def why(self) -> str:
        """How it was computed: the parts of the error estimate, and the decisions."""
        return "\n".join(self.reasons)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The lines of `why`."""
        parts = self.open.in_words
        if parts:
            parts = (f"The error estimate {100 * self.open.total:.2g} % is the sum of", *parts)
        return (*self.numerics, *parts, *(one.in_words for one in self.decisions))

    @property
    def relative_error(self) -> float:
        """Test error / Var y: 1 is what the best constant reaches; NaN for constant labels."""
        return self.test_error / self.label_variance if self.label_variance > 0 else math.nan

    @property
    def misclassification_estimate(self) -> float | None:
        """How far the misclassification may be off, absolute; None where one of both is not known.

        A test error known to a share t of itself knows outputs to t/2 of their size. A margin of r
        standard deviations, P = Φ(−r), moves by t/2 of the larger of r and 1.
        """
        share, wrong = self.error_estimate, self.misclassification
        if wrong is None or math.isnan(share):
            return None
        margin = abs(float(ndtri(wrong)))
        moved = 0.5 * share * max(margin, 1.0) if math.isfinite(margin) else 0.0
        by_output = moved * math.exp(-(margin**2) / 2) / math.sqrt(2 * math.pi)
        return min(1.0, by_output + 2 * self.misclassification_se)

    @cached_property
    def _known(self) -> Solution | None:
        """The solution, of a point that was interpolated too."""
        return self.solution if self.computed is None else self.computed().solution

    def _asked(self, what: str) -> Solution:
        if self._known is None:
            raise AssumptionError(
                f'{what}: of the conditional theory alone, method = "conditional"'
            )
        return self._known

    @property
    def component_test(self) -> tuple[float, ...] | None:
        """Test error within each component; None without the conditional theory."""
        return None if (known := self._known) is None else _floats(known.component_test)

    @property
    def component_train(self) -> tuple[float, ...] | None:
        """Training error within each component; None without the conditional theory."""
        return None if (known := self._known) is None else _floats(known.component_train)

    @property
    def directions(self) -> tuple[str, ...]:
        """Names that `learned` accepts here; none without the conditional theory."""
        return () if (known := self._known) is None else tuple(known.geometry.directions)

    def learned(
        self, direction: str = "teacher", component: int = 0, degree: int = 6
    ) -> LearnedFunction:
        """E[f(x)|û·x] along "teacher" or a spike ("spike 1.1"), and its Hermite coefficients."""
        return learned_function(
            self._asked("the learned function is"), direction, component, degree
        )

    def learned_map(
        self, first: str = "teacher 1", second: str = "teacher 2", component: int = 0
    ) -> LearnedMap:
        """E[f(x)|û₁·x, û₂·x] over two directions beside E[y|…]: for labels of several indices."""
        return learned_map(self._asked("the learned function is"), first, second, component)

    def by_projection(self) -> dict[str, Array]:
        """Errors node by node over the projections κ of a sample on the few directions.

        Columns: weight, component, kappa (S × r, in the solution's own basis; lengths along the
        last axes where `solution.geometry` has groups of directions that are alike), prediction
        E[f|κ], variance Var[f|κ], test_error and train_error given κ. The last two are those of
        the limit times the finite-size correction of their means, at typical overlaps: where the
        errors are means over draws (`spread_over_draws`), they do not add up to them exactly.
        """
        known = self._asked("errors by projection are")
        where, errors = known.where, known.by_node
        ratios = known.correction or Correction()
        return {
            "weight": where.weights,
            "component": where.component,
            "kappa": where.kappa,
            "prediction": errors.prediction,
            "variance": errors.variance,
            "test_error": ratios.test * errors.node_test,
            "train_error": ratios.train * errors.node_train,
        }

    def plot(
        self, direction: str | tuple[str, str] = "teacher", component: int = 0, ax: Any = None
    ) -> Any:
        """What was learned along a direction, and where the error is; returns both axes.

        Left: E[f | û·x] beside E[y | û·x] in one component. Right: the test error given û·x, a line
        for each component (averages over the theory's nodes). Two directions: pictures of
        E[y | …] and E[f | …] over both, which is the default where labels have several indices.
        """
        both = ("teacher 1", "teacher 2")
        if direction == "teacher" and both[1] in self.directions:
            direction = both
        if isinstance(direction, tuple):
            return plots().plot_learned_map(self, direction, component, ax)
        return plots().plot_prediction(self, direction, component, ax)

    def as_json(self, by_projection: bool = False) -> dict[str, Any]:
        """A row of `onegrad predict --json` without the errors: method, assumptions, …"""
        record: dict[str, Any] = {
            "method": self.method,
            "error_estimate": None if math.isnan(self.error_estimate) else self.error_estimate,
            "assumptions": list(self.assumptions),
            "numerics": list(self.numerics),
            "component_test": self.component_test,
            "component_train": self.component_train,
            "misclassification": self.misclassification,
            "misclassification_estimate": self.misclassification_estimate,
            "calibration": self.calibration,
            "test_error_se": self.test_error_se or None,
            "train_error_se": self.train_error_se or None,
            "misclassification_se": self.misclassification_se or None,
            "median_test_error": self.median_test_error,
            "spread_over_draws": self.spread_over_draws,
        }
        if by_projection and self._known is not None:
            nodes = self.by_projection()
            record["by_projection"] = {name: column.tolist() for name, column in nodes.items()}
        return {
            key: value
            for key, value in record.items()
            if value is not None or key == "error_estimate"
        }


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
