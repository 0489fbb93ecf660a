"""Answers that would take too long end with a refusal."""

import importlib
import time

import pytest

import onegrad as og
from onegrad.compute.deadline import TooLong, check_time, within

PROBLEM = {
    "data": {"model": "mixture", "dim": 60, "spread": 5.0},
    "labels": {"link": "tanh"},
    "network": {"width": 40},
    "training": {"samples": 80, "ridge": 1e-2, "rate": 40.0},
}


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_limit_is_that_of_the_outer_one_and_ends_with_it():
    with within(0.02):
        check_time()
        with within(100.0):
            spend(0.03)
            with pytest.raises(TooLong, match="processor time"):
                check_time()
    check_time()


@pytest.mark.parametrize("options", [{}, {"method": "layer"}, {"method": "conditional"}])
def test_a_prediction_that_takes_too_long_is_refused(monkeypatch, options):
    module = importlib.import_module(og.predict.__module__)
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    found = og.predict(PROBLEM, throw=False, **options)
    assert found.status == "failed" and "processor time" in found.error
    monkeypatch.undo()
    assert og.predict(PROBLEM, **options).status != "failed"
