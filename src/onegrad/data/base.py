"""What simulation, theory, store and explorer ask of data.

Every data model is a `DataModel`: a table of settings that answers for itself. Nothing outside this
folder asks which one it is. A new one is a file with a subclass and a line in `DATA_MODELS`; in
Python an instance of a subclass goes into a Problem as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onegrad.compute.backend import Array
from onegrad.data.labels import Labels
from onegrad.data.population import Batch, Population
from onegrad.errors import AssumptionError, SpecError
from onegrad.spec.fields import Section


@dataclass(frozen=True)
class DataNodes:
    """Rows that stand for their population: the nodes of the semi-parametric theory.

    x : (S, n), y : (S,), group : (S,) whole numbers from 0: the class where labels name one
    noise : variance of the white noise that every use of a row adds to x (0: none)
    label_noise : variance of what every use adds to y
    """

    x: Array
    y: Array
    group: np.ndarray
    noise: float = 0.0
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        shapes = (self.x.shape[:1], self.y.shape, self.group.shape)
        if self.x.ndim != 2 or len(set(shapes)) != 1:
            raise AssumptionError(
                f"x {self.x.shape}, y {self.y.shape} and group {self.group.shape} disagree; they "
                "must be (S, n), (S,) and (S,)."
            )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1


DRAWN_NORMS = 8  # populations that `covariance_norms` averages over


class DataModel(Section):
    """The base of all data models. A subclass has a field `model: Literal["its name"]`, a field or
    property `dim` (n), and either `population` (known) or `rows`, `batch` and `nodes` (not known).

    known : the law of the inputs is known, and samples are drawn from it at will; otherwise the
        data are `rows` that somebody has
    label_models : the models of labels that fit, the default first
    takes_spread : θ, from [scaling] or a field `spread`, sets how strong the structure is
    own_nodes : the theory's nodes are samples of these data, not a rule for their law
    whole_test : the test takes every row that is left, however few samples were asked for
    pictures : inputs are images
    """

    table: ClassVar[str] = "data"
    known: ClassVar[bool] = True
    label_models: ClassVar[tuple[str, ...]] = ("single-index", "component", "multi-index")
    takes_spread: ClassVar[bool] = False
    own_nodes: ClassVar[bool] = False
    whole_test: ClassVar[bool] = False
    pictures: ClassVar[bool] = False

    if TYPE_CHECKING:  # fields in some data models: pydantic must not see them here

        @property
        def model(self) -> str: ...

        @property
        def dim(self) -> int: ...

    @property
    def components(self) -> int:
        """Components of the mixture, or classes that the data are made of; one if unknown."""
        return 1

    @property
    def isotropic(self) -> bool:
        """Whether inputs are N(0, I)."""
        return False

    @property
    def bulk_alone(self) -> bool:
        """Whether inputs are N(0, Λ), without spikes and means."""
        return self.isotropic

    @property
    def relative_strengths(self) -> tuple[Array, ...] | None:
        """Strength of each spike over θ, component by component; None where the law by which spikes
        and means are drawn is not stated: the theory then takes those of one draw."""
        return None

    @property
    def bulk_eigenvalues(self) -> Array | None:
        """Eigenvalues (n,) of the bulk covariance Λ, of mean 1; None where it is the identity."""
        return None

    @property
    def structured(self) -> bool:
        """Whether some directions have more variance than the bulk, by the spread θ."""
        return False

    @property
    def spread_by_hand(self) -> float | None:
        """θ where the table sets it; None leaves it to [scaling]."""
        return getattr(self, "spread", None)

    @property
    def orientation(self) -> str:
        """Whether spikes and means are random, orthogonal or fixed; random if none."""
        return str(getattr(self, "directions", "random"))

    @property
    def fixed_counts(self) -> bool:
        """Whether every batch has exactly the components' shares, instead of drawn ones."""
        return False

    @property
    def source(self) -> str:
        """Where the nodes come from, in words, for the theory's list of assumptions."""
        return "Real data"

    def mean_trace(self, spread: float) -> float:
        """tr Σ̄, the mean trace of the components' covariances at this θ."""
        return float(self.dim + spread)

    def bulk_trace(self, spread: float) -> float:
        """The part of `mean_trace` that polynomial models treat as bulk."""
        return float(self.dim)

    def fingerprint(self) -> dict[str, Any]:
        """A text that is equal for equal data: a store finds rows of the same data by it."""
        return self.model_dump(mode="json", exclude_none=True)

    def check_labels(self, labels: Labels) -> None:
        """Refuse labels that do not fit these data."""
        fitting = self.label_models
        if labels.model not in fitting:
            wanted = " or ".join(f'"{name}"' for name in fitting)
            raise SpecError.of(
                "labels.model", labels.model, f"must be {wanted} for this data.model",
                f'For example "{fitting[0]}"' if len(fitting) > 1 else "Leave out [labels]",
            )  # fmt: skip
        labels.check(self.components, self.structured)
        indices = getattr(labels, "indices", 1)
        if indices > self.dim:
            raise SpecError.of(
                "labels.indices", indices, f"must be at most data.dim = {self.dim}: the directions "
                "are orthogonal", f"For example {self.dim}",
            )  # fmt: skip

    # --- a known law ----------------------------------------------------------------------

    def population(self, spread: float, rng: np.random.Generator) -> Population:
        """The law of the inputs at this θ; `rng` draws its directions."""
        raise AssumptionError("images and arrays have no known population to draw from")

    def covariance_norms(self, spread: float, rng: np.random.Generator) -> Array:
        """‖Σ̄‖ of some populations drawn independently of each other."""
        drawn = [self.population(spread, rng) for _ in range(DRAWN_NORMS)]
        return np.array([population.mean_covariance_norm for population in drawn])

    # --- rows that somebody has -----------------------------------------------------------

    def check_at_hand(self) -> None:
        """Raise an error now if files are missing, instead of in every repetition."""

    @property
    def rows(self) -> int | None:
        """Number of rows of finite data; None where any number of samples can be drawn."""
        return None

    def split(self, rng: np.random.Generator) -> np.ndarray:
        """All rows in the order of a repetition: step, readout, test."""
        assert self.rows is not None
        return rng.permutation(self.rows)

    def batch(self, rows: np.ndarray, spread: float, rng: np.random.Generator) -> Batch:
        """The given rows with their labels at this θ; data with noise of their own add it here."""
        raise AssumptionError(f'data.model = "{self.model}" has no rows: samples are drawn')

    def nodes(self, rows: np.ndarray, spread: float) -> DataNodes:
        """The given rows without noise, as nodes of the semi-parametric theory."""
        raise AssumptionError(f'data.model = "{self.model}" has no rows: samples are drawn')
