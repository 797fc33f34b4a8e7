"""Scenes: what was written is read, nothing that was forged; the shipped ones are right by simulation."""

import dataclasses
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.highway import Highway
from sentinel_rl.envs.highway.env import ACTION_NAMES
from sentinel_rl.errors import CorruptError, IncompatibleError, UsageError
from sentinel_rl.viewer import Scene, Verdict, capture, choices, judge, load_scene, load_scenes, save_scene
from sentinel_rl.viewer.scene import LARGEST_FILE, state_of

ENV = Highway.preset("highway-v1")
SHIPPED = load_scenes()
SEEN = Scene("seen", "A pole.", "CartPole-v1", ("LEFT", "RIGHT"), do=("LEFT",), obs=np.arange(4, dtype=np.float32))
step = jax.jit(lambda state, action: ENV.step(state, action, jax.random.key(0)))


@pytest.fixture
def plain(tmp_path):
    """A function that gives the content of a scene's file."""
    return lambda scene: json.loads(save_scene(scene, tmp_path / "plain.json").read_text())


@pytest.mark.parametrize("scene", [SHIPPED[0], SEEN], ids=["highway", "observation"])
def test_what_was_written_is_read(scene, tmp_path):
    """To the last bit: a state in single precision survives its decimals."""
    found = load_scene(save_scene(scene, tmp_path))
    assert (found.name, found.do, found.avoid, found.env) == (scene.name, scene.do, scene.avoid, scene.env)
    for one, other in zip(jax.tree.leaves(found.state), jax.tree.leaves(scene.state), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    if scene.obs is not None:
        np.testing.assert_array_equal(found.obs, scene.obs)


def with_state(**entries):
    return lambda given: given | {"state": given["state"] | entries}


FORGED = {
    "another road": lambda given: given | {"env": 7},
    "no entries": lambda given: {},
    "a list": lambda given: [given],
    "an entry too many": lambda given: given | {"path": "/etc/passwd"},
    "an entry less": lambda given: {name: value for name, value in given.items() if name != "do"},
    "a name that is a path": lambda given: given | {"name": "../../x"},
    "an unknown action": lambda given: given | {"do": ["FLY"]},
    "actions in one text": lambda given: given | {"do": "IDLE"},
    "nothing wanted": lambda given: given | {"do": [], "avoid": []},
    "nothing allowed": lambda given: given | {"do": ["IDLE"], "avoid": ["IDLE"]},
    "a control character": lambda given: given | {"about": "a\u0000b"},
    "both kinds": lambda given: given | {"obs": [0.0]},
    "neither kind": lambda given: given | {"state": None},
    "an infinite place": with_state(x=[1e400] * 11),
    "a place that is text": with_state(x=["0"] * 11),
    "a place beyond": with_state(x=[1e9] * 11),
    "a speed of light": with_state(speed=[3e8] * 11),
    "a lane below": with_state(target_lane=[-1] * 11),
    "a lane that is a half": with_state(target_lane=[0.5] * 11),
    "a crash that is a number": with_state(crashed=[1] * 11),
    "fewer vehicles in one list": with_state(y=[0.0] * 10),
    "no vehicles": with_state(x=[]),
    "more numbers than any road has": with_state(x=[0.0] * 100_000),
    "a time before time": with_state(time=-1),
    "a time that is true": with_state(time=True),
    "a field too many": with_state(password=[1.0] * 11),
}


@pytest.mark.attack("forged-scene")
@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_forged_scenes_are_refused(change, plain, tmp_path):
    path = tmp_path / "forged.scene.json"
    path.write_text(json.dumps(change(plain(SHIPPED[0]))))
    with pytest.raises(CorruptError):
        load_scene(path)


@pytest.mark.attack("forged-scene")
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"scene": 1, "scene": 1}', b'{"scene": NaN}', b"[" * 100_000, b" " * (LARGEST_FILE + 1)],
    ids=["empty", "cut", "not UTF-8", "twice", "NaN", "deep", "large"],
)
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign.scene.json"
    path.write_bytes(content)
    with pytest.raises(CorruptError):
        load_scene(path)


def test_files_that_are_not_there_or_newer_and_folders(plain, tmp_path):
    with pytest.raises(UsageError, match="there is no scene"):
        load_scene(tmp_path / "nowhere.scene.json")
    with pytest.raises(UsageError, match="holds no scenes"):
        load_scenes(tmp_path)
    newer = tmp_path / "newer.scene.json"
    newer.write_text(json.dumps(plain(SEEN) | {"scene": 2}))
    with pytest.raises(IncompatibleError, match="version 2"):
        load_scene(newer)
    newer.unlink()
    for name in ("a", "b"):
        save_scene(SEEN, tmp_path / f"{name}.scene.json")
    with pytest.raises(UsageError, match="two scenes of the name seen"):
        load_scenes(tmp_path)


@pytest.mark.parametrize("name", ["os:path", "highway-v0", "sentinel/highway-v0"])
def test_a_file_chooses_one_of_our_roads_and_nothing_else(name):
    """And only the one that its vehicles fit."""
    scene = dataclasses.replace(SHIPPED[0], env=name)
    with pytest.raises(UsageError, match=r"is not one of the highways|has others"):
        state_of(scene)


def test_ten_scenes_come_with_the_library():
    assert len(SHIPPED) == 10
    assert all(scene.about for scene in SHIPPED)
    assert {scene.env for scene in SHIPPED} == {"sentinel/highway-v1"}


@pytest.fixture(scope="module")
def verdicts():
    return {scene.name: judge(ENV, state_of(scene)) for scene in SHIPPED}


@pytest.mark.parametrize("scene", SHIPPED, ids=lambda scene: scene.name)
def test_the_shipped_scenes_are_right_by_simulation(scene, verdicts):
    verdict = verdicts[scene.name]
    assert (scene.do, scene.avoid) == (verdict.good, verdict.bad)
    assert scene.passes(int(np.argmax(verdict.value)))


@pytest.mark.slow
def test_a_deeper_search_confirms_them():
    """Four decisions, and three more of IDLE: what crashed still does, and the best action still passes."""
    for scene in SHIPPED:
        deeper = judge(ENV, state_of(scene), 4, 3)
        assert set(scene.avoid) <= set(deeper.bad), scene.name
        assert scene.passes(int(np.argmax(deeper.value))), scene.name


def test_the_verdict_is_that_of_stepping_by_hand(verdicts):
    """Three decisions and two of IDLE, all 125 sequences in a loop."""
    scene = next(scene for scene in SHIPPED if scene.name == "escape-left")
    value, survives = np.full(5, -np.inf), np.zeros(5, bool)
    for plan in itertools.product(range(5), repeat=3):
        state, total, discount, crashed = state_of(scene), 0.0, 1.0, False
        for action in (*plan, *[ACTION_NAMES.index("IDLE")] * 2):
            state, after = step(state, jnp.int32(action))
            total, discount = total + discount * float(after.reward), discount * 0.99
            crashed = bool(after.terminated)
            if crashed or after.truncated:
                break
        value[plan[0]] = max(value[plan[0]], total)
        survives[plan[0]] |= not crashed
    np.testing.assert_allclose(verdicts[scene.name].value, value, rtol=1e-5)
    np.testing.assert_array_equal(verdicts[scene.name].survives, survives)


def test_what_is_good_and_bad():
    some = Verdict(np.array([4.0, 4.1, 1.0, 3.5, 4.2]), np.array([True, True, False, True, True]))
    assert some.good == ("LANE_LEFT", "IDLE", "SLOWER")
    assert some.bad == ("LANE_RIGHT",)
    every = Verdict(np.full(5, 4.0), np.ones(5, bool))
    assert every.good == every.bad == ()
    lost = Verdict(np.array([1.0, 0.2, 0.2, 0.2, 0.2]), np.zeros(5, bool))
    assert (lost.good, lost.bad) == (("LANE_LEFT",), ()), "where all crash, the latest crash is best"


def test_what_an_agent_does():
    right = make_agent("constant", ENV, action="LANE_RIGHT")
    acted = choices(right, right.init(ENV.spec, jax.random.key(0)), SHIPPED, ENV.spec)
    assert acted.tolist() == [2] * 10
    passed = [scene.name for scene, action in zip(SHIPPED, acted, strict=True) if scene.passes(int(action))]
    assert passed == ["car-beside-left", "escape-right", "leave-the-left", "wreck-ahead"]
    with pytest.raises(UsageError, match="has 2 actions, the agent 5"):
        choices(right, right.init(ENV.spec, jax.random.key(0)), [SEEN], ENV.spec)


def test_a_moment_is_captured_with_what_the_search_says(verdicts):
    scene = SHIPPED[1]
    found = capture(state_of(scene), ENV, "again")
    assert (found.do, found.avoid) == (verdicts[scene.name].good, verdicts[scene.name].bad)
    own = capture(state_of(scene), ENV, "own", avoid=("IDLE",))
    assert (own.do, own.avoid) == ((), ("IDLE",))
    with pytest.raises(UsageError, match="not one of the highways"):
        capture(state_of(scene), Highway.preset("highway-v1", duration=20), "other")
