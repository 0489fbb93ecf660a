"""The quartic of the feature bulk against the real solver, and beyond its edge."""

import pytest

from onegrad.errors import AssumptionError
from onegrad.theory.isotropic.outliers import law_of
from onegrad.theory.isotropic.traces import limiting_traces
from tests.theory.isotropic.common import setting
from tests.theory.isotropic.test_bulk import SHAPES


@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_the_quartic_agrees_with_the_real_solver(phi, psi):
    law = law_of(setting("relu", phi=phi, psi=psi))
    for ridge in (1e-3, 0.1, 10.0):
        t = limiting_traces(law.c1, law.rest, phi, psi, ridge)
        just_above = law.stieltjes(complex(-ridge, 1e-9 * ridge))
        assert complex(just_above).real == pytest.approx(float(t.g), rel=1e-6)


@pytest.mark.parametrize(("phi", "psi"), SHAPES)
def test_traces_beyond_the_edge(phi, psi):
    law = law_of(setting("tanh", phi=phi, psi=psi))
    edge = law.top[1]
    for x in (1.05 * edge, 2 * edge, 50 * edge):
        t = law.beyond(x)
        g = complex(law.stieltjes(complex(x, 1e-10 * x)))
        assert float(t.g) == pytest.approx(g.real, rel=1e-6)
        step = 1e-5 * (x - edge)
        ahead, behind = law.beyond(x + step), law.beyond(x - step)
        # λ = −x
        assert float(t.dm1) == pytest.approx(float(behind.m1 - ahead.m1) / (2 * step), rel=1e-5)
        assert float(t.dm2) == pytest.approx(float(behind.m2 - ahead.m2) / (2 * step), rel=1e-5)
    with pytest.raises(AssumptionError):
        law.beyond(0.9 * edge)
