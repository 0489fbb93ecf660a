"""Where samples and their labels come from, and the registry of data models."""

import functools
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from onegrad.data.arrays import Arrays, File
from onegrad.data.base import DataModel
from onegrad.data.digits import Digits
from onegrad.data.fashion_mnist import FashionMnist
from onegrad.data.isotropic import Isotropic
from onegrad.data.mixture import Mixture

DATA_MODELS: tuple[type[DataModel], ...] = (Mixture, Isotropic, FashionMnist, Digits, Arrays, File)


def _as_it_is(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Data models built in Python need no place in the registry."""
    return value if isinstance(value, DataModel) else read(value)


if TYPE_CHECKING:
    Data = DataModel
else:
    _ANY = functools.reduce(operator.or_, DATA_MODELS)
    Data = Annotated[_ANY, Field(discriminator="model"), WrapValidator(_as_it_is)]


def default_labels(data: Any) -> str | None:
    """The model of labels that a data model, or a table [data], has unless told otherwise."""
    if isinstance(data, DataModel):
        return data.label_models[0]
    name = data.get("model") if isinstance(data, Mapping) else None
    named = (m for m in DATA_MODELS if m.model_fields["model"].default == name)
    return next((m.label_models[0] for m in named), None)
