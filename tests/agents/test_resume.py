"""Every agent: a seed repeats bit for bit, also when its run was killed or stopped on the way and then resumed."""

import dataclasses
import signal
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.errors import Stopped
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.result import Result
from sentinel_rl.training.trainer import train
from tests.learners import OPTIONS
from tests.training.pole import bit_equal
from tests.training.results import assert_same_folder, assert_same_result

COMPILE_QUICKLY = True

ENV = CartPole(200)
# Beside every agent as it is: other laws, draws that look ahead, layers that are normalised, and averages.
AHEAD = {"preset": "learner", "head": "quantile", "n_step": 3, "max_grad_norm": 1.0, "explore": "member"}
OTHER = OPTIONS["sentinel"] | AHEAD | {"layer_norm": True, "average_over": 2, "target_every": 1}
AGENTS: dict[str, dict[str, Any]] = {**OPTIONS, "sentinel, quantiles, layer norm": OTHER}
SEEDS = [4, 9]


class Killed(BaseException):
    """Nobody catches it: what is not on the disk by then is lost."""


class Whole(NamedTuple):
    """A training that nobody disturbed, and its folder."""

    result: Result
    folder: Path


def go(name: str, path: Path | None = None, callback: Any = ()) -> Result:
    """Train, or go on with what the folder holds."""
    plan = {"learn_every": 20, "warmup": 20}
    given = {"save_every": 20, "reports": False, "callbacks": callback, "folder": path}
    return train(kind(name), "CartPole-v0", 80, SEEDS, **given, **plan, **AGENTS[name])


def kind(name: str) -> str:
    return name.partition(",")[0]


@pytest.fixture(scope="module", params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return Whole(go(name, folder), folder)


def test_a_seed_repeats_and_seeds_differ(name: str, whole: Whole):
    assert_same_result(go(name), whole.result)
    one, other = (whole.result.table.of_run(run).end.tolist() for run in range(2))
    assert one != other


def test_killed_and_resumed_equals_whole(name: str, whole: Whole, tmp_path: Path):
    def kill(progress: Any) -> None:
        if progress.t == 60:
            raise Killed

    with pytest.raises(Killed):
        go(name, tmp_path / "run", kill)
    assert saved(tmp_path / "run" / "checkpoints")[-1].step == 40, "20 steps are lost, and made again"
    assert_same_result(go(name, tmp_path / "run"), whole.result)
    assert_same_folder(tmp_path / "run", whole.folder)


def test_stopped_and_resumed_equals_whole(name: str, whole: Whole, tmp_path: Path):
    def interrupt(progress: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped, match="after 20 of 80 steps, and saved"):
        go(name, tmp_path / "run", interrupt)
    assert_same_result(go(name, tmp_path / "run"), whole.result)
    assert_same_folder(tmp_path / "run", whole.folder)


def test_what_was_learnt_is_what_counts(name: str, whole: Whole):
    """The runs that are compared above did learn, all but those that have nothing to learn."""
    agent = whole.result.agents[0]
    key = jax.random.split(jax.random.key(SEEDS[0]), 3)[0]
    before = agent.policy(jax.jit(lambda key: agent.init(ENV.spec, key))(key))
    after = agent.policy(whole.result.agent_states[0])
    changed = [bool(np.any(a != b)) for a, b in zip(*map(jax.tree.leaves, (before, after)), strict=True)]
    assert changed == [name != "random"] * len(changed)


def test_its_policies_are_saved(name: str, whole: Whole):
    for run, seed in enumerate(SEEDS):
        found = load_policy(whole.folder / f"policy_seed_{seed}.zip")
        agent, state = whole.result.agents[run], whole.result.agent_states[run]
        # How long the training was is no part of a policy: the next one plans its schedules anew.
        unplanned = dataclasses.replace(agent, updates=None) if name != "random" else agent
        assert (found.kind, found.agent, found.seed, found.steps) == (kind(name), unplanned, seed, 80)
        assert bit_equal(agent.policy(found.state), agent.policy(state))
