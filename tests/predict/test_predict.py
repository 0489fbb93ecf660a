"""`predict` and `predict_curve`: options, failures, seeds; the numbers are tested with theories."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import onegrad as og
from onegrad.errors import ConvergenceError, Failure, OnegradError
from onegrad.predict import predict as prediction
from onegrad.predict.predict import predict_experiment, theory_row
from onegrad.spec.experiment import Experiment

TABLES = {
    "data": {"model": "mixture", "dim": 300},
    "network": {"activation": "relu", "width_ratio": 1.0},
    "training": {"samples": 300},
    "scaling": {"strength": 0.6, "weighting": 0.5},
    "compare": {"models": ["network", "theory"], "accuracy": 0.05, "seed": 3},
    "sweep": {"training.ridge": [1e-15, 1e-3]},
}


def problem(ridge: float = 1e-3, **data: object) -> og.Problem:
    tables = TABLES | {"data": TABLES["data"] | data, "training": {"samples": 300, "ridge": ridge}}
    return og.Problem.from_spec(tables)


def test_options_in_every_form_are_the_same():
    wanted = og.predict(problem(), og.Theory("conditional", 0.03))
    assert wanted.status == "draft"
    for found in (
        og.predict(problem(), "conditional", accuracy=0.03),
        og.predict(problem(), method="conditional", accuracy=0.03),
        og.predict(problem(), og.Theory("isotropic", 0.03), method="conditional"),
    ):
        assert found == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"acuracy": 0.03}, ["acuracy = 0.03", '"accuracy"', "method"]),
        ({"method": "conditonal"}, ["method", '"conditional"']),
        ({"theory": "condtional"}, ["method", '"conditional"']),
        ({"overlaps": "tipical"}, ["overlaps", '"typical"']),
        ({"accuracy": 0.0}, ["accuracy = 0.0", "from 1e-06"]),
        ({"accuracy": 1e-9}, ["accuracy = 1e-09", "from 1e-06"]),
        ({"accuracy": math.nan}, ["accuracy = nan", "from 1e-06"]),
    ],
)
def test_wrong_options_are_advice_whether_or_not_failures_are_raised(options, words):
    for throw in (True, False):
        with pytest.raises(og.SpecError) as caught:
            og.predict(problem(), throw=throw, **options)
        for word in words:
            assert word in str(caught.value)


def test_a_failure_is_raised_or_returned():
    with pytest.raises(og.AssumptionError, match="interpolation") as caught:
        og.predict(problem(1e-15))
    failed = og.predict(problem(1e-15), throw=False)
    assert failed.status == "failed" and failed.error == str(caught.value)
    errors = (failed.test_error, failed.train_error, failed.train_objective, failed.error_estimate)
    assert np.isnan(errors).all()
    assert failed.misclassification is failed.component_test is failed.solution is None
    assert failed.directions == ()
    assert json.loads(json.dumps(failed.as_json()))["error_estimate"] is None
    with pytest.raises(og.AssumptionError, match="conditional theory"):
        failed.learned()


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"method": "isotropic"}, "assumes isotropic data"),
        ({"method": "surrogate"}, "images, arrays and files"),
    ],
)
def test_every_kind_of_failure_has_the_same_form(options, advice):
    one, two = og.predict_curve([problem(), problem(1e-2)], **options)
    assert one.status == two.status == "failed" and advice in one.error
    with pytest.raises(og.OnegradError, match=advice):
        og.predict_curve([problem()], throw=True, **options)


def test_predictions_are_frozen_and_small():
    found = og.predict(problem(), accuracy=0.03)
    with pytest.raises(AttributeError):
        found.test_error = 0.0
    assert "Solution" not in repr(found) and len(found.component_test) == 2
    assert sum(found.component_test) / 2 == pytest.approx(found.test_error, rel=1e-6)


def test_misclassification_of_component_labels():
    tables = TABLES | {"labels": {"model": "component"}, "network": {"width_ratio": 0.7}}
    found = og.predict(og.Problem.from_spec(tables), accuracy=0.03)
    assert 0 < found.misclassification < 0.5
    assert found.as_json()["misclassification"] == found.misclassification
    assert og.predict(problem(), accuracy=0.03).misclassification is None


def test_seeds_of_every_kind():
    drawn = og.Theory("conditional", 0.03, overlaps="drawn")
    seeds = [3, np.random.SeedSequence(3), np.random.default_rng(3)]
    again = [3, np.random.SeedSequence(3), np.random.default_rng(3)]
    first = [og.predict(problem(), drawn, rng=seed).test_error for seed in seeds]
    assert first == [og.predict(problem(), drawn, rng=seed).test_error for seed in again]
    assert len(set(first)) == 3  # negative control: the seed matters here


def test_rows_of_an_experiment():
    experiment = Experiment.from_tables(TABLES)
    results, predictions = predict_experiment(experiment)
    assert [row.status for row in results.rows] == ["failed", "ok"]
    assert predictions[1].status == "draft"  # by the spec's accuracy
    assert results.rows[0].error == predictions[0].error != ""
    assert math.isnan(results.rows[0].test_error)
    for point, row in zip(experiment.points, results.rows, strict=True):
        alone = theory_row(point)
        assert (alone.status, alone.error, alone.model) == (row.status, row.error, row.model)
        assert alone.test_error == pytest.approx(row.test_error, rel=1e-9, nan_ok=True)
    fine, _ = predict_experiment(experiment, og.Theory("conditional", 0.01))
    assert fine.rows[1].test_error == pytest.approx(results.rows[1].test_error, rel=0.05)


def test_an_empty_curve():
    assert og.predict_curve([]) == []


@pytest.mark.filterwarnings("ignore")  # of what overflows on the way
@pytest.mark.parametrize("labels", ["single-index", "component"])
def test_scales_beyond_double_precision_are_refused_in_our_words(labels):
    far = {
        "data": {"model": "mixture", "dim": 40, "mean": 1e6}, "labels": {"model": labels},
        "network": {"width": 30}, "training": {"samples": 50},
        "scaling": {"strength": 0.6, "weighting": 0.5},
    }  # fmt: skip
    with pytest.raises(OnegradError):
        og.predict(far, "auto")
    with pytest.raises(ConvergenceError, match=r"data\.mean.* smaller"):
        og.predict(far, "layer")


def test_an_answer_open_by_a_factor_of_two_is_refused():
    """Hinge loss on separable data at a tiny ridge had the status ok and an estimate of 6e7."""
    some = og.Prediction(1.0, 0.5, 0.6, "a theory", error_estimate=0.9)
    limit = og.Theory().policy.refused
    assert prediction._worth_telling(problem(), some, limit) is some
    draft = replace(some, error_estimate=float("nan"), status="draft")
    assert prediction._worth_telling(problem(), draft, limit) is draft
    failed = prediction._worth_telling(problem(), replace(some, error_estimate=6e7), limit)
    assert isinstance(failed, Failure) and "larger training.ridge" in str(failed.error)


def test_misclassification_has_an_estimate_of_its_own():
    some = og.Prediction(1.0, 0.5, 0.6, "a theory", error_estimate=0.1, misclassification=0.2)
    margin = 0.8416212  # Φ(−margin) = 0.2, less than one: outputs are known to 5 %
    density = math.exp(-(margin**2) / 2) / math.sqrt(2 * math.pi)
    assert some.misclassification_estimate == pytest.approx(0.05 * density, rel=1e-6)
    assert "0.2 ± 0.014" in repr(some)
    rare = replace(some, misclassification=0.01)  # 2.3 standard deviations from the other sign
    assert 0.002 < rare.misclassification_estimate < 0.005
    drawn = replace(some, misclassification_se=0.03)
    assert drawn.misclassification_estimate == pytest.approx(0.06 + 0.05 * density)
    never = replace(some, misclassification=0.0)
    assert never.misclassification_estimate == 0.0
    draft = replace(some, error_estimate=math.nan, status="draft")
    assert draft.misclassification_estimate is None
    assert replace(some, misclassification=None).misclassification_estimate is None
