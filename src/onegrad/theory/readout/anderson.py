"""Anderson acceleration of a fixed-point iteration, for many problems at once."""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array
from onegrad.compute.deadline import check_time

_MEMORY = 12
_DAMPING = 1e-12  # regularisation of the acceleration's normal equations; columns have norm one


class Acceleration:
    """Mixes the last steps so that the change would vanish if the map were linear, row by row."""

    def __init__(self) -> None:
        self.steps: list[Array] = []
        self.changes: list[Array] = []
        self.previous: tuple[Array, Array] | None = None
        self.best: Array | None = None

    def keep(self, rows: np.ndarray) -> None:
        """Go on with these rows alone: a mask (P,)."""
        self.steps, self.changes = ([x[rows] for x in past] for past in (self.steps, self.changes))
        if self.previous is not None and self.best is not None:
            self.previous = self.previous[0][rows], self.previous[1][rows]
            self.best = self.best[rows]

    def step(self, z: Array, change: Array, residual: Array) -> Array:
        """How far to go from z (P, N), where the map goes by `change`; residual : (P,) its size."""
        check_time()
        best = residual if self.best is None else np.minimum(self.best, residual)
        astray = np.zeros(len(z), bool) if self.best is None else residual > 20 * self.best
        self.best = best
        if self.previous is not None:
            self.steps.append(z - self.previous[0])
            self.changes.append(change - self.previous[1])
            self.steps, self.changes = self.steps[-_MEMORY:], self.changes[-_MEMORY:]
        if np.any(astray):  # acceleration diverges for these rows: restart it
            for past in (*self.steps, *self.changes):
                past[astray] = 0.0
        self.previous = (z, change)
        if not self.steps:
            return change
        f = np.stack(self.changes, axis=1)  # (P, memory, N)
        size = np.sqrt(np.einsum("pij,pij->pi", f, f)) + 1e-300
        f /= size[:, :, None]
        gram = f @ f.mT
        gram[:, np.arange(len(self.steps)), np.arange(len(self.steps))] += _DAMPING
        mixing = np.linalg.solve(gram, f @ change[:, :, None])[:, None, :, 0]
        moved = np.stack(self.steps, axis=1) / size[:, :, None] + f
        step = change - (mixing @ moved)[:, 0]
        # A step of more than e³ in one go is a sign of a bad extrapolation, not of progress.
        wild = ~(np.abs(step).max(axis=1) < 3.0)
        step[wild] = change[wild]
        return np.asarray(step)
