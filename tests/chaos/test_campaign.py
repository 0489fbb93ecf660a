"""The short form of the campaign: some dozens of kills of processes that compute by themselves."""

from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def test_kills_and_flipped_bits_lose_and_change_nothing(tmp_path):
    campaign = Campaign(tmp_path, seed=1, seeds=40)
    while campaign.kills < 30:
        campaign.here()
    campaign.finish()
    assert sum(n for what, n in campaign.counts.items() if what.startswith("journals")) >= 2
    assert campaign.counts["flips reported"] == campaign.counts["flips"]
    assert campaign.counts["complete stores"] >= 1
