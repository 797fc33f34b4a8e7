"""The verdict on every statement: counted once, under one preset, the others beside it."""

import pytest

from sentinel_paper.claims import Verdict, together
from sentinel_paper.registry import EXPERIMENTS, HEADLINE_PARTS, STATEMENTS
from sentinel_paper.report_rows import claim_rows, side_by_side, size, verdict_rows
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, headline, judge, presets_of

GRIDS = {experiment.name for experiment in EXPERIMENTS if experiment.grid}


def page(name, folder=None, preset="sound", runs=50, quick=False, **verdicts):
    """A page that judges claims by name (``_`` for ``-``); a list has several findings."""
    findings = [
        {"name": claim.replace("_", "-"), "claim": "", "where": "", "setting": f"way {way}", "verdict": verdict}
        | {"reason": "because", "effect": "" if way else "+1 [0, 2]"}
        for claim, several in verdicts.items()
        for way, verdict in enumerate(several if isinstance(several, list) else [several])
    ]
    results = [{"agent": "A", "value": f"{preset} {runs}", "paper: value": "3"}]
    options = {"runs": runs} | ({"steps": 100_000, "preset": preset} if name in GRIDS else {})
    return {"name": name, "folder": folder or name, "title": "T", "findings": findings, "results": results} | {
        "options": options,
        "quick": quick,
    }


def of(pages, name):
    """The judgements of one statement by preset."""
    (found,) = (one for one in judge(pages) if one.statement.name == name)
    return found.by_preset


def test_every_statement_is_one_row_whatever_there_is():
    literal = [page("table-highway", "table-highway-literal", "literal", fewer_crashes="undecided")]
    for pages in ([], [page("table-highway", fewer_crashes="holds")], [page("table-highway"), *literal]):
        rows = claim_rows(judge(pages))
        assert [row["name"] for row in rows] == [f"`{statement.name}`" for statement in STATEMENTS]


def test_without_any_page_nothing_has_been_run():
    judged = judge([])
    assert {one.headline.verdict for one in judged} == {NOT_RUN}
    sources = {source for row in claim_rows(judged) for source in row["from"].split("; ")}
    assert sources == {f"`sentinel reproduce {experiment.name}`" for experiment in EXPERIMENTS}
    assert headline(judged).endswith("21 are not run yet.")


def test_presets_stand_side_by_side_and_one_is_counted():
    pages = [
        page("table-highway", fewer_crashes="holds"),
        page("table-highway", "table-highway-literal", "literal", fewer_crashes="undecided"),
    ]
    found = of(pages, "fewer-crashes")
    assert {preset: judgement.verdict for preset, judgement in found.items()} == {
        "sound": "holds",
        "literal": "undecided",
    }
    words = headline(judge(pages))
    assert "under the preset `sound`: 1 holds, 20 are not run yet." in words
    assert words.endswith("Under `literal`, which was run for 1 of them, 1 is undecided.")
    (row,) = (row for row in claim_rows(judge(pages)) if row["name"] == "`fewer-crashes`")
    assert list(row) == [
        *("claim", "verdict", "counted under", "sound", "literal", "effect with 95 % interval", "from"),
        *("in the paper", "name"),
    ]
    assert (row["verdict"], row["counted under"]) == (row["sound"], "sound")
    assert row["sound"] == "[holds](#results-table-highway)"
    assert row["literal"] == "[undecided](#results-table-highway-literal)"
    assert row["from"] == "[table-highway, 50 runs of 100000 steps](#results-table-highway)"


def test_the_preset_that_is_not_counted_changes_no_count():
    sound = page("table-highway", fewer_crashes="holds")
    literal = page("table-highway", "table-highway-literal", "literal", fewer_crashes="does not hold")
    assert headline(judge([sound, literal])).startswith(headline(judge([sound])))
    assert of([literal], "fewer-crashes")["sound"].verdict == NOT_RUN


def test_another_preset_is_another_column():
    pages = [page("table-highway", "table-highway-own", "own", fewer_crashes="holds")]
    assert presets_of(pages) == ["sound", "own"]
    assert of(pages, "fewer-crashes")["own"].verdict == "holds"
    assert list(claim_rows(judge(pages))[0])[3:5] == ["sound", "own"]


def headlines(pages):
    """The headline of every statement with its preset."""
    return {one.statement.name: (one.headline.verdict, one.headline_preset) for one in judge(pages)}


def test_tuned_is_the_headline_where_it_was_run():
    pages = [
        page("table-highway", fewer_crashes="does not hold", higher_value="undecided"),
        page("table-highway", "table-highway-tuned", "tuned", fewer_crashes="holds"),
        page("fig-highway-crashes", "fig-highway-crashes-literal", "literal", least_crashes="undecided"),
        page("theorems", composite_coherent="holds"),
    ]
    found = headlines(pages)
    assert found["fewer-crashes"] == ("holds", "tuned")
    assert found["higher-value"] == ("undecided", "sound")
    assert found["least-crashes-over-training"] == ("undecided", "literal")
    assert found["theorem-1"] == ("holds", NO_PRESETS)
    assert found["comparable-compositions"] == (NOT_RUN, "sound")
    assert [of(pages, "fewer-crashes")[preset].verdict for preset in ("tuned", "sound", "literal")] == [
        *("holds", "does not hold", NOT_RUN)
    ]
    words = headline(judge(pages))
    assert "under the preset `tuned` where it was run (1 of them), else under `sound` (" in words
    assert (
        "else under `literal` (1 of them); 10 depend on no preset: 3 hold, 2 are undecided, 16 are not run yet."
        in words
    )
    assert "Under `sound`, which was run for 2 of them, 1 does not hold, 1 is undecided." in words


def test_a_quick_run_is_no_headline_beside_a_real_one():
    quick = page("table-highway", "table-highway-tuned", "tuned", quick=True, fewer_crashes="holds")
    real = page("table-highway", fewer_crashes="does not hold")
    assert headlines([quick, real])["fewer-crashes"] == ("does not hold", "sound")
    assert headlines([quick])["fewer-crashes"] == ("holds", "tuned")


def test_the_readme_has_the_verdicts_of_all_presets():
    pages = [
        page("table-highway", "t", "tuned", fewer_crashes="holds"),
        page("table-highway", fewer_crashes="undecided"),
    ]
    rows = verdict_rows(judge(pages), HEADLINE_PARTS)
    assert len(rows) == len([one for one in STATEMENTS if one.part in HEADLINE_PARTS]) == 21
    assert {"claim": "It has fewer crashes.", "verdict": "holds", "counted under": "tuned"} | {
        "tuned": "holds",
        "sound": "undecided",
    } in rows


def test_what_has_no_presets_is_counted_and_marked():
    pages = [page("theorems", composite_coherent="holds"), page("table-highway", preset="literal")]
    found = of(pages, "theorem-1")
    assert (found["sound"].verdict, found["literal"].verdict) == (NO_PRESETS, NO_PRESETS)
    assert headlines(pages)["theorem-1"] == ("holds", NO_PRESETS)


def test_of_several_results_under_one_preset_the_largest_decides():
    pages = [
        page("table-highway", "few", runs=20, fewer_crashes="undecided"),
        page("table-highway", "many", runs=99, fewer_crashes="does not hold"),
        page("table-highway", "quick", runs=200, quick=True, fewer_crashes="holds"),
    ]
    for order in (pages, pages[::-1]):
        found = of(order, "fewer-crashes")["sound"]
        assert found.verdict == "does not hold"
        assert [one["folder"] for one in found.pages] == ["many"]


def test_what_is_judged_in_several_ways_holds_in_all():
    found = of([page("table-highway", fewer_crashes=["holds", "undecided"])], "fewer-crashes")["sound"]
    assert found.verdict == "undecided"
    assert found.effects == "way 0: +1 [0, 2]; way 1: because"


@pytest.mark.parametrize(
    ("distances", "laws", "expected"),
    [
        ("holds", "holds", "holds"),
        ("holds", "undecided", "undecided"),
        ("holds", None, NOT_RUN),
        ("does not hold", None, "does not hold"),
    ],
)
def test_a_statement_of_two_experiments_needs_both(distances, laws, expected):
    pages = [page("fig-toy-wasserstein", sentinel_converges=distances)]
    pages += [] if laws is None else [page("fig-toy-laws", close_after_5000=laws)]
    (found,) = (one.headline for one in judge(pages) if one.statement.name == "converges-in-distribution")
    assert found.verdict == expected
    assert [one["name"] for one in found.pages] == [one["name"] for one in pages]


def test_a_page_without_the_claim_is_no_evidence():
    assert of([page("table-highway", higher_value="holds")], "fewer-crashes")["sound"].verdict == NOT_RUN


def test_side_by_side():
    pages = [
        page("table-highway"),
        page("table-highway", "table-highway-literal", "literal", runs=20),
        page("table-highway", "more", runs=99),
    ]
    ((_, (row,)),) = side_by_side(pages)
    assert row == {
        "agent": "A",
        "value, sound 50 runs (table-highway)": "sound 50",
        "value, literal 20 runs (table-highway-literal)": "literal 20",
        "value, sound 99 runs (more)": "sound 99",
        "paper: value": "3",
    }


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [(["holds"], "holds"), (["holds", "undecided"], "undecided"), (["undecided", "does not hold"], "does not hold")],
)
def test_together(verdicts, expected):
    assert together(map(Verdict, verdicts)) == expected


def test_sizes():
    assert size({"options": {}, "quick": False}) == "computed exactly"
    assert size({"options": {"runs": 2, "seed": 1}, "quick": True}) == "2 runs, made with --quick"
