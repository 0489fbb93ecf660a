"""The isotropic closed form in the limit of large samples."""

from onegrad.simulate.models.base import Mark, Model

MODEL = Model(
    "isotropic-limit",
    "the isotropic closed form in the limit of large samples",
    Mark(line="--"),
    theory="isotropic-limit",
    version=11,  # its status: no number without a check
)
