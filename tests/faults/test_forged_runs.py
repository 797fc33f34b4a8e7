"""Folders of runs that somebody made up, with right checksums, and the plain files in them, in every command."""

import importlib
import json
import shutil
import time
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

from sentinel_rl.agents.registry import make_agent
from sentinel_rl.cli import app, main
from sentinel_rl.errors import CorruptError, SentinelWarning, UsageError
from sentinel_rl.storage.configuration import digest
from sentinel_rl.storage.run_folder import CONFIG, FINISHED, open_run
from sentinel_rl.study.learning_curves import read_curves
from sentinel_rl.training import CSVSink
from sentinel_rl.training.episodes import Episode, EpisodeTable, _checksum, monitor_file, read_monitor, write_monitor
from sentinel_rl.training.policy import policy_file, save_policy
from sentinel_rl.training.run_notes import read_notes
from sentinel_rl.training.sinks import RunStart
from sentinel_rl.training.trainer import train
from tests.faults.test_forged import DELETED, shown
from tests.faults.test_options import BUDGETS, POLE, Taken, outcome, some

ABOUT = {"agent": "constant", "options": {"action": 0}, "env": "CartPole-v0", "steps": 300, "seeds": [0, 1]}
PLAN = {"class": "sentinel_rl.Plan", "steps": 300}
CURVES = "seed,step,return\n0,150,1\n0,300,\n1,150,3\n1,300,4\n"
LINES = [{"seed": seed, "episodes": 1, "return": 1.0, "terminations": 1} for seed in (0, 1)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run, as `sentinel train` leaves it, made without training."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    with open_run(folder, {"plan": PLAN, "seeds": [0, 1], "points": 200, "gamma": 0.99}, about=ABOUT) as run:
        run.finish({"steps": 300, "seeds": LINES})
    agent = make_agent("constant", POLE, action=0)
    state = agent.init(POLE.spec, jax.random.key(0))
    for seed in (0, 1):
        save_policy(policy_file(folder, seed), agent, state, POLE, "constant", {"action": 0}, seed, 300)
        write_monitor(monitor_file(folder, seed), EpisodeTable.of_episodes(0, [EPISODE]), "CartPole-v0", 0.0)
    (folder / "curves.csv").write_text(CURVES)
    return folder


EPISODE = Episode(9.0, float("nan"), 9, True, 9, 0.5)


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def forge(file, place: str, value: Any) -> None:
    """Change an entry of one of the small files of a run, and make its checksums right."""
    content = json.loads(file.read_text())
    del content["checksum"]
    *parents, last = place.split(".")
    target = content
    for parent in parents:
        target = target[int(parent) if parent.isdecimal() else parent]
    key = int(last) if last.isdecimal() else last
    if value is not DELETED:
        target[key] = value
    elif key in target or isinstance(target, list):
        del target[key]
    if file.name == CONFIG:
        content["hash"] = digest(content.get("configuration"))
    file.write_text(json.dumps({**content, "checksum": digest(content)}))


def test_what_was_written_is_read(folder):
    notes = read_notes(folder)
    assert notes is not None
    assert (notes.request, notes.points, notes.gamma, notes.failed) == (ABOUT, 200, 0.99, frozenset())
    forge(folder / FINISHED, "seeds.1.failed", "not finite")
    notes = read_notes(folder)
    assert notes is not None
    assert notes.failed == {1}


FORGED = [
    *[("about.env", value) for value in (None, 7, "x" * 5_000, "a\x1b[31mb", ["CartPole-v0"])],
    *[("about.agent", value) for value in (DELETED, 7, "x" * 5_000, "a\nb")],
    *[("about.steps", value) for value in (DELETED, None, 0, -1, 2.5, "300", 2**70, True)],
    *[("about.seeds", value) for value in (DELETED, None, 3, [], [-1], [2**32], ["0"], [0, 0], [[0]], {"a": 1}, "01")],
    *[("about.options", value) for value in (DELETED, None, [], "x", {"a b": 1})],
    *[("about.env_kwargs", value) for value in (None, [], "x", {"": 1})],
    *[("about.wrappers", value) for value in (None, "ab", [1], 7)],
    *[("about.horizon", value) for value in (0, "x", 2.5)],
    *[("configuration.points", value) for value in (0, "x", 10**12, [1])],
    *[("configuration.gamma", value) for value in (2, "x", [0.5])],
]


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize(("place", "value"), FORGED, ids=shown)
def test_a_forged_run_is_refused(place, value, folder):
    forge(folder / CONFIG, place, value)
    with pytest.raises(CorruptError, match="is no run of sentinel-rl, or was edited"):
        read_notes(folder)


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize(
    ("place", "value"),
    [("seeds", 3), ("seeds", {"a": 1}), ("seeds.0", 3), ("seeds.0", {}), ("seeds.0.seed", "0"), ("seeds.0.seed", -1)],
    ids=shown,
)
def test_a_forged_end_is_refused(place, value, folder):
    forge(folder / FINISHED, place, value)
    with pytest.raises(CorruptError, match="is no run of sentinel-rl, or was edited"):
        read_notes(folder)


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize(
    "value", [DELETED, None, "x", [], {}, {"steps": "x"}, {"steps": 300, "horizon": "x"}], ids=shown
)
def test_a_forged_plan_is_refused_where_a_run_is_resumed(value, folder):
    forge(folder / CONFIG, "configuration.plan", value)
    with pytest.raises(CorruptError, match="is no run of sentinel-rl, or was edited"):
        train("constant", POLE, 600, folder=folder, action=0)


VALUES: list[Any] = [
    *(None, DELETED, "x", -1, 2.5, 10**12, 2**70, [], {}, [1], ["a"], {"a": 1}, True, "x" * 5_000, "[/b]", "a\nb"),
    float("inf"),
]
PLACES = (
    *((CONFIG, f"about.{name}") for name in (*ABOUT, "env_kwargs", "wrappers", "horizon")),
    *((CONFIG, name) for name in ("about", "configuration", "configuration.points", "configuration.gamma")),
    *((FINISHED, name) for name in ("seeds", "seeds.0", "seeds.0.seed", "seeds.0.failed")),
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "eval": ("--episodes", "2"),
    "assess": (),
    "watch": ("--html", "page.html", "--episodes", "1"),
    "scenes": (),
    "plot": ("--out", "curves.html"),
    "export": ("--stablehlo", "policy.bin"),
    "calibrate": ("--episodes", "2"),
    "abstain": ("--fallback", "random", "--episodes", "2"),
    "frontier": ("--episodes", "2"),
    "stress": ("--episodes", "2"),
    "verify": (),
    "train": ("--out", "new", "--quiet"),
}


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """Commands stop when their work begins."""

    def taken(*args: Any, **kwargs: Any) -> None:
        raise Taken("taken")

    for module, name in (
        ("training.trainer", "_sessions"),
        ("training.evaluation", "_evaluate"),
        ("viewer.record", "play_jax"),
        ("api.base", "explain"),
        ("cli.calibrate", "calibrate"),
        ("cli.abstain", "hand_over"),
        ("cli.export", "to_stablehlo"),
    ):
        monkeypatch.setattr(importlib.import_module(f"sentinel_rl.{module}"), name, taken)
    monkeypatch.setattr(app, "build", cache(app.build))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.attack("forged-run")
@pytest.mark.usefixtures("untyped", "at_work")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("budget", BUDGETS)
def test_forged_runs_in_every_command(made, tmp_path, attacks, budget):
    cases = [(command, *place, value) for command in COMMANDS for place in PLACES for value in VALUES]
    broke, chosen = [], some(cases, budget)
    for command, file, place, value in chosen:
        folder = tmp_path / "forged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)
        forge(folder / file, place, value)
        line = ["--config", "forged"] if command == "train" else ["forged"]
        if wrong := outcome([command, *line, *COMMANDS[command]]):
            broke.append(f"{place}={str(value)[:20]}: {wrong}")
    attacks(len(chosen))
    assert not broke, "\n".join(broke)


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "a", "\x00", "seed,step\n0,1\n", "seed,step,return\n", "seed,step,return\n0,1\n"),
        *("step,seed,return\n1,0,2\n", "seed,step,return,return\n0,1,2,3\n", "seed,step,a\x1bb\n0,1,2\n"),
        *("seed,step,return\n0,1,2\n0,1,3\n", "seed,step,return\n0,1,2\n0,2,2\n1,1,2\n2,2,2\n"),
        *(f"seed,step,return\n0,{step},2\n" for step in ("1e300", "inf", "nan", "-5", "0", "1.5e10", "x")),
        *(f"seed,step,return\n0,1,{value}\n" for value in ("inf", "-inf", "1e308", "x", "x" * 200_000)),
    ],
    ids=lambda text: repr(text[-20:]),
)
def test_forged_curves_are_refused(text, folder):
    (folder / "curves.csv").write_text(text)
    with pytest.raises(CorruptError, match=r"curves\.csv is no file of learning curves"):
        read_curves(folder)


@pytest.mark.attack("forged-run")
def test_curves_are_measured_before_they_are_read(folder, monkeypatch):
    monkeypatch.setattr("sentinel_rl.study.learning_curves._LARGEST_FILE", len(CURVES) - 1)
    with pytest.raises(CorruptError, match=f"has more than {len(CURVES) - 1} bytes"):
        read_curves(folder)


def test_seeds_in_any_order_and_missing_numbers_are_read(folder):
    (folder / "curves.csv").write_text("seed,step,return\n7,1,2\n7,2,\n3,1,4\n3,2,5\n")
    np.testing.assert_array_equal(read_curves(folder).values["return"], [[2.0, np.nan], [4.0, 5.0]])


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize(
    "row",
    [
        *("1,-5,0,1", "1,0,0,1", f"1,{'9' * 30},0,1", f"1,{'9' * 5_000},0,1", "nan,5,0,1", "1e308,5,0,1", "inf,5,0,1"),
        *("1,5,inf,1", "1,5", f"1,5,{'x' * 200_000},1"),
    ],
    ids=lambda row: row[:12],
)
def test_forged_episodes_are_lost_and_told(row, tmp_path):
    path, rows, about = (
        tmp_path / "seed_0.monitor.csv",
        f"r,l,t,terminated\n{row}\n",
        {"t_start": 1.0, "env_id": "World"},
    )
    path.write_text(f"#{json.dumps({**about, 'checksum': _checksum(about, rows)})}\n{rows}")
    with pytest.warns(SentinelWarning, match="the episodes before step 9 are lost"):
        assert len(read_monitor(path, 0, 9).run) == 0


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize("text", ["step,seed,name,value\nx,0,a,1\n", f"step,seed,name,value\n1,0,{'x' * 200_000},1\n"])
def test_a_log_that_is_none_is_not_continued(text, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(CorruptError, match="is no log of scalars"):
        CSVSink(path).start(RunStart(0, 10, True, {}))
    assert path.read_text() == text


@pytest.mark.attack("forged-run")
@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[",
            "[" * 100_000,
            '{"a":' * 50_000,
            "null",
            "\x00",
            "NaN",
            '{"env": NaN}',
            '{"env": "CartPole-v0", "x": 1}',
        ),
        *(json.dumps(ABOUT | {name: value}) for name, value in (("wrappers", [1]), ("steps", True), ("options", []))),
    ],
    ids=lambda text: text[:12] + text[-12:],
)
@pytest.mark.parametrize("ending", ["json", "toml"])
def test_configurations_of_anybody(text, ending, tmp_path):
    (tmp_path / f"file.{ending}").write_text(text)
    began = time.perf_counter()
    with pytest.raises(SystemExit) as ended:
        main(["train", "--config", f"file.{ending}", "--out", "new", "--quiet"])
    assert ended.value.code == 2
    assert time.perf_counter() - began < 5


@pytest.mark.attack("empty-text")
@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize(
    "line",
    [
        *(["train", "--env", "CartPole-v0", "--out", ""], ["train", "--env", "CartPole-v0", "--out="], ["plot", ""]),
        *(
            ["eval", "run", "--on", ""],
            ["sweep", "", "--env", "CartPole-v0"],
            ["report", ""],
            ["reproduce", "--out", ""],
        ),
        *(["watch", "highway-rule", "--html", ""], ["export", "run", "--onnx="], [""]),
    ],
    ids=" ".join,
)
def test_an_empty_text_is_not_the_current_folder(line, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(line)
    assert ended.value.code == 2
    assert "an empty text was given" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.attack("empty-text")
def test_an_empty_text_is_no_folder():
    with pytest.raises(UsageError, match='folder="" names no folder'):
        train("constant", POLE, 10, folder="", action=0)


@pytest.mark.attack("forged-run")
@pytest.mark.parametrize("name", ["[/b]", "[red]x", ":boom:", "\x1b[31mx", "\x9b31m", "\u202e"])
def test_names_are_text_on_the_terminal(name, tmp_path, capsys):
    """Markup would end the command or colour it, and a terminal obeys what follows an escape."""
    file = tmp_path / "samples.csv"
    file.write_text(f"{name},b\n1,2\n3,4\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["risk", "cvar:0.5", str(file)])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert "\x1b" not in told
    assert "\x9b" not in told
    assert ("31mx" if name.startswith("\x1b") else name.strip("\x9b")) in told
