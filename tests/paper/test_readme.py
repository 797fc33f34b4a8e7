"""The results on the first screen of the README, and the report in the repository, are those of the results folder."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sentinel_paper.cli import report
from sentinel_paper.output import ABOUT
from sentinel_paper.readme import BEGIN, END, block, fill, shown
from sentinel_paper.report import collect, markdown
from sentinel_paper.statements import judge
from sentinel_rl.errors import CorruptError, UsageError
from sentinel_rl.study import summarise

ROOT = Path(__file__).parents[2]
AGAIN = "run: sentinel report results --readme README.md"
in_repository = pytest.mark.skipif(
    not (ROOT / "results").is_dir(), reason="the results are in the repository, not in the sdist"
)


def between(text):
    return text.split(BEGIN + "\n")[1].split(END)[0]


@in_repository
def test_the_readme_shows_what_the_results_hold():
    text = (ROOT / "README.md").read_text()
    assert between(text) == block(ROOT / "results", ROOT), AGAIN


@in_repository
def test_the_table_of_the_first_screen_follows_from_the_single_runs():
    sources = {50: "learner/risk.csv", 25: "table-highway-tuned/table-highway-runs.csv"}
    single = {
        runs: list(csv.DictReader((ROOT / "results" / name).read_text().splitlines())) for runs, name in sources.items()
    }
    text = (ROOT / "README.md").read_text()[:4500]
    shown = re.findall(r"^\| ([^|]+?) \| (25|50) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert len(shown) == 6
    for words, runs, *cells in shown:
        name = re.sub(r"SENTINEL-4, |,? \(?the .*", "", words)
        label = "model search" if "search" in name else re.sub(r"composite (CVaR .\d+)", r"\1 o \1", name)
        for column, worse, digits, cell in zip(("value", "crashes"), ("low", "high"), (2, 1), cells, strict=True):
            found = [float(row[column]) for row in single[int(runs)] if row["agent"] == label]
            one = summarise(np.array(found), worse=worse)
            assert len(found) == int(runs), words
            assert cell == f"{one.mean:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]", (words, column)


@in_repository
def test_the_figure_and_all_links_are_there():
    for name in [part.split(")")[0] for part in block(ROOT / "results", ROOT).split("](")[1:]]:
        assert (ROOT / name).is_file(), name


@in_repository
def test_the_report_of_the_repository_is_up_to_date():
    pages = collect(ROOT / "results")
    assert (ROOT / "results" / "report.md").read_text() == markdown(pages, judge(pages)), AGAIN
    assert (ROOT / "results" / "report.html").is_file()


def test_both_are_filled_by_the_command(results, tmp_path, monkeypatch):
    folder = shutil.copytree(results.everything(), tmp_path / "found")
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(report)
    for _ in range(2):
        assert CliRunner().invoke(app, ["found", "--readme", "README.md"]).exit_code == 0
        text = (tmp_path / "README.md").read_text()
    assert text.startswith(f"before\n{BEGIN}\n![Seven agents on the highway")
    assert text.endswith(f"{END}\nafter\n")
    assert between(text) == block(folder, tmp_path)
    for words in (
        "(found/table-highway/table-highway.svg)",
        "--preset sound",
        "8 runs of 100000 steps",
        "on cpu, 36 s",
    ):
        assert words in text
    assert "claims that an experiment can decide. Each is counted once, under the preset `sound`: " in text
    assert "| SENTINEL-4 composite |" in text
    assert "341.2 ± 43.9" in text
    assert "](found/table-ensemble-size-literal/table-ensemble-size.md)" in text


def test_the_most_wanted_page_is_shown():
    def page(name, quick=False, **options):
        return {"name": name, "folder": name, "options": options, "quick": quick}

    wanted = [
        page("table-highway", runs=8, preset="tuned"),
        page("table-highway", runs=50, preset="sound"),
        page("table-highway", runs=20, preset="sound"),
        page("table-highway", runs=99, preset="literal"),
        page("gauss-mix-cvar", runs=100),
        page("theorems", runs=100),
        page("table-highway", quick=True, runs=2, preset="sound"),
    ]
    for place in range(len(wanted)):
        assert shown(wanted[place:][::-1]) == wanted[place]


@pytest.mark.attack("readme")
def test_a_file_without_a_place_is_refused(results, tmp_path):
    (tmp_path / "README.md").write_text(f"{END}\n{BEGIN}\n")
    with pytest.raises(UsageError, match="no place for results"):
        fill(tmp_path / "README.md", results("theorems").parent)
    with pytest.raises(UsageError, match="cannot be read"):
        fill(tmp_path / "none.md", results("theorems").parent)


@pytest.mark.attack("readme")
@pytest.mark.parametrize("row", [{"cells at once": "0"}, {"cells at once": "x"}, {"s training": "x"}], ids=str)
def test_times_that_are_none_are_refused(row, results, tmp_path):
    shutil.copytree(results("ftrl-gaussians"), tmp_path / "ftrl-gaussians")
    found = tmp_path / "ftrl-gaussians" / "ftrl-gaussians.json"
    page = json.loads(found.read_text())
    about = {"title": ABOUT, "words": "", "figure": "", "rows": [{"device": "cpu", **row}]}
    found.write_text(json.dumps(page | {"sections": [about]}))
    with pytest.raises(CorruptError, match="is no page of sentinel-rl"):
        block(tmp_path, tmp_path)


@pytest.mark.attack("readme")
def test_a_marker_in_a_cell_and_a_link_for_a_file_do_no_harm(results, tmp_path):
    """Filling twice gives what filling once gave, and a link stays one."""
    folder = tmp_path / "results"
    shutil.copytree(results("ftrl-gaussians"), folder / "ftrl-gaussians")
    found = folder / "ftrl-gaussians" / "ftrl-gaussians.json"
    page = json.loads(found.read_text())
    page["results"][0] = dict.fromkeys(page["results"][0], f"{END}<script>")
    found.write_text(json.dumps(page))
    (tmp_path / "there.md").write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    link = tmp_path / "README.md"
    link.symlink_to("there.md")
    fill(link, folder)
    once = link.read_text()
    fill(link, folder)
    assert link.is_symlink()
    assert link.read_text() == (tmp_path / "there.md").read_text() == once
    assert once.count(END) == 1
    assert "<script>" not in once
