"""The isotropic closed form in the limit of large samples."""

from onegrad.simulate.models.base import Mark, Model

MODEL = Model(
    "isotropic-limit",
    "the isotropic closed form in the limit of large samples",
    Mark(line="--"),
    theory="isotropic-limit",
    version=11,  # since 0.1: the status of numbers that were not checked
)
