"""The published figures as data: points read off the pictures, in our convention.

The files in `published/` hold what the source plots, with the reading error of each point;
[demir2025] plots half of a mean squared error. Here everything is doubled once.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

_FIGURES = (
    "1a", "1b", "1c", "2a", "2b", "2c", "3a", "3b", "4a", "4b", "5a", "5b", "5c", "6", "7a", "7b",
    "8a", "8b",
)  # fmt: skip
_KEYS = {
    "k/m": "network.width_ratio", "alpha": "scaling.weighting", "beta": "scaling.strength",
    "alignment": "data.alignment", "rho": "data.weights", "rank": "data.rank",
    "log_n eta": "training.rate",
}  # fmt: skip
_QUANTITIES = {"half_mse_test": "test_error", "half_mse_train_objective": "train_objective"}
_IMAGE_PIXELS = 784
_NEAR = 2e-4  # how near a swept value must be to a published one, as they are printed


@dataclass(frozen=True)
class PublishedPoint:
    """A point of a published figure, doubled from half of a mean squared error to our convention.

    point : its place, dotted keys of a spec (the first weight for `data.weights`)
    model, quantity : ours; "gap:hermite:1" is |hermite:1 − network| in percent of the network
    value, error : as published, and how well it could be read
    bound : "most" or "least" where the picture's colours end
    """

    point: Mapping[str, Any]
    model: str
    quantity: str
    value: float
    error: float
    bound: str = ""

    def at(self, settings: Mapping[str, Any]) -> bool:
        """Whether a point of a sweep is this one."""
        return all(key in settings and _same(settings[key], v) for key, v in self.point.items())


@dataclass(frozen=True)
class PublishedFigure:
    """All points of a figure, and how the source made them.

    dim : n; points of a sweep with another one are not comparable
    trials : repetitions of which a point is the mean
    one_data_set : whether all of them share their data, and only the network is drawn anew
    one_for_all : whether all points of the figure share that data set, which moves them together
    images : samples of a GAN stand where ours are real images
    test_samples : of the test set from which an error was measured
    """

    name: str
    points: tuple[PublishedPoint, ...]
    dim: int
    trials: int
    one_data_set: bool
    one_for_all: bool
    images: bool
    test_samples: int


@dataclass(frozen=True)
class ImageStatistics:
    """Traces of the two classes' covariances, and the distance of each class mean from the
    average of both, where it was printed."""

    traces: tuple[float, float]
    distance: float | None = None


# Printed in the notebooks [demir2025] for samples of their GAN; pixels in [0, 1].
GAN_STATISTICS = {
    "demir2025/fig3a": ImageStatistics((39.178, 23.998)),
    "demir2025/fig3b": ImageStatistics((38.812, 41.530)),
    "demir2025/fig7a": ImageStatistics((39.178, 23.998)),
    "demir2025/fig7b": ImageStatistics((39.123, 24.006)),
    "demir2025/fig8a": ImageStatistics((39.142, 24.002), 3.262),
    "demir2025/fig8b": ImageStatistics((38.757, 41.572), 3.614),
}


@dataclass(frozen=True)
class ImageTest:
    """What other images change in a figure: network over published points minus one, mean over
    points, measured (docs/reproduction.md).

    real : with all real images; `spread` is its standard deviation between data sets
    typical : without the twentieth of each class that lies furthest towards the other class
    generated : with samples of a small conditional GAN of our own
    """

    real: float
    spread: float
    typical: float
    generated: float

    def explains(self, deviation: float) -> bool:
        """Whether it is what real images were measured to do: no other size, no other sign."""
        return abs(deviation - self.real) <= 3 * self.spread


IMAGE_TESTS = {
    "demir2025/fig3b": ImageTest(0.05, 0.02, 0.05, -0.06),
    "demir2025/fig8a": ImageTest(0.68, 0.08, 0.03, -0.45),
    "demir2025/fig8b": ImageTest(0.47, 0.07, -0.09, -0.46),
}


def published_names() -> tuple[str, ...]:
    """<source>/<figure> of every figure whose points are known."""
    return tuple(f"demir2025/fig{figure}" for figure in _FIGURES)


@lru_cache(maxsize=32)
def published_figure(name: str) -> PublishedFigure:
    """The points of a figure; see `published_names`."""
    source, _, figure = name.partition("/fig")
    points = tuple(_point(line, figure) for line in _lines(source) if line["figure"] == figure)
    images = figure[0] in "378"
    dim = _IMAGE_PIXELS if images else 400 if figure[0] == "4" else 1000
    trials = {"2c": 100, "8a": 50}.get(figure, 20)
    samples = 500 if images or figure[0] == "4" else 1000
    return PublishedFigure(
        name, points, dim, trials, one_data_set=figure not in ("2a", "2c"),
        one_for_all=images or figure in ("1a", "5c", "6"), images=images, test_samples=5 * samples,
    )  # fmt: skip


@lru_cache(maxsize=4)
def _lines(source: str) -> tuple[dict[str, str], ...]:
    file = resources.files("onegrad.validate") / "published_points" / f"{source}.csv"
    return tuple(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def _point(line: Mapping[str, str], figure: str) -> PublishedPoint:
    name, _, second = line["x_name"].partition("@")
    x, y, error = (float(line[key]) for key in ("x", "y", "reading_error"))
    place: dict[str, Any] = {"network.activation": line["activation"]}
    place[_KEYS[name]] = _IMAGE_PIXELS**x if name == "log_n eta" else x
    if second:
        other, _, value = second.partition("=")
        place[_KEYS[other]] = float(value)
    quantity = line["quantity"]
    if quantity in _QUANTITIES:
        return PublishedPoint(place, line["model"], _QUANTITIES[quantity], 2 * y, 2 * error)
    bound = quantity.rpartition("_at_")[2] if "_at_" in quantity else ""
    return PublishedPoint(place, "gap:hermite:1", "test_error", y, error, bound)


def _same(ours: Any, published: Any) -> bool:
    """Published places have four to six digits; mixtures stand at their first weight."""
    if isinstance(ours, str) or isinstance(published, str):
        return bool(ours == published)
    first = ours[0] if isinstance(ours, list | tuple) else ours
    return math.isclose(float(first), float(published), rel_tol=_NEAR, abs_tol=_NEAR)
