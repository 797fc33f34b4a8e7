"""The report over all experiments: complete, self-contained, and the same in both forms."""

import base64
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from sentinel_paper import registry
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
    assert all(source.startswith("data:image/svg+xml;base64,") for source in reader.loaded)
    inner = {target[1:] for target in reader.targets if target.startswith("#")}
    assert inner <= set(reader.ids)
    assert {target for target in reader.targets if not target.startswith("#")} <= {"data:,"}
    assert "http" not in re.sub(r'http-equiv|src="[^"]*"', "", page)


def test_every_figure_is_an_image_in_the_page(page, folder):
    shown = {base64.b64decode(data).decode() for data in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)}
    assert shown == {path.read_text() for path in folder.glob("*/*.svg")}
    assert page.count("<img ") == len(list(folder.glob("*/*.svg"))) > len(registry.EXPERIMENTS)


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
        assert f'<h2 id="{anchor(one)}">{title(one)}</h2>' in page
        assert f'<a id="{anchor(one)}"></a>\n\n## {title(one)}' in text
        assert f"falls, {preset} {runs} runs ({one['folder']})" in text
    assert text.count(": side by side") == page.count(": side by side") == 1


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
    assert len(rows) == page[: page.index("</table>")].count("<tr>") - 1
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}
    links = re.findall(r"\]\(#([\w-]+)\)", first)
    assert {f'<a id="{link}"></a>' in text for link in links} == {True}
    assert [re.search(r"`([\w-]+)` \|$", row)[1] for row in rows] == [one.name for one in registry.STATEMENTS]


def test_what_is_not_there_is_told_with_its_command(folder, tmp_path):
    shutil.copytree(folder / "ftrl-gaussians", tmp_path / "ftrl-gaussians")
    page, twin = (path.read_text() for path in write_report(tmp_path))
    assert "| not run | sound | not run |  | `sentinel reproduce table-highway` |" in twin
    assert '<td class="missing">not run</td><td></td><td><code>sentinel reproduce table-highway</code></td>' in page
    assert re.search(r"21 claims .* under the preset `sound`: 1 holds, 1 does not hold, 19 are not run yet", twin)


def test_only_small_files_are_needed(folder, page, tmp_path):
    """No records, no checkpoints, no pictures but SVG."""
    for one in collect(folder):
        (tmp_path / one["folder"]).mkdir()
        for path in (folder / one["folder"]).iterdir():
            if path.suffix in (".json", ".svg"):
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


def test_the_script_is_javascript(page, tmp_path):
    program = node.tool("node")
    (tmp_path / "page.js").write_text(re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1])
    subprocess.run([program, "--check", tmp_path / "page.js"], check=True)


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
    assert html.count("<script>") == 1
    assert "<script>" not in text
    assert "&lt;script>ran = 1&lt;/script> p < .05" in text
