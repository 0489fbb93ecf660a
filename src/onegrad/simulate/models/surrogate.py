"""For real data: the theory of a Gaussian mixture fitted to them (docs/book/real-data.md)."""

from onegrad.simulate.models.base import Mark, Model

MODEL = Model(
    "surrogate",
    "for real data: the theory of a Gaussian mixture fitted to them",
    Mark(line=":"),
    theory="surrogate",
    version=3,
)
