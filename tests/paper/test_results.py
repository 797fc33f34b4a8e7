"""The results in the repository: what their pages say follows from the numbers beside them."""

import csv
import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from sentinel_paper import fig_ftrl_lambda, fig_risk_measures, judging, metrics, output, table_highway
from sentinel_paper.registry import find
from sentinel_paper.report import write_report
from sentinel_paper.settings import CARTPOLE, HIGHWAY
from sentinel_paper.trained import Records, Settings

RESULTS = Path(__file__).parents[2] / "results"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are in the repository, not in the sdist")
PAGES = sorted(RESULTS.glob("*/*.json"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_both_forms_of_a_page_say_the_same(path):
    page = json.loads(path.read_text())
    assert output.markdown(page) == path.with_suffix(".md").read_text()
    assert output.json_text(page) == path.read_text()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_a_page_has_the_claims_of_its_experiment(path):
    claims = find(path.stem).load().PAPER
    found = json.loads(path.read_text())["findings"]
    assert {(one["name"], one["claim"], one["where"]) for one in found} == {
        (claim.name, claim.text, claim.where) for claim in claims.values()
    }


@dataclasses.dataclass(frozen=True)
class Row:
    """In the place of a record: the metrics of its runs, as ``NAME-runs.csv`` has them."""

    rows: list[dict[str, str]]


@pytest.mark.parametrize(
    ("folder", "recipe", "task"),
    [
        ("table-highway", table_highway, HIGHWAY),
        ("table-highway-literal", table_highway, HIGHWAY),
        ("fig-ftrl-lambda", fig_ftrl_lambda, CARTPOLE),
        ("fig-risk-measures", fig_risk_measures, CARTPOLE),
    ],
)
def test_findings_follow_from_the_numbers_of_the_runs(folder, recipe, task, monkeypatch):
    """Verdicts, effects and reasons are computed again, from nothing but the CSV of single runs."""
    page = json.loads((RESULTS / folder / f"{recipe.NAME}.json").read_text())
    runs: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader((RESULTS / folder / f"{recipe.NAME}-runs.csv").read_text().splitlines()):
        runs.setdefault(row["agent"], []).append(row)
    records = Records(Settings(**page["options"]), task, {label: Row(rows) for label, rows in runs.items()})
    assert {len(rows) for rows in runs.values()} == {records.settings.runs}

    def values(records, metric):
        return {label: np.array([float(row[metric.name]) for row in one.rows]) for label, one in records.found.items()}

    monkeypatch.setattr(metrics, "values", values)
    monkeypatch.setattr(judging, "values", values)
    for found, written in zip(recipe.findings(records), page["findings"], strict=True):
        assert (found.claim.name, str(found.verdict)) == (written["name"], written["verdict"])
        assert (found.effect, found.reason) == (written["effect"], written["reason"])


def test_the_committed_report_is_what_the_command_writes(tmp_path):
    """Packed figures aside, whose bytes are those of the machine's compression."""
    shutil.copytree(RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("report.*", "*.png", "records"))
    html, text = write_report(tmp_path / "results")
    figures = re.compile(r'id="figures">.*?</script>', re.DOTALL)
    assert figures.sub("", html.read_text()) == figures.sub("", (RESULTS / "report.html").read_text())
    assert text.read_text() == (RESULTS / "report.md").read_text()
