"""The report over all experiments: complete, self-contained, and the same in both forms."""

import base64
import gzip
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from sentinel_paper import registry, report_html
from sentinel_paper.report import collect, harmless, write_report
from sentinel_paper.report_rows import anchor, title
from sentinel_rl.errors import CorruptError, UsageError
from tests import node

PRESETS = "table-ensemble-size"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Checks that tags are balanced, and remembers ids, links and rows."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets, self.loaded, self.rows = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.targets += [value for name, value in attrs if name in ("href", "xlink:href")]
        self.loaded += [value for name, value in attrs if name == "src"]
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(results):
    """A folder with the results of every experiment and their report."""
    base = results.everything()
    assert write_report(base) == [base / "report.html", base / "report.md"]
    return base


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text()


def test_the_page_is_well_formed_and_needs_nothing_else(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.loaded == []
    inner = {target[1:] for target in reader.targets if target.startswith("#")}
    assert inner <= set(reader.ids)
    assert {target for target in reader.targets if not target.startswith("#")} <= {"data:,"}
    assert set(re.findall(r"https?://[^\"'\s]+", page)) == {"http://www.w3.org/2000/svg"}
    sinks = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(")
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", *sinks):
        assert word not in page, word


def test_the_policy_allows_the_pages_own_scripts_and_nothing_else(page):
    policy = dict(part.split(" ", 1) for part in re.search(r'Policy" content="([^"]+)"', page)[1].split("; "))
    assert (policy["default-src"], policy["img-src"]) == ("'none'", "data:")
    assert not {"unsafe-inline", "unsafe-eval", "http", "*"} & set(" ".join(policy.values()).split())
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    ]
    assert policy["script-src"].split() == hashes
    assert len(hashes) == len(report_html.SCRIPTS)
    assert set(report_html.SCRIPTS) == {
        path.name for path in (files("sentinel_paper") / "report_page").iterdir() if path.name.endswith(".js")
    }


def test_every_figure_is_in_the_page_once(page, folder):
    held = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1])
    shown = {name: gzip.decompress(base64.b64decode(packed)).decode() for name, packed in held.items()}
    assert sorted(shown.values()) == sorted(path.read_text() for path in folder.glob("*/*.svg"))
    assert len(shown) > len(registry.EXPERIMENTS)
    assert set(re.findall(r'data-figure="([^"]+)"', page)) == set(shown)


def test_the_page_of_the_committed_results_is_small():
    committed = Path(__file__).parents[2] / "results" / "report.html"
    if not committed.exists():
        pytest.skip("the results are in the repository, not in the sdist")
    assert committed.stat().st_size < 3_000_000


def test_every_claim_has_its_verdict_in_both_forms(page, folder):
    text = (folder / "report.md").read_text()
    for one in collect(folder):
        assert one["command"] in page
        for finding in one["findings"]:
            assert finding["verdict"] in ("holds", "does not hold", "undecided")
            assert finding["effect"]
            assert finding["claim"] in text
            assert finding["reason"] in text
    assert page.count("<blockquote>") == sum(len(one["findings"]) for one in collect(folder))


def test_presets_stand_side_by_side_and_do_not_meet(page, folder):
    pages = [one for one in collect(folder) if one["name"] == PRESETS]
    assert [one["folder"] for one in pages] == [PRESETS, f"{PRESETS}-literal"]
    text = (folder / "report.md").read_text()
    for one, preset, runs in zip(pages, ("sound", "literal"), (8, 7), strict=True):
        assert title(one).endswith(f"preset {preset}, {runs} runs of 100000 steps ({one['folder']})")
        assert f'<h2 id="{anchor(one)}">{one["title"]}<small>' in page
        assert f'<a id="{anchor(one)}"></a>\n\n## {title(one)}' in text
        assert f"falls, {preset} {runs} runs ({one['folder']})" in text
    assert text.count(": side by side") == page.count(": side by side</h2>") == 1


def test_the_report_begins_with_one_table_of_all_claims(page, folder):
    text = (folder / "report.md").read_text()
    first = next(part for part in text.split("\n\n") if part.startswith("|"))
    rows = first.splitlines()[2:]
    assert {row.split(" | ")[1] for row in rows} >= {"[holds](#results-theorems)"}
    assert [row for row in rows if row.split(" | ")[1] == "not run"] == []
    judged = {row.rsplit("`", 2)[1]: row.split(" | ")[4] for row in rows}
    counted = {row.rsplit("`", 2)[1]: row.split(" | ")[2] for row in rows}
    assert (counted["four-members-justified"], counted["theorem-1"]) == ("sound", "–")
    assert re.fullmatch(r"\[[\w ]+\]\(#results-table-ensemble-size-literal\)", judged["four-members-justified"])
    assert (judged["fewer-crashes"], judged["theorem-1"]) == ("not run", "–")
    assert len(rows) == page.count('<tbody id="claim-')
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}
    links = re.findall(r"\]\(#([\w-]+)\)", first)
    assert {f'<a id="{link}"></a>' in text for link in links} == {True}
    assert [re.search(r"`([\w-]+)` \|$", row)[1] for row in rows] == [one.name for one in registry.STATEMENTS]


def test_what_is_not_there_is_told_with_its_command(folder, tmp_path):
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "ftrl-gaussians")
    page, twin = (path.read_text() for path in write_report(tmp_path))
    assert "| not run | sound | not run |  | `sentinel reproduce table-highway` |" in twin
    assert 'data-preset="sound">not run</td>' in page
    assert '<code class="command">sentinel reproduce table-highway --preset sound</code>' in page
    assert 'id="frontier"' not in page, "there is nothing to draw"
    assert re.search(r"21 claims .* under the preset `sound`: 1 holds, 1 does not hold, 19 are not run yet", twin)


def test_only_small_files_are_needed(folder, page, tmp_path):
    """No records, no checkpoints, no pictures but SVG."""
    for one in collect(folder):
        (tmp_path / one["folder"]).mkdir()
        for path in (folder / one["folder"]).iterdir():
            if path.suffix in (".csv", ".json", ".svg"):
                shutil.copy(path, tmp_path / one["folder"])
    write_report(tmp_path)
    assert (tmp_path / "report.html").read_text() == page


def test_pictures_of_the_markdown_are_there(folder):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (folder / "report.md").read_text())
    assert pictures
    assert [name for name in pictures if not (folder / name).is_file()] == []


def test_the_papers_numbers_stand_beside_ours(page):
    assert "paper: crashes" in page
    assert "341.2 ± 43.9" in page


def test_the_same_results_give_the_same_bytes(folder, page):
    write_report(folder)
    assert (folder / "report.html").read_text() == page


def test_the_scripts_are_javascript(page, tmp_path):
    program = node.tool("node")
    for place, script in enumerate(re.findall(r"<script>(.*?)</script>", page, re.DOTALL)):
        (tmp_path / f"{place}.js").write_text(script)
        subprocess.run([program, "--check", tmp_path / f"{place}.js"], check=True)


@pytest.mark.attack("bad-report")
def test_results_that_cannot_be_read(folder, tmp_path):
    with pytest.raises(UsageError, match="no results"):
        write_report(tmp_path)
    broken = tmp_path / "a"
    shutil.copytree(folder / "ftrl-gaussians", broken)
    (broken / "ftrl-gaussians.svg").unlink()
    with pytest.raises(CorruptError, match=r"ftrl-gaussians\.svg"):
        write_report(tmp_path)
    found = broken / "ftrl-gaussians.json"
    earlier = json.loads(found.read_text())
    for text, message in (
        ("{", "cannot be read"),
        ("[1]", "is no page of an experiment"),
        (json.dumps({name: value for name, value in earlier.items() if name != "options"}), "has no options"),
        (json.dumps(earlier | {"findings": [{"claim": "It is so."}]}), "has no names of its claims"),
    ):
        found.write_text(text)
        with pytest.raises(CorruptError, match=f"{message}.*: run its experiment again"):
            write_report(tmp_path)


FORGED = {
    "name": "another",
    "title": 3,
    "where": None,
    "command": ["x"],
    "version": "x" * 100_001,
    "quick": "yes",
    "options": [],
    "results": [],
    "findings": 3,
    "words": {},
    "sections": [{"title": "A", "words": "", "figure": "../../secret", "rows": []}],
}


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize("entry", FORGED)
def test_a_forged_page_is_refused(entry, folder, tmp_path):
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "a")
    found = tmp_path / "a" / "ftrl-gaussians.json"
    found.write_text(json.dumps(json.loads(found.read_text()) | {entry: FORGED[entry]}))
    with pytest.raises(CorruptError, match=r"ftrl-gaussians\.json is no page of an experiment"):
        write_report(tmp_path)


@pytest.mark.attack("bad-report")
@pytest.mark.parametrize(
    "change", [{"findings": []}, {"options": {"runs": "x"}}, {"options": {"runs": 2.5}}], ids=["none", "text", "half"]
)
def test_findings_and_numbers_of_runs_are_needed(change, folder, tmp_path):
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "a")
    found = tmp_path / "a" / "ftrl-gaussians.json"
    found.write_text(json.dumps(json.loads(found.read_text()) | change))
    with pytest.raises(CorruptError, match="is no page of an experiment"):
        write_report(tmp_path)


@pytest.mark.attack("bad-report")
def test_figures_are_text_of_this_folder_and_not_too_large(folder, tmp_path, monkeypatch):
    """A link to somewhere else would put that file into the page."""
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "results" / "a")
    figure = tmp_path / "results" / "a" / "ftrl-gaussians.svg"
    (tmp_path / "secret.txt").write_text("secret")
    figure.rename(figure.with_name("real.svg"))
    figure.symlink_to("real.svg")
    write_report(tmp_path / "results")
    figure.unlink()
    figure.symlink_to(tmp_path / "secret.txt")
    with pytest.raises(CorruptError, match="is a link to a file elsewhere"):
        write_report(tmp_path / "results")
    figure.unlink()
    figure.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorruptError, match="is no figure of ftrl-gaussians"):
        write_report(tmp_path / "results")
    figure.write_text("<svg></svg>")
    monkeypatch.setattr("sentinel_paper.report._LARGEST_FIGURE", 5)
    with pytest.raises(CorruptError, match="11 bytes, at most 5 are read"):
        write_report(tmp_path / "results")


@pytest.mark.attack("report-script")
def test_links_to_elsewhere_are_text():
    assert harmless({"a": ["[x](javascript:ran=1)", "[y](#here)"]}) == {
        "a": ["[x]&#40;javascript:ran=1)", "[y](#here)"]
    }


@pytest.mark.attack("report-script")
def test_markup_in_results_is_text(folder, tmp_path):
    """In the Markdown as in the page; what begins no tag stays as it is."""
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "a")
    found = tmp_path / "a" / "ftrl-gaussians.json"
    page = json.loads(found.read_text())
    page["results"][0] = dict.fromkeys(page["results"][0], "<script>ran = 1</script> p < .05")
    found.write_text(json.dumps(page))
    html, text = (path.read_text() for path in write_report(tmp_path))
    assert html.count("<script>") == len(report_html.SCRIPTS)
    assert "&lt;script&gt;ran = 1&lt;/script&gt; p &lt; .05" in html
    assert "<script>" not in text
    assert "&lt;script>ran = 1&lt;/script> p < .05" in text
