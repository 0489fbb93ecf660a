"""Numbers change only together with the version by which a store finds them."""

import json

from onegrad.simulate.models import MODELS
from tests.golden.test_golden import GOLDEN
from tests.golden.versions import FILE, not_raised, owner, versions_of

VERSIONS = json.loads(FILE.read_text(encoding="utf-8"))


def test_recorded_numbers_are_of_the_present_versions():
    assert MODELS.keys() <= VERSIONS.keys()
    assert versions_of(GOLDEN) == VERSIONS, "run python -m tests.golden.record"


def test_a_changed_number_is_seen_for_its_model_alone():
    """Negative controls: one number of each model; a raised version is no complaint."""
    assert not not_raised(GOLDEN, GOLDEN, VERSIONS)
    for model in MODELS:
        key = next(k for k in GOLDEN if owner(k) == model)
        changed = GOLDEN | {key: GOLDEN[key] + 1e-9}
        assert not_raised(changed, GOLDEN, VERSIONS) == [model]
        assert not not_raised(changed, GOLDEN, VERSIONS | {model: VERSIONS[model] - 1})
        new = {k: value for k, value in GOLDEN.items() if k != key}
        assert not not_raised(changed, new, VERSIONS)  # a new case needs no new version
