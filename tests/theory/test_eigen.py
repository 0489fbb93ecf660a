"""Eigenvectors are functions of the matrix, not of the library that computes them."""

import numpy as np

from onegrad.theory.directions.eigen import eigen_axes, settled, settled_basis


def test_signs_and_bases_of_equal_eigenvalues_do_not_matter():
    rng = np.random.default_rng(3)
    q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    values = np.array([1.0, 2.0, 2.0, 2.0, 5.0, 5.0])
    turn = np.eye(6)
    turn[0, 0] = -1
    turn[1:4, 1:4] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn[4:, 4:] = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    noise = 1 + 1e-12 * rng.standard_normal(6)
    one, other = settled(values, q), settled(values * noise, q @ turn)
    np.testing.assert_allclose(one[1], other[1], atol=1e-12)
    np.testing.assert_array_equal(one[0][1:4], one[0][1])
    np.testing.assert_allclose((one[1] * one[0]) @ one[1].T, (q * values) @ q.T, atol=1e-12)


def test_eigenvectors_are_still_eigenvectors():
    matrix = np.random.default_rng(4).standard_normal((5, 5))
    matrix = matrix + matrix.T
    values, vectors = eigen_axes(matrix)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)
    assert settled_basis(np.zeros((4, 0))).shape == (4, 0)
