"""Bases of spans and leading directions."""

import numpy as np
import pytest

from onegrad.compute.linalg import leading_direction, span_basis


def test_a_basis_has_every_direction_once():
    columns = np.random.default_rng(0).standard_normal((30, 3))
    doubled = np.hstack([columns, columns[:, :1], np.zeros((30, 1)), 1e-9 * columns[:, 1:2]])
    basis = span_basis(doubled, 1e-8)
    assert basis.shape == (30, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(basis @ (basis.T @ columns), columns, atol=1e-13)


def test_the_tolerance_decides():
    columns = np.diag([1.0, 1e-4])
    assert span_basis(columns, 1e-5).shape == (2, 2)
    assert span_basis(columns, 1e-3).shape == (2, 1)


def test_leading_direction():
    matrix = np.random.default_rng(1).standard_normal((40, 25))
    matrix += 30 * np.outer(np.ones(40), np.arange(25)) / 100
    got = leading_direction(matrix)
    assert abs(got @ np.linalg.svd(matrix)[2][0]) == pytest.approx(1.0, abs=1e-12)
    assert not leading_direction(np.zeros((3, 2))).any()
