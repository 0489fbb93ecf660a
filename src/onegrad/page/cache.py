"""What the theory has answered lately, so that nothing is computed twice."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any


class Cache:
    """The latest answers of the theory, shared by all pages; old ones are forgotten."""

    def __init__(self, size: int = 1000) -> None:
        self._size = size
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def get(self, key: str) -> Any:
        if key in self._answers:
            self._answers.move_to_end(key)
        return self._answers.get(key)

    def put(self, key: str, answer: Any) -> None:
        self._answers[key] = answer
        self._answers.move_to_end(key)
        if len(self._answers) > self._size:
            self._answers.popitem(last=False)
