"""Numbers change only together with the version by which a store finds them."""

import json

from onegrad.simulate.models import MODELS
from tests.golden.test_golden import GOLDEN
from tests.golden.versions import FILE, digests, not_raised, out_of_date, owner

VERSIONS = json.loads(FILE.read_text(encoding="utf-8"))


def test_no_number_changed_under_the_same_version():
    said = not_raised(GOLDEN, VERSIONS)
    assert not said, "\n".join([*said, "Raise `version` in that model's record: stored rows of it "
                                "would be taken for the new numbers."])  # fmt: skip


def test_every_model_and_case_is_held():
    assert MODELS.keys() <= digests(GOLDEN).keys()
    said = out_of_date(GOLDEN, VERSIONS)
    assert not said, f"{said}: run python -m tests.golden.versions"


def test_a_changed_number_is_seen_for_its_model_alone():
    """Negative controls: one number of each model; a raised version is no complaint."""
    for model in MODELS:
        key = next(k for k in GOLDEN if owner(k) == model)
        changed = GOLDEN | {key: GOLDEN[key] + 1e-9}
        said = not_raised(changed, VERSIONS)
        assert len(said) == 1 and said[0].startswith(f"{model}: "), said
        raised = VERSIONS | {model: VERSIONS[model] | {"version": MODELS[model].version - 1}}
        assert not not_raised(changed, raised)
        assert out_of_date(changed, raised) == [model]


def test_new_cases_need_no_new_version():
    case = next(iter(VERSIONS["network"]["numbers"]))
    fewer = {c: d for c, d in VERSIONS["network"]["numbers"].items() if c != case}
    assert not not_raised(GOLDEN, VERSIONS | {"network": VERSIONS["network"] | {"numbers": fewer}})
