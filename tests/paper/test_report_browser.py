"""The report in a real, headless browser, which npm brings as a package."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from sentinel_paper.report import collect, write_report
from sentinel_paper.report_rows import all_lines, title

pytestmark = pytest.mark.clients

TOOLS = Path(__file__).parent / "browser"


@pytest.fixture(scope="module")
def seen(results, tmp_path_factory):
    """What the browser saw of the report over all experiments."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    tools = tmp_path_factory.mktemp("browser")
    shutil.copytree(TOOLS, tools, dirs_exist_ok=True)
    if subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=tools, capture_output=True).returncode:
        pytest.skip("the browser cannot be installed from here")
    folder = results.everything()
    page, _ = write_report(folder)
    look = subprocess.run(
        ["node", "look.mjs", page], cwd=tools, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(look.stdout), collect(folder)


def test_nothing_is_missing_or_wrong(seen):
    told, pages = seen
    assert told["problems"] == []
    assert len(told["widths"]) == sum(1 + sum(bool(part["figure"]) for part in page["sections"]) for page in pages)
    assert min(told["widths"]) > 300


def test_a_click_sorts_the_claims(seen):
    told, pages = seen
    assert told["before"] == [line.verdict for line in all_lines(pages)]
    assert told["after"] == sorted(told["before"])
    assert told["after"] != told["before"]


def test_links_of_the_claims_lead_to_their_results(seen):
    told, pages = seen
    assert told["links"] == len(told["before"])
    assert set(told["headings"]) == {title(page) for page in pages}
    assert told["reached"]


def test_nothing_hangs_over_the_edge(seen):
    """Wide tables scroll inside their frames, on a narrow screen too."""
    told, _ = seen
    assert told["overhang"] == [0, 0]
