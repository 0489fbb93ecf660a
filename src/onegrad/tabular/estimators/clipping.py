"""Bounds beyond which inputs are cut: a robust answer to heavy tails."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array

_QUARTILES = 1.349  # distance between the quartiles of a standard Gaussian


def bounds_of(x: Array, weight: Array, clip: float) -> tuple[Array, Array]:
    """median ± clip · (distance of the quartiles)/1.349 of each column of x (m × n).

    A column whose quartiles are equal (mostly zeros) has no scale of that kind: there it is
    mean ± clip standard deviations. Rows of weight w count as w rows.
    """
    order = np.argsort(x, axis=0, kind="stable")
    shares = np.cumsum(weight[order], axis=0)
    levels = []
    for share in (0.25, 0.5, 0.75):
        place = (shares >= share * shares[-1]).argmax(axis=0)
        levels.append(np.take_along_axis(x, order, axis=0)[place, np.arange(x.shape[1])])
    low, middle, high = levels
    mean = weight @ x / weight.sum()
    spread = np.sqrt(weight @ (x - mean) ** 2 / weight.sum())
    robust = high > low
    centre = np.where(robust, middle, mean)
    reach = clip * np.where(robust, (high - low) / _QUARTILES, spread)
    return centre - reach, centre + reach
