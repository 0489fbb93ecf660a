"""Links of several projections and rules for them."""

import numpy as np
import pytest

from onegrad.errors import SpecError
from onegrad.gaussian.joint_links import get_joint_link
from onegrad.gaussian.joint_rules import JointRule, joint_law, nested_nodes

COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.8]])
MEAN = np.array([0.1, -0.2])


def of_arrays(s, t):
    return np.tanh(s) * t


def of_rows(t):
    return t[:, 0] ** 2 - t[:, 1]


@pytest.mark.parametrize(
    ("link", "want"),
    [
        ("product", lambda s, t: s * t),
        ("sum", lambda s, t: s + t),
        ("xor", lambda s, t: np.where(s * t < 0, -1, 1)),
        ("max", np.maximum),
        ([[0, 0, 0.5], [0, 1, 0]], lambda s, t: 0.5 * (t**2 - 1) + s * t),
        ("hermite([[0, 0, 0.5], [0, 1, 0]])", lambda s, t: 0.5 * (t**2 - 1) + s * t),
        (of_arrays, of_arrays),
        (of_rows, lambda s, t: s**2 - t),
    ],
)
def test_values_and_moments(link, want):
    t = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, size=200_000)
    found = get_joint_link(link, 2)
    y = found(t)
    np.testing.assert_allclose(y, want(*t.T), atol=1e-12)
    law = joint_law(found, MEAN, COVARIANCE)
    assert law.mean == pytest.approx(y.mean(), abs=4 * y.std() / 400)
    assert law.energy == pytest.approx(np.mean(y**2), abs=4 * (y**2).std() / 400)
    assert law.energy == pytest.approx(law.coarse.energy, rel=1e-6)


def test_parity_of_four():
    link = get_joint_link("xor", 4)
    law = joint_law(link, np.zeros(4), np.eye(4))
    assert law.mean == pytest.approx(0, abs=1e-12)
    assert law.energy == pytest.approx(1)
    assert link.binary and link.scaled(0.5)(np.ones((1, 4)))[0] == 0.5


def test_bends_are_met_where_projections_are_correlated():
    """E sign(st) = (2/π) asin ρ, to rounding; rules that know nothing of the bend are far off."""
    link, root = get_joint_link("xor", 2), np.linalg.cholesky(np.array([[1, 0.6], [0.6, 1]]))
    z, w = nested_nodes(link, np.zeros(2), root, [6, 6])
    want = 2 / np.pi * np.arcsin(0.6)
    assert w @ link(z @ root.T) == pytest.approx(want, abs=2e-5)
    smooth = get_joint_link(lambda s, t: np.where(s * t < 0, -1.0, 1.0), 2)
    z, w = nested_nodes(smooth, np.zeros(2), root, [12, 12])
    assert abs(w @ smooth(z @ root.T) - want) > 1e-2


def test_a_rule_has_as_many_nodes_as_the_label_needs():
    few = JointRule.of(get_joint_link("sum", 2), np.zeros(2), np.eye(2, 5), 1e-4)
    many = JointRule.of(get_joint_link(of_arrays, 2), np.zeros(2), 2 * np.eye(2, 5), 1e-4)
    assert few.order < many.order
    assert len(many.nodes([20, 20], 0, 64)[1]) <= 64


def test_functions_are_known_by_content():
    one, other = (get_joint_link(f, 2) for f in (of_arrays, lambda s, t: np.tanh(s) * t + 1e-9))
    again = get_joint_link(of_arrays, 2)
    assert one.identity == again.identity != other.identity


def test_a_function_called_like_a_link_is_not_that_link():
    def xor(s, t):
        return 2 * s - t

    found = get_joint_link(xor, 2)
    assert not found.binary and found.identity != get_joint_link("xor", 2).identity


@pytest.mark.parametrize(
    ("link", "match"),
    [
        ("produkt", "product"),
        ([[1.0, 2.0], [3.0]], "levels of lists"),
        ([0.0, 1.0], "levels of lists"),
        ([[0.0]], "vanish"),
        (lambda s, t: 1.0, "finite number for each"),
        (lambda s, t, u: s, "must take 2 arrays"),
        (None, "must be one of"),
    ],
)
def test_bad_links(link, match):
    with pytest.raises(SpecError, match=match):
        get_joint_link(link, 2)
