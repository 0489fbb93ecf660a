"""Where each neuron of one first layer points, before and after each step, beside its law.

Cosines of the rows ŵ_i of the first layer with the special directions of the population: spikes,
means and teachers. The law is that of the neuron types of the theory [demir2025]: what a neuron
does along the special directions given its initial readout a_i, with nothing drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from onegrad.compute.backend import Array, host
from onegrad.compute.randomness import Seed, Streams, root_seed
from onegrad.data.instance import Instance
from onegrad.errors import AssumptionError, OnegradError, SpecError
from onegrad.predict.predict import predict
from onegrad.problem import Problem, as_problem
from onegrad.results.summaries import number_or_none
from onegrad.simulate.network.step import Steps
from onegrad.simulate.network.trial import Trial
from onegrad.spec.presets import Spec
from onegrad.text.display import html_table, plots, text_table
from onegrad.theory.directions.geometry import teacher_names

if TYPE_CHECKING:
    import pandas

_NO_LENGTH = 1e-12  # a shorter mean or change has no direction
_COLUMNS = ("direction", "before", "after", "after, theory", "last change")


@dataclass(frozen=True)
class Law:
    """Cosines of neuron types with the directions that the theory knows, after all steps.

    cosines : (T, D), NaN along a direction that the theory has no axis for
    weights : (T,) share of the neurons that are of each type, summing to one
    """

    cosines: Array
    weights: Array

    @property
    def rms(self) -> Array:
        """Root mean square over neurons (D,)."""
        return np.asarray(np.sqrt(self.weights @ self.cosines**2))


@dataclass(frozen=True)
class Neurons:
    """The neurons of one drawn network, seen along the special directions.

    directions : names: "teacher" (or "teacher 1", …), "spike c.i", "mean c"
    cosines : (steps + 1, k, D) of every neuron with every direction, first without a step
    changes : (steps, k, D) the same of what each step adds to a neuron: after one step of gradient
        descent the cosine of the neuron's gradient
    readout : (k,) the initial readout a_i, along which a step moves a neuron; with several
        outputs the readout of the first
    law : predicted law of the neurons after all steps; None without one, `note` says why
    """

    directions: tuple[str, ...]
    cosines: Array
    changes: Array
    readout: Array
    law: Law | None = field(default=None, repr=False)
    note: str = ""

    def __repr__(self) -> str:
        return "\n".join([self._title, text_table(_COLUMNS, self._lines()), *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._title, _COLUMNS, self._lines(), self._notes())

    @property
    def steps(self) -> int:
        return len(self.changes)

    @property
    def _title(self) -> str:
        count = self.cosines.shape[1]
        return f"{count} neurons: root mean square of their cosines with each direction"

    def rms(self) -> Array:
        """Root mean square over neurons of the cosines, (steps + 1, D)."""
        return np.asarray(np.sqrt(np.mean(self.cosines**2, axis=1)))

    def _lines(self) -> list[list[str]]:
        rms = self.rms()
        law = np.full(len(self.directions), math.nan) if self.law is None else self.law.rms
        last = np.sqrt(np.mean(self.changes[-1] ** 2, axis=0)) if self.steps else law * math.nan
        return [
            [name, *(f"{x:.3f}" if math.isfinite(x) else "–" for x in row)]
            for name, *row in zip(self.directions, rms[0], rms[-1], law, last, strict=True)
        ]

    def _notes(self) -> list[str]:
        return [self.note] if self.note else []

    def as_json(self) -> dict[str, Any]:
        """Names, and root mean squares before and after each step, drawn and predicted."""
        law = None if self.law is None else [number_or_none(float(x)) for x in self.law.rms]
        return {
            "directions": list(self.directions), "rms": self.rms().tolist(),
            "change_rms": np.sqrt(np.mean(self.changes**2, axis=1)).tolist(), "law_rms": law,
            "note": self.note,
        }  # fmt: skip

    def to_frame(self) -> pandas.DataFrame:
        """A row for each neuron and step: `step`, `neuron`, `readout`, one column per direction."""
        import pandas

        parts = []
        for step, cosines in enumerate(self.cosines):
            part = pandas.DataFrame(cosines, columns=list(self.directions))
            part.insert(0, "readout", self.readout)
            part.insert(0, "neuron", range(len(self.readout)))
            part.insert(0, "step", step)
            parts.append(part)
        return pandas.concat(parts, ignore_index=True)

    def plot(self, *directions: str, ax: Any = None) -> Any:
        """Neurons as dots in the plane of two directions (default: the first two; with one alone
        the other axis is the readout), a panel before the steps and one after each."""
        for name in directions:
            self.place(name)
        return plots().plot_neurons(self, directions or self.directions[:2], ax)

    def place(self, direction: str) -> int:
        """The number of a direction by its name."""
        if direction not in self.directions:
            raise SpecError.choice("direction", direction, self.directions)
        return self.directions.index(direction)


def neurons(problem: Problem | Spec, rng: Seed = 0) -> Neurons:
    """Where the neurons of one drawn network point, before and after each step.

    problem : a Problem, or a spec that states one, on data whose law is known
    rng : seed of the network that is drawn: the first repetition of `simulate` with this seed

    >>> tables = {"data": {"model": "isotropic", "dim": 60}, "network": {"width": 80},
    ...     "training": {"samples": 400, "rate": 100.0}}
    >>> found = neurons(tables)
    >>> found.directions, found.cosines.shape
    (('teacher',), (2, 80, 1))
    """
    problem = as_problem(problem)
    if not problem.data.known:
        raise AssumptionError(
            "neurons are compared with spikes, means and teachers, which images and files do not "
            "have: use data.model = \"isotropic\" or \"mixture\""
        )  # fmt: skip
    seed = root_seed(rng)
    trial = Trial(problem, Streams(seed, 0))
    named = special_directions(trial.instance)
    if not named:
        raise AssumptionError("these data have no special direction: no spike, mean or teacher")
    basis = np.stack(list(named.values()), axis=1)
    layers = [host(w).astype(float) for w in layers_by_step(trial)]
    cosines = np.stack([_cosines(w, basis) for w in layers])
    moves = [after - before for before, after in itertools.pairwise(layers)]
    changes = np.stack([_cosines(move, basis) for move in moves])
    law, note = _law(problem, tuple(named), seed)
    readout = host(trial.readout).reshape(len(layers[0]), -1)[:, 0]
    return Neurons(tuple(named), cosines, changes, readout, law, note)


def special_directions(instance: Instance) -> dict[str, Array]:
    """Unit vectors (n,) by name: teachers, then spikes, then means other than zero."""
    population, teacher = instance.population, instance.teacher
    directions = teacher_names(teacher.direction) if teacher.values is None else {}
    for c, spikes in enumerate(population.spikes):
        directions |= {f"spike {c + 1}.{i + 1}": v for i, v in enumerate(spikes.T)}
    directions |= {f"mean {c + 1}": mean for c, mean in enumerate(population.means)}
    lengths = {name: float(np.linalg.norm(v)) for name, v in directions.items()}
    return {name: v / lengths[name] for name, v in directions.items() if lengths[name] > _NO_LENGTH}


def layers_by_step(trial: Trial) -> Iterator[Array]:
    """The first layer before the steps and after each of them (k × n); each an array of its own."""
    problem, draw = trial.problem, trial.draw
    weights = draw.weights.copy()
    yield weights.copy()
    steps = Steps(problem)
    for batch in (draw.step_batch, *draw.later_batches(problem.training)):
        steps.move(weights, draw.readout, batch)
        yield weights.copy()


def _cosines(rows: Array, basis: Array) -> Array:
    """Of each row with each column of `basis`, unit vectors; 0 for rows of no length."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ basis / np.where(lengths > _NO_LENGTH, lengths, 1.0))


def _law(problem: Problem, names: tuple[str, ...], seed: int) -> tuple[Law | None, str]:
    """What the theory says of the neurons after all steps, or why it says nothing."""
    try:
        prediction = predict(problem, "conditional", rng=seed, accuracy=0.03)
    except OnegradError as error:
        return None, f"No law of the neurons: {error}"
    solution = prediction.solution
    if solution is None or solution.geometry.levels is not None:
        return None, "The theory gives no law of the neurons here."
    types, geometry = solution.neurons, solution.geometry
    lengths = np.sqrt((types.vectors**2).sum(axis=1) + types.bulk**2)
    columns = []
    for name in names:
        unit = _axis(geometry, name)
        cosine = None if unit is None else types.vectors[:, : geometry.rank] @ unit / lengths
        columns.append(np.full(len(lengths), math.nan) if cosine is None else cosine)
    return Law(np.stack(columns, axis=1), types.counts / types.counts.sum()), ""


def _axis(geometry: Any, name: str) -> Array | None:
    """The unit vector of a direction in the theory's coordinates; None along groups of alike
    directions, whose coordinates are lengths."""
    if name.startswith("mean "):
        unit = np.asarray(geometry.means[int(name.removeprefix("mean ")) - 1])
    elif name in geometry.directions:
        unit = np.asarray(geometry.directions[name])
    else:
        return None
    length = float(np.linalg.norm(unit))
    if length < _NO_LENGTH or np.any(np.abs(unit[geometry.single :]) > _NO_LENGTH):
        return None
    return unit / length
