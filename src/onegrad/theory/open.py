"""What an answer leaves open, part by part, and the decisions that it took."""

from __future__ import annotations

from dataclasses import dataclass, fields

_IN_WORDS = {
    "rules": ("numerics", "two resolutions compared"),
    "sizes": ("finite size", "what the 1/n correction leaves, or a bound where there is none"),
    "chance": ("mean over draws", "of directions, strengths and the step's chance"),
    "draws": ("layers drawn", "the mean over the theory's own first layers, to 99 %"),
    "physics": ("left out", "effects that this theory does not have"),
}
_LITTLE = 0.05  # smallest share of the estimate at which a part is named


@dataclass(frozen=True)
class Open:
    """Relative uncertainties of the larger of test and training error.

    rules : from the numerics: the difference between two resolutions
    sizes : from finite sizes: terms beyond the 1/n correction, or a bound where there is none
    chance : from the mean over directions, strengths and the step's chance
    draws : from the mean over first layers that the theory draws
    physics : from effects that the theory leaves out here
    """

    rules: float = 0.0
    sizes: float = 0.0
    chance: float = 0.0
    draws: float = 0.0
    physics: float = 0.0

    @property
    def total(self) -> float:
        """Their sum: parts of one answer often have the same sign."""
        return self.rules + self.sizes + self.chance + self.draws + self.physics

    @property
    def parts(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def in_words(self) -> tuple[str, ...]:
        """A line for each part that is not zero."""
        return tuple(
            f"  {_IN_WORDS[name][0]:16} {_percent(part):8} {_IN_WORDS[name][1]}"
            for name, part in self.parts.items()
            if part
        )

    def __str__(self) -> str:
        """The parts that count."""
        named = [
            f"{_IN_WORDS[name][0]} {_percent(part)}"
            for name, part in self.parts.items()
            if part > _LITTLE * self.total
        ]
        return ", ".join(named)


@dataclass(frozen=True)
class Decision:
    """A number that was compared with a limit, and what followed.

    about : what was decided: "rules", "chance", "engine", …
    value, limit : the two numbers
    what : the number in words, as the subject of a sentence
    outcome : what followed, in words
    relative : whether both are told as percentages
    """

    about: str
    value: float
    limit: float
    what: str
    outcome: str
    relative: bool = True

    @property
    def margin(self) -> float:
        """value/limit: a decision with 0.9 or 1.1 might as well have gone the other way."""
        return self.value / self.limit if self.limit else float("inf")

    @property
    def in_words(self) -> str:
        told = _percent if self.relative else _number
        times = f", {_number(self.margin)} times its limit {told(self.limit)}" if self.limit else ""
        return f"{self.what} is {told(self.value)}{times}: {self.outcome}."


def _percent(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 1 else _number(value)


def _number(value: float) -> str:
    return f"{value:.0f}" if 10 <= value < 1e5 else f"{value:.2g}"
