"""Exported files compute what the agent does: onnxruntime against `predict` and `assess`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.api import CDQN, UADQN, VDQN, Random, Sentinel, load_agent
from sentinel_rl.envs import EnvSpec
from sentinel_rl.errors import IncompatibleError, UsageError
from sentinel_rl.export import check_onnx, random_observations, to_onnx, to_stablehlo
from sentinel_rl.risk import Distortion
from tests.docs.pages import ROOT, blocks_of
from tests.tiny import Box2D, tiny

SHIPPED = ("highway-composite", "highway-neutral")
MEASURES = (
    "expectation", "cvar:0.25", "var:0.3", "wang:0.2", "proportional_hazard:0.5", "dual_power:3", "minmaxvar:0.5",
    "cpw:0.71", "worst_case", "best_case", "entropic:0.5", "evar:0.4", "mean_std:1", "mean_variance:0.1",
    "mean_semideviation:0.5,2",
)  # fmt: skip


def outputs_of(path, observations):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"observation": observations}), strict=True))


def observed(env, count):
    """Observations of random play."""
    import gymnasium

    world = gymnasium.make(env)
    world.action_space.seed(0)
    seen, _ = world.reset(seed=0)
    found = []
    while len(found) < count:
        found.append(np.asarray(seen, np.float32))
        seen, _, terminated, truncated, _ = world.step(world.action_space.sample())
        if terminated or truncated:
            seen, _ = world.reset()
    return np.stack(found)


@pytest.mark.clients
@pytest.mark.parametrize("name", [*SHIPPED, "CartPole-v1"])
def test_a_thousand_observations_of_play(name, tmp_path):
    """All actions are those of `predict`, all numbers those of `assess`."""
    env = "sentinel/highway-v1" if name in SHIPPED else name
    agent = load_agent(name, env=env) if name in SHIPPED else tiny(name).learn(400)
    seen = observed(env, 1000)
    found = outputs_of(to_onnx(agent, tmp_path / "policy.onnx"), seen)
    actions, _ = agent.predict(seen)
    clear = np.diff(np.sort(found["value"], axis=-1)[:, -2:], axis=-1)[:, 0] > 1e-4
    assert clear.mean() > 0.9
    assert (found["action"] == actions)[clear].all()
    for index in (0, 17, 500, 999):
        why = agent.assess(seen[index]).assessment
        numbers = {"value": why.composite, "mean": why.mean}
        numbers |= {name: getattr(why, name) for name in ("aleatory_penalty", "epistemic_penalty")}
        for part, expected in numbers.items():
            np.testing.assert_allclose(found[part][index], expected, atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(
        found["value"], found["mean"] - found["aleatory_penalty"] - found["epistemic_penalty"], atol=1e-4
    )


@pytest.mark.clients
@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_within_and_across_members(measure, tmp_path):
    """Fresh networks disagree, and FTRL weighs them unequally: no measure can hide behind another."""
    agent = tiny("CartPole-v1", k=3, aleatory=measure, epistemic=measure, lam=3.0, atoms=21)
    seen = random_observations(agent, 200, seed=1)
    found = check_onnx(agent, to_onnx(agent, tmp_path / "policy.onnx"), seen)
    assert found.actions == found.observations == 200


@pytest.mark.clients
@pytest.mark.parametrize(
    "options",
    [
        {"k": 10, "lam": 0.0},
        {"divergence": "member_to_marginal", "prefer": "outliers"},
        {"aggregate": "scale"},
        {"encoder": "mlp", "hidden": (8, 8), "atoms": 101},
        {"lam": float("inf")},
        {"head": "quantile", "atoms": 11},
        {"head": "quantile", "atoms": 51, "aleatory": "wang:0.2", "k": 9},
        {"head": "categorical", "v_min": 0.0, "v_max": 50.0},
        {"prior_scale": 3.0},
        {"prior_scale": 3.0, "prior_on": "mean", "encoder": "mlp"},
        {"encoder": "mlp", "hidden": (8, 8), "layer_norm": True},
        {"encoder": "mlp", "layer_norm": True, "prior_scale": 3.0},
    ],
    ids=str,
)
def test_every_form_of_the_ensemble(options, tmp_path):
    agent = tiny("CartPole-v1", **options)
    assert check_onnx(agent, to_onnx(agent, tmp_path / "p.onnx"), random_observations(agent, 100)).actions == 100


@pytest.mark.clients
def test_one_member(tmp_path):
    agent = CDQN("MlpPolicy", "CartPole-v1", hidden=(8,), capacity=64)
    assert check_onnx(agent, to_onnx(agent, tmp_path / "p.onnx"), random_observations(agent, 100)).actions == 100


@pytest.mark.clients
@pytest.mark.parametrize("kind", [UADQN, VDQN])
def test_agents_without_laws(kind, tmp_path):
    agent = kind("MlpPolicy", "CartPole-v1", hidden=(8,), capacity=64)
    seen = random_observations(agent, 100)
    found = outputs_of(to_onnx(agent, tmp_path / "policy.onnx"), seen)
    assert check_onnx(agent, tmp_path / "policy.onnx", seen).actions == 100
    assert (found["action"] == agent.predict(seen)[0]).all()
    assert {"action", "value", "mean", "epistemic_sd", "aleatory_sd"} == set(found)


class Attention(eqx.Module):
    """An encoder that no list of layers knows."""

    def init(self, spec, key):
        return jax.random.normal(key, (spec.obs_size, 4))

    def __call__(self, parameters, obs):
        return jax.nn.softmax(obs @ parameters) * jnp.tanh(jnp.cumsum(obs)[-1])


@pytest.mark.clients
@pytest.mark.parametrize("side", [6, 36])
def test_images_and_own_encoders_and_measures(side, tmp_path):
    shape = (side, side, 2)
    spec = EnvSpec("Pictures", side * side * 2, 3, (0.0, 1.0), 20, obs_shape=shape, structure="image")
    pictures = tiny(spec, encoder="cnn", hidden=(8,))
    seen = np.random.default_rng(0).uniform(0, 5, (40, spec.obs_size)).astype(np.float32)
    assert check_onnx(pictures, to_onnx(pictures, tmp_path / "cnn.onnx"), seen).actions == 40
    own = tiny("CartPole-v1", encoder=Attention(), hidden=None, aleatory=Distortion.from_function(lambda u: u**0.7))
    assert check_onnx(own, to_onnx(own, tmp_path / "own.onnx"), random_observations(own, 50)).actions == 50


ROWS = EnvSpec("Rows", 12, 3, (0.0, 1.0), 20, obs_shape=(4, 3), structure="rows")
PICTURES = EnvSpec("Pictures", 75, 3, (0.0, 1.0), 20, obs_shape=(5, 5, 3), structure="image")


@pytest.mark.clients
@pytest.mark.parametrize(("kind", "hidden"), [(Sentinel, (8, 8)), (VDQN, (8, 8)), (UADQN, (8, 8)), (Sentinel, (8,))])
def test_layers_that_are_normalised(kind, hidden, tmp_path):
    """In sets, of every agent that has them, and in images; gains and shifts are not those that they begin with."""
    spec = ROWS if len(hidden) == 2 else PICTURES
    agent = kind("MlpPolicy", spec, preset="learner", hidden=hidden, layer_norm=True, capacity=64)

    def moved(leaf):
        drawn = np.random.default_rng(leaf.size).normal(scale=0.3, size=leaf.shape)
        return leaf + jnp.asarray(drawn, leaf.dtype)

    agent.state = eqx.tree_at(lambda state: state.online, agent.state, jax.tree.map(moved, agent.state.online))
    seen = np.random.default_rng(0).normal(size=(60, spec.obs_size)).astype(np.float32)
    assert check_onnx(agent, to_onnx(agent, tmp_path / "policy.onnx"), seen).actions == 60
    found = outputs_of(tmp_path / "policy.onnx", seen)["action"]
    assert (found == agent.predict(seen)[0]).all()
    assert len(set(found.tolist())) > 1, "what it sees matters"


@pytest.mark.clients
def test_the_numbers_of_states(tmp_path):
    agent = tiny(EnvSpec("States", 9, 3, (0.0, 1.0), 20, structure="states"), encoder="table", hidden=None)
    entries = jax.random.normal(jax.random.key(1), agent.state.online.entries.shape)
    agent.state = eqx.tree_at(lambda state: state.online.entries, agent.state, entries)
    seen = np.eye(9, dtype=np.float32)
    assert check_onnx(agent, to_onnx(agent, tmp_path / "table.onnx"), seen).actions == 9


@pytest.mark.clients
def test_shapes_and_counts_of_the_environment(tmp_path):
    """Observations of two axes go in as they are, and actions are counted from 1."""
    agent = tiny(Box2D(), reward_range=(0.0, 1.0), time_limit="bootstrap")
    seen = random_observations(agent, 20)
    assert seen.shape == (20, 2, 3)
    found = outputs_of(to_onnx(agent, tmp_path / "policy.onnx"), seen)
    assert (found["action"] == agent.predict(seen)[0]).all()
    assert found["action"].min() >= 1
    assert outputs_of(tmp_path / "policy.onnx", seen[:1])["value"].shape == (1, 3)


@pytest.mark.clients
def test_a_file_of_another_agent_is_found_out(tmp_path):
    path = to_onnx(tiny("CartPole-v1", seed=1), tmp_path / "policy.onnx")
    other = tiny("CartPole-v1", seed=2)
    with pytest.raises(IncompatibleError, match="does not compute what the agent does"):
        check_onnx(other, path, random_observations(other, 100))


@pytest.mark.clients
def test_a_stablehlo_program_computes_the_same(tmp_path):
    agent = tiny("CartPole-v1", k=3)
    content = to_stablehlo(agent, tmp_path / "policy.bin").read_bytes()
    assert b".py" not in content  # paths of this machine are nobody's business
    program = jax.export.deserialize(content)
    for size in (1, 7):
        seen = random_observations(agent, size)
        found = program.call(jnp.asarray(seen))
        assert (np.asarray(found["action"]) == agent.predict(seen)[0]).all()
        np.testing.assert_allclose(found["value"][0], agent.assess(seen[0]).value, atol=1e-4)
    assert {"cpu", "cuda", "tpu"} == set(program.platforms)


@pytest.mark.clients
def test_the_runner_of_the_page_needs_no_jax(run, tmp_path, monkeypatch):
    """The program of the page, in a process that has neither JAX nor this library."""
    monkeypatch.chdir(tmp_path)
    code, out, complaint = run("export", "highway-composite", "--onnx", "policy.onnx")
    assert code == 0, complaint
    assert re.search(r"1,000 random observations: \d{3,}|1,000 equal", out)
    (block,) = (b for b in blocks_of(ROOT / "docs/deploy.md") if b.code.startswith("# runner.py"))
    lines = [line for line in block.code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 20
    blocked = "import sys\nfor name in ('jax', 'jaxlib', 'sentinel_rl'): sys.modules[name] = None\n"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", blocked + block.code], capture_output=True, text=True, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert first.split()[0] in ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")
    assert json.loads(second.replace("'", '"'))["value"]


@pytest.mark.clients
def test_the_command_chooses_another_risk(run, tmp_path):
    policy = tiny("CartPole-v1").save(tmp_path / "pole.zip")
    options = ("--onnx", tmp_path / "a.onnx", "--stablehlo", tmp_path / "a.bin", "--aleatory", "wang:0.1")
    code, out, complaint = run("export", policy, *options)
    assert code == 0, complaint
    assert "StableHLO:" in out
    changed = Sentinel.load(policy).with_risk(aleatory="wang:0.1")
    assert check_onnx(changed, tmp_path / "a.onnx", random_observations(changed, 50)).actions == 50


@pytest.mark.parametrize(("package", "write"), [("onnx", to_onnx), ("flatbuffers", to_stablehlo)])
def test_a_missing_package_is_named_with_its_install_line(package, write, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=rf"package {package}: pip install 'sentinel-rl\[export\]'"):
        write(tiny(), tmp_path / "policy")
    assert list(Path(tmp_path).iterdir()) == []


def test_what_has_no_function_of_the_observation_is_refused(tmp_path):
    with pytest.raises(UsageError, match="draws its actions at random"):
        to_stablehlo(Random("MlpPolicy", "CartPole-v1"), tmp_path / "policy")


def test_the_command_asks_for_a_file(run):
    code, _, complaint = run("export", "highway-neutral")
    assert code == 2
    assert "--onnx FILE" in complaint
