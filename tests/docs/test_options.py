"""The page of an agent has every option of it, and none that it does not have."""

import re

import pytest

from sentinel_rl.agents.registry import agent_kind
from sentinel_rl.training.schedule import PLAN_OPTIONS
from tests.docs.pages import ROOT

SECTION = re.compile(r"^## Options\n(.*?)(?=^## )", re.DOTALL | re.MULTILINE)
TABLE = re.compile(r"^\| option \|.*\n\|[-: |]+\|\n((?:\|.*\n)+)", re.MULTILINE)
# What a page leaves to the table of SENTINEL-K is named in a paragraph that begins like this.
SHARED = re.compile(r"^(?:The options `|CDQN has the options)[^\n]*(?:\n[^\n]+)*", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
PAGES = {
    "sentinel": ("sentinel",),
    "cdqn": ("cdqn",),
    "vdqn": ("vdqn", "vdqn-cvar"),
    "uadqn": ("uadqn",),
}
CASES = [(page, agent) for page, agents in PAGES.items() for agent in agents]


def section_of(page: str) -> str:
    (section,) = SECTION.findall((ROOT / "docs/agents" / f"{page}.md").read_text())
    return section


def tables_of(section: str) -> list[set[str]]:
    """The names in the first column of every table of options."""
    return [
        set(NAME.findall(" ".join(row.split("|")[1] for row in rows.splitlines()))) for rows in TABLE.findall(section)
    ]


def shared_in(section: str) -> set[str]:
    """The names of options that are those of SENTINEL-K."""
    return {name for told in SHARED.findall(section) for name in NAME.findall(told)}


def shown_in(section: str) -> set[str]:
    """The names of all options that a page tells of."""
    return tables_of(section)[0] | shared_in(section) if tables_of(section) else shared_in(section)


def missing_in(section: str, agent: str) -> list[str]:
    return [name for name in agent_kind(agent).options if name not in shown_in(section)]


@pytest.mark.parametrize(("page", "agent"), CASES)
def test_every_option_of_an_agent_is_on_its_page(page, agent):
    section = section_of(page)
    assert missing_in(section, agent) == []
    assert sorted(shown_in(section) - set(agent_kind(agent).options)) == []


def test_what_is_left_to_the_page_of_sentinel_is_there():
    table = tables_of(section_of("sentinel"))[0]
    shared = {name for page in PAGES if page != "sentinel" for name in shared_in(section_of(page))}
    assert len(shared) > 10
    assert sorted(shared - table) == []


def test_the_options_of_the_training_schedule_are_on_the_page_of_sentinel():
    assert tables_of(section_of("sentinel"))[1] == set(PLAN_OPTIONS)


def test_an_option_that_is_missing_would_be_noticed():
    rows = [line for line in section_of("vdqn").splitlines(keepends=True) if not line.startswith("| `layer_norm`")]
    assert missing_in("".join(rows), "vdqn") == ["layer_norm"]
