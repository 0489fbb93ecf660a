"""The frozen problems and the command that compares the theory with them."""

import json

import pytest

import onegrad as og
from evidence import files
from evidence import predict as predicting
from evidence.compare import Compared, compared
from evidence.page import moves, page

SPEC = {
    "data": {"model": "isotropic", "dim": 60},
    "labels": {"link": "tanh"},
    "network": {"width": 40, "activation": "relu"},
    "training": {"samples": 80, "ridge": 1e-2, "rate": 0.0},
}


def problem(number=0, test=(1.0, 0.001), train=(0.5, 0.001), kind="audit"):
    simulated = {"test_error": list(test), "train_error": list(train)}
    return {
        "id": f"{kind} {number}", "class": kind, "seed": number, "spec": SPEC,
        "repetitions": 20, "simulated": simulated,
    }  # fmt: skip


def answer(number=0, test=1.0, train=0.5, estimate=0.01, **more):
    return {
        "id": f"audit {number}", "seconds": 1.0, "status": "ok", "engine": "types",
        "estimate": estimate, "predicted": {"test_error": test, "train_error": train}, **more,
    }  # fmt: skip


def one(**changes):
    return Compared(problem(), answer(**changes))


def test_the_band_is_a_percent_and_four_standard_errors():
    assert one(test=1.0139).in_band("test_error")
    assert not one(test=1.0141).in_band("test_error")
    assert one(test=0.9861).in_band("test_error")
    assert one().in_band("calibration")  # nothing to compare


def test_dishonest_is_what_is_further_off_for_sure_than_it_states():
    assert not one(test=1.0139).dishonest
    assert one(test=1.03).dishonest and one(train=0.52).dishonest
    assert not one(test=1.03, estimate=0.03).dishonest
    assert not one(test=1.03, estimate=None).dishonest  # it is counted as one that states none
    refused = {"id": "audit 0", "seconds": 1.0, "status": "refused", "refusal": "too large"}
    assert not Compared(problem(), refused).dishonest


def test_the_page_and_what_moved():
    problems = [problem(number) for number in range(4)]
    refused = {"id": "audit 3", "seconds": 61.0, "status": "time"}
    before = [answer(0), answer(1, test=1.05), answer(2), answer(3)]
    now = [answer(0), answer(1), answer(2, test=1.05), refused]
    text = page(compared(problems, now), compared(problems, before))
    assert "| audit   |        4 |        3 |       66.7 %" in text
    assert "over the limit of time (audit 3)" in text
    assert "| audit 2 |  types |" in text.partition("## Dishonest answers")[2]
    listed = moves(compared(problems, now), compared(problems, before))
    assert listed.startswith("3 of 4 answers moved by more than 0.3 %; newly dishonest: audit 2; ")
    assert "no more: audit 1" in listed and "audit 0" not in listed
    assert moves(compared(problems, now), compared(problems, now)).startswith("0 of 4")


def test_predictions_have_limits_and_go_on_where_they_stopped(tmp_path, monkeypatch):
    out = tmp_path / "predictions.jsonl"
    first = problem(5)
    predicting.predict_all([first], out, 1, progress=False)
    (found,) = files.lines(out)
    expected = og.predict(SPEC, rng=500_005).test_error
    assert found["predicted"]["test_error"] == pytest.approx(expected, rel=1e-6)

    def hungry(_):
        return {"id": "audit 7", "bytes": len(bytearray(predicting.MEMORY))}

    monkeypatch.setattr(predicting, "predicted", hungry)
    predicting.predict_all([first, problem(7)], out, 2, progress=False)
    assert [line["status"] for line in files.lines(out)] == ["ok", "memory"]

    def endless(_):
        while True:
            pass

    monkeypatch.setattr(predicting, "predicted", endless)
    monkeypatch.setattr(predicting, "SECONDS", 1)
    predicting.predict_all([problem(8)], out, 1, progress=False)
    assert files.lines(out)[-1]["status"] == "time"


def test_seeds_of_theory_and_simulation_differ_but_for_fixed_directions():
    fixed = problem() | {"spec": SPEC | {"data": SPEC["data"] | {"directions": "fixed"}}, "seed": 3}
    assert predicting.seed_of(fixed) == 3 != predicting.seed_of(problem(3))


def test_the_files_are_whole():
    """Every problem is one that this version takes; ids, and roots of simulations, are unique."""
    found = files.problems()
    assert len({one["id"] for one in found}) == len(found) > 300
    frozen = [json.loads(line) for line in files.FROZEN.read_text().splitlines()]
    assert len({one["seed"] for one in frozen}) == len({one["id"] for one in frozen})
    for some in found[:: len(found) // 40]:
        og.Problem.from_spec(some["spec"])
        mean, error = some["simulated"]["test_error"]
        assert mean > 0 and 0 < error < mean
    part = files.problems(0.1)
    assert 0.07 * len(found) < len(part) < 0.13 * len(found)
    assert {one["class"] for one in part} == {one["class"] for one in found}
