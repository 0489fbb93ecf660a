"""Information and leap exponents of links."""

import pytest

from onegrad.gaussian.activation import get_activation
from onegrad.gaussian.exponents import LinkExponents, link_exponents
from onegrad.gaussian.joint_links import get_joint_link


@pytest.mark.parametrize(
    ("link", "indices", "information", "leap"),
    [
        ("xor", 2, 2, 2),
        ("product", 3, 3, 3),
        ("sum", 3, 1, 1),
        ("max", 2, 1, 1),
        ([[0, 0], [1, 1]], 2, 1, 1),  # a staircase: t₁, then t₁t₂
        ([[0, 0, 0], [1, 0, 1]], 2, 1, 2),  # t₁ + t₁H₂(t₂)
        ([[0], [1]], 2, 1, None),  # the second one does not count
    ],
)
def test_joint(link, indices, information, leap):
    found = link_exponents(get_joint_link(link, indices))
    assert found == LinkExponents(information, leap, indices)


@pytest.mark.parametrize(
    ("link", "information"), [("relu", 1), ("sign", 1), ("hermite(2, 0, 0, 1)", 3)]
)
def test_single(link, information):
    found = link_exponents(get_activation(link, "labels.link"))
    assert found.information == information
    assert str(found) == f"information exponent {information}"
