"""The lists of experiments and of statements."""

import dataclasses
import json
import re
import sys
import types
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import sentinel_paper
from sentinel_paper import registry
from sentinel_paper.claims import Claim, Finding, Verdict, by_name
from sentinel_paper.cli import report, reproduce
from sentinel_paper.output import Page, publish
from sentinel_paper.registry import ABSTRACT, BEYOND, EXPERIMENTS, SECTION, STATEMENTS, STUDIES, Experiment, Statement
from sentinel_rl import plotting

CLAIMS = {
    f"{experiment.name}/{claim.name}": claim for experiment in EXPERIMENTS for claim in experiment.load().PAPER.values()
}


def test_every_module_of_an_experiment_is_listed_once():
    modules = {
        path.stem
        for path in Path(sentinel_paper.__file__).parent.glob("*.py")
        if re.search(r"^PAPER\b.* = ", path.read_text(), re.MULTILINE)
    }
    names = [experiment.name for experiment in (*EXPERIMENTS, *STUDIES)]
    assert sorted(names) == sorted(module.replace("_", "-") for module in modules)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_an_experiment_has_its_parts(experiment):
    recipe = experiment.load()
    assert recipe.PAPER
    assert all(isinstance(claim, Claim) and claim.name == name for name, claim in recipe.PAPER.items())
    assert recipe.NAME == experiment.name
    assert hash(recipe.SETTINGS) == hash(dataclasses.replace(recipe.SETTINGS))
    assert hasattr(recipe.SETTINGS, "preset") == experiment.grid
    assert all(callable(part) for part in (recipe.run, recipe.findings, recipe.render))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_beyond_the_paper_has_the_parts_of_an_experiment_and_decides_no_statement(study):
    recipe = registry.find(study.name).load()
    assert (recipe.NAME, study.where) == (study.name, BEYOND)
    assert all(isinstance(claim, Claim) and claim.name == name for name, claim in recipe.PAPER.items())
    assert all(callable(part) for part in (recipe.run, recipe.findings, recipe.render))
    assert not any(study.name in statement.claims() for statement in STATEMENTS)
    assert not {claim.where for claim in recipe.PAPER.values()} & {statement.where for statement in STATEMENTS}


def test_names_are_short_slugs_and_unique():
    names = [statement.name for statement in STATEMENTS]
    assert len(set(names)) == len(names)
    for name in [*names, *(claim.name for claim in CLAIMS.values())]:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+){0,4}", name), name
    with pytest.raises(ValueError, match="two claims have the same name"):
        by_name(Claim("one", "One.", "here"), Claim("one", "Two.", "there"))


def test_every_claim_of_every_experiment_decides_a_statement():
    assert {reference for statement in STATEMENTS for reference in statement.evidence} == set(CLAIMS)


def test_a_claim_of_section_6_is_a_statement_there():
    cited = {reference for statement in STATEMENTS if statement.part == SECTION for reference in statement.evidence}
    assert {reference for reference, claim in CLAIMS.items() if "section 6" in claim.where} <= cited
    counted = [statement for statement in STATEMENTS if statement.part in (ABSTRACT, SECTION)]
    assert all(statement.where.startswith(("abstract", "section 6", "table 1")) for statement in counted)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gauss-mix-cvr", "did you mean 'gauss-mix-cvar'"),
        ("zzz", "unknown experiment 'zzz': There are theorems, gauss-mix-cvar"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        registry.find(name)


@pytest.fixture
def added(monkeypatch):
    """An experiment that is not in the package: its module, and one line in each list of the registry."""
    module = types.ModuleType("sentinel_paper.table_dice")

    @dataclasses.dataclass(frozen=True)
    class Settings:
        pass

    def findings(records):
        return [Finding(module.PAPER["fair"], "two dice", Verdict.HOLDS, "the mean is 7.", "mean 7; exact")]

    def render(records, out):
        page = Page("table-dice", module.SETTINGS, "Two dice.", [{"sum": "7"}], findings(records), "They are fair.")
        with plotting.figure() as drawing:
            return publish(page, drawing, page.results, out)

    module.SETTINGS, module.PAPER = Settings(), by_name(Claim("fair", "The dice are fair.", "table 9"))
    module.run, module.findings, module.render = (lambda settings, progress: 7), findings, render
    monkeypatch.setitem(sys.modules, "sentinel_paper.table_dice", module)
    dice = Statement(SECTION, "dice-are-fair", "The dice are fair.", "table 9", ("table-dice/fair",))
    experiment = Experiment("table-dice", "Two dice", "table 9", grid=False)
    monkeypatch.setattr(registry, "EXPERIMENTS", (*EXPERIMENTS, experiment))
    monkeypatch.setattr(registry, "STATEMENTS", (*STATEMENTS, dice))


def test_another_experiment_is_its_module_and_its_registration(added, tmp_path, monkeypatch):
    """Commands, page and report need nothing else."""
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(reproduce)
    app.command()(report)
    for command in (["reproduce", "table-dice"], ["report", "results"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    page = json.loads(Path("results/table-dice/table-dice.json").read_text())
    assert page["findings"][0]["name"] == "fair"
    assert (
        "| The dice are fair. | [holds](#results-table-dice) | – | – | two dice: mean 7; exact |"
        in Path("results/report.md").read_text()
    )
