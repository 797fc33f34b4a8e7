"""``sentinel sweep``: ranges, a study file that resumes, killed trials, and the file of the best options."""

import json
import sys
import time
from collections import Counter

import pytest

from sentinel_rl.cli import sweep
from sentinel_rl.cli.ranges import Range, parse_ranges
from sentinel_rl.errors import NumericalError, UsageError
from tests.faults.test_options import some

SMALL = ("hidden=4", "k=2", "atoms=5", "capacity=64", "samples=8", "learn_every=20", "warmup=10")
POLE = ("--env", "CartPole-v0", "--steps", 80, "--seeds", 2, "--evaluate", 2)
POLE += tuple(word for setting in SMALL for word in ("--set", setting))
VARY = ("--vary", "learning_rate=1e-4..1e-2:log", "--vary", "batch=4|8")


def test_ranges():
    assert parse_ranges(["k=2..8", "gamma=0.9..0.99"], "sentinel") == {"k": Range(2, 8), "gamma": Range(0.9, 0.99)}
    assert parse_ranges(["hidden=4|8,8"], "sentinel")["hidden"].choices == {"4": (4,), "8,8": (8, 8)}
    assert parse_ranges(["layer_norm=true|false"], "vdqn")["layer_norm"].choices == {"true": True, "false": False}
    assert parse_ranges(["aleatory=cvar:0.1|expectation"], "sentinel")["aleatory"].value("cvar:0.1") == "cvar:0.1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learning_rat=1..2", "did you mean learning_rate"),
        ("k", "NAME=RANGE"),
        ("k=8..2", "two ascending numbers"),
        ("lam=0..1:log", "begins above 0"),
        ("k=2", "at least two choices"),
        ("batch=8|text", "must be a whole number"),
    ],
)
def test_a_range_that_is_none(text, words):
    with pytest.raises(UsageError, match=words):
        parse_ranges([text], "sentinel")


def test_a_missing_package_is_named_with_its_install_line(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, complaint = run("sweep", tmp_path / "s.journal", *POLE, *VARY)
    assert code == 2
    assert "pip install 'sentinel-rl[optuna]'" in complaint


@pytest.fixture
def study_of():
    optuna = pytest.importorskip("optuna")

    def load(file):
        backend = optuna.storages.journal.JournalFileBackend(str(file))
        return optuna.load_study(study_name="sweep", storage=optuna.storages.JournalStorage(backend))

    return load


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_search_resumes_tries_killed_trials_again_and_writes_the_best(run, tmp_path, study_of):
    file = tmp_path / "pole.journal"
    code, out, complaint = run("sweep", file, *POLE, *VARY, "--trials", 2)
    assert code == 0, complaint
    study = study_of(file)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]
    # A process that is killed in the middle of a trial leaves it running.
    killed = study.ask()
    params = {"learning_rate": killed.suggest_float("learning_rate", 1e-4, 1e-2, log=True)}
    params["batch"] = killed.suggest_categorical("batch", ["4", "8"])
    code, out, complaint = run("sweep", file, *POLE, *VARY, "--trials", 3)
    assert code == 0, complaint
    assert "trial 2 was interrupted: it is tried again" in complaint
    trials = study_of(file).trials
    assert [trial.state.name for trial in trials] == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE"]
    assert trials[3].params == params
    assert len({trial.params["learning_rate"] for trial in trials}) == 3
    best = max((trial for trial in trials if trial.value is not None), key=lambda trial: trial.value)
    written = json.loads((tmp_path / "pole.best.json").read_text())
    assert written["options"]["learning_rate"] == best.params["learning_rate"]
    assert written["options"]["batch"] == int(best.params["batch"])
    assert "3 of 4 trials complete" in " ".join(out.split())
    # The file is one for `train`, and another search is not mixed in.
    code, _, complaint = run("train", "--config", tmp_path / "pole.best.json", "--quiet", "--out", tmp_path / "run")
    assert code == 0, complaint
    code, _, complaint = run("sweep", file, *POLE, "--vary", "batch=4|8", "--trials", 3)
    assert code == 2
    assert "holds another search" in complaint


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_two_searches_do_not_share_a_file(run, tmp_path, study_of, monkeypatch):
    """Optuna's own lock has another name: it waited for ours for half a minute, and then removed it."""
    file, seen = tmp_path / "pole.journal", []

    def trained(*args, **kwargs):
        seen.append(run("sweep", file, *POLE, *VARY, "--trials", 1))
        raise NumericalError("one is enough")

    monkeypatch.setattr(sweep, "train", trained)
    began = time.monotonic()
    run("sweep", file, *POLE, *VARY, "--trials", 1)
    ((code, _, complaint),) = seen
    assert code == 2
    assert "in use by process" in complaint
    assert time.monotonic() - began < 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pole.journal"]


VALUES = [None, "x", -1, 10**12, [], {}, 2.5, True]


@pytest.mark.clients
@pytest.mark.attack("forged-study")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("budget", [60, pytest.param(None, marks=pytest.mark.slow, id="all")])
def test_a_forged_study_is_refused(run, tmp_path, monkeypatch, attacks, budget):
    """Every entry of every line of the journal, and files that are none."""
    pytest.importorskip("optuna")
    monkeypatch.setattr(sweep, "_trial", lambda optuna, trial, *rest: 19.0 + trial.number)
    file = tmp_path / "pole.journal"
    line = ("sweep", file, *POLE, "--vary", "gamma=0.5..0.9", "--trials", 2)
    assert run(*line)[0] == 0
    good = file.read_text().splitlines()
    texts = ["x", "null", "{}", "[]", "[" * 100_000, "\x00" * 100, '{"op_code": 99}', "1", "\n".join(good) + "\nx"]
    for place, text in enumerate(good):
        entries = json.loads(text)
        changes = [{**entries, name: value} for name in entries for value in VALUES]
        changes += [{other: entries[other] for other in entries if other != name} for name in entries]
        texts += ["\n".join([*good[:place], json.dumps(change), *good[place + 1 :]]) + "\n" for change in changes]
    texts, codes, broke = some(texts, budget), Counter(), []
    for text in texts:
        file.write_text(text)
        code, _, complaint = run(*line)
        codes[code] += 1
        if code not in (0, 2, 3) or "Traceback" in complaint:
            broke.append(f"{code}: {complaint[-100:]!r}")
    attacks(len(texts))
    assert not broke, "\n".join(broke)
    assert codes[3] > len(texts) / 10


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_poor_learning_curve_is_stopped_early(run, tmp_path, study_of, monkeypatch):
    """A constant action after five trials of another one is pruned at a look, not trained to its end."""
    optuna = pytest.importorskip("optuna")
    asked = []

    class Always(optuna.pruners.MedianPruner):
        def prune(self, study, trial):
            asked.append((trial.number, trial.last_step))
            return trial.number > 0

    monkeypatch.setattr(optuna.pruners, "MedianPruner", Always)
    code, _, complaint = run("sweep", tmp_path / "s.journal", *POLE, "--vary", "batch=4|8", "--trials", 2)
    assert code == 0, complaint
    assert [trial.state.name for trial in study_of(tmp_path / "s.journal").trials] == ["COMPLETE", "PRUNED"]
    assert len([number for number, _ in asked if number == 0]) > 1
    assert len([number for number, _ in asked if number == 1]) == 1
    assert "stopped early" in complaint
