"""The data protocol: a data model is one class, and nothing outside this folder asks which."""

import ast
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest

import onegrad as og
from onegrad.data import DATA_MODELS
from onegrad.data.base import DataModel, DataNodes
from onegrad.data.population import Batch, Population
from onegrad.spec.experiment import Compare, Point
from onegrad.spec.fields import Count
from tests.keys import key_of

ROOT = Path(og.__file__).parent
SIZES = {"network": {"width": 30, "activation": "tanh"}, "training": {"samples": 40, "rate": 2.0}}


class Tilted(DataModel):
    """N(0, I) by another name: a law that is known."""

    model: Literal["tilted"] = "tilted"
    dim: Count

    def population(self, spread, rng):
        return Population(
            np.ones(1), np.zeros((1, self.dim)), (np.zeros((self.dim, 0)),), (np.zeros(0),)
        )


class Stripes(DataModel):
    """Two classes along an axis: rows that are made from their numbers."""

    known: ClassVar[bool] = False
    own_nodes: ClassVar[bool] = True
    whole_test: ClassVar[bool] = True
    label_models: ClassVar[tuple[str, ...]] = ("given",)
    model: Literal["stripes"] = "stripes"
    dim: Count
    count: Count

    @property
    def rows(self):
        return self.count

    def made(self, rows):
        x = np.sin(np.arange(1, self.dim + 1) * (1.0 + rows[:, None]) ** 2)
        y = 1.0 - 2.0 * (rows % 2)
        return x + y[:, None] * (np.arange(self.dim) == 0), y

    def mean_trace(self, spread):
        return float(self.made(np.arange(self.count))[0].var(axis=0).sum())

    def bulk_trace(self, spread):
        return self.mean_trace(spread)

    def batch(self, rows, spread, rng):
        return Batch(*self.made(rows), np.zeros(len(rows), dtype=int))

    def nodes(self, rows, spread):
        return DataNodes(*self.made(rows), 1 - rows % 2)


def errors(problem, models=("network", "hermite", "random-features", "linear"), **options):
    options = {"risk": "sampled", **options}
    done = og.simulate(problem, models, seeds=3, rng=5, degree=2, **options)
    assert {row.status for row in done.results.rows} == {"ok"}
    return [(row.model, row.test_error, row.train_error) for row in done.results.rows]


def test_a_law_in_one_class():
    ours = og.Problem(data=Tilted(dim=20), **SIZES)
    theirs = og.Problem(data={"model": "isotropic", "dim": 20}, **SIZES)
    assert ours.mean_trace == 20 and ours.bulk_scale == 1 and ours.rows_left is None
    assert ours.labels.model == "single-index"
    assert errors(ours, test_samples=200) == errors(theirs, test_samples=200)
    exact = ("network", "conditional-gaussian")
    assert errors(ours, exact, risk="exact") == errors(theirs, exact, risk="exact")


def test_the_theory_of_a_law_in_one_class():
    """Directions of one draw, where a class does not say how they are drawn."""
    ours = og.Problem(data=Tilted(dim=20), **SIZES)
    theirs = og.Problem(data={"model": "isotropic", "dim": 20}, **SIZES)
    predicted, wanted = og.predict(ours), og.predict(theirs)
    assert predicted.test_error == pytest.approx(wanted.test_error, rel=1e-3)
    with pytest.raises(og.AssumptionError, match="does not state the law of its spikes"):
        og.predict(ours, overlaps="typical")


def test_rows_in_one_class():
    data = Stripes(dim=12, count=300)
    x, y = data.made(np.arange(300))
    ours = og.Problem(data=data, **SIZES)
    theirs = og.Problem(data=og.Arrays(x=x, y=y), **SIZES)
    assert ours.labels.model == "given" and ours.rows_left == 220
    assert errors(ours) == errors(theirs)
    predicted, wanted = og.predict(ours, rng=1), og.predict(theirs, rng=1)
    assert predicted.method == "semi-parametric theory"
    assert predicted.test_error == pytest.approx(wanted.test_error, rel=1e-12)


def test_models_of_ones_own_keep_the_rules():
    with pytest.raises(og.SpecError, match=r'labels\.model.*must be "given" for this data\.model'):
        og.Problem(data=Stripes(dim=12, count=300), labels={"model": "component"}, **SIZES)
    with pytest.raises(og.SpecError, match=r"training\.samples.*the data have 80"):
        og.Problem(data=Stripes(dim=12, count=80), **SIZES)
    with pytest.raises(og.SpecError, match=r"data\.model.*tilted"):  # a spec names what is listed
        og.Problem(data={"model": "tilted", "dim": 20}, **SIZES)
    with pytest.raises(og.AssumptionError, match="no known population"):
        og.Problem(data=Stripes(dim=12, count=300), **SIZES).instance(0)
    for method in (Tilted(dim=2).batch, Tilted(dim=2).nodes):
        with pytest.raises(og.AssumptionError, match="no rows"):
            method(np.arange(2), *((0.0, None) if method.__name__ == "batch" else (0.0,)))


def test_a_store_tells_models_of_ones_own_apart():
    problems = [og.Problem(data=Stripes(dim=12, count=c), **SIZES) for c in (300, 301, 300)]
    first, other, again = (key_of(Point({}, p, Compare())) for p in problems)
    assert first == again != other


# --- nobody asks which data model it is ---------------------------------------------------

CLASSES = {base.__name__ for m in DATA_MODELS for base in m.__mro__ if issubclass(base, DataModel)}
CLASSES |= {"FittedMixture"}


def questions(text: str) -> list[str]:
    """Every isinstance or issubclass in a module that names a data model, and every comparison of
    `data.model` with something."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("data.model"):
            found.append(ast.unparse(node))
        called = getattr(node, "func", None)
        if isinstance(called, ast.Name) and called.id in ("isinstance", "issubclass"):
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            found += [ast.unparse(node)] * bool(names & CLASSES)
    return found


OUTSIDE = [p for p in sorted(ROOT.rglob("*.py")) if ROOT / "data" not in p.parents]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_data_answer_for_themselves(path):
    assert not questions(path.read_text(encoding="utf-8"))


def test_a_question_is_seen():
    """Negative control."""
    assert {"Mixture", "Images", "Arrays", "DataModel", "FittedMixture"} <= CLASSES
    assert questions("ok = isinstance(problem.data, Mixture | Images)")
    assert questions("ok = not isinstance(data, (int, Arrays))")
    assert questions('ok = problem.data.model not in ("isotropic", "mixture")')
    assert not questions("ok = isinstance(data, Mapping)")
