"""The page as text: whole in itself, small, and with nothing of a recording in it that could run."""

import base64
import hashlib
import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sentinel_rl.explanation import WORDS, short_number
from sentinel_rl.viewer import load_recording, page_text, save_recording, write_page
from sentinel_rl.viewer import page as module
from tests import node
from tests.viewer.made import ACTIONS, assess_in_numpy, made
from tests.viewer.payloads import PAYLOADS, forged

EXAMPLE = Path(__file__).parents[2] / "docs" / "assets" / "watch.zip"
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
DATA = re.compile(r'<script type="application/json" id="recording">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def text():
    return page_text(made())


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def data_of(text):
    return json.loads(DATA.search(text)[1])


def test_the_policy_allows_the_pages_own_scripts_and_nothing_else(text):
    policy = dict(part.split(" ", 1) for part in re.search(r'Policy" content="([^"]+)"', text)[1].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    assert not {"unsafe-inline", "unsafe-eval", "http", "*"} & set(" ".join(policy.values()).split())
    hashes = [hash_of(script) for script in SCRIPT.findall(text)]
    assert policy["script-src"].split() == hashes
    assert len(hashes) == len(module.SCRIPTS)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert policy["style-src"] == hash_of(style)


def test_nothing_comes_from_elsewhere(text):
    """The only addresses are the name of SVG's elements and the empty icon."""
    own = text.replace(DATA.search(text)[1], "")
    assert set(re.findall(r"https?://[^\"'\s]+", own)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"\b(?:src|href)=[\"'](?!data:,|#)", own)
    sinks = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(")
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon", *sinks):
        assert word not in own, word


def test_the_page_has_every_array_and_the_words_of_the_terminal(text):
    recording, data = made(), data_of(text)
    assert data["words"] == dict(WORDS)
    assert data["about"]["actions"] == list(ACTIONS)
    for name, array in recording.arrays.items():
        packed = data["arrays"][name]
        kind = {"bool": "uint8"}.get(array.dtype.name, array.dtype.name)
        assert packed["type"] == kind
        found = np.frombuffer(base64.b64decode(packed["data"]), kind).reshape(packed["shape"])
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_in_a_recording_stays_data(payload, tmp_path):
    recording = load_recording(save_recording(forged(payload), tmp_path / "forged"))
    text = page_text(recording)
    block = DATA.search(text)[1]
    assert not set("<>&\u2028\u2029") & set(block)
    assert data_of(text)["about"]["note"] == payload
    assert len(SCRIPT.findall(text)) == len(module.SCRIPTS)
    assert payload not in text.replace(block, "") or "<" not in payload


def test_numbers_are_shortened_as_in_the_terminal():
    rng = np.random.default_rng(0)
    numbers = (rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-5, 4, 400)).tolist()
    script = f"""
    const source = require("fs").readFileSync({json.dumps(str(files("sentinel_rl.viewer") / "reasons.js"))}, "utf8");
    const {{ short }} = require("vm").runInThisContext(source + "; Reasons");
    console.log(JSON.stringify({json.dumps(numbers)}.map(short)));
    """
    done = subprocess.run([node.tool("node"), "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [short_number(number) for number in numbers]


def test_large_laws_are_rounded_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_LAWS", 1000)
    data = data_of(page_text(made()))
    assert data["arrays"]["probs"]["type"] == "float16"
    assert "rounded to 16 bits" in data["made"]
    assert data["arrays"]["weights"]["type"] == "float32"


def test_the_recording_of_the_documentation_shows_what_its_page_says():
    """At the end LANE_RIGHT is preferred and leads into a crash; with CVaR 0.25 it would be SLOWER, which does not."""
    if not EXAMPLE.exists():
        pytest.skip("a source distribution leaves the recording out")
    example = load_recording(EXAMPLE)
    last = example.decisions - 1
    right, slower = ACTIONS.index("LANE_RIGHT"), ACTIONS.index("SLOWER")
    assert (example.decisions, example.about.actions) == (23, ACTIONS)
    assert assess_in_numpy(example, last, 0.5, 0.5).argmax() == right == example.arrays["action"][last]
    assert assess_in_numpy(example, last, 0.25, 0.5).argmax() == slower
    assert example.arrays["wrecked"][last, right]
    assert not example.arrays["wrecked"][last, slower]
    assert example.arrays["terminated"][last]


def test_a_bare_name_gets_its_ending_and_folders_are_made(tmp_path):
    path = write_page(made("chart", laws=False), tmp_path / "new" / "page")
    assert path == tmp_path / "new" / "page.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
