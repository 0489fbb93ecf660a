"""Every number that decides says what it is and what half and twice of it do."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from onegrad.theory.policy import Policy

ENTRIES = dict(
    re.findall(r"^    (\w+) : (.*?)(?=^    \w+ : |\n\n|\Z)", Policy.__doc__ or "", re.S | re.M)
)


def test_there_are_few_and_all_are_described() -> None:
    names = [field.name for field in fields(Policy)]
    assert len(names) <= 60
    assert list(ENTRIES) == names  # in the order of the fields


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_says_what_half_and_twice_do(name: str) -> None:
    words = ENTRIES[name].lower()
    assert "half" in words and "twice" in words
    assert len(words.split()) >= 20
