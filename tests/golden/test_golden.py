"""Every number is what it was when it was recorded (`python -m tests.golden.record`)."""

import json
import math

import pytest

from tests.golden.cases import CASES
from tests.golden.measure import measure
from tests.golden.record import FILE
from tests.images import needs_fashion_mnist

SIMULATION, THEORY = 1e-12, 1e-9
_BY_THEORY = ("predict", "curve", "spectrum", "activations")  # kinds of cases without a network
# Parts of names: numbers of a theory in a simulated case, and a quotient of two small differences,
# which are held to SIMULATION themselves.
_OF_THEORY = ("theory", "surrogate", "standard_errors")
# What a difference is small against: errors of order one. Estimates contain what is left of a
# correction that is a difference of free energies: other kernels of BLAS move them by 2e-8.
_FLOORS = {"difference": 1.0, "error_estimate": 100.0, "_se": 0.1}
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


def tolerance(key: str, value: float) -> float:
    """How far a number may be from the recorded one; `key` is "case | name"."""
    case, _, name = key.partition(" | ")
    theory = CASES[case]["what"] in _BY_THEORY or any(part in name for part in _OF_THEORY)
    relative = CASES[case].get("rtol", THEORY if theory else SIMULATION)
    floor = next((least for part, least in _FLOORS.items() if part in name), 1e-3)
    return relative * max(abs(value), floor)


def recorded(case: str) -> dict[str, float]:
    return {key: value for key, value in GOLDEN.items() if key.startswith(f"{case} | ")}


def complaints(found: dict[str, float], golden: dict[str, float]) -> list[str]:
    """The numbers that are missing, new, or not what they were."""
    said = [f"{key}: missing" for key in golden.keys() - found.keys()]
    said += [f"{key}: not recorded" for key in found.keys() - golden.keys()]
    for key in golden.keys() & found.keys():
        new, old = found[key], golden[key]
        same = math.isnan(new) and math.isnan(old)
        if not same and not abs(new - old) <= tolerance(key, old):
            said.append(f"{key}: {new!r}, recorded {old!r}, off by {abs(new - old):.2g}")
    return sorted(said)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_fashion_mnist if "fashion-mnist" in name else ())
        for name in CASES
    ],
)
def test_no_number_has_changed(name):
    if CASES[name].get("spec", {}).get("compare", {}).get("device") == "torch":
        pytest.importorskip("torch")
    found = {f"{name} | {key}": value for key, value in measure(CASES[name]).items()}
    said = complaints(found, recorded(name))
    assert not said, f"{len(said)} of {len(found)} numbers:\n" + "\n".join(said[:20])


def test_every_case_is_recorded_and_no_other():
    assert {key.partition(" | ")[0] for key in GOLDEN} == CASES.keys()


def test_a_small_change_is_seen():
    """Negative control: every error of every repetition, off by 1e-10; and what is not a number."""
    names = ("test_error", "train_error", "train_objective")
    errors = {
        key: value
        for key, value in GOLDEN.items()
        if " seed " in key
        and key.endswith(names)
        and abs(value) > 1e-4  # what is smaller is held to an absolute bound
        and "rtol" not in CASES[key.partition(" | ")[0]]
        and not any(part in key for part in (*_OF_THEORY, "control teacher", "control power"))
    }
    assert len(errors) > 1000
    changed = {key: value * (1 + 1e-10) for key, value in errors.items()}
    assert len(complaints(changed, errors)) == len(errors)
    key = next(iter(errors))
    one = {key: errors[key]}
    assert not complaints(one, one)
    assert complaints({key: math.nan}, one) and complaints(one, {key: math.nan})
    assert complaints({}, one) and complaints(one, {})


def test_a_changed_theory_and_a_changed_status_are_seen():
    key = "auto-mixture | test_error"
    assert complaints({key: GOLDEN[key] * (1 + 1e-8)}, {key: GOLDEN[key]})
    key = "mixture-not-spiked | spiked seed 0 status"
    assert complaints({key: 0.0}, {key: GOLDEN[key]})
