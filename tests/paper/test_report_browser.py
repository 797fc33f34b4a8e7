"""The report in a real, headless browser, which npm brings as a package."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sentinel_paper.report import collect, write_report
from sentinel_paper.report_rows import title
from sentinel_paper.statements import judge
from tests import node

TOOLS = Path(__file__).parent / "browser"
clients = pytest.mark.clients


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    """A function that opens a page in the browser and returns what it saw."""
    tools = tmp_path_factory.mktemp("browser")
    shutil.copytree(TOOLS, tools, dirs_exist_ok=True)
    install = [node.tool("npm"), "install", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=tools, capture_output=True, text=True)
    if done.returncode:
        node.missing(f"the browser cannot be installed from here ({done.stderr.strip()})")

    def opened(page):
        command = [node.tool("node"), "look.mjs", page]
        found = subprocess.run(command, cwd=tools, capture_output=True, text=True, check=True, timeout=120)
        return json.loads(found.stdout)

    return opened


@pytest.fixture(scope="module")
def seen(results, look):
    """What the browser saw of the report over all experiments, and its pages."""
    folder = results.everything()
    page, _ = write_report(folder)
    return look(page), collect(folder)


@clients
def test_nothing_is_missing_or_wrong(seen):
    found, pages = seen
    assert found["problems"] == []
    assert len(found["widths"]) == sum(1 + sum(bool(part["figure"]) for part in page["sections"]) for page in pages)
    assert min(found["widths"]) > 300


@clients
def test_a_click_sorts_the_claims(seen):
    found, pages = seen
    assert found["before"] == [one.headline.verdict for one in judge(pages)]
    assert found["after"] == sorted(found["before"])
    assert found["after"] != found["before"]


@clients
def test_links_of_the_claims_lead_to_their_results(seen):
    found, pages = seen
    judgements = [judgement for one in judge(pages) for judgement in one.by_preset.values()]
    assert found["links"] == sum(bool(one.pages) for one in judgements) + sum(
        len(one.headline.pages) for one in judge(pages)
    )
    assert set(found["headings"]) == {title(page) for page in pages}
    assert found["reached"]


@clients
def test_nothing_hangs_over_the_edge(seen):
    """Wide tables scroll inside their frames, on a narrow screen too."""
    found, _ = seen
    assert found["overhang"] == {"1280": 0, "390": 0}


MARK = "window.ran = 1"
PAYLOADS = [
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f"<img src=x onerror='{MARK}'>",
    f"<svg onload='{MARK}'></svg>",
    f"</td></table><script>{MARK}</script>",
    f"<!-- results:end --><script>{MARK}</script>",
    f'[holds](#x" onmouseover={MARK})',
    f"`</code><script>{MARK}</script>`",
    f"<a href='javascript:{MARK}' autofocus onfocus='{MARK}'>x</a>",
    f"&lt;script&gt;{MARK}&lt;/script&gt;",
    f"</style><style onload='{MARK}'>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
]
DRAWINGS = [
    f"<script>{MARK}</script></svg>",
    f"</svg><script>{MARK}</script>",
    f"<image href='x' onerror='{MARK}'/></svg>",
    f"<foreignObject><img src='x' onerror='{MARK}'/></foreignObject></svg>",
]


@pytest.mark.attack("report-script")
@clients
def test_nothing_in_results_runs(results, look, tmp_path, attacks):
    """Twelve texts in every cell and words of a page, and four drawings: none of them sets a variable."""
    experiment = "ftrl-gaussians"
    for number in range(max(len(PAYLOADS), len(DRAWINGS))):
        folder = tmp_path / str(number)
        shutil.copytree(results(experiment), folder)
        payload = PAYLOADS[number % len(PAYLOADS)]
        found = folder / f"{experiment}.json"
        page = json.loads(found.read_text())
        for entry in ("title", "where", "command", "version", "setup", "words"):
            page[entry] = payload
        page["results"] = [{payload: payload} for _ in page["results"]]
        for finding in page["findings"]:
            finding |= dict.fromkeys(("claim", "where", "setting", "effect", "reason"), payload)
        found.write_text(json.dumps(page))
        drawing = folder / f"{experiment}.svg"
        drawing.write_text(drawing.read_text().replace("</svg>", DRAWINGS[number % len(DRAWINGS)]))
    page, _ = write_report(tmp_path)
    seen = look(page)
    attacks(len(PAYLOADS) + len(DRAWINGS))
    assert seen["ran"] is None
    assert not any("Refused" in problem or "ran" in problem for problem in seen["problems"])


@clients
def test_whatever_the_console_says_is_a_problem(look, tmp_path):
    """The browser is asked of a page that complains, fails and lacks a picture."""
    page = tmp_path / "page.html"
    page.write_text(
        '<h2 id="there">There</h2><table><thead><tr><th>sound</th></tr></thead><tbody><tr><td><a href="#there">holds'
        '</a></td></tr></tbody></table><img src="none.png"><script>console.warn("careful"); console.error("wrong");'
        'console.log("fine"); throw new Error("broken")</script>'
    )
    problems = look(page)["problems"]
    for part in ("careful", "wrong", "broken", "none.png"):
        assert any(part in problem for problem in problems), part
    assert not any("fine" in problem for problem in problems)


@pytest.mark.parametrize(("ci", "outcome"), [("true", "failed"), ("", "skipped")])
def test_without_a_browser_ci_fails_and_others_skip(ci, outcome, monkeypatch):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        {"failed": pytest.fail.Exception, "skipped": pytest.skip.Exception}[outcome], match="npm is not"
    ):
        node.tool("npm")
