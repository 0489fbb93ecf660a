"""The theories: models without a sample, each a method of `predict`."""

from onegrad.simulate.models.base import Mark, Model

MODELS = (
    Model(
        "theory", "deterministic prediction, no sampling", Mark(line="-"), theory="auto",
        version=34,  # since 0.1: rules, the 1/n correction, means over chance overlaps
    ),
    Model(
        "theory-limit", "theory without its 1/n correction: the limit of large sizes",
        Mark(line="--"), theory="auto", finite_size=False, version=31,
    ),
    Model(
        "isotropic-limit", "the isotropic closed form in the limit of large samples",
        Mark(line="--"), theory="isotropic-limit",
        version=11,  # since 0.1: the status of numbers that were not checked
    ),
    Model(  # docs/book/real-data.md
        "surrogate", "for real data: the theory of a Gaussian mixture fitted to them",
        Mark(line=":"), theory="surrogate", version=4,
    ),
)  # fmt: skip
