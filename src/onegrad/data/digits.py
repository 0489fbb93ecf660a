"""scikit-learn's digits: 8 × 8 images, about 180 of each class, always at hand."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from onegrad.data.images import Images


class Digits(Images):
    """Two classes of handwritten digits, 8 × 8 pixels, from scikit-learn."""

    model: Literal["digits"] = "digits"
    per_class: ClassVar[tuple[int, ...]] = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    pixels: ClassVar[int] = 64

    def images(self) -> tuple[np.ndarray, np.ndarray]:
        return _load()


@lru_cache(maxsize=1)
def _load() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return pixels.astype(np.uint8), labels
