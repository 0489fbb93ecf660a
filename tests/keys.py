"""Under which key a store would keep the rows of a model at a point."""

from onegrad.runs.store import Key, Store
from onegrad.spec.experiment import Point


def key_of(point: Point, model: str = "network") -> Key:
    return Store(None).key(point, model)
