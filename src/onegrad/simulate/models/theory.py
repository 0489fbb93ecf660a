"""The deterministic prediction, by the method that applies, at this size."""

from onegrad.simulate.models.base import Mark, Model

MODEL = Model(
    "theory",
    "deterministic prediction, no sampling",
    Mark(line="-"),
    theory="auto",
    version=31,  # since 0.1: rules, the 1/n correction, means over chance overlaps
)
