"""The list of the paper's claims, and what pages say about them."""

import pytest

from sentinel_paper.claims import Verdict, together
from sentinel_paper.registry import EXPERIMENTS
from sentinel_paper.report_rows import all_lines, claim_rows, counted, side_by_side, size
from sentinel_paper.statements import ABSTRACT, NOT_RUN, SECTION, STATEMENTS

CLAIMS = {experiment.name: experiment.load().PAPER for experiment in EXPERIMENTS}


def page(name, folder=None, options="--runs 50 --steps 100000 --preset sound", **verdicts):
    """A page that judges claims: ``c0="holds"`` is the first of its experiment; a list has several findings."""
    findings = [
        {"claim": CLAIMS[name][int(key[1:])].text, "where": "", "setting": f"way {way}", "verdict": verdict}
        | {"reason": "because", "effect": "" if way else "+1 [0, 2]"}
        for key, several in verdicts.items()
        for way, verdict in enumerate(several if isinstance(several, list) else [several])
    ]
    results = [{"agent": "A", "value": f"{len(options)}", "paper: value": "3"}]
    command = f"sentinel reproduce {name} {options}"
    return {"name": name, "folder": folder or name, "command": command, "findings": findings, "title": "T"} | {
        "results": results
    }


def test_every_claim_of_every_experiment_decides_a_statement():
    used = {(name, place) for one in STATEMENTS for name, places in one.evidence.items() for place in places}
    assert used == {(name, place) for name, claims in CLAIMS.items() for place in range(len(claims))}


def test_a_claim_of_the_abstract_or_section_6_is_a_statement_there():
    parts = {ABSTRACT: "abstract", SECTION: "section 6"}
    for part, words in parts.items():
        judged = {(name, i) for one in STATEMENTS if one.part == part for name, at in one.evidence.items() for i in at}
        said = {(name, i) for name, claims in CLAIMS.items() for i, claim in enumerate(claims) if words in claim.where}
        if part == SECTION:
            assert said <= judged
        assert judged
    assert all(one.where.startswith(("abstract", "section 6", "table 1")) for one in STATEMENTS if one.part in parts)


def test_without_any_page_nothing_has_been_run():
    lines = all_lines([])
    assert {line.verdict for line in lines} == {NOT_RUN}
    assert {line.statement.text for line in lines} == {one.text for one in STATEMENTS}
    rows = claim_rows(lines)
    assert {row["from"] for row in rows} == {f"`sentinel reproduce {name}`" for name in CLAIMS}
    assert counted(lines).endswith("are not run yet")


def test_two_presets_and_two_sizes_are_lines_of_their_own():
    pages = [
        page("table-highway", c2="holds"),
        page("table-highway", "table-highway-literal", "--runs 20 --steps 100000 --preset literal", c2="undecided"),
        page("table-highway", "more", "--runs 99 --steps 100000 --preset sound", c2="does not hold"),
    ]
    lines = [line for line in all_lines(pages) if line.statement.text == "It has fewer crashes."]
    assert [line.verdict for line in lines] == ["holds", "undecided", "does not hold"]
    sources = [row["from"] for row in claim_rows(lines)]
    assert sources == [
        "[table-highway, preset sound, 50 runs of 100000 steps](#results-table-highway)",
        "[table-highway-literal, preset literal, 20 runs of 100000 steps](#results-table-highway-literal)",
        "[more, preset sound, 99 runs of 100000 steps](#results-more)",
    ]
    ((_, (row,)),) = side_by_side(pages)
    assert list(row) == [
        *("agent", "value, sound 50 runs (table-highway)", "value, literal 20 runs (table-highway-literal)"),
        *("value, sound 99 runs (more)", "paper: value"),
    ]


def test_what_is_judged_in_several_ways_holds_in_all():
    (line,) = (
        one for one in all_lines([page("table-highway", c2=["holds", "undecided"])]) if one.verdict == "undecided"
    )
    assert line.effects == [("way 0", "+1 [0, 2]"), ("way 1", "because")]
    assert claim_rows([line])[0]["effect with 95 % interval"] == "way 0: +1 [0, 2]; way 1: because"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(["holds"], "holds"), (["holds", "undecided"], "undecided"), (["undecided", "does not hold"], "does not hold")],
)
def test_together(verdicts, expected):
    assert together(map(Verdict, verdicts)) == expected


def test_sizes():
    assert size({"command": "sentinel reproduce ftrl-gaussians"}) == "computed exactly"
    assert size({"command": "sentinel reproduce x --quick --runs 2 --seed 1"}) == "2 runs, made with --quick"
