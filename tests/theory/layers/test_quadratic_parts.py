"""Quadratic parts without which no covariance is positive are left out, and that is stated."""

import numpy as np
import pytest

from onegrad.errors import ConvergenceError
from onegrad.theory.layers.any_layer import _solved
from onegrad.theory.layers.low_rank import DenseTable
from onegrad.theory.layers.matrix_responses import NodeBlock, Quadratics, solve_nodes
from tests.theory.settings import mixture


def rule(curvature):
    """Ten neurons at eight nodes; squares with a negative eigenvalue as large as `curvature`."""
    rng, k, s = np.random.default_rng(0), 10, 8
    tables = [DenseTable(rng.standard_normal((k, s)) / 3) for _ in range(2)]
    curved = DenseTable(np.full((k, s), curvature))
    squares = -np.ones((k, k))
    np.fill_diagonal(squares, 0.0)
    block = NodeBlock(0, *tables, np.full((k, s), 0.5), curved)
    weights = np.full(s, 1 / s)
    return Quadratics([np.zeros((k, k))], [block], weights, np.ones(s), 0.1, [squares])


def test_what_is_left_out_is_stated():
    problem = mixture(ridge=1e-3)
    small, large = rule(0.1), rule(3.0)
    assert _solved(problem, small, 0.1).left_out == 0
    found = _solved(problem, large, 0.1)
    assert found.left_out > 0.5
    assert large.squares  # other uses of the rule still have them
    plain = _solved(problem, large.without_squares(), 0.1)
    assert plain.left_out == 0
    np.testing.assert_allclose(found.responses, plain.responses)
    with pytest.raises(ConvergenceError):
        solve_nodes(large, problem.samples, problem.effective_ridge, 0.1)
