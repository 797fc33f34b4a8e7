"""``sentinel reproduce``."""

import dataclasses

import pytest
import typer
from typer.testing import CliRunner

from sentinel_paper import registry
from sentinel_paper.claims import Claim, Finding, Verdict
from sentinel_paper.cli import reproduce

app = typer.Typer(add_completion=False)
app.command()(reproduce)


@pytest.fixture
def invoke(monkeypatch, tmp_path):
    """Call the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_list_has_every_experiment_with_its_place(invoke):
    done = invoke("--list")
    assert done.exit_code == 0
    for experiment in registry.EXPERIMENTS:
        line = next(line for line in done.output.splitlines() if f" {experiment.name} " in line)
        assert experiment.where in line
    for name in ("tuned", "sound (default)", "literal"):
        assert f"  {name}: " in done.output


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(invoke, tmp_path):
    for folder, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        assert invoke("gauss-mix-cvar", "--runs", "4", "--seed", seed, "--out", folder).exit_code == 0
    first, second, other = ((tmp_path / name / "gauss-mix-cvar.csv").read_bytes() for name in "abc")
    assert first == second
    assert first != other
    page = (tmp_path / "a" / "gauss-mix-cvar.md").read_text()
    assert "sentinel reproduce gauss-mix-cvar --runs 4 --seed 7" in page


@dataclasses.dataclass(frozen=True)
class Stub:
    """An experiment without random draws, done at once."""

    @dataclasses.dataclass(frozen=True)
    class Settings:
        pass

    SETTINGS = Settings()

    def run(self, settings, report, *execution):
        return settings

    def findings(self, records):
        return [
            Finding(Claim("weights", "w = [0, 1, 0].", "here"), "[always]", Verdict.UNDECIDED, "[/red] is no colour")
        ]

    def render(self, records, out):
        (out / "stub.md").write_text("done")
        return [out / "stub.md"]


def test_all_runs_everything_into_folders_of_their_own_and_ends_with_a_report(invoke, monkeypatch, tmp_path):
    monkeypatch.setattr(registry.Experiment, "load", lambda experiment: Stub())
    monkeypatch.setattr("sentinel_paper.report.write_report", lambda folder: [folder / "report.html"])
    done = invoke("all", "--runs", "4", "--out", "here")
    assert done.exit_code == 0
    assert done.output.rstrip().endswith("here/report.html")
    for experiment in registry.EXPERIMENTS:
        assert (tmp_path / "here" / experiment.name / "stub.md").exists()
        assert f"{experiment.name} is computed exactly, without random draws: --runs 4 has no effect" in done.output
    assert "w = [0, 1, 0]." in done.output
    assert "[always]: [/red] is no colour" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gauss-mix-cvr"], "did you mean 'gauss-mix-cvar'"),
        ([], "give the NAME of an experiment"),
        (["gauss-mix-cvar", "--runs", "0"], "--runs"),
        (["gauss-mix-cvar", "--runs", "many"], "--runs"),
        (["gauss-mix-cvar", "--seeds", "1"], "--seed"),
    ],
)
def test_wrong_use(invoke, arguments, message, tmp_path):
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert list(tmp_path.iterdir()) == []


def test_too_few_runs_are_refused_before_a_folder_is_made(invoke, tmp_path):
    done = invoke("gauss-mix-cvar", "--runs", "1")
    assert isinstance(done.exception, ValueError)
    assert list(tmp_path.iterdir()) == []
