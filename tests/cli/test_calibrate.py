"""``sentinel calibrate`` and ``sentinel abstain``: tables and files, a map that is used, and what is refused."""

import csv
import json

import pytest

from tests.learners import make
from tests.tiny import tiny


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A saved policy; it need not be trained to be judged."""
    return tiny("CartPole-v0").save(tmp_path_factory.mktemp("policy") / "pole.zip")


def test_a_policy_is_calibrated_and_the_map_is_used(run, policy, tmp_path):
    code, out, complaint = run("calibrate", policy, "--episodes", 12, "--seed", 3, "--out", tmp_path / "new")
    assert code == 0, complaint
    stem = tmp_path / "new" / "pole_calibration"
    assert {file.suffix for file in stem.parent.iterdir()} == {".json", ".csv", ".png", ".svg"}
    content = json.loads(stem.with_suffix(".json").read_text())
    assert f"{content['decisions']} decisions" in out
    rows = list(csv.DictReader(stem.with_suffix(".csv").read_text().splitlines()))
    assert [(row["laws"], row["of"]) for row in rows] == [
        (laws, of) for laws in ("predicted", "recalibrated") for of in ("member 1", "member 2", "mixture")
    ]
    assert sum(int(rows[2][f"pit_{place}"]) for place in range(1, 11)) == content["decisions"]
    asked = ("assess", policy, "--obs", "0,0,0,0", "--json")
    plain, corrected = (
        json.loads(run(*asked, *more)[1]) for more in ((), ("--recalibrate", stem.with_suffix(".json")))
    )
    assert plain["composite"] != corrected["composite"]
    assert "recalibrated" in corrected["note"]
    code, out, complaint = run("eval", policy, "--episodes", 2, "--recalibrate", stem.with_suffix(".json"))
    assert code == 0, complaint


def test_hand_overs_are_tabled(run, policy, tmp_path):
    options = ("--fallback", "constant", "--set", "action=0", "--coverage", "1,0.5", "--episodes", 6, "--out", tmp_path)
    code, out, complaint = run("abstain", policy, *options)
    assert code == 0, complaint
    assert "terminates within 3 decisions" in out
    rows = list(csv.DictReader((tmp_path / "pole_abstain.csv").read_text().splitlines()))
    assert [(row["coverage"], row["by"]) for row in rows] == [
        ("1.0", "epistemic"),
        ("0.5", "epistemic"),
        ("0.5", "random"),
    ]
    assert float(rows[1]["handed_over"]) > 0
    assert json.loads((tmp_path / "pole_abstain.json").read_text())["score"] == "epistemic"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("calibrate", "POLICY", "--episodes", 1), "needs at least as many outcomes"),
        (("calibrate", "POLICY", "--seed-index", 4), "counted from 0"),
        (("calibrate", "POLICY", "--on", "Nowhere-v7"), "unknown environment"),
        (("calibrate", "nowhere"), "holds no training run"),
        (("assess", "POLICY", "--recalibrate", "none.json"), "make it with `sentinel calibrate RUN`"),
        (("eval", "random", "--env", "CartPole-v0", "--recalibrate", "none.json"), "has none"),
        (("abstain", "POLICY", "--fallback", "sentinel"), "must learn first"),
        (("abstain", "POLICY", "--fallback", "random", "--coverage", "many"), "--coverage many"),
        (("abstain", "POLICY", "--fallback", "random", "--coverage", "0"), "above 0"),
        (("abstain", "POLICY", "--fallback", "random", "--score", "mood"), "choose one of epistemic"),
    ],
)
def test_bad_input_is_refused(run, policy, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, _, complaint = run(*(policy if argument == "POLICY" else argument for argument in arguments))
    assert code == 2
    assert words in complaint


def test_an_agent_without_laws_is_refused(run, tmp_path):
    path = make("vdqn").save(tmp_path / "vdqn.zip")
    code, _, complaint = run("calibrate", path, "--episodes", 1, "--out", tmp_path)
    assert code == 2
    assert "no laws of the return" in complaint
