"""Eigenvectors chosen by a rule, so that answers do not depend on the linear algebra library.

Signs of eigenvectors, and bases of eigenspaces of several dimensions, are the library's choice and
differ between processors. Rules over several axes are not exactly the same after a rotation: errors
differed by 4e-4.
"""

from __future__ import annotations

import numpy as np

from onegrad.compute.backend import Array

# Relative size that counts as none: differences of eigenvalues, lengths that are new to a span
SAME = 1e-9
_EQUALLY_NEAR = 1e-6  # relative difference of squared cosines with two axes that counts as none


def eigen_axes(matrix: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix, made unique by `settled`."""
    return settled(*np.linalg.eigh(matrix))


def settled(values: Array, vectors: Array) -> tuple[Array, Array]:
    """Sorted eigenvalues (or singular values), equal ones exactly equal, and their orthonormal
    columns turned so that they are a function of the eigenspaces alone.
    """
    values, vectors = values.copy(), vectors.copy()
    if not vectors.size:
        return values, vectors
    apart = np.abs(np.diff(values)) > SAME * float(np.abs(values).max(initial=0.0))
    for block in np.split(np.arange(len(values)), np.flatnonzero(apart) + 1):
        values[block] = values[block].mean()
        vectors[:, block] = settled_basis(vectors[:, block])
    return values, vectors


def settled_basis(basis: Array) -> Array:
    """The orthonormal basis of the same space that does not depend on the given one.

    Vectors are the projections of coordinate axes, each time of the one that is nearest to what is
    left of the space; of those that are equally near the first. Where the space is spanned by
    coordinate axes they are its basis.
    """
    left, found = basis.copy(), np.empty_like(basis)
    for column in range(basis.shape[1]):
        near = np.einsum("ij,ij->i", left, left)
        axis = int(np.argmax(near >= (1 - _EQUALLY_NEAR) * near.max()))
        found[:, column] = left @ left[axis] / np.sqrt(near[axis])
        left -= np.outer(found[:, column], found[:, column] @ left)
    return found
