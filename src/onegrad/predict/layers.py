"""The readout on first layers as they are: brought by a user, or drawn and trained here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.compute.deadline import check_time
from onegrad.compute.linalg import outlying_directions
from onegrad.compute.memory import available_bytes
from onegrad.compute.randomness import Streams
from onegrad.data.instance import Instance
from onegrad.errors import AssumptionError, ConvergenceError, Failure, SpecError, verb
from onegrad.predict.layer_means import LabelPower, LayerMeans
from onegrad.predict.own_teacher import with_teacher
from onegrad.predict.prediction import LAYERS, Prediction
from onegrad.predict.real_data import rows_as_nodes
from onegrad.predict.wording import of_layers, of_rows
from onegrad.problem import Problem, as_problem
from onegrad.simulate.network.trial import Draw, Reuse, Trial
from onegrad.spec.presets import Spec
from onegrad.theory.directions.geometry import Geometry, drawn_geometry
from onegrad.theory.layers.any_layer import (
    LayerErrors,
    layer_errors,
    needed_bytes,
    own_directions,
    rough_errors,
    wrong_class_on,
)
from onegrad.theory.layers.given import given_layer
from onegrad.theory.layers.matrix import DrawnLayer
from onegrad.theory.layers.matrix_errors import MatrixErrors
from onegrad.theory.layers.semi_parametric import predict_from_layers
from onegrad.theory.neurons.types import drawn_types
from onegrad.theory.options import Theory
from onegrad.theory.readout.classes import class_problems, rough_classes

_IN_FULL = 12  # cost of solving a layer at every node, over the cost of rough errors
_AN_ENTRY = 3000  # operations that one feature at one node costs
_EXTREME = 1e4  # largest length of a neuron's weights; the smallest is its inverse


@dataclass(frozen=True)
class _Layer:
    """A first layer, the population that it is for, and where it started if that is known."""

    weights: Array
    instance: Instance
    start: Array | None = None


@verb
def predict_readout(
    weights: Any,
    problem: Problem | Spec,
    *,
    instance: Instance | None = None,
    teacher: Any = None,
    start: Any = None,
    theory: Theory | str = Theory(),
    **options: Any,
) -> Prediction:
    """Errors of the readout on σ(Ŵx), for any first layer Ŵ: no training and no test data.

    weights : (k, n) of NumPy, torch or the like, however they came about
    instance : directions and teacher that the layer is for, `problem.instance(rng)`; needed where
        they are random
    teacher : labels of your own, on data of a known law: any smooth function of the inputs (m × n)
        that depends on up to three projections of them, or a direction (n,) for the problem's link
    start : the weights before training, if known: what was learned is then seen more clearly
    theory : of it the accuracy counts (from 0.03 on a draft); may be given by name

    The readout sees training.samples fresh samples of the problem, its ridge and its loss; steps,
    rate and optimiser of the problem play no part. Images, arrays and files take up to 6000 of
    their rows as nodes, with the squared loss alone. Cost O(k²(n + k)): about 2 s and 0.3 GB at
    k = n = 1000 on one thread, ten times as long with other losses.

    >>> tables = {"data": {"model": "isotropic", "dim": 100}, "network": {"width": 80},
    ...     "training": {"samples": 200, "rate": 1.0}}
    >>> problem, rng = Problem.from_spec(tables), np.random.default_rng(0)
    >>> weights = rng.standard_normal((80, 100)) / 10
    >>> found = predict_readout(weights, problem, instance=problem.instance(0))
    >>> 0 < found.train_error < found.test_error
    True
    """
    theory = Theory.of(theory, options)
    problem = as_problem(problem)
    matrix = _matrix("weights", weights, problem)
    before = None if start is None else _matrix("start", start, problem)
    if not problem.data.known:
        if problem.loss.name != "squared":
            raise AssumptionError(
                "the theory of real data is that of the squared loss, not of training.loss = "
                f'"{problem.loss.name}": use loss = "squared"'
            )
        directions = outlying_directions(matrix if before is None else matrix - before)
        nodes = rows_as_nodes(problem, theory, 0)
        given = DrawnLayer(matrix, directions)
        result = predict_from_layers(problem, lambda _: (given, nodes), theory, draws=(1, 1))
        said = (
            f"Method: the errors of a readout on the first layer as given; {result.nodes} rows of "
            f"{problem.data.source} stand for the law of the data."
        )
        power = float(np.var(nodes.y)) + nodes.label_noise
        return replace(of_rows(result, LAYERS, (said,)), label_variance=power)
    if teacher is None:
        instance = _instance(problem, instance)
    else:
        if instance is None:
            instance = problem.instance(0) if problem.data.isotropic else _instance(problem, None)
        problem, instance = with_teacher(problem, instance, teacher)
    problem, kept = _without_copies(problem, matrix, theory.accuracy)
    layer = _Layer(matrix[kept], instance, None if before is None else before[kept])
    found = of_layers(LayerMeans([_errors(problem, layer, theory)]), theory, None)
    return replace(found, label_variance=layer.instance.label_variance)


def predict_layers(problem: Problem, theory: Theory, seed: int, most: int = 0) -> Prediction:
    """`layers_within` without a limit on the error estimate."""
    found = layers_within(problem, theory, seed, math.inf, most)
    if isinstance(found, Failure):
        raise found.error
    return found


def layers_within(
    problem: Problem, theory: Theory, seed: int, enough: float, most: int = 0
) -> Prediction | Failure:
    """The mean over first layers drawn and trained with that seed, none of which is a
    simulation's.

    most : largest number of layers; after `Policy.layers` of them drawing stops once the mean is
        known (`LayerMeans.settled`). 0: `worthwhile_draws`
    enough : a Failure is returned if the first layer's error estimate exceeds this

    For the squared loss only some layers are solved at every node: enough to know the ratio of
    their errors to `rough_errors`, which give the scatter between layers (`layer_means`).
    """
    if theory.overlaps == "typical":
        raise AssumptionError(
            'the theory of drawn layers takes the overlaps of its draws: use overlaps = "auto"'
        )
    policy = theory.policy
    found: list[LayerErrors] = []
    rough: list[MatrixErrors] = []
    power = LabelPower(problem, seed)
    wrong: list[float] = []
    all_in_full, told = _all_in_full(problem, theory), False
    for repetition in range(most or policy.layers_most):
        nodes = found[0].nodes if found else 0
        full = worthwhile_draws(problem, theory, _IN_FULL, nodes)
        last = most or (full if all_in_full else worthwhile_draws(problem, theory, 1, nodes))
        means = LayerMeans(found, rough, power, policy)
        known = repetition >= policy.layers and means.settled(theory.accuracy)
        if known or repetition >= last:
            break
        check_time()
        layer = _drawn(problem, seed, repetition)
        # once rough errors suffice, all later layers have only these
        told = told or len(found) == full
        if not problem.labels_binary:  # rough errors do not include the classification error
            told = told or means.tells(theory.accuracy)
        if all_in_full or not told:
            found.append(_errors(problem, layer, theory, found))
            if found[0].open > enough:
                left = f"{100 * found[0].open:.2g} %"
                return Failure(ConvergenceError(f"first layers leave {left} of their errors open"))
        study = found[0].study
        if study is not None and not all_in_full:
            rough.append(rough_errors(problem, *_directions(problem, layer), study))
        power.drawn.append(layer.instance.label_variance)
        if problem.outputs > 1 and not theory.draft:
            wrong.append(_wrong_class(problem, layer))
    mean = of_layers(LayerMeans(found, rough, power, policy), theory, seed)
    drafted = float(np.mean(power.drawn))
    mean = replace(mean, label_variance=drafted if theory.draft else power.mean)
    return _with_class(problem, mean, wrong, theory, seed) if wrong else mean


def _drawn(problem: Problem, seed: int, repetition: int) -> _Layer:
    streams = Streams(seed, repetition, theory=True)
    draw = Draw(problem, streams, Reuse(False, False, True, False))
    trial = Trial(problem, streams, draw=draw)
    start = trial.weights if problem.trained else None
    return _Layer(trial.updated_weights, trial.instance, start)


def _with_class(
    problem: Problem, mean: Prediction, wrong: Sequence[float], theory: Theory, seed: int
) -> Prediction:
    """With the error of the largest output, over more layers than the other errors where it differs
    much from one to the next: the class is decided by differences of outputs that are small."""
    found, policy = list(wrong), theory.policy
    while True:
        error = float(np.std(found, ddof=1) / math.sqrt(len(found))) if len(found) > 1 else 0.0
        enough = error <= 2 * theory.accuracy * np.mean(found)
        if enough or len(found) >= policy.layers**2:
            break
        layer = _drawn(problem, seed, len(found))
        found.append(_wrong_class(problem, layer))
    note = f"The error of the class is a mean over {len(found)} first layers."
    more = (note,) if len(found) > len(wrong) else ()
    return replace(
        mean, misclassification=float(np.mean(found)), misclassification_se=error,
        assumptions=(*mean.assumptions, *more),
    )  # fmt: skip


def _all_in_full(problem: Problem, theory: Theory) -> bool:
    """Rough errors are those of one output and the squared loss; a draft has none."""
    plain = problem.loss.name == "squared" and problem.outputs == 1
    return theory.draft or not plain


def worthwhile_draws(problem: Problem, theory: Theory, dear: int, nodes: int = 0) -> int:
    """How many first layers may be drawn where errors differ much from one to the next: as many as
    take seconds, and a draft must not wait.

    dear : what one of them costs, in units of a layer that is known roughly
    nodes : of the rule for κ, with the lengths of samples
    """
    policy = theory.policy
    if theory.draft:
        return policy.layers // 2
    n, k, step, rule = problem.dim, problem.width, problem.step_samples, nodes / 2
    operations = 4.0 * n * k * step + k * k * (6 * n + 4 * rule + 12 * k) + _AN_ENTRY * k * rule
    draws = policy.layers_work / (dear * operations)
    return int(np.clip(draws, policy.layers, policy.layers_most))


def _errors(
    problem: Problem, layer: _Layer, theory: Theory, found: Sequence[LayerErrors] = ()
) -> LayerErrors:
    """Of several outputs the sum; found : of other layers of this problem."""
    _check_memory(problem)
    if problem.outputs > 1 and theory.draft:
        return _draft_of_classes(problem, layer)
    if problem.outputs > 1:
        parts = [
            _errors(one, layer, theory, [other.outputs[c] for other in found])
            for c, one in enumerate(class_problems(problem))
        ]
        total = MatrixErrors(*np.sum([one.errors for one in parts], axis=0).tolist())
        by_nodes = max(one.by_nodes for one in parts)
        by_size = max(one.by_size for one in parts)
        left_out = max(one.left_out for one in parts)
        return replace(
            parts[0], errors=total, by_nodes=by_nodes, by_size=by_size, test_loss=total.test_error,
            train_loss=total.train_error, misclassification=math.nan, calibration=math.nan,
            study=None, outputs=tuple(parts), left_out=left_out,
        )  # fmt: skip
    geometry, weights, own = _directions(problem, layer)
    known = found[0].study if found else None
    return layer_errors(problem, geometry, weights, own, theory, known)


def _wrong_class(problem: Problem, layer: _Layer) -> float:
    """Of the largest output."""
    return wrong_class_on(problem, given_layer(problem.activation, *_directions(problem, layer)))


def _draft_of_classes(problem: Problem, layer: _Layer) -> LayerErrors:
    """All outputs from one fixed point, by one coarse rule; nothing is known about its error."""
    class_problems(problem)  # raises where no theory exists
    geometry, weights, own = _directions(problem, layer)
    assert geometry.basis is not None
    neurons = drawn_types(weights, np.hstack([geometry.basis, own]))  # each a type of its own
    errors, wrong, nodes = rough_classes(problem, geometry, neurons)
    directions = neurons.vectors.shape[1]
    return LayerErrors(
        errors, math.nan, math.nan, directions, nodes, *errors[:2], misclassification=wrong
    )


def _directions(problem: Problem, layer: _Layer) -> tuple[Geometry, Array, Array]:
    """The special directions of the population, the weights there, and the layer's own ones."""
    labelled = problem.links is not None or problem.joint_link is not None
    teacher = layer.instance.teacher.direction if labelled else None
    population = layer.instance.population
    geometry = drawn_geometry(population, teacher, problem.gaussian_teacher)
    assert geometry.basis is not None
    weights = population.seen(layer.weights)
    start = None if layer.start is None else population.seen(layer.start)
    own = own_directions(weights, geometry.basis, start)
    return geometry, weights, own


def _matrix(name: str, weights: Any, problem: Problem) -> Array:
    """As a NumPy array of double precision, checked."""
    shape = problem.width, problem.dim
    given = getattr(weights, "shape", None)
    try:
        given_array = weights.detach() if hasattr(weights, "detach") else weights
        if np.iscomplexobj(given_array):
            raise TypeError
        matrix = host(given_array)
    except (TypeError, ValueError):
        given, matrix = type(weights).__name__, np.zeros(0)
    if matrix.shape != shape:
        raise SpecError.of(
            name, given if given is None or isinstance(given, str) else tuple(given),
            f"must be a matrix of network.width × data.dim = {shape[0]} × {shape[1]} numbers",
            "One row for each neuron; set network.width and data.dim to what the layer has",
        )  # fmt: skip
    if not np.all(np.isfinite(matrix)):
        raise SpecError.of(name, "NaN or infinity", "must be finite", "Has the training diverged?")
    largest = float(np.abs(matrix).max()) * math.sqrt(problem.dim)
    if name == "weights" and not 1 / _EXTREME < largest < _EXTREME:
        raise SpecError.of(
            name, f"rows of length up to {largest:.2g}",
            f"must have rows of length between {1 / _EXTREME:g} and {_EXTREME:g}",
            "Features of such a layer are constant or steps; scale the weights",
        )  # fmt: skip
    return matrix


def _without_copies(problem: Problem, weights: Array, few: float) -> tuple[Problem, Any]:
    """The problem of the neurons that differ, and their places: c copies of every neuron, whose
    readouts a/c are equal, are one neuron with the readout a and the penalty λ_eff a²/c.

    The theory takes what neurons do beside their linear and quadratic parts as independent, which
    equal neurons are not: a share up to `few` hardly counts, more of unequal number are refused.
    Neurons without weights are constants, and have no such part.
    """
    _, kept, counts = np.unique(weights, axis=0, return_index=True, return_counts=True)
    if not weights[kept].any(axis=1).all():
        return problem, slice(None)
    most, width = int(counts.max()), len(weights)
    if most == 1 or width - len(kept) <= few * width:
        return problem, slice(None)
    if np.any(counts != most):
        raise AssumptionError(
            f"{width - len(kept)} of {width} neurons are copies of others, in unequal numbers: the "
            "theory takes neurons as different. Give every neuron once, or equally often"
        )
    # In the other convention λ_eff = ridge · k contains k
    isotropic = problem.network.convention == "isotropic"
    ridge = problem.training.ridge / (most if isotropic else 1)
    network = problem.network.model_copy(update={"width": len(kept), "width_ratio": None})
    training = problem.training.model_copy(update={"ridge": ridge})
    fewer = Problem(
        data=problem.data, labels=problem.labels, network=network, training=training,
        scaling=problem.scaling,
    )  # fmt: skip
    return fewer, np.sort(kept)


def _instance(problem: Problem, instance: Instance | None) -> Instance:
    """The one given, or the only one there is."""
    if instance is None:
        one, other = problem.instance(0), problem.instance(1)
        pairs = [(one.teacher.direction, other.teacher.direction)]
        pairs += [(one.population.means, other.population.means)]
        pairs += list(zip(one.population.spikes, other.population.spikes, strict=True))
        if not all(np.array_equal(a, b) for a, b in pairs):
            raise SpecError.of(
                "instance", None, "is needed: the directions of this problem are drawn, and the "
                "layer is for those of one draw",
                "instance = problem.instance(rng), with the seed or generator of the training",
            )  # fmt: skip
        return one
    if instance.population.dim != problem.dim:
        raise SpecError.of(
            "instance", f"n = {instance.population.dim}", f"must have data.dim = {problem.dim}",
            "Take it from the same problem: problem.instance(rng)",
        )  # fmt: skip
    return instance


def _check_memory(problem: Problem) -> None:
    needed, available = needed_bytes(problem), available_bytes()
    if available is not None and needed > available:
        raise AssumptionError(
            f"the theory of a given first layer needs about {needed / 1e9:.1f} GB at width "
            f"{problem.width}, and {available / 1e9:.1f} GB are available. Use a width below "
            f"{math.floor(problem.width * math.sqrt(available / needed))}."
        )
