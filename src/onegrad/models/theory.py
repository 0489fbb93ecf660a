"""The deterministic prediction, by the method that applies."""

from onegrad.models.base import Mark, Model

MODEL = Model(
    "theory", "deterministic prediction, no sampling", Mark(line="-"), theory="auto", version=2
)
