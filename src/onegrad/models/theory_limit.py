"""The isotropic closed form in the limit of large samples."""

from onegrad.models.base import Mark, Model

MODEL = Model(
    "theory-limit",
    "the isotropic closed form in the limit of large samples",
    Mark(line="--"),
    theory="isotropic-limit",
    version=2,  # since 0.1: the degree rule
)
