"""The published figures as data: points read off the pictures, in our convention.

The tables in `published_points/` hold what the source plots, with the reading error of each point;
[demir2025] plots half of a mean squared error, which is doubled here, once. The TOML file beside a
table says how the source made each figure.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onegrad.spec.experiment import Experiment, Point

_SOURCE = "demir2025"
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
    note : what has to be known to read the figure
    gan, other_images : what the source printed about its images, and what was measured with others
    """

    name: str
    points: tuple[PublishedPoint, ...]
    dim: int = 1000
    trials: int = 20
    one_data_set: bool = True
    one_for_all: bool = False
    images: bool = False
    test_samples: int = 5000
    note: str = ""
    gan: Mapping[str, Any] = field(default_factory=dict)
    other_images: Mapping[str, float] = field(default_factory=dict)


@lru_cache(maxsize=1)
def _figures() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_file("toml"))


def published_names() -> tuple[str, ...]:
    """<source>/<figure> of every figure whose points are known."""
    return tuple(f"{_SOURCE}/{figure}" for figure in _figures())


@lru_cache(maxsize=32)
def published_figure(name: str) -> PublishedFigure:
    """The points of a figure; see `published_names`."""
    figure = name.rpartition("/fig")[2]
    points = tuple(_point(line, figure) for line in _lines() if line["figure"] == figure)
    return PublishedFigure(name, points, **_figures()[f"fig{figure}"])


def comparable(experiment: Experiment) -> PublishedFigure | None:
    """The published figure of an experiment; None if it names none, or has another size."""
    if not experiment.figure.published:
        return None
    figure = published_figure(experiment.figure.published)
    same = all(point.problem.dim == figure.dim for point in experiment.points)
    return figure if same else None


def is_at(published: PublishedPoint, point: Point) -> bool:
    """Whether a point of an experiment is a published one; the activation need not be swept."""
    activation = {"network.activation": point.problem.network.activation.name}
    return published.at(activation | point.settings)


def published_places(name: str, key: str) -> list[float]:
    """Where a published figure has points along a swept key."""
    places = {p.point[key] for p in published_figure(name).points if key in p.point}
    return sorted(place for place in places if not isinstance(place, str))


@lru_cache(maxsize=1)
def _lines() -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader(_file("csv").splitlines()))


def _file(suffix: str) -> str:
    file = resources.files("onegrad.spec") / "published_points" / f"{_SOURCE}.{suffix}"
    return file.read_text(encoding="utf-8")


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
