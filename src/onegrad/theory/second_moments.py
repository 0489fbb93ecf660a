"""Training and test error at a fixed point of the conditional Gaussian theory.

Equation numbers are those of docs/theory.md, section 3. No matrix of nodes × nodes is formed.
Arrays of a stack of problems have a leading axis (fixed_point.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array
from onegrad.theory.fixed_point import (
    Cholesky,
    Core,
    Features,
    FixedPoint,
    cores_of,
    diagonal,
    mean_share,
    one_of,
    product,
    response_kernel,
    response_table,
    transposed,
)

_MEAN_PART_ITERATIONS = 60
_DIFFERENCE = 1e-4  # relative change of the weights in a central difference
_TOO_CLOSE = (
    "the equations of the second moments did not converge; the problem is too close to "
    "interpolation. Use a larger ridge, or a width further from the samples."
)


@dataclass(frozen=True)
class Errors:
    """What the fixed point says, node by node; plain MSE without ½ (eqs. (12)–(19)).

    prediction : (S,) f_s = E[f(x)|κ_s]
    variance : (S,) q_s, variance of f(x) given κ_s over x_⊥ and the training set
    node_test : (S,) E[(y − f)²|κ_s] = noise + (ȳ − f)² + q
    node_train : (S,) mean squared residual of the training samples at κ_s
    readout : (T,) trained readout summed over the neurons of a type, E[f|κ] = Σ readout_i ν_i(κ)
    train_objective, test_error, train_error : arrays of no axes (or the leading one)
    """

    prediction: Array
    variance: Array
    node_test: Array
    node_train: Array
    readout: Array
    train_objective: Array
    test_error: Array
    train_error: Array
    response: Response

    def take(self, index: int) -> Errors:
        """One problem of a stack."""
        return Errors(**one_of(self, index) | {"response": self.response.take(index)})


class Response:
    """Second moments of the prediction at a fixed point, at its own nodes or at others.

    q(κ) = Fᵀ Z (p + F D t/m) + (n'/m) Σ_s' K²_{ss'} (D t)_s' − (β/w)², with t = noise + r² + q
    (docs/theory.md eqs. (14)–(17), (25)).
    """

    def __init__(self, point: FixedPoint, cores: Sequence[Core], readout: Array) -> None:
        f, m, core = point.features, point.gain, cores[0]
        self.point, self.cores, self.factors = point, cores, [one.v for one in cores]
        kernel = response_kernel(f, cores, m)
        self.factor = Cholesky(kernel, "the response of the fixed point")
        self.pushed = (readout / (f.counts * m)) ** 2
        self.tilted: Array | None = None
        if f.tilt is not None:
            self.tilted = product(transposed(core.u), f.tilt / f.bulk * readout)
            swayed = product(core.u @ core.gh, self.tilted)
            self.pushed -= swayed**2 / f.bulk_dim[..., None]
        self.load = np.zeros_like(f.weights)  # D t, known once the equations are solved
        # Σ ω t over Σ ω (rest + source), that is 1/(1 − df₂/m)
        self.amplification = np.ones(f.weights.shape[:-1])
        self.own = response_table(cores, f.extra, self.factors)

    def take(self, index: int) -> Response:
        """One problem of a stack."""
        one = object.__new__(Response)
        for name, value in self.__dict__.items():
            whole = value is None
            part = value[index] if isinstance(value, np.ndarray) else value
            one.__dict__[name] = value if whole else part
        one.point, one.factor = self.point.take(index), self.factor.take(index)
        one.cores = [core.take(index) for core in self.cores]
        one.factors = [core.v for core in one.cores]
        return one

    def _carried(self, table: Array, factors: Sequence[Array], load: Array) -> Array:
        """J load, the rows of J at the nodes of `table`."""
        through = product(transposed(table), self.factor.solve(product(self.own, load)))
        for core, v in zip(self.cores, factors, strict=True):
            inner = transposed(core.v) @ (load[..., None] * core.v)
            size = core.copies * core.coordinates[..., None]
            through += size * diagonal(v @ core.k, inner)
        return through

    def _mean_carried(self, features: Features, v: Array, load: Array) -> Array:
        """J₁ load: minus the derivative of eq. (28) along w + ε load, by central differences."""
        f, gain = self.point.features, self.point.gain
        w = f.weights / (1.0 + self.point.chi)
        largest = float(np.max(np.abs(load) / w))
        if largest == 0:
            return np.zeros(len(features.weights))
        step = _DIFFERENCE / largest
        moved = self.factor.solve(self.own @ load) / f.counts
        shares = [
            mean_share(
                f, gain - sign * step * moved, w + sign * step * load,
                features.mean, features.extra, v,
            )
            for sign in (-1, 1)
        ]  # fmt: skip
        return np.asarray((shares[0] - shares[1]) / (2 * step))

    def _source(self, table: Array, factors: Sequence[Array]) -> Array:
        source = product(transposed(table), self.factor.solve(self.pushed))
        if self.tilted is not None:
            source -= product(factors[0] @ self.cores[0].h, self.tilted) ** 2
        return np.asarray(source)

    def solve(self, rest: Array) -> Array:
        """t = rest + source + (1/m) J D t, symmetrised, by conjugate gradients; returns q."""
        f, samples = self.point.features, self.point.samples[..., None]
        half = np.sqrt(f.weights) / (1.0 + self.point.chi)

        def apply(x: Array) -> Array:
            return np.asarray(x - half * self._carried(self.own, self.factors, half * x) / samples)

        before = rest + self._source(self.own, self.factors)
        solution, mean_part = np.zeros_like(half), np.zeros_like(half)
        for _ in range(_MEAN_PART_ITERATIONS if self.point.finite_size else 1):
            previous, right = solution, half * (before + mean_part)
            solution = _conjugate_gradients(apply, right, previous)
            self.load = half * solution
            if self.point.finite_size:
                mean_part = self._mean_carried(f, self.factors[0], self.load) / samples
                if np.linalg.norm(solution - previous) <= 1e-9 * np.linalg.norm(solution):
                    break
        else:
            if self.point.finite_size:
                raise ConvergenceError(_TOO_CLOSE)
        variance = self.variance_at(f)
        alone = (f.weights * before).sum(axis=-1)
        total = (f.weights * (rest + variance)).sum(axis=-1)
        self.amplification = np.where(alone > 0, total / np.maximum(alone, 1e-300), 1.0)
        return variance

    def variance_at(self, features: Features) -> Array:
        """q at the nodes of other features of the same neurons (or of the same features)."""
        if features is self.point.features:
            table, factors = self.own, self.factors
        else:
            tables = [features.slope * features.bulk[:, None]]
            tables += [harmonic.table for harmonic in features.harmonics]
            pairs = zip(self.cores, tables, strict=True)
            factors = [_factor_at(core.u, table, features.counts) for core, table in pairs]
            table = response_table(self.cores, features.extra, factors)
        samples = self.point.samples[..., None]
        variance = self._source(table, factors) + self._carried(table, factors, self.load) / samples
        if self.point.finite_size:
            variance += self._mean_carried(features, factors[0], self.load) / samples
        size = 1.0 + np.abs(variance).max(axis=-1, keepdims=True)
        if np.any(variance < -1e-8 * size):
            raise ConvergenceError(
                f"a variance of the theory came out negative ({float(variance.min()):.2e}): the "
                "resolution is not enough. Ask for a higher accuracy, or use a larger ridge."
            )
        return np.maximum(variance, 0.0)


def _factor_at(u: Array, table: Array, counts: Array) -> Array:
    """V of other nodes, table = U Vᵀ with the U of the same neurons, whose columns √c·U are
    orthogonal (`Features.factors`); those of a stack may be empty."""
    size = np.maximum(np.einsum("i,ij,ij->j", counts, u, u), 1e-300)
    return np.asarray(table.T @ (counts[:, None] * u / size))


def errors(point: FixedPoint) -> Errors:
    """Training and test error at a fixed point: eqs. (12)–(19)."""
    f, m, chi = point.features, point.gain, point.chi
    w = f.weights / (1.0 + chi)
    cores = cores_of(f, m, w)
    # The mean part: a ridge problem in the types, penalty 1/(c_i m_i)  (eqs. (12), (24)).
    weighted = f.mean * w[..., None, :]
    system = weighted @ transposed(f.mean)
    index = np.arange(m.shape[-1])
    system[..., index, index] += 1.0 / (f.counts * m)
    if f.tilt is not None:
        lifted = cores[0].u * (f.tilt / f.bulk)[..., None]
        system -= lifted @ cores[0].gh @ transposed(lifted)
    readout = _solve_positive(system, product(weighted, f.labels), "the mean part")
    prediction = product(transposed(f.mean), readout)
    rest = f.labels - prediction
    objective = (w * (f.noise + f.labels * rest)).sum(axis=-1)
    response = Response(point, cores, readout)
    variance = response.solve(f.noise + rest**2)
    total = f.noise + rest**2 + variance
    train = total / (1.0 + chi) ** 2
    return Errors(
        prediction, variance, total, train, readout, np.asarray(objective),
        np.asarray((f.weights * total).sum(axis=-1)), np.asarray((f.weights * train).sum(axis=-1)),
        response,
    )  # fmt: skip


def _conjugate_gradients(
    apply: Callable[[Array], Array], right: Array, start: Array, tolerance: float = 1e-11
) -> Array:
    """x with apply(x) = right, apply symmetric and positive: residual below tolerance·‖right‖.

    Each problem of a stack has steps of its own and stops on its own.
    """

    def dot(x: Array, y: Array) -> Array:
        return np.asarray((x * y).sum(axis=-1, keepdims=True))

    x = start.copy()
    rest = right - apply(x) if np.any(x) else right.copy()
    direction, square = rest.copy(), dot(rest, rest)
    enough = tolerance**2 * dot(right, right)
    for _ in range(10 * x.shape[-1] + 200):
        going = square > enough
        if not np.any(going):
            return x
        image = apply(direction)
        step = np.where(going, square / np.where(going, dot(direction, image), 1.0), 0.0)
        x += step * direction
        rest -= step * image
        previous, square = square, dot(rest, rest)
        direction = rest + np.where(going, square / np.where(going, previous, 1.0), 0.0) * direction
        if not np.all(np.isfinite(square)):
            break
    raise ConvergenceError(_TOO_CLOSE)


def _solve_positive(matrix: Array, right: Array, what: str) -> Array:
    try:
        return Cholesky(matrix, what).solve(right)
    except ConvergenceError:
        if matrix.ndim > 2:
            raise
        solution = np.asarray(lu_solve(lu_factor(matrix), right))
        if not np.all(np.isfinite(solution)):
            raise ConvergenceError(
                f"{what} of the theory is singular; use a larger ridge"
            ) from None
        return solution
