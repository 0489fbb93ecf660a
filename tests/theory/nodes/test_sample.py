"""The moments of groups of rows."""

import numpy as np
import pytest

from onegrad.theory.nodes.sample import GroupMoments

rng = np.random.default_rng


@pytest.mark.parametrize("dim, count", [(12, 50), (60, 20)])
def test_moments_of_a_group_with_more_samples_than_inputs_and_fewer(dim, count):
    x = rng(0).standard_normal((count, dim)) @ rng(1).standard_normal((dim, dim))
    moments = GroupMoments.of(x, noise=0.3)
    matrix = rng(2).standard_normal((dim, 4))
    dense = np.cov(x.T) + 0.3 * np.eye(dim)
    np.testing.assert_allclose(moments.times(matrix), dense @ matrix, atol=1e-9)
    assert np.all(np.diff(moments.values) <= 1e-9)
