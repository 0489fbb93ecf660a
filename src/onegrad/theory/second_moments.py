"""Training and test error at a fixed point of the conditional Gaussian theory.

Equation numbers are those of docs/theory.md, section 3. No matrix of nodes × nodes is formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from scipy.sparse.linalg import LinearOperator, cg

from onegrad.errors import ConvergenceError
from onegrad.hermite import Array
from onegrad.theory.fixed_point import (
    Core,
    Features,
    FixedPoint,
    diagonal,
    factor_positive,
    mean_share,
    response_kernel,
    response_table,
)

_MEAN_PART_ITERATIONS = 60
_DIFFERENCE = 1e-4  # relative change of the weights in a central difference


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

    def __init__(self, point: FixedPoint, core: Core, readout: Array) -> None:
        f, m = point.features, point.gain
        self.point, self.core = point, core
        kernel = response_kernel(f, core, m)
        self.factor = factor_positive(kernel, "the response of the fixed point")
        self.pushed = (readout / (f.counts * m)) ** 2
        self.tilted: Array | None = None
        if f.tilt is not None:
            self.tilted = core.u.T @ (f.tilt / f.bulk * readout)
            self.pushed -= (core.u @ core.gh @ self.tilted) ** 2 / f.bulk_dim
        self.load = np.zeros(len(f.weights))  # D t, known once the equations are solved
        self.amplification = 1.0  # Σ ω t over Σ ω (rest + source), that is 1/(1 − df₂/m)
        self.own = response_table(core, f.extra, core.v)

    def _carried(self, table: Array, v: Array, load: Array) -> Array:
        """J load, the rows of J at the nodes of `table`."""
        inner = self.core.v.T @ (load[:, None] * self.core.v)
        bulk = diagonal(v @ self.core.k, inner)
        through = cho_solve(self.factor, self.own @ load)
        return np.asarray(table.T @ through + self.point.features.bulk_dim * bulk)

    def _mean_carried(self, features: Features, v: Array, load: Array) -> Array:
        """J₁ load: minus the derivative of eq. (28) along w + ε load, by central differences."""
        f, gain = self.point.features, self.point.gain
        w = f.weights / (1.0 + self.point.chi)
        largest = float(np.max(np.abs(load) / w))
        if largest == 0:
            return np.zeros(len(features.weights))
        step = _DIFFERENCE / largest
        moved = cho_solve(self.factor, self.own @ load) / f.counts
        shares = [
            mean_share(
                f, gain - sign * step * moved, w + sign * step * load,
                features.mean, features.extra, v,
            )
            for sign in (-1, 1)
        ]  # fmt: skip
        return np.asarray((shares[0] - shares[1]) / (2 * step))

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
        before = rest + self._source(self.own, self.core.v)
        operator = LinearOperator((size, size), matvec=apply, dtype=float)
        solution, mean_part = np.zeros(size), np.zeros(size)
        for _ in range(_MEAN_PART_ITERATIONS if self.point.finite_size else 1):
            previous, right = solution, half * (before + mean_part)
            solution, failed = cg(
                operator, right, x0=previous, rtol=1e-11, atol=0.0, maxiter=10 * size + 200
            )
            if failed or not np.all(np.isfinite(solution)):
                break
            self.load = half * solution
            if self.point.finite_size:
                mean_part = self._mean_carried(f, self.core.v, self.load) / samples
                if np.linalg.norm(solution - previous) <= 1e-9 * np.linalg.norm(solution):
                    break
        else:
            failed = int(self.point.finite_size)
        if failed or not np.all(np.isfinite(solution)):
            raise ConvergenceError(
                "the equations of the second moments did not converge; the problem is too close "
                "to interpolation. Use a larger ridge, or a width further from the samples."
            )
        variance = self.variance_at(f)
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
            table = response_table(self.core, features.extra, v)
        carried = self._carried(table, v, self.load) / self.point.samples
        variance = self._source(table, v) + carried
        if self.point.finite_size:
            variance += self._mean_carried(features, v, self.load) / self.point.samples
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
    core = Core(f, m, w)
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
