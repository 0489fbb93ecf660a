"""What the theory has answered lately, so that nothing is computed twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any


class Cache:
    """The latest answers of the theory, shared by all pages; old ones are forgotten.

    size : values in all answers together, some tens of megabytes; a spectrum has a thousand
    """

    def __init__(self, size: int = 400_000) -> None:
        self._size, self._held = size, 0
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def get(self, key: str) -> Any:
        if key in self._answers:
            self._answers.move_to_end(key)
        return self._answers.get(key)

    def put(self, key: str, answer: Any) -> None:
        if key in self._answers:
            self._held -= weight(self._answers.pop(key))
        self._answers[key] = answer
        self._held += weight(answer)
        while self._held > self._size:
            self._held -= weight(self._answers.popitem(last=False)[1])


def weight(answer: Any) -> int:
    """How many values there are in an answer; a mapping takes some room itself."""
    if isinstance(answer, Mapping):
        return 10 + sum(weight(value) for value in answer.values())
    return sum(weight(value) for value in answer) if isinstance(answer, list) else 1
