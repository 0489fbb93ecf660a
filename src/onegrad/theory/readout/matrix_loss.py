"""The readout with any convex loss on a given first layer: eqs. proximal, force, clipped,
loss-equations, smoothing, loss-values, readout-norm and squared-errors with its actual matrix
(docs/book/any-first-layer.md) instead of types of neurons.

    M = (λ + Σ_s ω_sD_sQ_s)⁻¹,  χ_s = tr(Q_sM)/m,  a = M Σ_s (ω_sD_sf_s + ω_s E ρ)ν_s
    f_s = ν_sᵀa,  q_s = aᵀC_sa + tr(Q_s M L M)/m,  L = Σ_s ω_s E ρ² Q_s
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onegrad.compute.backend import Array
from onegrad.errors import ConvergenceError
from onegrad.gaussian.convex_losses import Loss
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.layers.matrix_responses import NodeSolution, Quadratics, inverse_of
from onegrad.theory.readout.anderson import Acceleration
from onegrad.theory.readout.moments import LabelLaw

_ITERATIONS = 100
_TOLERANCE = 1e-4  # largest change of log q, log χ and of f over its size
_LOOSE = 0.03  # the same while kinks are smoothed
_SMOOTH = (0.3, 0.03, 0.0)  # added to χ where a loss has a kink


@dataclass(frozen=True)
class LossSolution:
    """Errors with a loss, and the nodes; test_loss, train_loss : means of the loss."""

    nodes: NodeSolution
    test_loss: float
    train_loss: float


def solve_matrix_loss(
    q: Quadratics, samples: int, ridge: float, loss: Loss, start: NodeSolution, binary: bool,
    smooth: bool = True,
) -> LossSolution:  # fmt: skip
    """From the solution of the squared loss, or one that is near: then without smoothing a kink
    first. An iteration costs one inverse and three products of k × k matrices; 10 to 30 of them."""
    labels = _labels(q, binary)
    nodes = start
    for added in _SMOOTH if loss.kink and smooth else (0.0,):
        asked = _Asked(q, samples, ridge, loss, labels, added)
        nodes = _settled(asked, nodes, _TOLERANCE if added == 0 else _LOOSE)
    found = labels.moments(loss, nodes.prediction, nodes.variance, nodes.responses)
    weight = q.weights
    train = float(weight @ found.train_loss)
    penalty = float(weight @ (
        nodes.prediction * found.mean - nodes.variance * found.slope
        + nodes.responses * found.square
    ))  # fmt: skip
    errors = MatrixErrors(math.nan, float(weight @ found.train_square), train + penalty)
    solution = LossSolution(replace(nodes, errors=errors), math.nan, train)
    return on_fresh_samples(solution, q, loss, binary)


def on_fresh_samples(
    solution: LossSolution, q: Quadratics, loss: Loss, binary: bool
) -> LossSolution:
    """The solution with the test errors of the weights and labels of `q`."""
    nodes, labels = solution.nodes, _labels(q, binary)
    moments = labels.moments(loss, nodes.prediction, nodes.variance, nodes.responses)
    total = labels.noise + (q.y - nodes.prediction) ** 2 + nodes.variance
    errors = nodes.errors._replace(test_error=float(q.weights @ total))
    return LossSolution(
        replace(nodes, errors=errors), float(q.weights @ moments.test_loss), solution.train_loss
    )


def _labels(q: Quadratics, binary: bool) -> LabelLaw:
    return LabelLaw(q.y, np.broadcast_to(np.asarray(q.noise, float), q.y.shape), binary)


@dataclass(frozen=True)
class _Asked:
    q: Quadratics
    samples: int
    ridge: float
    loss: Loss
    labels: LabelLaw
    smooth: float

    def step(self, nodes: NodeSolution, f: Array, variance: Array, chi: Array) -> NodeSolution:
        """The next (f, q, χ)."""
        q = self.q
        found = self.labels.moments(self.loss, f, variance, chi, self.smooth, losses=False)
        w = q.weights * found.slope
        system = q.total(w)
        system.flat[:: q.width + 1] += self.ridge
        inverse = inverse_of(system)
        readout = inverse @ q.cross(w * f + q.weights * found.mean)
        load = q.total(q.weights * found.square)
        moved = inverse @ load @ inverse / self.samples
        # only the second part contains the means
        spread = q.traces(moved + np.outer(readout, readout), mean=False)
        spread += q.squares_of_means(moved)
        return replace(
            nodes, responses=q.traces(inverse) / self.samples, inverse=inverse, readout=readout,
            prediction=q.mean(readout), variance=spread, load=load,
        )  # fmt: skip


def _settled(asked: _Asked, nodes: NodeSolution, tolerance: float) -> NodeSolution:
    """Anderson's acceleration on (f, log q, log χ), nodes weighted by their share."""
    weights = asked.q.weights
    scale = float(np.sqrt(weights @ asked.q.y**2)) or 1.0
    root = np.sqrt(np.tile(weights, 3) * len(weights))[None]
    acceleration = Acceleration()
    z = _packed(nodes, scale)
    for _ in range(_ITERATIONS):
        f, spread, chi = np.split(z[0], 3)
        nodes = asked.step(nodes, scale * f, np.exp(spread), np.exp(chi))
        change = _packed(nodes, scale) - z
        if not np.all(np.isfinite(change)):
            break
        residual = float(np.max(np.abs(change) @ np.tile(weights, 3)))
        if residual < tolerance:
            return nodes
        z = z + acceleration.step(root * z, root * change, np.array([residual])) / root
    raise ConvergenceError(
        f"the theory of the {asked.loss.name} loss on this first layer did not settle in "
        f"{_ITERATIONS} iterations. Use a larger training.ridge"
    )


def _packed(nodes: NodeSolution, scale: float) -> Array:
    logs = [np.log(np.maximum(x, 1e-30)) for x in (nodes.variance, nodes.responses)]
    return np.concatenate([nodes.prediction / scale, *logs])[None]
