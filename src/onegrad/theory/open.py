"""What an answer leaves open, part by part, and the decisions that it took."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Open:
    """Relative uncertainties of the larger of test and training error.

    rules : of the numerics: two resolutions compared
    sizes : of finite sizes: what the 1/n correction leaves, or a bound where it is not known
    chance : of the mean over draws of directions, strengths and the step's chance
    draws : of the mean over first layers that the theory draws
    physics : of effects that the theory leaves out here
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


@dataclass(frozen=True)
class Decision:
    """A number that was compared with a limit, and what followed.

    about : what was decided: "rules", "chance", "engine", …
    value, limit : the two numbers
    unit : of both
    outcome : what followed, in words
    """

    about: str
    value: float
    limit: float
    unit: str
    outcome: str

    @property
    def margin(self) -> float:
        """value/limit: a decision with 0.9 or 1.1 might as well have gone the other way."""
        return self.value / self.limit if self.limit else float("inf")
