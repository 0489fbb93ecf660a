"""What was learned over two directions: the mean prediction beside the mean label.

Within component c, given t = (û₁·x, û₂·x) made standard Gaussian, the preactivation of a neuron is
Gaussian, and so are the projections that labels depend on: as for one direction (learned.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import AssumptionError, did_you_mean
from onegrad.gaussian.smoothing import smoothed
from onegrad.text.display import brief
from onegrad.theory.nodes.designs import quasi_gaussian
from onegrad.theory.nodes.population import label_means
from onegrad.theory.task import Solution

_GRID, _REACH = 41, 2.5  # points along a direction, and how far, in standard deviations
_POINTS = 128  # points for the other directions that labels depend on


@dataclass(frozen=True)
class LearnedMap:
    """E_c[f | x₁, x₂] (`learned`) beside E_c[y | x₁, x₂] (`target`), (41, 41), x₁ along rows.

    first, second : (41,) û₁·x and û₂·x
    """

    __repr__ = brief

    directions: tuple[str, str]
    component: int
    first: Array
    second: Array
    learned: Array
    target: Array


def learned_map(solution: Solution, first: str, second: str, component: int = 0) -> LearnedMap:
    """The mean prediction over two of the geometry's `directions` within one component."""
    geometry = solution.geometry
    known = list(geometry.directions)
    for name in (first, second):
        if name not in known:
            raise AssumptionError(
                f'there is no direction "{name}" here; known are {", ".join(known) or "none"}. '
                f"{did_you_mean(name, known)}"
            )
    if first == second or not 0 <= component < len(geometry.weights) or geometry.groups:
        raise AssumptionError(
            "a map needs two directions, a component that exists, and no groups of spikes that are "
            f"alike: directions {first}, {second}, component {component} of "
            f"{len(geometry.weights)}, {len(geometry.groups)} groups"
        )
    units = np.stack([geometry.directions[name] for name in (first, second)])
    mean, covariance = geometry.means[component], geometry.covariances[component]
    seen = units @ covariance @ units.T
    values = np.linalg.eigvalsh(seen)
    if values[0] < 1e-9 * values[1]:
        raise AssumptionError(f"{first} and {second} are the same direction here")
    scales = np.sqrt(np.diag(seen))
    grid = np.linspace(-_REACH, _REACH, _GRID)
    where = np.stack(np.meshgrid(grid * scales[0], grid * scales[1], indexing="ij"), axis=-1)
    given = np.linalg.solve(seen, where.reshape(-1, 2).T).T  # E[κ|t] = μ + Σ ûᵀ given
    centre = mean + given @ units @ covariance
    rest = covariance - covariance @ units.T @ np.linalg.solve(seen, units @ covariance)
    neurons, r = solution.neurons, geometry.rank
    v, beside = neurons.vectors[:, :r], neurons.vectors[:, r:]
    spread = np.einsum("ti,ij,tj->t", v, rest, v) + (beside**2).sum(axis=1) + neurons.bulk**2
    shift = v @ centre.T
    scale = np.broadcast_to(np.sqrt(np.maximum(spread, 1e-300))[:, None], shift.shape)
    problem = solution.task.problem
    learned = solution.by_node.readout @ smoothed(problem.activation, shift, scale).value
    eigenvalues, vectors = np.linalg.eigh(rest)
    z, w = quasi_gaussian(r, _POINTS)
    moved = (z * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
    kappa = (centre[:, None, :] + moved).reshape(-1, r)
    target = label_means(problem, geometry, component, kappa).reshape(len(centre), -1) @ w
    shape = (_GRID, _GRID)
    return LearnedMap(
        (first, second), component, units[0] @ mean + scales[0] * grid,
        units[1] @ mean + scales[1] * grid, learned.reshape(shape), target.reshape(shape),
    )  # fmt: skip
