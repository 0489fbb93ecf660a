"""The short form of the campaign: processes that compute by themselves, and a run with workers."""

from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.parametrize(
    ("way", "kills"),
    [("here", 30), pytest.param("local", 10, marks=pytest.mark.slow)],
)
def test_kills_and_flipped_bits_lose_and_change_nothing(tmp_path, way, kills):
    campaign = Campaign(tmp_path, seed=1, seeds=40)
    while campaign.kills < kills:
        getattr(campaign, way)()
    campaign.finish()
    assert campaign.counts["flips reported"] == campaign.counts["flips"]
    assert campaign.counts["complete stores"] >= 1
    if way == "here":
        assert sum(n for what, n in campaign.counts.items() if what.startswith("journals")) >= 2
