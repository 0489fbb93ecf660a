"""What is asked of the theory: one object instead of loose arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from onegrad.errors import SpecError, did_you_mean
from onegrad.theory.policy import Policy

METHODS = (
    "auto", "conditional", "layer", "isotropic", "isotropic-limit", "semi-parametric", "surrogate",
)  # fmt: skip
OF_DATA = ("semi-parametric", "surrogate")  # methods for images, arrays and files
OVERLAPS = ("auto", "typical", "drawn")
ACCURATE = 0.01
_FINEST = 1e-6  # below, rules are no finer and rounding counts
DRAFT = 0.03  # accuracies from here on are answered by one coarse resolution


@dataclass(frozen=True)
class Theory:
    """Which theory to use, how accurate, and which chance overlaps of directions it assumes.

    method : "isotropic" (closed form at this step, Moniri et al.), "isotropic-limit" (its limit of
        large n), "conditional" (mixtures with structure, any step), "layer" (any
        training of the first layer: 4 to 32 of them are drawn and trained, and taken as they are,
        until their mean is known to the accuracy asked for), "semi-parametric" (images, arrays and
        files: first layers that are drawn, features given the data's own projections),
        "surrogate" (the theory of a Gaussian mixture fitted to such data), or "auto":
        semi-parametric for such data; for more than one step, or another optimiser, drawn layers;
        else the conditional theory, for every known population, and drawn layers where it refuses
        or is uncertain
    accuracy : relative accuracy asked of the theory's numerics; from 0.03 on a draft for a
        first look: some milliseconds without an error estimate in the conditional theory, fewer
        nodes and draws in the semi-parametric one
    overlaps : "drawn": spikes, means and teacher of the draw with the seed given; "typical": their
        typical chance overlaps at this n; "auto": drawn where directions are fixed or orthogonal
    finite_size : of the conditional and the layer theory: correct the errors for terms
        of order 1/n, 1 to 3 % at n = 200 (docs/book/chance-and-size.md), and for losses of labels
        ±1 take means over training sets with more labels of one sign (docs/book/losses.md); False
        gives the limit of large sizes. Drafts and the other methods have no such correction
    policy : the numbers that decide which theory answers, how fine it is and what it states
    """

    method: str = "auto"
    accuracy: float = ACCURATE
    overlaps: str = "auto"
    finite_size: bool = True
    policy: Policy = field(default=Policy(), repr=False)

    def __post_init__(self) -> None:
        if self.method == "hybrid":
            raise SpecError.of(
                "method", self.method, "is no method any more",
                'Use "layer", which takes first layers as they are drawn and trained',
            )  # fmt: skip
        _known("method", self.method, METHODS)
        _known("overlaps", self.overlaps, OVERLAPS)
        if not _FINEST <= self.accuracy < 1:
            raise SpecError.of(
                "accuracy", self.accuracy, f"must be a number from {_FINEST:g} to below 1",
                f"For example {ACCURATE}, or {DRAFT} for a draft",
            )  # fmt: skip

    @classmethod
    def of(cls, theory: Theory | str, options: dict[str, Any]) -> Theory:
        """A Theory, or the name of a method, as a Theory with some fields changed.

        >>> Theory.of("conditional", {"accuracy": 0.03}).draft
        True
        """
        names = [field.name for field in fields(cls)]
        for key, value in options.items():
            if key not in names:
                raise SpecError.of(
                    key, value, f"is no option of the theory; it has {', '.join(names)}",
                    did_you_mean(key, names),
                )  # fmt: skip
        return replace(cls(theory) if isinstance(theory, str) else theory, **options)

    @property
    def draft(self) -> bool:
        """Whether the answer may come from one coarse resolution, without an error estimate."""
        return self.accuracy >= DRAFT


def _known(key: str, value: str, options: Sequence[str]) -> None:
    if value not in options:
        raise SpecError.of(
            key, value, f"must be one of {', '.join(options)}", did_you_mean(value, options)
        )
