"""Handing over: an agent that knows where it is ignorant avoids the trap, a constant score says nothing."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sentinel_rl as srl
from sentinel_rl import plotting
from sentinel_rl.agents.abstain import Abstain, at_random, disagreement
from sentinel_rl.agents.random import make_constant
from sentinel_rl.calibration import draw_handover, hand_over
from sentinel_rl.errors import UsageError
from tests.calibration.known import Known, Trap
from tests.learners import make

STATE = jnp.zeros(())
ENV = Trap()
SAFE = make_constant(ENV.spec, action=1)


def studied(agent, **options):
    return hand_over(agent, SAFE, ENV, state=STATE, episodes=200, coverages=(1.0, 0.75), **options)


@pytest.fixture(scope="module")
def told():
    """Members disagree exactly where the trap is."""
    return studied(Known(apart=1.0))


def test_a_score_that_knows_the_trap_avoids_it(told):
    (soon,) = told.separations
    assert soon.auroc == 1.0
    whole, by_score, by_chance = told.arms
    assert (whole.by, by_score.by, by_chance.by) == ("epistemic", "epistemic", "random")
    assert whole.handed_over == 0
    assert whole.terminated.share == pytest.approx(0.25, abs=0.09)
    assert by_score.handed_over == pytest.approx(whole.terminated.share)
    assert by_score.terminated.share == 0
    # As many hand-overs at random avoid a quarter of the traps.
    assert by_chance.terminated.share == pytest.approx(0.75 * whole.terminated.share, abs=0.09)
    assert by_score.value.share == pytest.approx(1 - whole.terminated.share)


def test_risk_falls_with_the_coverage(told):
    assert told.curve.risk[0] == 0
    assert told.curve.area == pytest.approx(told.curve.best)
    assert told.curve.at_random == pytest.approx(told.arms[0].terminated.share)


def test_a_constant_penalty_says_nothing():
    """A neutral agent has no penalty, though its members disagree: the other score sees that."""
    agent = Known(apart=1.0, neutral=True)
    told = studied(agent)
    assert told.constant
    assert told.separations[0].auroc == 0.5
    assert told.curve.area == pytest.approx(told.curve.at_random)
    assert studied(agent, score="disagreement").separations[0].auroc == 1.0


def test_unseen_states_are_told_apart():
    told = studied(Known(apart=1.0), on=Trap(chance=1.0))
    soon, states, episodes = told.separations
    assert np.isnan(soon.auroc)
    assert soon.negative == 0
    # Three quarters of the usual states have the lower score, the others the same.
    assert states.auroc == pytest.approx(1 - told_share(told) / 2, abs=1e-6)
    assert episodes.auroc == states.auroc  # one decision each
    assert json.loads(told.to_json())["auroc"][0]["auroc"] is None


def told_share(told):
    """The share of the usual states in which the trap is, from the calibration episodes."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(told.seed), jnp.arange(told.episodes))
    _, obs = jax.vmap(ENV.reset)(jax.vmap(jax.random.split)(keys)[:, 0])
    return float(obs.mean())


def test_without_a_threshold_nothing_is_handed_over():
    """Off by default: it chooses as the agent inside, whatever the score is."""
    learner = make("sentinel")
    fallback = srl.make_agent("constant", learner.spec, action=0)
    state = learner.state, fallback.init(learner.spec, jax.random.key(0))
    obs = jax.random.normal(jax.random.key(1), (8, 4))
    key = jax.random.key(2)

    def choices(agent, known):
        return jax.jit(jax.vmap(lambda one: agent.greedy(known, one, key)))(obs).tolist()

    own = choices(learner.agent, learner.state)
    wrapped = Abstain(learner.agent, fallback)
    assert choices(wrapped, state) == own
    always = Abstain(learner.agent, fallback, -1.0, disagreement)
    assert choices(always, state) == [0] * 8
    assert float(always.diagnostics(state, obs[0], jnp.int32(0))["handed_over"]) == 1
    assert not wrapped.stochastic
    assert Abstain(learner.agent, fallback, 0.5, at_random).stochastic
    assert wrapped.gamma == learner.agent.gamma
    with pytest.raises(UsageError, match="wraps a trained agent"):
        wrapped.init(learner.spec, key)


def test_files_and_figure(told, tmp_path):
    content = json.loads(told.to_json())
    assert content["arms"][0]["threshold"] is None  # infinity
    assert [row["by"] for row in told.rows()] == ["epistemic", "epistemic", "random"]
    with plotting.figure(9.6, 4.4) as drawing:
        draw_handover(drawing, told)
        assert all(file.stat().st_size > 1_000 for file in plotting.save(drawing, tmp_path / "figure"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score": "mood"}, "choose one of epistemic"),
        ({"score": "random"}, "compared with"),
        ({"coverages": (0.0,)}, "above 0"),
        ({"coverages": ()}, "none"),
        ({"episodes": 0}, "at least 1"),
    ],
)
def test_bad_input_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        hand_over(Known(), SAFE, ENV, state=STATE, **options)
