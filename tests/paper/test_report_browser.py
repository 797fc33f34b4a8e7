"""The report in a real, headless browser, which npm brings as a package."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sentinel_paper.output import csv_text
from sentinel_paper.registry import find
from sentinel_paper.report import collect, figures_of, write_report
from sentinel_paper.report_curves import charts
from sentinel_paper.report_frontier import frontier
from sentinel_paper.report_rows import anchor
from sentinel_paper.statements import NO_PRESETS, NOT_RUN, judge
from tests import node
from tests.paper.fakes import write_learner

TOOLS = Path(__file__).parent / "browser"
clients = pytest.mark.clients
MINUS = "\N{MINUS SIGN}"


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
        found = subprocess.run(command, cwd=tools, capture_output=True, text=True, check=False, timeout=240)
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    return opened


@pytest.fixture(scope="module")
def seen(results, look, tmp_path_factory):
    """What the browser saw of the report over all experiments, and its folder."""
    folder = tmp_path_factory.mktemp("report") / "results"
    shutil.copytree(results.everything(), folder)
    write_learner(folder)
    page, _ = write_report(folder)
    return look(page), folder


@clients
def test_nothing_is_missing_or_wrong(seen):
    found, folder = seen
    assert found["drawn"]
    assert found["problems"] == []
    assert found["nameless"] == []
    assert set(found["figures"]) == {name for page in collect(folder) for name in figures_of(page)}
    assert min(found["widths"]) > 300
    assert found["empty"] == 0


@clients
def test_claims_are_sorted_up_down_and_back(seen):
    found, folder = seen
    judged = {one.statement.name: one.headline.verdict for one in judge(collect(folder))}
    told = found["sorted"]
    assert told["column"] == "verdict"
    assert told["first"]["order"] == told["back"]["order"] == list(judged)
    assert [judged[name] for name in told["up"]["order"]] == sorted(judged.values())
    assert [judged[name] for name in told["down"]["order"]] == sorted(judged.values(), reverse=True)
    ways = [told[step]["way"] for step in ("first", "up", "down", "back")]
    assert ways == [None, "ascending", "descending", None]
    assert len({told[step]["arrow"] for step in ("first", "up", "down")}) == 3


@clients
def test_claims_are_filtered_by_verdict_preset_and_section(seen):
    found, folder = seen
    judged, told = judge(collect(folder)), found["filtered"]

    def names(fits):
        return [one.statement.name for one in judged if fits(one)]

    verdicts = {found.verdict for one in judged for found in (one.headline, *one.by_preset.values())} - {NO_PRESETS}
    assert set(told["verdicts"]) == {"", *verdicts}
    for verdict in verdicts:
        wanted = names(lambda one, v=verdict: one.headline.verdict == v)
        assert told["verdicts"][verdict]["shown"] == wanted
        assert told["verdicts"][verdict]["words"] == f"{len(wanted)} of {len(judged)} claims"
        assert told["counts"][verdict] == len(wanted)
    assert set(told["presets"]) == {"", "sound", "literal"}
    run = names(lambda one: one.by_preset["literal"].verdict not in (NOT_RUN, NO_PRESETS))
    assert told["presets"]["literal"]["shown"] == run != []
    assert told["both"]["shown"] == names(lambda one: one.by_preset["literal"].verdict == "does not hold")
    for part in {one.statement.part for one in judged}:
        assert told["sections"][part]["shown"] == names(lambda one, p=part: one.statement.part == p)
    assert told["after"]["shown"] == names(lambda one: True)


@clients
def test_a_claim_opens_to_its_figure_numbers_and_command(seen):
    found, folder = seen
    first = judge(collect(folder))[0]
    assert found["claim"]["name"] == first.statement.name
    assert found["claim"]["open"]
    assert found["claim"]["commands"] == [page["command"] for page in first.headline.pages]
    for finding in first.headline.findings:
        assert finding["effect"] in found["claim"]["words"]
        assert " ".join(finding["reason"].split()) in found["claim"]["words"]


@clients
def test_points_of_the_figure_show_their_values(seen):
    found, folder = seen
    drawn = frontier(folder, collect(folder))
    points = [(group, point) for group in drawn.groups for point in group.points]
    told = found["frontier"]
    assert len(told["labels"]) == len(points) == told["again"]
    assert told["without"] == len(points) - len(drawn.groups[0].points)
    assert told["pressed"] == "false"
    assert told["ceiling"].startswith(f"{drawn.ceiling:.2f}")
    for label, tip in zip(told["labels"], told["tips"], strict=True):
        agent, source, value, crashes = tip.split("\n")
        assert label == f"{agent}, {source}: {value}, crashes in training {crashes.removeprefix('crashes ')}"
    shown = {tuple(tip.split("\n")[:2]): tip for tip in told["tips"]}
    for group, point in points:
        tip = shown[point.agent.removeprefix("SENTINEL-4 "), group.words].replace(MINUS, "-").split("\n")
        for line, wanted in zip(tip[2:], (point.value, point.crashes), strict=True):
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", line)]
            assert numbers == pytest.approx([wanted.mean, wanted.low, wanted.high], abs=0.051)
    assert told["away"] is None
    assert told["stops"] == 1
    assert (told["focused"], told["next"]) == tuple(told["tips"][:2])


@clients
def test_curves_show_the_values_at_a_step(seen):
    found, folder = seen
    curved = {page["folder"]: charts(folder, page)[0] for page in collect(folder) if charts(folder, page)}
    assert set(found["curves"]) == set(curved)
    assert {find(folder_name.removesuffix("-literal")).grid for folder_name in curved} == {True, False}
    for folder_name, chart in curved.items():
        told, lines = found["curves"][folder_name], chart["lines"]
        assert told["paths"] == 2 * len(lines)
        steps = [point[0] for point in lines[0]["points"]]
        for moment, step in (("end", steps[-1]), ("start", steps[0]), ("second", steps[1])):
            assert told[moment]["at"].startswith(f"after {step:.0f} {chart['across']}")
            assert set(told[moment]["numbers"]) == {line["agent"] for line in lines}
            for line in lines:
                _, mean, low, high = next(point for point in line["points"] if point[0] == step)
                numbers = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", told[moment]["numbers"][line["agent"]])]
                assert numbers == pytest.approx([mean, low, high], rel=0.01, abs=0.01)
                assert line["agent"] in told[moment]["told"]
        assert int(told["middle"]["at"].split()[1]) in steps


@clients
def test_contents_and_claims_lead_to_every_result(seen):
    found, folder = seen
    anchors = [anchor(page) for page in collect(folder)]
    assert set(anchors) <= set(found["links"]["contents"])
    assert None not in found["links"]["contents"]
    assert set(found["links"]["claims"]) == set(anchors)
    assert found["reached"]


@clients
def test_it_fits_narrow_and_wide_screens_light_and_dark(seen):
    """Wide tables scroll inside their frames, also those in details; contents are folded on a narrow screen."""
    looks = seen[0]["looks"]
    assert {name: look["overhang"] for name, look in looks.items()} == {name: [0, 0] for name in looks}
    assert {name: look["contents"] for name, look in looks.items()} == {
        f"{width} {scheme}": width == 1280 for width in (1280, 390) for scheme in ("light", "dark")
    }
    assert {look["points"] for look in looks.values()} == {len(seen[0]["frontier"]["labels"])}
    light, dark = looks["390 light"]["background"], looks["390 dark"]["background"]
    assert sum(map(int, re.findall(r"\d+", light))) > 600
    assert sum(map(int, re.findall(r"\d+", dark))) < 150


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
        curves = [
            {"agent": payload, "curve": payload, "transitions": at, "mean": 1, "low": 0, "high": 2} for at in (0, 1)
        ]
        (folder / f"{experiment}-curves.csv").write_text(csv_text(curves))
        drawing = folder / f"{experiment}.svg"
        drawing.write_text(drawing.read_text().replace("</svg>", DRAWINGS[number % len(DRAWINGS)]))
    write_learner(tmp_path, PAYLOADS)
    page, _ = write_report(tmp_path)
    seen = look(page)
    attacks(len(PAYLOADS) + len(DRAWINGS))
    assert seen["drawn"]
    assert len(seen["curves"]) == len(PAYLOADS)
    assert len(seen["frontier"]["tips"]) == len(PAYLOADS)
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
