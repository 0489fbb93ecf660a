"""The deterministic prediction without its 1/n correction."""

from onegrad.simulate.models.base import Mark, Model

MODEL = Model(
    "theory-limit",
    "theory without its 1/n correction: the limit of large sizes",
    Mark(line="--"),
    theory="auto",
    finite_size=False,
    version=28,
)
