"""The first step as its samples see it: nodes of (κ̃, u), and averages over them for a neuron.

The step moves w_i by η a_i (1/m̃) Σ_t u_t σ'(w_i·x̃_t) x̃_t, u = y − f₀ (or y: `labels-only`).
Equations are named as in docs/book.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array, read_only
from onegrad.data.label_power import joint_link_laws
from onegrad.gaussian.activation import Activation
from onegrad.gaussian.quadrature import gauss_hermite
from onegrad.gaussian.smoothing import centred_moments, slope_moments
from onegrad.problem import Problem
from onegrad.theory.directions.geometry import Geometry
from onegrad.theory.neurons.own_output import SHARE, OwnMoments
from onegrad.theory.nodes.component import Integrand, component_nodes
from onegrad.theory.nodes.designs import tensor, two_level
from onegrad.theory.nodes.population import label_means, with_flips
from onegrad.theory.nodes.rules import QuadratureLevel

OUTPUT_LOSS = 1e-3  # relative error up to which the initial output is left out of the residual
# The same where directions are grouped; the error estimate then contains the effect
_FAINT_LOSS = 0.05
_SECOND = 15.0  # assumed effect of a quadratic spike on the errors, in units of E f₀²/E y²
_FAR = 2  # nodes along the noise and the initial output, plus the level's number


class StepMoments(NamedTuple):
    """Averages over one sample of the step for each of T neurons before it: eq. neurons-after.

    E is over κ̃ = (κ, e·x̃), u and z'; σ', σ'' are taken at the preactivation f⁰_i·κ̃ + b₀ z'.
    """

    push: Array  # (T, r') g_i = E[u σ' κ̃]
    curvature: Array  # (T,) E[u σ'']
    noise: Array  # (T,) E[u² σ'²] − Σ_l E[u² σ' ψ_l]²/E[u²ψ_l²]
    spread: Array  # (T, r', r') E[u² Var_z'(σ') κ̃κ̃ᵀ]
    known: Array  # (T, L) E[u² σ' ψ_l]

    def tiled(self, repeats: int) -> StepMoments:
        """The moments with every neuron's entries repeated `repeats` times."""
        return StepMoments(*(np.tile(x, (repeats, *([1] * (x.ndim - 1)))) for x in self))

    def without(
        self, own: OwnMoments, readout: Array, start: Array, sample: StepSample
    ) -> StepMoments:
        """With a_i ψ(w_i·x) off the residual of neuron i (`own_moments`)."""
        r = own.push.shape[1]
        push, curvature = self.push.copy(), self.curvature - readout * own.stretch
        push[:, :r] -= readout[:, None] * own.push
        push[:, r:] -= (readout * own.stretch)[:, None] * start[:, r:]
        change = readout[:, None] * (readout[:, None] * own.twice - 2 * own.once)
        part = change[:, 0]  # ψ = 1 in the first step
        noise = self.noise + change[:, 1]
        if np.any(sample.powers > 0):
            noise = noise - part * (2 * self.known[:, 0] + part) / sample.powers[0]
            push[:, -1] += sample.recalled[0] * part
        return self._replace(push=push, curvature=curvature, noise=np.maximum(noise, 0.0))


@dataclass(frozen=True, eq=False)
class StepChance:
    """What one draw of the first step has by chance along strong directions: eqs. initial-chance
    and push-noise.

    output : (r,) c = VᵀW₀ᵀa, known along `directions` of them and otherwise zero
    noise : (r,) ζ, the sampling noise of (1/m̃) Σ u σ' κ̃ that all neurons share
    """

    output: Array
    noise: Array
    directions: int


@dataclass(frozen=True, eq=False)
class StepSample:
    """Nodes for one sample of a step: κ̃ without its e coordinates, residual u, weights.

    On fresh data e_l·x̃ is N(0, 1); on the sample of the step it knows the labels,
    e_l·x̃ = sh_l·uψ_l + N(0, 1), sh_l = memory/√E[u²ψ_l²], with ψ_l orthogonal in L²(ωu²).

    memory : √(n'/m̃); (J,) where e has a part in each of J blocks
    functions : (S, L) ψ_l; None where all neurons share one direction, ψ = 1
    """

    kappa: Array  # (S, r) or (S, r + 1) with the coordinate along W₀ᵀa
    residual: Array
    weights: Array
    memory: float | Array
    functions: Array | None = None

    @cached_property
    def known(self) -> Array:
        """ψ (L, S)."""
        if self.functions is None:
            return np.ones((1, len(self.residual)))
        return self.functions.T

    @cached_property
    def powers(self) -> Array:
        """E[u²ψ_l²] (L,)."""
        return np.array([self.weights @ (self.residual**2 * one**2) for one in self.known])

    @cached_property
    def recalled(self) -> Array:
        """sh (LJ,), block by block for each ψ_l."""
        root = np.sqrt(self.powers)
        kept = np.where(root > 0, root, np.inf)
        return np.asarray((np.atleast_1d(self.memory) / kept[:, None]).ravel())

    @cached_property
    def pushed(self) -> Array:
        """uψ_l (S, LJ)."""
        return np.repeat(self.known * self.residual, np.size(self.memory), axis=0).T

    def moments(
        self, activation: Activation, start: Array, bulk: Array, spread: bool = True
    ) -> StepMoments:
        """Averages over κ̃, u and z' for neurons with coordinates f⁰ (T, r') and bulk norm b₀ (T,)
        (eq. neurons-after).

        The N(0, 1) parts of e_l·x̃ are merged into z'. spread : False leaves it zero, where nobody
        asks for it
        """
        u, r = self.residual, self.kappa.shape[1]
        last = start[:, r:]
        shift = start[:, :r] @ self.kappa.T + (self.recalled * last) @ self.pushed.T
        slope = slope_moments(activation, shift, np.sqrt(bulk**2 + (last**2).sum(axis=1))[:, None])
        wu, wu2 = self.weights * u, self.weights * u**2
        curvature = slope.curvature @ wu
        known = slope.value @ (wu2 * self.known).T
        memory = self.recalled * np.repeat(known, np.size(self.memory), axis=1)
        push = np.concatenate(
            [slope.value @ (wu[:, None] * self.kappa), memory + last * curvature[:, None]], axis=1
        )
        found = np.zeros((len(push), push.shape[1], push.shape[1]))
        if spread and np.any(slope.variance):
            found = self._spread(slope.variance, wu2)
        powers = np.where(self.powers > 0, self.powers, np.inf)
        noise = (slope.variance + slope.value**2) @ wu2 - (known**2 / powers).sum(axis=1)
        return StepMoments(push, curvature, np.maximum(noise, 0.0), found, known)

    def _spread(self, variance: Array, weights: Array) -> Array:
        """E[u² Var_z'(σ') κ̃κ̃ᵀ] from Var_z'(σ') (T, S) and ωu² (S,)."""
        kappa = np.concatenate([self.kappa, self.pushed * self.recalled], axis=1)
        size = kappa.shape[1]
        first, second = np.triu_indices(size)
        pairs = variance @ (weights[:, None] * kappa[:, first] * kappa[:, second])
        found = np.empty((len(variance), size, size))
        found[:, first, second] = found[:, second, first] = pairs
        own = np.arange(self.kappa.shape[1], size)
        found[:, own, own] += (variance @ weights)[:, None]
        return found


def step_sample(
    problem: Problem,
    geometry: Geometry,
    level: QuadratureLevel,
    output: bool,
    chance: StepChance | None = None,
) -> StepSample:
    """Nodes of (κ, t, u), with the initial output in the residual if `output` (eq. step-sample).

    Given κ, f₀ is k ā ν̄(κ) + ℓ d̄(κ) t + √(k E a² ē(κ)) g with t = ŵ_a·x ~ N(0, 1) the coordinate
    along W₀ᵀa of length ℓ = √(k E a² n s_w²), and ν̄, d̄, ē of an untrained neuron:
    eq. initial-output. Where coordinates c of W₀ᵀa are given by `chance`, f₀ has the part d̄(κ) c·κ
    too, and t the rest: (eq. initial-chance).

    Points of a curve and steps of a computation ask for the same ones: the last ones are kept.
    """
    return _kept_sample(_SampleKey.of(problem, geometry, level, output, chance))


@dataclass(frozen=True)
class _SampleKey:
    """What a sample of the step depends on, as a key, and where to find it."""

    key: tuple[object, ...]
    problem: Problem = field(compare=False)
    chance: StepChance | None
    geometry: Geometry
    level: QuadratureLevel
    output: bool

    @classmethod
    def of(
        cls,
        problem: Problem,
        geometry: Geometry,
        level: QuadratureLevel,
        output: bool,
        chance: StepChance | None,
    ) -> _SampleKey:
        key: tuple[object, ...] = (
            problem.weight_variance, problem.step_samples, problem.links, problem.joint_link,
            problem.component_values, problem.label_noise, problem.label_flip,
        )  # fmt: skip
        if output:
            key += (problem.activation, problem.width, problem.readout_mean, problem.readout_std)
        return cls(key, problem, chance, geometry, level, output)


@lru_cache(maxsize=64)
def _kept_sample(asked: _SampleKey) -> StepSample:
    problem, geometry, level = asked.problem, asked.geometry, asked.level
    output, chance = asked.output, asked.chance
    r, variance = geometry.rank, problem.weight_variance
    bulk = math.sqrt((geometry.dim - r) * variance)
    free = geometry.dim - (chance.directions if chance else 0)
    length = math.sqrt(problem.width * problem.readout_square * free * variance)
    labelled = problem.links is not None or problem.joint_link is not None
    teacher = geometry.teacher if labelled else None
    beside = (_FAR + level.number) ** (1 + output)  # along the noise and the initial output
    each = replace(
        level, most=level.most // (max(SHARE, beside) * np.count_nonzero(geometry.weights))
    )
    parts = []
    for c, weight in enumerate(geometry.weights):
        if weight == 0:
            continue
        link = problem.joint_link if problem.links is None else problem.links[c]
        integrand = Integrand(np.eye(r) * variance / bulk**2, teacher, link)
        kappa, omega = component_nodes(geometry.means[c], geometry.roots[c], integrand, each)
        u = label_means(problem, geometry, c, kappa)
        u, kappa, omega = with_flips(problem, u, kappa, omega)
        noise, slope = np.full(len(u), problem.label_noise**2), np.zeros(len(u))
        if output:
            scale = np.sqrt(bulk**2 + variance * np.einsum("si,si->s", kappa, kappa))
            first = centred_moments(problem.activation, scale)
            rest = np.maximum(first.variance - scale**2 * first.slope**2, 0.0)
            noise = noise + problem.width * (
                problem.readout_square * rest + problem.readout_std**2 * first.value**2
            )
            u, slope = u - problem.width * problem.readout_mean * first.value, first.slope
            if chance is not None:
                u = u - slope * (kappa @ chance.output)
        noisy = bool(np.any(noise > 0))
        given = np.column_stack([kappa, u, noise, slope]), weight * omega
        nodes, omega = tensor([given] + [gauss_hermite(_FAR + level.number)] * (output + noisy))
        kappa, u = nodes[:, :r], nodes[:, r]
        if noisy:
            u = u + np.sqrt(nodes[:, r + 1]) * nodes[:, -1]
        if output:
            along = nodes[:, r + 3]
            u = u - length * nodes[:, r + 2] * along
            kappa = np.column_stack([kappa, along])
        parts.append((kappa, u, omega))
    kappa, u, omega = (np.concatenate(p) for p in zip(*parts, strict=True))
    left = max(bulk_dimension(geometry, output), 1)
    return StepSample(kappa, u, omega, math.sqrt(left / problem.step_samples))


def bulk_dimension(geometry: Geometry, output: bool) -> int:
    """n' after the step: without the special directions, e, and W₀ᵀa where f₀ matters."""
    return geometry.dim - geometry.special - 1 - int(output)


@lru_cache(maxsize=64)
def second_moment(geometry: Geometry) -> Array:
    """E κκᵀ over the mixture: (r, r), read-only."""
    outer = np.einsum("c,ci,cj->ij", geometry.weights, geometry.means, geometry.means)
    return np.asarray(read_only(geometry.mean_covariance + outer))


def step_importance(problem: Problem, geometry: Geometry, sample: StepSample, bulk: float) -> float:
    """How much the step changes preactivations, relative to the variance b₀² of the bulk's part.

        η² E a² E_i[g_i·E[κκᵀ]g_i/b₀² + E[uσ'']² + (n'/m̃)(E[u²σ'²] − E[u²σ']²/E u²)/b₀²]

    over typical neurons f⁰_i before the step: one at the origin would not do, because there the
    push of an even activation vanishes.
    """
    second = second_moment(geometry)
    found = typical_moments(sample, problem.activation, problem.weight_variance, bulk)
    moments = StepMoments(*(moment[:-1] for moment in found))
    r, push = len(second), moments.push
    moved = np.einsum("ti,ij,tj->t", push[:, :r], second, push[:, :r])
    moved += np.einsum("ti,ti->t", push[:, r:], push[:, r:])
    moved += (geometry.dim / problem.step_samples) * moments.noise
    moved = moved / bulk**2 + moments.curvature**2
    return problem.rate**2 * problem.readout_square * float(moved.mean())


@lru_cache(maxsize=64)
def typical_moments(
    sample: StepSample, activation: Activation, variance: float, bulk: float
) -> StepMoments:
    """For typical neurons before the step, and one at the origin, which comes last; no spread."""
    start = math.sqrt(variance) * two_level(sample.kappa.shape[1] + 1)[0]
    start = np.concatenate([start, np.zeros((1, start.shape[1]))])
    return sample.moments(activation, start, np.full(len(start), bulk), spread=False)


def initial_output_matters(
    problem: Problem, geometry: Geometry, moved: float | None = None
) -> bool:
    """Whether f₀ has to be taken off the labels: by what the errors would lose without it."""
    return output_effect(problem, geometry, moved) > OUTPUT_LOSS


def output_effect(problem: Problem, geometry: Geometry, moved: float | None = None) -> float:
    """What leaving f₀ out may change of the errors, relative, spikes of degree two included.

    What neurons share along a is η|a|²d̄ g·x + W₀ᵀa·x: the first layer before the step is noise to
    what the step has learned. The exact gradient takes the part η|a|²d̄² off that noise, which is
    no small one at η|a|² ≈ 1, and squares of the shared direction fit labels beyond the linear ones
    by it alone. Their spike has the strength kI²/λ. The factor, of the order (E y²/error − 1)·4,
    was 1 to 21 where it was looked at (notes/2026-11-finite-size.md, section 6).
    """
    share = output_share(problem, geometry)
    if (1 + _SECOND) * share <= OUTPUT_LOSS:
        return share
    moved = _coarsely_moved(problem, geometry) if moved is None else moved
    second = min(1.0, moved**2 * spike_strength(problem))
    return _loss_of(share, problem, moved) + _SECOND * share * second


def output_is_faint(problem: Problem, geometry: Geometry) -> bool:
    """Whether groups of directions may be used, which leave f₀ out of the residual."""
    return output_loss(problem, geometry) <= _FAINT_LOSS


def output_loss(problem: Problem, geometry: Geometry, moved: float | None = None) -> float:
    """What leaving f₀ out of the residual may change of the errors, relative.

    f₀ turns the step away from what the labels teach by E f₀²/E y². What the step teaches is a
    part of the errors that k·moved/λ bounds, the strength of its spike in the features over the
    ridge; `moved` is the `step_importance`, computed coarsely unless given.
    """
    share = output_share(problem, geometry)
    if share <= OUTPUT_LOSS:
        return share
    moved = _coarsely_moved(problem, geometry) if moved is None else moved
    return _loss_of(share, problem, moved)


def _loss_of(share: float, problem: Problem, moved: float) -> float:
    return share if share <= OUTPUT_LOSS else share * min(1.0, moved * spike_strength(problem))


def _coarsely_moved(problem: Problem, geometry: Geometry) -> float:
    sample = step_sample(problem, geometry, QuadratureLevel.at(0), False)
    bulk = math.sqrt(max(bulk_dimension(geometry, False), 1) * problem.weight_variance)
    return step_importance(problem, geometry, sample, bulk)


def spike_strength(problem: Problem) -> float:
    """k/λ, of a spike that changes every feature by one; λ rounded down to a power of ten, so
    that problems of nearly the same ridge have the same rules."""
    return float(problem.width / 10.0 ** math.floor(math.log10(problem.effective_ridge)))


def output_share(problem: Problem, geometry: Geometry) -> float:
    """E f₀²/E y², to a percent; zero where the gradient leaves f₀ out, or nothing moves."""
    if problem.training.gradient == "labels-only" or problem.rate == 0:
        return 0.0
    scale = math.sqrt(geometry.dim * problem.weight_variance)
    mean, square = _two_moments(problem.activation, 0.0, scale)
    output = problem.width * problem.readout_square * square
    output += (problem.width * problem.readout_mean * mean) ** 2
    return output / max(label_power(problem, geometry), 1e-12)


def label_power(problem: Problem, geometry: Geometry) -> float:
    """E y² = Var[y|x] + Σ_c ρ_c E σ*_c(ξ·κ)², or with the labels of components: to a percent."""
    total = problem.label_noise_variance
    if problem.joint_link is not None:
        xi = geometry.teacher
        along = np.einsum("pi,cij,qj->cpq", xi, geometry.covariances, xi)
        means, variances = joint_link_laws(problem.joint_link, geometry.means @ xi.T, along)
        return total + float(geometry.weights @ (variances + means**2))
    for c, weight in enumerate(geometry.weights):
        if problem.component_values is not None:
            total += weight * problem.component_values[c] ** 2
            continue
        assert problem.links is not None
        xi = geometry.teacher
        scale = math.sqrt(float(xi @ geometry.covariances[c] @ xi))
        total += weight * _two_moments(problem.links[c], float(xi @ geometry.means[c]), scale)[1]
    return float(total)


def _two_moments(function: Activation, shift: float, scale: float) -> tuple[float, float]:
    """E σ(s+bZ) and E σ(s+bZ)², to a percent: enough to compare with a threshold."""
    z, w = gauss_hermite(32)
    values = function(shift + scale * z)
    return float(w @ values), float(w @ values**2)
