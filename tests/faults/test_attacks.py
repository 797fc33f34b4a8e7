"""The page of promises and the attacks that are counted are the same ones."""

import re

import pytest

from tests.attacks import ATTACKS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text()
SOURCES = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_is_on_the_page_and_has_a_test(name: str):
    assert f"`{name}`" in PAGE
    assert f'mark.attack("{name}")' in SOURCES


def test_files_on_the_page_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_at_least_twenty_attacks_are_in_the_second_round():
    rows = re.findall(r"^\| (\d+) \|", PAGE.split("## The second round")[1], flags=re.MULTILINE)
    assert list(map(int, rows)) == list(range(1, len(rows) + 1))
    assert len(rows) >= 20
