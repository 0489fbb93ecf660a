"""The [figure] of a spec: what is drawn, and along which of the swept keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from onegrad.errors import SpecError
from onegrad.spec.fields import Section
from onegrad.spec.published import published_names


class FigureOptions(Section):
    """What is drawn; no number depends on it."""

    table: ClassVar[str] = "figure"
    kind: Literal[
        "curves", "deviations", "scaling", "map", "difference-map", "weight-spectrum",
        "feature-spectrum",
    ] = Field(
        default="curves",
        description="errors as curves; relative differences to the network, with fitted powers; "
        "test errors against one or two sizes and both together, with exponents; "
        "errors as a heat map over two swept keys; differences to a reference model as one; "
        "histograms of singular values",
        examples=["curves"],
    )  # fmt: skip
    quantities: tuple[
        Literal[
            "test_error", "train_error", "train_objective", "misclassification", "test_loss",
            "train_loss", "calibration",
        ],
        ...,
    ] = Field(
        default=("test_error", "train_error"), min_length=1, max_length=4,
        description="a list from test_error, train_error, train_objective, misclassification (of "
        "labels ±1), test_loss, train_loss (of training.loss), calibration (of the logistic loss), "
        "one panel each; maps show the first",
        examples=[["test_error", "train_error"]],
    )  # fmt: skip
    axes: tuple[str, ...] = Field(
        default=(), max_length=2,
        description="swept keys along the axes, one for curves, two for maps and scaling "
        "(default: the numeric ones with the most values); other keys tell curves or panels apart",
        examples=[["scaling.weighting", "scaling.strength"]],
    )  # fmt: skip
    models: tuple[str, ...] = Field(
        default=(), description="those of compare.models that are drawn (default: all)",
        examples=[["network", "theory"]],
    )  # fmt: skip
    reference: str = Field(
        default="network",
        description="difference-map: the model that is subtracted; percent are of its error",
        examples=["linear"],
    )

    published: str = Field(
        default="",
        description="a published figure, <source>/<figure>, whose points are drawn and compared",
        examples=["demir2025/fig1a"],
    )

    @property
    def draws_spectra(self) -> bool:
        return self.kind in ("weight-spectrum", "feature-spectrum")

    @property
    def draws_map(self) -> bool:
        return self.kind in ("map", "difference-map")

    def check(self, models: Sequence[str], sweep: Mapping[str, Sequence[Any]]) -> None:
        """Refuse what cannot be drawn before anything is computed."""
        for name in self.models:
            if name not in models:
                add = f'Add "{name}" to compare.models'
                raise SpecError.choice("figure.models", name, models, add)
        if self.published and self.published not in published_names():
            raise SpecError.choice("figure.published", self.published, published_names())
        for key in self.axes:
            if key not in sweep:
                raise SpecError.choice("figure.axes", key, sweep, f"Add {key} to [sweep]")
        if self.kind == "difference-map" and self.reference not in models:
            add = f'Add "{self.reference}" to compare.models'
            raise SpecError.choice("figure.reference", self.reference, models, add)
        if self.draws_map and len(self.along(sweep)) < 2:
            raise SpecError.of(
                "figure.kind", self.kind,
                f"needs two swept keys for its axes; numeric are {numeric(sweep) or 'none'}",
                'Sweep a second key, name both in figure.axes, or take kind = "curves"',
            )  # fmt: skip

    def along(self, sweep: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """The keys along the axes: those asked for, or the numeric ones with the most values."""
        wanted = 2 if self.draws_map or self.kind == "scaling" else 1
        if self.axes:
            return self.axes[:wanted]
        numeric_keys = numeric(sweep)
        order = sorted(numeric_keys, key=lambda key: -len(set(map(repr, sweep[key]))))
        return tuple(sorted(order[:wanted], key=numeric_keys.index))


def numeric(sweep: Mapping[str, Sequence[Any]]) -> list[str]:
    """Swept keys that have a place on an axis; mixtures stand at their first weight."""
    return [
        key
        for key, values in sweep.items()
        if key == "data.weights" or all(isinstance(v, int | float) for v in values)
    ]
