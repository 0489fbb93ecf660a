"""Rows of Ŵ after a large step are not isotropic: what its samples make of the bulk, in blocks.

Outside the special directions neuron i moves by h_i (1/m̃) Σ_t u_tσ'_t x̃_t. Given the samples, σ' is
linear in the preactivation or noise, with c_i = E[u²σ'']/E u²:

    h_i c_i M w_i + noise of covariance (h_i²/m̃) ϱ_i H                                       (11)
    M = (1/m̃) Σ_t u_t x̃_tx̃_tᵀ,  H = (1/m̃) Σ_t (u_t²/E u²) x̃_tx̃_tᵀ

Both matrices are of Marchenko and Pastur's kind, and of rank m̃ at most. Where the linear part is
the larger one (ReLU, not tanh), the bulk is in J blocks of M's law, and every special direction q
has the J − 1 images Mq, M²q, … as axes beside it. Equation numbers are those of docs/layers.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from onegrad.compute.backend import Array
from onegrad.problem import Problem
from onegrad.theory.layers.step import StepMoments, StepSample, typical_moments

BLOCKS = 3
ROWS = 0.33  # what isotropic rows cost, in units of the noise's share n'/m̃
_COUNTS = 0.05  # such a cost from which on there are blocks
_FEW = 0.05  # axes over neurons or samples, at most: what they use up is of order 1/n
_LINEAR = 0.5  # share of the noise that is linear, the same
_NARROW = 1e-4  # width of a law, relative: blocks need more


@dataclass(frozen=True)
class RowLaw:
    """The law of M as a Gauss rule of J nodes, with what H has in its eigenspaces on average.

    shares : (J,) π_j; linear : (J,) eigenvalues of M; noise : (J,) of H, Σ π_j noise_j = 1
    isotropic : the same axes with M and H as multiples of the identity, which is wrong where it
        counts: what finite sizes make of the axes does not need more
    """

    shares: Array
    linear: Array
    noise: Array
    isotropic: bool = False

    @property
    def images(self) -> int:
        """J − 1: axes for each special direction beside itself."""
        return len(self.shares) - 1

    @classmethod
    def of(cls, residual: Array, weights: Array, ratio: float) -> RowLaw | None:
        """residual, weights : values of u and their probabilities; ratio : n'/m̃.

        None where the law is too narrow for blocks.
        """
        scale = math.sqrt(float(weights @ residual**2))
        moments, mixed = _moments(residual / scale, weights, ratio)
        for count in range(BLOCKS, 1, -1):
            rule = _gauss_rule(moments[: 2 * count])
            if rule is not None:
                values, shares = rule
                powers = np.vander(values, count, increasing=True).T
                noise = np.maximum(np.linalg.solve(powers * shares, mixed[:count]), 0.0)
                return cls(shares, scale * values, noise / float(shares @ noise))
        return None

    def basis(self, along: bool) -> Array:
        """(J, J) orthonormal columns that span what M makes of a direction, itself the first.

        A special direction has the parts √π_j in the J eigenspaces; the direction e of the step,
        which is Σ u_tx̃_t, has √(π_j noise_j): `along`.
        """
        first = np.sqrt(self.shares * self.noise) if along else np.sqrt(self.shares)
        powers = np.vander(self.linear / np.abs(self.linear).max(), increasing=True)
        return np.asarray(np.linalg.qr(first[:, None] * powers)[0])


class MovedRows(NamedTuple):
    """What the step does to T neurons: along r'J axes, r' special ones and then the images of all,
    and in the J blocks of the bulk.

    turn : (T, r'J, r'J) linear map of the coordinates before the step, but for what the push says
    spread : (T, r'J, r'J) covariance of the noise
    squares : (T, J) b_ij²; roots : (T, J) b₀ times the linear map, with its sign; shares : (J,)
    """

    turn: Array
    spread: Array
    squares: Array
    roots: Array
    shares: Array


def row_law(problem: Problem, sample: StepSample, bulk_dim: int, isotropic: bool) -> RowLaw | None:
    """Of the step's samples, where isotropic rows would cost something and M explains it. With the
    squared loss alone: others solve many fixed points, and blocks make each ten times longer."""
    bulk = math.sqrt(bulk_dim * problem.weight_variance)
    power = float(sample.weights @ sample.residual**2)
    if problem.rate == 0 or power == 0 or problem.loss.name != "squared":
        return None
    found = typical_moments(sample, problem.activation, problem.weight_variance, bulk)
    noise, ratio = float(found.noise[-1]), bulk_dim / problem.step_samples
    share = problem.rate**2 * problem.readout_square * ratio * noise / bulk**2
    linear = (bulk * float(found.bend[-1])) ** 2 * power
    many = BLOCKS * (sample.kappa.shape[1] + 1) > _FEW * min(problem.width, problem.samples)
    if many or ROWS * share * ratio < _COUNTS or linear < _LINEAR * noise:
        return None
    law = RowLaw.of(sample.residual, sample.weights, ratio)
    return None if law is None else replace(law, isotropic=isotropic)


def moved_rows(
    law: RowLaw,
    problem: Problem,
    sample: StepSample,
    moments: StepMoments,
    before: tuple[Array, Array],
) -> MovedRows:
    """With m̄ the mean of M and ϱ_i = E[u²σ'²] − E[u²σ']²/E u² − b₀²c_i²E u², what is not linear:

        b_ij² = π_j (b₀²(1 + h_i(E[uσ''] + c_i(M_j − m̄)))² + h_i²(n'/m̃) ϱ_iH_j)              (12)

    and the same along q and its images, where H and M − m̄ are the J × J matrices of their basis.
    Special directions along which data have another variance than one feel more of both, by the
    root of E[u² Var(σ') κ̃κ̃ᵀ] over its value along the bulk.
    before : h_i and b₀, each (T,)
    """
    h, bulk = before
    power = float(sample.weights @ sample.residual**2)
    bend = h * moments.bend
    rest = np.maximum(moments.noise - (bulk * moments.bend) ** 2 * power, 0.0)
    mean = float(law.shares @ law.linear)
    axes = moments.spread.shape[1]
    bases = np.stack([law.basis(False)] * (axes - 1) + [law.basis(True)])
    off, own = law.linear - mean, law.noise
    if law.isotropic:
        off, own, rest = 0.0 * off, np.ones_like(own), moments.noise
    linear = np.einsum("aij,i,aik->ajk", bases, off, bases)
    noise = np.einsum("aij,i,aik->ajk", bases, own, bases)
    left = h**2 / problem.step_samples * rest
    # e feels more of the noise than the bulk: the spread along it says so
    lengths = np.sqrt(noise[:, 0, 0])[:, None]
    for block in (linear, noise):
        block[:, 0, :] /= lengths
        block[:, :, 0] /= lengths
    linear[:, 0, 0] = 0.0  # in the push
    relative = moments.spread / np.maximum(moments.noise, 1e-300)[:, None, None]
    values, vectors = np.linalg.eigh(relative)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.mT
    turn = bend[:, None, None] * _assembled(linear, root)
    images = np.arange(axes, turn.shape[1])
    turn[:, images, images] += (h * moments.curvature)[:, None]
    turn += np.eye(turn.shape[1])
    spread = left[:, None, None] * _assembled(noise, root)
    stretch = 1 + (h * moments.curvature)[:, None] + np.outer(bend, off)
    roots = bulk[:, None] * stretch * np.sqrt(law.shares)
    size = bulk**2 / problem.weight_variance  # n', with the fluctuation of |w|²
    squares = roots**2 + np.outer(size.mean() * left, law.shares * own)
    return MovedRows(turn, spread, squares, roots, law.shares)


def _assembled(blocks: Array, root: Array) -> Array:
    """(D ⊕ I)(⊕_a block_a)(D ⊕ I): blocks (r', J, J) of every axis, D (T, r', r') along the axes
    themselves and not along their images."""
    axes, count = blocks.shape[:2]
    found = np.zeros((len(root), count, axes, count, axes))
    own = np.arange(axes)
    for j in range(count):
        for k in range(count):
            found[:, j, own, k, own] = blocks[:, j, k]
    found[:, 0] = np.einsum("tab,tbkc->takc", root, found[:, 0])
    found[:, :, :, 0] = np.einsum("tjab,tbc->tjac", found[:, :, :, 0], root)
    return found.reshape(len(root), count * axes, count * axes)


def _moments(size: Array, weights: Array, ratio: float) -> tuple[Array, Array]:
    """(1/n') tr of powers of (1/m̃) Σ size_t xxᵀ, and of those times (1/m̃) Σ size_t² xxᵀ.

    s(ζ) = Σ_p m_p ζ^{p+1} solves s = ζ(1 + Σ_k r^k E[size^{k+1}] s^{k+1}), r = n'/m̃, a free Poisson
    law with jumps r·size; and Σ_p h_p ζ^{p+1} = Σ_k r^k E[size^{k+2}] s^{k+1}.              (13)
    """
    order = 2 * BLOCKS
    powers = [float(weights @ size**k) for k in range(order + 2)]

    def series(offset: int, s: Array) -> Array:
        total, power = np.zeros(order + 1), s
        for k in range(order):
            total = total + ratio**k * powers[k + offset] * power
            power = np.convolve(power, s)[: order + 1]
        return total

    s = np.zeros(order + 1)
    for _ in range(order):
        right = series(1, s)
        right[0] += 1.0
        s = np.concatenate([[0.0], right[:-1]])
    return s[1:], series(2, s)[1:]


def _gauss_rule(moments: Array) -> tuple[Array, Array] | None:
    """Nodes and weights of 2J moments of a law; None where it is as good as on fewer points."""
    count = len(moments) // 2
    scale = math.sqrt(float(moments[2]))
    moments = moments / scale ** np.arange(2 * count)
    index = np.add.outer(np.arange(count), np.arange(count))
    try:
        root = np.linalg.cholesky(moments[index])
    except np.linalg.LinAlgError:
        return None
    if root[-1, -1] < _NARROW:
        return None
    inner = np.linalg.solve(root, np.linalg.solve(root, moments[index + 1]).T)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    return values * scale, vectors[0] ** 2
