"""Training and test error of the one-step network under mixtures with structure, no sampling.

`predict_mixture` puts the pieces together: types of neurons after the step (neurons.py), nodes
of the data's few special directions (nodes.py), the fixed point (fixed_point.py) and its errors
(second_moments.py); twice, at two resolutions, whose difference is the error estimate
(docs/theory.md). All errors are plain mean squared errors, without ½.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.hermite import Array
from onegrad.theory.fixed_point import Features, solve_fixed_point
from onegrad.theory.geometry import Geometry, Labels, Training
from onegrad.theory.neurons import Neurons, label_means, pure_types
from onegrad.theory.nodes import Effort, component_nodes, quasi_gaussian
from onegrad.theory.second_moments import Errors, errors
from onegrad.theory.smoothing import smoothed

_HIGHEST_LEVEL = 4
_FEWEST_DEGREES = 10.0


@dataclass(frozen=True)
class Nodes:
    """Where the data are looked at: κ, component and weight of every node."""

    kappa: Array  # (S, r') with the coordinates of further directions last
    component: np.ndarray  # (S,)
    weights: Array  # (S,)


@dataclass(frozen=True)
class Solution:
    """What the theory says about one problem, and how far to trust it.

    test_error, train_error : mean squared errors; train_objective adds λ_eff‖a‖²
    component_test, component_train : (C,) the same within each component (NaN for weight 0)
    classification_error : of sign(f) for labels ±1, else None
    status : "ok", "inaccurate" when `accuracy` was not reached, or "near-interpolation" when
        fewer than ten degrees of freedom are left; the last two raise unless told otherwise
    degrees_left : m − df₂, the samples beyond those that the readout uses up. The theory is an
        expansion in its inverse: at k ≈ m with next to no ridge it is of order one, and one
        training set differs from the next by a large factor
    error_estimate : relative, the larger of test and train, from two resolutions
    iterations, residual : of the fixed point at the finer resolution
    types, nodes : number of neuron types and of data nodes at the finer resolution
    """

    test_error: float
    train_error: float
    train_objective: float
    component_test: Array
    component_train: Array
    classification_error: float | None
    status: str
    error_estimate: float
    degrees_left: float
    iterations: int
    residual: float
    types: int
    nodes: int
    by_node: Errors
    where: Nodes
    neurons: Neurons


def data_nodes(geometry: Geometry, labels: Labels, neurons: Neurons, effort: Effort) -> Nodes:
    """Nodes of fresh data in the coordinates of the neurons, component after component."""
    r, extra = geometry.rank, neurons.vectors.shape[1] - geometry.rank
    label = None
    if labels.links is not None:
        label = np.concatenate([geometry.teacher, np.zeros(extra)])
    centre = None
    if labels.values is not None and len(set(labels.values)) > 1:
        centre = np.concatenate([geometry.weights @ geometry.means, np.zeros(extra)])
    parts, owners, weights = [], [], []
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        mean = np.concatenate([geometry.means[c], np.zeros(extra)])
        covariance = np.eye(r + extra)
        covariance[:r, :r] = geometry.covariances[c]
        kinks = () if labels.links is None else labels.links[c].kinks
        kappa, w = component_nodes(mean, covariance, neurons.spread, effort, label, kinks, centre)
        parts.append(kappa)
        owners.append(np.full(len(w), c))
        weights.append(weight * w)
    return Nodes(np.concatenate(parts), np.concatenate(owners), np.concatenate(weights))


def features_at(
    geometry: Geometry, labels: Labels, training: Training, neurons: Neurons, where: Nodes
) -> Features:
    """ν, d, e of every type at every node, and the labels there  (docs/theory.md eq. (5)–(7))."""
    scale = np.broadcast_to(neurons.bulk[:, None], (len(neurons.bulk), len(where.weights)))
    value, slope, variance = smoothed(training.activation, neurons.vectors @ where.kappa.T, scale)
    target = np.empty(len(where.weights))
    for c in range(len(geometry.weights)):
        mine = where.component == c
        target[mine] = label_means(geometry, labels, c, where.kappa[mine])
    return Features(
        mean=value,
        slope=slope,
        extra=np.maximum(variance - (scale * slope) ** 2, 0.0),
        bulk=neurons.bulk,
        counts=neurons.counts,
        weights=where.weights,
        labels=target,
        noise=np.full(len(target), labels.noise**2),
        bulk_dim=neurons.bulk_dim,
        tilt=neurons.tilt,
    )


def predict_mixture(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    *,
    accuracy: float = 0.01,
    neurons: Neurons | None = None,
    on_failure: str = "raise",
    finite_size: bool = False,
) -> Solution:
    """Errors to a relative `accuracy`, by increasing the resolution until two of them agree.

    neurons : types read off a drawn first layer (`drawn_types`: the hybrid theory); by default
        the pure ones, which need no draw
    on_failure : "raise", or "status" to get the finest result with status "inaccurate"
    finite_size : count the degrees of freedom of the mean part. Brings the test error of small
        problems closer to the network's and takes the training error away from it
        (docs/theory.md, section 7)
    """

    def types(effort: Effort) -> Neurons:
        return neurons if neurons is not None else pure_types(geometry, labels, training, effort)

    return _refine(geometry, labels, training, types, accuracy, on_failure, finite_size)


def _refine(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    types: Callable[[Effort], Neurons],
    accuracy: float,
    on_failure: str,
    finite_size: bool,
) -> Solution:
    if not 1e-6 <= accuracy <= 0.5:
        raise ConvergenceError(
            f"accuracy = {accuracy}: the theory offers relative accuracies between 1e-6 and 0.5."
        )
    coarse = solve_at(geometry, labels, training, types, Effort.level(0), finite_size)
    if coarse.degrees_left < _FEWEST_DEGREES:
        if on_failure == "status":
            return replace(coarse, status="near-interpolation")
        enough = training.ridge * (_FEWEST_DEGREES / coarse.degrees_left) ** 2
        raise AssumptionError(
            f"width {training.width} and {training.samples} samples with an effective ridge of "
            f"{training.ridge:.2g} leave {coarse.degrees_left:.1f} degrees of freedom: so close to "
            "interpolation the error of one training set says nothing about the next, and a limit "
            f"of large sizes does not exist. Use an effective ridge above {2 * enough:.1g}, or a "
            "width further from the number of samples."
        )
    for level in range(1, _HIGHEST_LEVEL + 1):
        fine = solve_at(geometry, labels, training, types, Effort.level(level), finite_size)
        estimate = max(
            _relative(fine.test_error, coarse.test_error),
            _relative(fine.train_error, coarse.train_error),
        )
        fine = _with_estimate(fine, estimate, accuracy)
        if fine.status == "ok":
            return fine
        coarse = fine
    if on_failure == "status":
        return fine
    raise ConvergenceError(
        f"two resolutions of the theory still differ by {estimate:.1e} (wanted {accuracy:.0e}) "
        f"with {fine.types} types of neurons and {fine.nodes} nodes. Ask for a lower accuracy, or "
        "use a smaller rate or spread: neurons move too far for the rules used here."
    )


def _relative(fine: float, coarse: float) -> float:
    return abs(fine - coarse) / max(abs(fine), 1e-300)


def _with_estimate(solution: Solution, estimate: float, accuracy: float) -> Solution:
    status = "ok" if estimate <= accuracy else "inaccurate"
    return replace(solution, error_estimate=estimate, status=status)


def solve_at(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    types: Callable[[Effort], Neurons],
    effort: Effort,
    finite_size: bool = False,
) -> Solution:
    """One resolution, no error estimate."""
    if labels.values is not None and len(set(labels.values)) > 1:
        # What separates components is learned to a higher degree than a smooth teacher.
        effort = replace(effort, tolerance=1e-2 * effort.tolerance)
    neurons = types(effort)
    where = data_nodes(geometry, labels, neurons, effort)
    features = features_at(geometry, labels, training, neurons, where)
    point = solve_fixed_point(features, training.samples, training.ridge, finite_size=finite_size)
    result = errors(point)
    test = np.full(len(geometry.weights), np.nan)
    train = test.copy()
    for c in range(len(geometry.weights)):
        mine = where.component == c
        if np.any(mine):
            w = where.weights[mine] / where.weights[mine].sum()
            test[c], train[c] = w @ result.node_test[mine], w @ result.node_train[mine]
    wrong = None
    if labels.binary:
        wrong = _wrong_sign(geometry, labels, training, neurons, result, effort)
    return Solution(
        result.test_error, result.train_error, result.train_objective, test, train, wrong,
        "ok", np.nan, training.samples / result.response.amplification,
        point.iterations, point.residual,
        len(neurons.bulk), len(where.weights), result, where, neurons,
    )  # fmt: skip


def errors_at(
    geometry: Geometry, labels: Labels, training: Training, solution: Solution, where: Nodes
) -> tuple[Array, Array]:
    """E[f|κ] and Var[f|κ] at nodes of one's own choice; weights of the nodes play no part."""
    features = features_at(geometry, labels, training, solution.neurons, where)
    prediction = solution.by_node.readout @ features.mean
    return prediction, solution.by_node.response.variance_at(features)


def _wrong_sign(
    geometry: Geometry,
    labels: Labels,
    training: Training,
    neurons: Neurons,
    result: Errors,
    effort: Effort,
) -> float:
    """P(sign f ≠ y): f given κ is N(f_s, q_s). It varies faster with κ than its moments do,
    so it has nodes of its own, quasi-Monte Carlo."""
    assert labels.values is not None
    extra = neurons.vectors.shape[1] - geometry.rank
    z, w = quasi_gaussian(neurons.vectors.shape[1], effort.points)
    total = 0.0
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        root = np.eye(geometry.rank + extra)
        root[: geometry.rank, : geometry.rank] = np.linalg.cholesky(geometry.covariances[c])
        kappa = np.concatenate([geometry.means[c], np.zeros(extra)]) + z @ root.T
        features = features_at(
            geometry, labels, training, neurons, Nodes(kappa, np.full(len(w), c), w)
        )
        margin = labels.values[c] * (result.readout @ features.mean)
        spread = np.sqrt(np.maximum(result.response.variance_at(features), 1e-300))
        total += float(weight * w @ ndtr(-margin / spread))
    return total
