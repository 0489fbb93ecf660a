"""Two classes of images as data: centred, of equal trace, scaled to θ, on top of white noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from onegrad.compute.backend import Array
from onegrad.data.base import DataModel, DataNodes
from onegrad.data.population import Batch
from onegrad.errors import SpecError
from onegrad.spec.fields import Real, Whole

_LABELS = np.array([1.0, -1.0])


@dataclass(frozen=True)
class PixelStatistics:
    """Traces of the classes' covariances; distance of each class mean from their average."""

    traces: tuple[float, float]
    distance: float


@dataclass(frozen=True)
class ImagePopulation:
    """Images of two classes in equal numbers; x = √θ·structure + N(0, I)  [demir2025, sec. 4].

    Rows 2i and 2i + 1 are of the first and of the second class, so that any even stretch is
    balanced. The mean over the classes of tr E[structure structureᵀ] is 1: the structure has
    trace θ, and tr Σ̄ = n + θ for centred classes. The pixels stay in their own type; memory 1
    byte for each.
    """

    pixels: np.ndarray
    means: Array
    scales: Array

    @classmethod
    def of(
        cls, first: np.ndarray, second: np.ndarray, centring: str, traces: str = "moment"
    ) -> ImagePopulation:
        """From the pixels (N × n) of two classes; the longer one is cut."""
        count = min(len(first), len(second))
        pixels = np.stack([first[:count], second[:count]], axis=1)
        own = pixels.mean(axis=0, dtype=float)
        means = own
        if centring == "common":
            means = np.broadcast_to(own.mean(axis=0), own.shape).copy()
        about = own if traces == "covariance" else means
        sizes = np.square(pixels - about).mean(axis=0).sum(axis=1)
        return cls(pixels.reshape(2 * count, -1), means, 1 / np.sqrt(sizes))

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def statistics(self) -> PixelStatistics:
        """Traces and distance of the published pixels, before any scaling."""
        pairs = self.pixels.reshape(len(self) // 2, 2, -1)
        own = pairs.mean(axis=0, dtype=float)
        first, second = np.square(pairs - own).mean(axis=0).sum(axis=1)
        half = 0.5 * float(np.linalg.norm(own[0] - own[1]))
        return PixelStatistics((float(first), float(second)), half)

    def components(self, rows: np.ndarray) -> np.ndarray:
        """0 for rows of the first class, 1 for rows of the second."""
        return rows % 2

    def structure(self, rows: np.ndarray) -> Array:
        """The images themselves (len(rows) × n), centred, of mean trace 1."""
        c = self.components(rows)
        x = self.pixels[rows] - self.means[c]
        x *= self.scales[c, None]
        return np.asarray(x)

    def sample(self, rows: np.ndarray, spread: float, rng: np.random.Generator) -> Array:
        """√θ·structure plus white noise, for the given images."""
        x = self.structure(rows)
        x *= np.sqrt(spread)
        x += rng.standard_normal(x.shape)
        return x

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """All rows, shuffled within each class: the classes still alternate."""
        half = len(self) // 2
        pair = np.stack([2 * rng.permutation(half), 2 * rng.permutation(half) + 1], axis=1)
        return np.asarray(pair.ravel())


class Images(DataModel):
    """What the image data sets share: which classes, how they are centred, how strong they are
    (eq. images).

    The spread θ, here the trace of the images' own covariance, comes from [scaling] or `spread`.
    A subclass has `images`, and as class variables how many there are of each class (`per_class`)
    and how many pixels an image has.
    """

    known: ClassVar[bool] = False
    label_models: ClassVar[tuple[str, ...]] = ("component", "given")
    takes_spread: ClassVar[bool] = True
    own_nodes: ClassVar[bool] = True
    pictures: ClassVar[bool] = True
    per_class: ClassVar[tuple[int, ...]]
    pixels: ClassVar[int]
    classes: tuple[Whole, Whole] = Field(
        default=(0, 1), description="the two classes, labelled +1 and −1", examples=[[0, 1]]
    )
    centring: Literal["class", "common"] = Field(
        default="class",
        description="class: each class has mean zero; common: only both together, so that the "
        "class means stay apart", examples=["class"],
    )  # fmt: skip
    traces: Literal["moment", "covariance"] = Field(
        default="moment",
        description="what is made equal in both classes, to the spread: the second moment about "
        "the centre, class means included, or the covariance, class means on top",
        examples=["moment"],
    )
    part: Literal["all", "first-half", "second-half"] = Field(
        default="all", description="all images, or one of two disjoint halves", examples=["all"]
    )
    spread: Real | None = Field(
        default=None, ge=0, le=1e9, description="θ by hand, instead of [scaling]", examples=[784.0]
    )
    bulk: Literal["all", "noise"] = Field(
        default="all",
        description="what sets the scale b of the Hermite model: the whole covariance, or the "
        "noise alone (docs/book/real-data.md)", examples=["all"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _two_classes(self) -> Images:
        last = len(self.per_class) - 1
        if self.classes[0] == self.classes[1] or not all(0 <= c <= last for c in self.classes):
            raise SpecError.of(
                "data.classes", list(self.classes),
                f"must be two different classes from 0 to {last}", "For example [0, 1]",
            )  # fmt: skip
        return self

    @property
    def dim(self) -> int:
        return self.pixels

    @property
    def components(self) -> int:
        return 2

    @property
    def structured(self) -> bool:
        return True

    def bulk_trace(self, spread: float) -> float:
        """The trace of the whole covariance, as structure over hundreds of directions is bulk too;
        of the noise alone where `bulk` = "noise"."""
        return self.mean_trace(spread) if self.bulk == "all" else float(self.dim)

    def fingerprint(self) -> dict[str, Any]:
        """Without the path of the images: their contents are checked."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"path"})

    @property
    def rows(self) -> int:
        """Number of images of both classes together; both have equally many."""
        return 2 * min(self.stretch(c).stop - self.stretch(c).start for c in self.classes)

    def stretch(self, label: int) -> slice:
        """The images of this class in this part, in their published order."""
        count = self.per_class[label]
        if self.part == "first-half":
            return slice(0, count // 2)
        return slice(count // 2 if self.part == "second-half" else 0, count)

    @abstractmethod
    def images(self) -> tuple[np.ndarray, np.ndarray]:
        """All pixels (N × n) and labels (N), as published."""

    def check_at_hand(self) -> None:
        self.images()

    def both_classes(self) -> ImagePopulation:
        """The images of the two classes, ready to be sampled; kept for the next repetition."""
        return _both_classes(self.model_copy(update={"spread": None}))

    def split(self, rng: np.random.Generator) -> np.ndarray:
        return self.both_classes().order(rng)

    def batch(self, rows: np.ndarray, spread: float, rng: np.random.Generator) -> Batch:
        """The given images under white noise, labelled +1 and −1."""
        images = self.both_classes()
        component = images.components(rows)
        return Batch(images.sample(rows, spread, rng), _LABELS[component], component)

    def nodes(self, rows: np.ndarray, spread: float) -> DataNodes:
        images = self.both_classes()
        component = images.components(rows)
        x = np.sqrt(spread) * images.structure(rows)
        return DataNodes(x, _LABELS[component], component, noise=1.0)


@lru_cache(maxsize=4)
def _both_classes(data: Images) -> ImagePopulation:
    pixels, labels = data.images()
    first, second = (pixels[labels == c][data.stretch(c)] for c in data.classes)
    return ImagePopulation.of(first, second, data.centring, data.traces)
