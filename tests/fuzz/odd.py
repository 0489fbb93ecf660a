"""Valid specs that nobody would write, through `predict` and `simulate`.

`python -m tests.fuzz.odd 300 [SEED]` for all of them. Nothing foreign may come out: no exception
but ours, no warning, no number that is not finite with the status "ok", no negative error, nothing
above SECONDS of CPU or GIGABYTES.
"""

from __future__ import annotations

import faulthandler
import json
import math
import random
import resource
import sys
import time
import traceback
import warnings
from typing import Any

from onegrad.errors import OnegradError, SpecError, UnexpectedError
from onegrad.predict.predict import predict_experiment
from onegrad.runs.engines import Local
from onegrad.runs.run import simulate_experiment
from onegrad.spec.experiment import Experiment
from onegrad.text.strict_json import json_text
from tests.fuzz import peak

SECONDS = 20.0
GIGABYTES = 4
ACTIVATIONS = (
    "relu", "tanh", "erf", "sigmoid", "identity", "softplus", "hermite(0, 1, 0.5)", "elu", "gelu",
    "hermite(0, 0, 0, 1)", "hermite(0, 1, 0, 0, 1)", "sin",
)  # fmt: skip


def odd(seed: int, number: int) -> dict[str, Any]:
    """A spec in which every setting is now and then at the end of its range."""
    rng = random.Random(f"odd {seed} {number}")

    def often(usual: Any, *rare: Any) -> Any:
        return usual if rng.random() < 0.6 else rng.choice(rare)

    n = often(rng.randrange(10, 61), 1, 2, 3, 5, 60)
    convention = rng.choice(("mixture", "isotropic"))
    isotropic = convention == "isotropic" or rng.random() < 0.3
    data: dict[str, Any] = {"model": "isotropic" if isotropic else "mixture", "dim": n}
    labels: dict[str, Any] = {"model": "single-index"}
    if not isotropic:
        count = often(2, 1, 3, 5)
        data["weights"] = often(
            [1 / count] * count, [1 - 1e-6 * (count - 1), *[1e-6] * (count - 1)]
        )
        data |= {"rank": min(n - 1, often(1, 0, 2, 5)), "mean": often(0.0, 1e-8, 1.0, 1e3)}
        data["alignment"] = often(0.0, 1.0, -1.0, 0.999999)
        if rng.random() < 0.3:
            labels = {"model": "component"}
    if rng.random() < 0.2:
        data["spectrum"] = "power-law"
        data["exponent"] = often(0.8, 0.0, 3.0)
    if labels["model"] == "single-index":
        labels["link"] = rng.choice(ACTIVATIONS)
        if rng.random() < 0.2:
            labels = {"model": "multi-index", "indices": often(2, 1, 3),
                      "link": rng.choice(("product", "sum", "xor", "max"))}  # fmt: skip
    labels["noise"] = often(0.0, 0.1, 1e-8, 1e3, 1e6)
    m = often(rng.randrange(5, 80), 1, 2, 3, 200)
    training: dict[str, Any] = {"samples": m, "ridge": often(1e-3, 1e-12, 1e-8, 1.0, 1e6)}
    if rng.random() < 0.3:
        training["step_samples"] = often(m, 1, 2, 500)
    training["loss"] = often("squared", "logistic", "hinge", "squared-hinge", "huber", "absolute")
    training["optimiser"] = often("gd", "sign", "adam", "muon", "kfac")
    training["steps"] = often(1, 2, 3)
    if rng.random() < 0.3:
        training["gradient"] = rng.choice(("exact", "labels-only"))
    network = {"convention": convention, "activation": rng.choice(ACTIVATIONS),
               "width": often(rng.randrange(5, 80), 1, 2, 3, 4, 200),
               "readout": often("gaussian", "constant")}  # fmt: skip
    spec = {"data": data, "labels": labels, "network": network, "training": training,
            "compare": {"models": ["network", "theory"], "seeds": 2,
                        "accuracy": often(0.03, 0.01, 0.1)}}  # fmt: skip
    if convention == "mixture" and rng.random() < 0.5:
        spec["scaling"] = {
            "strength": often(0.6, 0.0, 0.99, 1.0),
            "weighting": often(0.5, 0.0, 1.0),
        }
    elif convention == "isotropic" and rng.random() < 0.5:
        spec["scaling"] = {"exponent": often(0.3, 0.0, 0.99), "constant": often(1.0, 1e-6, 1e6)}
    else:
        training["rate"] = often(1.0, 0.0, 1e-8, 30.0, 1e3, 1e6, 1e9)
        if not isotropic:
            data["spread"] = often(4.0, 0.0, 1e-8, 1e3, 1e6)
    return spec


def read(seed: int, number: int) -> Experiment | None:
    """None where the settings do not go together, which is said with advice."""
    try:
        return Experiment.read(odd(seed, number))
    except SpecError:
        return None


def faults(experiment: Experiment) -> list[str]:
    """What came out that should not."""
    found: list[str] = []
    before = peak() / 1e3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, compute in (("predict", _predicted), ("simulate", _simulated)):
            start = time.process_time()
            try:
                rows = compute(experiment)
            except OnegradError as error:
                rows = []
                if isinstance(error, UnexpectedError):
                    found.append(f"{name}: {error.report}")
            except Exception:
                rows = []
                found.append(f"{name}: {traceback.format_exc()}")
            took = time.process_time() - start
            found += [f"{name}: {took:.1f} s"] if took > SECONDS else []
            for row in rows:
                found += [f"{name}: {fault}" for fault in _faults(row)]
    found += [f"warning: {w.category.__name__}: {w.message} ({w.filename}:{w.lineno})"
              for w in caught]  # fmt: skip
    most = peak() / 1e3
    return found + ([f"{most:.1f} GB"] if most > max(GIGABYTES, before) else [])


def _faults(row: Any) -> list[str]:
    if row.status == "ok":
        errors = (row.test_error, row.train_error)
        return [f"{errors} with the status ok"] * (not all(0 <= e < math.inf for e in errors))
    foreign = row.error.startswith(("an unexpected", "there is not enough memory", *_KINDS))
    return [f"{row.model}: {row.error}"] if foreign or not row.error else []


_KINDS = tuple(f"{kind}: " for kind in (
    "ValueError", "ZeroDivisionError", "MemoryError", "TypeError", "KeyError", "IndexError",
    "FloatingPointError", "OverflowError", "LinAlgError", "AssertionError", "AttributeError",
))  # fmt: skip


def _predicted(experiment: Experiment) -> list[Any]:
    results, predictions = predict_experiment(experiment)
    report = results.as_json()
    for record, prediction in zip(report["rows"], predictions, strict=True):
        record |= prediction.as_json()
    json.loads(json_text(report), parse_constant=_refuse)
    repr(results), repr(predictions)
    return list(results.rows)


def _simulated(experiment: Experiment) -> list[Any]:
    results = simulate_experiment(experiment, Local(1))
    json.loads(json_text(results.as_json()), parse_constant=_refuse)
    repr(results)
    return list(results.rows)


def _refuse(text: str) -> None:
    raise AssertionError(f"{text} in JSON")


def main(count: int, seed: int) -> None:
    limit = (GIGABYTES + 2) * 10**9  # of addresses, of which libraries take some
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    number = valid = failed = 0
    while valid < count:
        experiment = read(seed, number)
        if experiment is not None:
            valid += 1
            start = time.process_time()
            faulthandler.dump_traceback_later(600)
            bad = faults(experiment)
            faulthandler.cancel_dump_traceback_later()
            if time.process_time() - start > SECONDS / 2:
                print(f"({seed}, {number}) {time.process_time() - start:.0f} s", flush=True)
            failed += bool(bad)
            for fault in bad:
                print(f"({seed}, {number}) {fault}", flush=True)
            if valid % 25 == 0:
                print(f"{valid} of {count}: {failed} with faults", file=sys.stderr, flush=True)
        number += 1
    print(f"{count} valid specs of {number} drawn, seed {seed}: {failed} with faults")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
