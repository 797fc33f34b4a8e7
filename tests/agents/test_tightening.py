"""Priors and alpha schedules of SENTINEL: off they leave no trace; on they survive a kill, a file and an update."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.agents.sentinel import SentinelAgent
from sentinel_rl.agents.tightening import loosened, share_after
from sentinel_rl.api import load_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.replay import Transition
from sentinel_rl.risk import CVaR, EVaR, Expectation, Wang
from sentinel_rl.training.policy import load_policy
from sentinel_rl.training.result import Result
from sentinel_rl.training.trainer import train
from tests.agents.small import OBS, SPEC, fresh, small
from tests.learners import OPTIONS
from tests.training.results import assert_same_folder, assert_same_result

COMPILE_QUICKLY = True

POLE = CartPole(200).spec
PATHS = {
    ".online.weights[0]", ".online.biases[0]", ".target.weights[0]", ".target.biases[0]", ".replay.rows",
    ".replay.queue", ".replay.count", ".replay.newest", ".optimiser[0].count", ".optimiser[0].mu.weights[0]",
    ".optimiser[0].mu.biases[0]", ".optimiser[0].nu.weights[0]", ".optimiser[0].nu.biases[0]",
}  # fmt: skip


def paths(agent: SentinelAgent) -> set[str]:
    form = jax.eval_shape(lambda key: agent.init(SPEC, key), jax.random.key(0))
    return {jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(form)}


def test_without_them_a_state_is_what_it_was():
    plain = small(hidden=())
    assert paths(plain) == PATHS
    assert small(hidden=(), prior_scale=0.0) == plain
    assert make_sentinel(POLE, prior_scale=0) == make_sentinel(POLE)
    with_both = paths(small(hidden=(), prior_scale=2.0, alpha_start=1.0))
    priors = {f".{nets}.prior.{each}[0]" for nets in ("online", "target") for each in ("weights", "biases")}
    assert {path.replace(".learnt", "") for path in with_both} - PATHS == {*priors, ".tightened"}, "no moments of them"


def started(agent: SentinelAgent, key: int = 0) -> Any:
    """A state that has seen sixteen transitions of random numbers."""
    state = agent.init(SPEC, jax.random.key(key))
    draws = np.random.default_rng(0).normal(size=(16, 5)).astype(np.float32)
    for t, row in enumerate(draws):
        seen = Transition(row[:2], jnp.asarray(t % 3), row[4], row[2:4], jnp.asarray(False), jnp.asarray(False))
        state = observe(agent, state, jnp.asarray(t), seen, jax.random.key(t))
    return state


observe = jax.jit(SentinelAgent.observe)
learn = jax.jit(SentinelAgent.learn)


@pytest.mark.parametrize("target_update", ["copy", "gradient"])
def test_an_update_moves_what_learns_and_not_the_prior(target_update: str):
    agent = small(prior_scale=2.0, target_update=target_update, target_every=1)
    state = started(agent)
    after, metrics = learn(agent, state, jnp.asarray(1), jax.random.key(0))
    for before, now in ((state.online, after.online), (state.target, after.target)):
        assert eqx.tree_equal(before.prior, now.prior)
        assert not eqx.tree_equal(before.learnt, now.learnt)
    assert np.isfinite(float(metrics["loss"]))


def test_targets_count_the_prior():
    """The same networks with and without their priors want something else of the same transitions."""
    agent, plain = small(prior_scale=2.0), small()
    state = started(agent)
    bare = eqx.tree_at(lambda s: (s.online, s.target), state, (state.online.learnt, state.target.learnt))
    drawn = state.replay.sample(jax.random.key(0), 8)
    with_prior, _ = agent._targets(state, drawn.transitions, drawn.discount)
    without, _ = plain._targets(bare, drawn.transitions, drawn.discount)
    assert np.abs(np.asarray(with_prior) - np.asarray(without)).max() > 0.05


def test_measures_move_from_their_start_to_their_own():
    half = loosened(CVaR(0.25), 1.0, jnp.asarray(0.5))
    assert float(half.alpha) == pytest.approx(0.625)
    assert float(loosened(EVaR(0.3), 0.9, jnp.asarray(1.0)).alpha) == pytest.approx(0.3, abs=1e-7)
    for measure in (Wang(0.1), Expectation()):
        assert loosened(measure, 1.0, jnp.asarray(0.5)) is measure
    shares = [float(share_after(jnp.asarray(update), 10, 0.4)) for update in (1, 2, 4, 9)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 1.0, 1.0])
    assert float(share_after(jnp.asarray(2), 8, None)) == 0.5
    assert float(share_after(jnp.asarray(1), None, None)) == 1.0, "nobody has planned how long it takes"


def test_acting_and_learning_follow_the_schedule_and_frozen_policies_do_not():
    tight = {"aleatory": CVaR(0.2), "epistemic": CVaR(0.2)}
    agent = small(alpha_start=1.0, alpha_fraction=1.0, **tight).planned(4)
    state = eqx.tree_at(lambda s: s.tightened, fresh(agent), jnp.zeros(()), is_leaf=lambda leaf: leaf is None)
    neutral = small(aleatory=Expectation(), epistemic=Expectation())
    found = agent._now(state).values(state.online, OBS)
    np.testing.assert_allclose(found, neutral.values(state.online, OBS), rtol=1e-5)
    assert np.abs(np.asarray(found - agent.values(state.online, OBS))).max() > 0.1
    assert int(agent.greedy(state, OBS, jax.random.key(0))) == int(np.argmax(agent.values(state.online, OBS)))
    seen = started(agent)
    shares = []
    for update in range(1, 6):
        seen, _ = learn(agent, seen, jnp.asarray(update), jax.random.key(update))
        shares.append(float(seen.tightened))
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75, 1.0, 1.0])
    np.testing.assert_allclose(
        agent._now(seen).values(seen.online, OBS), small(**tight).values(seen.online, OBS), rtol=1e-6
    )


OPTION = OPTIONS["sentinel"] | {"prior_scale": 3.0, "prior_on": "mean", "alpha_start": 1.0, "alpha_fraction": 1.0}


class Killed(BaseException):
    """Nobody catches it: what is not on the disk by then is lost."""


def go(path: Path, callback: Any = ()) -> Result:
    given = {"save_every": 20, "reports": False, "callbacks": callback, "folder": path}
    return train("sentinel", "CartPole-v0", 80, [4], learn_every=20, warmup=20, **given, **OPTION)


def test_killed_and_resumed_equals_whole_and_policies_keep_their_priors(tmp_path: Path):
    def kill(progress: Any) -> None:
        if progress.t == 60:
            raise Killed

    whole = go(tmp_path / "whole")
    with pytest.raises(Killed):
        go(tmp_path / "run", kill)
    assert_same_result(go(tmp_path / "run"), whole)
    assert_same_folder(tmp_path / "run", tmp_path / "whole")
    state = whole.agent_states[0]
    assert float(state.tightened) == 1.0
    saved = load_policy(tmp_path / "whole" / "policy_seed_4.zip")
    assert eqx.tree_equal(saved.state.online, state.online)
    assert (saved.agent.prior_scale, saved.agent.prior_on, saved.agent.alpha_start) == (3.0, "mean", 1.0)
    obs = jnp.zeros(4)
    loaded = load_agent(tmp_path / "whole" / "policy_seed_4.zip")
    assert int(loaded.predict(np.asarray(obs))[0]) == int(whole.agents[0].greedy(state, obs, jax.random.key(0)))
