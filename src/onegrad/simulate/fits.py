"""The models of one trained layer, fitted, and their exact risks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from onegrad.errors import AssumptionError, ConvergenceError
from onegrad.simulate.models import MODELS
from onegrad.simulate.models.base import Fitted, exact_risks
from onegrad.simulate.network.rounding import check_rounding
from onegrad.simulate.network.trial import Trial
from onegrad.simulate.risk.exact import ExactRisk
from onegrad.spec.experiment import Point

Fit = tuple[Point, str, Fitted | str, float]  # or why there is none; seconds that it took


def fits(trial: Trial, points: Sequence[Point], models: Sequence[str]) -> Iterator[list[Fit]]:
    """The fitted models whose risks are taken together: all of one point. Those of several ridges
    come one by one, so that one model's features are there at a time."""
    batch: list[Fit] = []
    for name in models:
        fitted: Fitted | None = None
        why = ""
        for point in points:
            start = time.process_time()
            found: Fitted | str
            try:
                fit = MODELS[name].fit
                assert fit is not None, f"{name} is not simulated"
                ridge = point.problem.effective_ridge
                if point is points[0]:
                    fitted = fit(trial)
                elif fitted is not None:
                    fitted = fitted.at_ridge(ridge)
                found = why if fitted is None else fitted
            except (AssumptionError, ConvergenceError) as error:
                found = why = str(error)
            batch.append((point, name, found, time.process_time() - start))
            if len(points) > 1:
                yield batch
                batch = []
    if batch:
        yield batch


def risks_of(trial: Trial, batch: Sequence[Fit]) -> list[float | str | None]:
    """The risks without a test set; None where they have to be sampled, or why there is none."""
    asked = {
        i: fitted
        for i, (point, _, fitted, _) in enumerate(batch)
        if point.compare.risk != "sampled" and not isinstance(fitted, str)
    }
    found = dict(zip(asked, exact_risks(trial, list(asked.values())), strict=True))
    risks: list[float | str | None] = []
    for i, (point, _, fitted, _) in enumerate(batch):
        risk = found.get(i)
        value = risk.value if isinstance(risk, ExactRisk) else None
        if isinstance(risk, Exception) and point.compare.risk == "exact":
            risks.append(str(risk))
            continue
        try:
            if trial.draw.backend.careful and not isinstance(fitted, str):
                known = math.inf if value is None else value
                check_rounding(fitted.readout, known, trial.instance.label_variance)
            risks.append(value)
        except ConvergenceError as error:
            risks.append(str(error))
    return risks
