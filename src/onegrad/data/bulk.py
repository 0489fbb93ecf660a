"""The bulk of a covariance that is not flat: its eigenvalues, from the keys of [data].

The bulk is Λ = diag(λ_1 ≥ … ≥ λ_n) in the coordinates of the inputs, scaled to the mean 1, so
that tr Λ = n as for Λ = I. Random directions are random relative to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from onegrad.compute.backend import Array
from onegrad.data.base import DataModel
from onegrad.errors import SpecError
from onegrad.spec.fields import Real

_Level = Annotated[Real, Field(gt=0, le=1e9)]
# Largest ratio of two eigenvalues: beyond it the smallest are rounding errors
_LARGEST_RATIO = 1e12

SpectrumField = Annotated[
    Literal["power-law", "two-level"] | tuple[_Level, ...] | None,
    Field(
        description="eigenvalues of the bulk covariance, scaled to mean 1 (all equal unless given):"
        " power-law (∝ j^−exponent), two-level (levels and share), or a list, one for each input "
        "or fewer, each then for an equal share of the inputs", examples=["power-law"],
    ),
]  # fmt: skip
ExponentField = Annotated[
    Real | None,
    Field(ge=0, le=3, description="of a power-law spectrum: λ_j ∝ j^−exponent", examples=[0.8]),
]
LevelsField = Annotated[
    tuple[_Level, ...] | None,
    Field(description="of a two-level spectrum: its two eigenvalues before they are scaled to "
          "mean 1", examples=[[4.0, 0.25]]),
]  # fmt: skip
ShareField = Annotated[
    Real | None,
    Field(gt=0, lt=1, description="of a two-level spectrum: share of the inputs at the first level",
          examples=[0.2]),
]  # fmt: skip


class WithBulk(DataModel):
    """A table [data] with the keys of a bulk, which a subclass lists as its last fields."""

    if TYPE_CHECKING:
        spectrum: SpectrumField
        exponent: ExponentField
        levels: LevelsField
        share: ShareField

    @model_validator(mode="after")
    def _fitting_spectrum(self) -> WithBulk:
        _check_spectrum(self)
        return self

    @property
    def bulk_eigenvalues(self) -> Array | None:
        """λ (n,) of mean 1 in descending order, not to be changed; None where all are equal."""
        if self.spectrum is None:
            return None
        return _eigenvalues(self.spectrum, self.dim, self.exponent, self.levels, self.share)


def _check_spectrum(data: WithBulk) -> None:
    """Refuse keys that are missing, that belong to another spectrum, or do not fit data.dim."""
    kind = data.spectrum if isinstance(data.spectrum, str) else "list"
    wanted = {"power-law": ("exponent",), "two-level": ("levels", "share")}.get(kind, ())
    for key, example in (("exponent", "0.8"), ("levels", "[4.0, 0.25]"), ("share", "0.2")):
        given = getattr(data, key)
        if key in wanted and given is None:
            raise SpecError.of(
                f"data.{key}", None, f'is needed for spectrum = "{kind}"', f"For example {example}"
            )
        if key not in wanted and given is not None:
            owner = "power-law" if key == "exponent" else "two-level"
            raise SpecError.of(
                f"data.{key}", _plain(given), f'belongs to data.spectrum = "{owner}"',
                f'Set spectrum = "{owner}", or leave it out',
            )  # fmt: skip
    if data.levels is not None and len(data.levels) != 2:
        raise SpecError.of(
            "data.levels", list(data.levels), "must be two eigenvalues", "For example [4.0, 0.25]"
        )
    if data.share is not None and data.dim < 2:
        raise SpecError.of(
            "data.dim", data.dim, 'must be at least 2 for spectrum = "two-level"', "For example 100"
        )
    if isinstance(data.spectrum, tuple) and not 1 <= len(data.spectrum) <= data.dim:
        raise SpecError.of(
            "data.spectrum", f"{len(data.spectrum)} eigenvalues",
            f"must be a list of one eigenvalue for each input (data.dim = {data.dim}) or fewer",
            "For example [4.0, 1.0, 0.25]: a third of the inputs each",
        )  # fmt: skip
    values = data.bulk_eigenvalues
    if values is not None and values[0] > _LARGEST_RATIO * values[-1]:
        raise SpecError.of(
            "data.spectrum", _plain(data.spectrum),
            f"must not span more than twelve decades: {values[0]:.2g} to {values[-1]:.2g} here",
            "Take a smaller exponent or closer levels",
        )  # fmt: skip


@lru_cache(maxsize=64)
def _eigenvalues(
    spectrum: str | tuple[float, ...],
    n: int,
    exponent: float | None,
    levels: tuple[float, ...] | None,
    share: float | None,
) -> Array | None:
    if spectrum == "power-law":
        assert exponent is not None
        values = np.arange(1.0, n + 1) ** -exponent
    elif spectrum == "two-level":
        assert levels is not None and share is not None
        first = min(max(1, round(share * n)), n - 1)
        values = np.repeat([levels[0], levels[1]], [first, n - first])
    else:
        listed = np.array(spectrum, float)
        values = listed[np.arange(n) * len(listed) // n]
    values = np.sort(values)[::-1] / values.mean()
    if values[0] - values[-1] <= 1e-12 * values[0]:
        return None
    values.setflags(write=False)
    return values


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
