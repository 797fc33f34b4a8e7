"""Every agent: a seed repeats bit for bit, also when its run was killed or stopped on the way and then resumed."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sentinel_rl.agents.catalog import AGENTS, make_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.errors import Stopped
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.storage.run_folder import open_run
from sentinel_rl.training.loop import Training, train
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.signals import Stopper
from tests.learners import OPTIONS
from tests.storage.trees import assert_same

pytestmark = pytest.mark.usefixtures("quick_compile")

ENV = CartPole()
PLAN = Plan(80, Every(20), warmup=20)
SEEDS = [4, 9]


class Killed(BaseException):
    """Nobody catches it: what is not on the disk by then is lost."""


def begin(name: str) -> Training:
    agent = make_agent(name, ENV.spec, **OPTIONS[name])
    return Training([agent] * len(SEEDS), ENV, PLAN, SEEDS)


def go(name: str, path: Path, **how: Any) -> Training:
    """Train, or go on with what the folder holds; chunks of one length, so that one program serves all."""
    training = begin(name)
    with open_run(path, {"seeds": SEEDS}) as folder:
        train(training, folder, save_every=20, **how)
    return training


@pytest.fixture(scope="module", params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A training that nobody disturbed."""
    return go(name, tmp_path_factory.mktemp("whole"))


def test_a_seed_repeats_and_seeds_differ(name: str, whole: Training):
    again = begin(name)
    for _ in again.chunks(20):
        pass
    assert_same(again.tree(), whole.tree())
    one, other = (run.obs for run in whole.tree()["runs"])
    assert np.any(one != other)


def test_killed_and_resumed_equals_whole(name: str, whole: Training, tmp_path: Path):
    def kill(progress: Any) -> None:
        if progress.t == 60:
            raise Killed

    with pytest.raises(Killed):
        go(name, tmp_path, report=kill)
    assert saved(tmp_path / "checkpoints")[-1].step == 40, "20 steps are lost, and made again"
    resumed = go(name, tmp_path)
    assert_same(resumed.tree(), whole.tree())
    assert [log.terminations for log in resumed.logs] == [log.terminations for log in whole.logs]


def test_stopped_and_resumed_equals_whole(name: str, whole: Training, tmp_path: Path):
    stopper = Stopper(active=True)
    stopper.requested = True
    with pytest.raises(Stopped, match="after 20 of 80 steps, and saved"):
        go(name, tmp_path, stopper=stopper)
    assert_same(go(name, tmp_path).tree(), whole.tree())


def test_what_was_learnt_is_what_counts(name: str, whole: Training):
    """The runs that are compared above did learn, all but those that have nothing to learn."""
    before, after = (jax.tree.leaves(each.agent_states()[0].online) for each in (begin(name), whole))
    changed = [bool(np.any(np.asarray(a) != np.asarray(b))) for a, b in zip(before, after, strict=True)]
    assert changed == [name != "random"] * len(before)
