"""The fixed point of the conditional Gaussian theory and the errors that follow from it.

The readout minimises (1/m)‖y − Φa‖² + λ‖a‖² over m samples. Given κ = κ_s the features are
ν_s + D_s Ŵ_⊥ x_⊥ + E_s^{1/2} g, with Ŵ_⊥ (k × n') of independent rows of norm b_i
(docs/theory.md, sections 2 and 3; equation numbers below are its own). Sums over neurons are
sums over types i with multiplicities c_i. No matrix of nodes × nodes is formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse.linalg import LinearOperator, cg

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array

_RANK_TOLERANCE = 1e-12  # of the largest squared singular value of the table of slopes
_MEMORY = 12


@dataclass(frozen=True)
class Features:
    """The conditional Gaussian features: T types of neurons at S nodes.

    mean, slope, extra : (T, S) ν_is = E_z σ(v_i·κ_s + b_i z), d_is = E_z σ'(…),
        e_is = Var_z σ(…) − b_i² d_is²
    bulk : (T,) b_i = |ŵ_{i,⊥}|
    counts : (T,) c_i, summing to the width k
    weights : (S,) ω_s, summing to one
    labels, noise : (S,) ȳ_s = E[y|κ_s], Var[y|κ_s]
    bulk_dim : n' = n − r
    tilt : (T,) or None; the rows of Ŵ_⊥ are correlated as b_i² δ_ij − tilt_i tilt_j when the
        direction W₀ᵀa is among those conditioned on (docs/theory.md eq. (24))
    """

    mean: Array
    slope: Array
    extra: Array
    bulk: Array
    counts: Array
    weights: Array
    labels: Array
    noise: Array
    bulk_dim: int
    tilt: Array | None = None

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """(U, V) with b_i d_is = (U Vᵀ)_is, U (T, R), V (S, R), by a truncated SVD."""
        scaled = self.slope * np.sqrt(self.counts * self.bulk**2)[:, None] * np.sqrt(self.weights)
        types, nodes = scaled.shape
        gram = scaled @ scaled.T if types <= nodes else scaled.T @ scaled
        values, vectors = np.linalg.eigh(gram)
        kept = values > max(_RANK_TOLERANCE * float(values[-1]), 1e-300)
        if not np.any(kept):  # no slope at all: one empty direction keeps the shapes alive
            return np.zeros((types, 1)), np.zeros((nodes, 1))
        if types <= nodes:
            left = vectors[:, kept]
            right = scaled.T @ left
        else:
            right = vectors[:, kept]
            left = scaled @ right
        return left / np.sqrt(self.counts)[:, None], right / np.sqrt(self.weights)[:, None]


@dataclass(frozen=True)
class FixedPoint:
    """Solution of eqs. (8)–(11): m_i > 0 and χ_s ≥ 0, with what it took to find it."""

    features: Features
    samples: float
    ridge: float
    gain: Array  # m_i
    chi: Array  # χ_s
    iterations: int
    residual: float  # largest change of log m, log χ under one more application of the map


class _Core:
    """Matrices of rank R that belong to one (m, χ): eqs. (9)–(10) in low-rank form."""

    def __init__(self, features: Features, gain: Array, weights: Array) -> None:
        u, v = features.factors
        self.u, self.v = u, v
        self.g = v.T @ (weights[:, None] * v)
        inner = (u.T * (features.counts * gain / features.bulk_dim)) @ u
        self.h = np.linalg.inv(np.eye(len(inner)) + inner @ self.g)
        self.k = self.h @ inner
        self.k = 0.5 * (self.k + self.k.T)
        self.gh = self.g @ self.h
        self.gh = 0.5 * (self.gh + self.gh.T)


def _diagonal(x: Array, inner: Array) -> Array:
    """diag(x inner xᵀ)."""
    return np.asarray(((x @ inner) * x).sum(axis=1))


def _map(features: Features, samples: float, ridge: float, z: Array) -> Array:
    types = len(features.bulk)
    gain, chi = np.exp(z[:types]), np.exp(z[types:])
    w = features.weights / (1.0 + chi)
    core = _Core(features, gain, w)
    inverse = ridge + features.extra @ w + _diagonal(core.u, core.gh)
    spread = _diagonal(core.v, core.k)
    x = (features.counts * gain) @ features.extra + features.bulk_dim * spread
    return np.concatenate([-np.log(inverse), np.log(np.maximum(x / samples, 1e-300))])


def solve_fixed_point(
    features: Features,
    samples: float,
    ridge: float,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
) -> FixedPoint:
    """Solve eqs. (8)–(11) by Anderson acceleration in (log m, log χ).

    The map is monotone and scalable in these variables, so the solution is unique and plain
    iteration converges; acceleration only makes it quick, and is restarted when it does not
    help. Raises ConvergenceError with advice if `max_iterations` is not enough.
    """
    w = features.weights
    start = ridge + features.extra @ w + (features.slope**2 @ w) * features.bulk**2
    first = np.log(np.maximum(features.counts / start @ features.extra / samples, 1e-3))
    z = np.concatenate([-np.log(start), first])
    steps: list[Array] = []
    changes: list[Array] = []
    previous: tuple[Array, Array] | None = None
    best = np.inf
    for iteration in range(1, max_iterations + 1):
        image = _map(features, samples, ridge, z)
        change = image - z
        residual = float(np.abs(change).max())
        if not np.isfinite(residual):
            raise ConvergenceError(
                "the fixed point of the theory left the numbers a computer can hold; "
                f"ridge = {ridge:.3g} is probably too small, or a label or spike too large."
            )
        if residual < tolerance:
            types = len(features.bulk)
            return FixedPoint(
                features, samples, ridge, np.exp(image[:types]), np.exp(image[types:]),
                iteration, residual,
            )  # fmt: skip
        if residual > 20 * best:  # acceleration went astray: forget it
            steps, changes, previous = [], [], None
        best = min(best, residual)
        if previous is not None:
            steps.append(z - previous[0])
            changes.append(change - previous[1])
            steps, changes = steps[-_MEMORY:], changes[-_MEMORY:]
        previous = (z, change)
        z = z + _accelerated(change, steps, changes)
    raise ConvergenceError(
        f"the fixed point of the theory moved by {residual:.1e} after {max_iterations} "
        f"iterations (wanted {tolerance:.0e}). A larger ridge than {ridge:.3g} converges faster, "
        "above all where the width is close to the number of samples."
    )


def _accelerated(change: Array, steps: list[Array], changes: list[Array]) -> Array:
    if not steps:
        return change
    f = np.stack(changes, axis=1)
    size = np.linalg.norm(f, axis=0) + 1e-300
    mixing = np.linalg.lstsq(f / size, change, rcond=1e-10)[0] / size
    step = change - (np.stack(steps, axis=1) + f) @ mixing
    # A step of more than e³ in one go is a sign of a bad extrapolation, not of progress.
    return np.asarray(step if np.abs(step).max() < 3.0 else change)


@dataclass(frozen=True)
class Errors:
    """What the fixed point says, node by node; plain MSE without ½ (eqs. (12)–(19)).

    prediction : (S,) f_s = E[f(x)|κ_s]
    variance : (S,) q_s, variance of f(x) given κ_s over x_⊥ and the training set
    node_test : (S,) E[(y − f)²|κ_s] = noise + (ȳ − f)² + q
    node_train : (S,) mean squared residual of the training samples at κ_s
    readout : (T,) trained readout summed over the neurons of a type, E[f|κ] = Σ readout_i ν_i(κ)
    """

    prediction: Array
    variance: Array
    node_test: Array
    node_train: Array
    readout: Array
    train_objective: float
    test_error: float
    train_error: float
    response: Response


class Response:
    """Second moments of the prediction at a fixed point, at its own nodes or at others.

    q(κ) = Fᵀ Z (p + F D t/m) + (n'/m) Σ_s' K²_{ss'} (D t)_s' − (β/w)², with t = noise + r² + q
    (docs/theory.md eqs. (14)–(17), (25)).
    """

    def __init__(self, point: FixedPoint, core: _Core, readout: Array) -> None:
        f, m = point.features, point.gain
        self.point, self.core = point, core
        kernel = np.diag(1.0 / (f.counts * m**2)) - (core.u @ core.gh @ core.u.T) ** 2 / f.bulk_dim
        self.factor = _factor_positive(kernel, "the response of the fixed point")
        self.pushed = (readout / (f.counts * m)) ** 2
        self.tilted: Array | None = None
        if f.tilt is not None:
            self.tilted = core.u.T @ (f.tilt / f.bulk * readout)
            self.pushed -= (core.u @ core.gh @ self.tilted) ** 2 / f.bulk_dim
        self.load = np.zeros(len(f.weights))  # D t, known once the equations are solved
        self.amplification = 1.0  # Σ ω t over Σ ω (rest + source), that is 1/(1 − df₂/m)
        self.own = self._table(f.extra, core.v)

    def _table(self, extra: Array, v: Array) -> Array:
        """F_is = e_is + b_i² ((W⁻¹P d_i)_s)²."""
        return np.asarray(extra + (self.core.u @ self.core.h.T @ v.T) ** 2)

    def _carried(self, table: Array, v: Array, load: Array) -> Array:
        """J load, the rows of J at the nodes of `table`."""
        inner = self.core.v.T @ (load[:, None] * self.core.v)
        bulk = _diagonal(v @ self.core.k, inner)
        through = cho_solve(self.factor, self.own @ load)
        return np.asarray(table.T @ through + self.point.features.bulk_dim * bulk)

    def _source(self, table: Array, v: Array) -> Array:
        source = table.T @ cho_solve(self.factor, self.pushed)
        if self.tilted is not None:
            source -= (v @ self.core.h @ self.tilted) ** 2
        return np.asarray(source)

    def solve(self, rest: Array) -> Array:
        """t = rest + source + (1/m) J D t, symmetrised, by conjugate gradients; returns q."""
        f, samples = self.point.features, self.point.samples
        half = np.sqrt(f.weights) / (1.0 + self.point.chi)

        def apply(x: Array) -> Array:
            x = x.ravel()
            return np.asarray(x - half * self._carried(self.own, self.core.v, half * x) / samples)

        size = len(half)
        operator = LinearOperator((size, size), matvec=apply, dtype=float)
        right = half * (rest + self._source(self.own, self.core.v))
        solution, failed = cg(operator, right, rtol=1e-11, atol=0.0, maxiter=10 * size + 200)
        if failed or not np.all(np.isfinite(solution)):
            raise ConvergenceError(
                "the equations of the second moments did not converge; the problem is too close "
                "to interpolation. Use a larger ridge, or a width further from the samples."
            )
        self.load = half * solution
        variance = self.variance_at(f)
        before = rest + self._source(self.own, self.core.v)
        if f.weights @ before > 0:
            self.amplification = float(f.weights @ (rest + variance) / (f.weights @ before))
        return variance

    def variance_at(self, features: Features) -> Array:
        """q at the nodes of other features of the same neurons (or of the same features)."""
        if features is self.point.features:
            table, v = self.own, self.core.v
        else:
            u = self.core.u * np.sqrt(features.counts)[:, None]
            scaled = features.slope * (np.sqrt(features.counts) * features.bulk)[:, None]
            v = np.asarray(np.linalg.lstsq(u, scaled, rcond=1e-9)[0].T, dtype=float)
            table = self._table(features.extra, v)
        carried = self._carried(table, v, self.load) / self.point.samples
        variance = self._source(table, v) + carried
        size = 1.0 + float(np.abs(variance).max())
        if np.any(variance < -1e-8 * size):
            raise ConvergenceError(
                f"a variance of the theory came out negative ({float(variance.min()):.2e}): the "
                "resolution is not enough. Ask for a higher accuracy, or use a larger ridge."
            )
        return np.maximum(variance, 0.0)


def errors(point: FixedPoint) -> Errors:
    """Training and test error at a fixed point: eqs. (12)–(19)."""
    f, m, chi = point.features, point.gain, point.chi
    w = f.weights / (1.0 + chi)
    core = _Core(f, m, w)
    # The mean part: a ridge problem in the types, penalty 1/(c_i m_i)  (eqs. (12), (24)).
    system = (f.mean * w) @ f.mean.T + np.diag(1.0 / (f.counts * m))
    if f.tilt is not None:
        lifted = core.u * (f.tilt / f.bulk)[:, None]
        system -= lifted @ core.gh @ lifted.T
    readout = _solve_positive(system, (f.mean * w) @ f.labels, "the mean part")
    prediction = readout @ f.mean
    rest = f.labels - prediction
    objective = float(w @ f.noise + f.labels @ (w * rest))
    response = Response(point, core, readout)
    variance = response.solve(f.noise + rest**2)
    total = f.noise + rest**2 + variance
    train = total / (1.0 + chi) ** 2
    return Errors(
        prediction, variance, total, train, readout, objective,
        float(f.weights @ total), float(f.weights @ train), response,
    )  # fmt: skip


def _factor_positive(matrix: Array, what: str) -> tuple[Array, bool]:
    try:
        lower, low = cho_factor(matrix, lower=True)
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            f"{what} is not positive definite at this fixed point, which is therefore not the "
            "physical one, or is too close to interpolation. Use a larger ridge."
        ) from None
    return lower, bool(low)


def _solve_positive(matrix: Array, right: Array, what: str) -> Array:
    try:
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), right))
    except np.linalg.LinAlgError:
        solution = np.asarray(lu_solve(lu_factor(matrix), right))
        if not np.all(np.isfinite(solution)):
            raise ConvergenceError(
                f"{what} of the theory is singular; use a larger ridge"
            ) from None
        return solution
