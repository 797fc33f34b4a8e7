"""VDQN and UA-DQN behind an encoder, and as they are without one."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents import make_agent
from sentinel_rl.agents.options import discount_for
from sentinel_rl.agents.posterior import EncodedPosterior, Posterior
from sentinel_rl.agents.registry import named_options
from sentinel_rl.agents.uadqn import POSTERIORS, members
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.nets import EncodedNetworks, Networks
from sentinel_rl.replay import Transition
from sentinel_rl.storage.configuration import identity

ROWS = EnvSpec("rows", 6, 3, (0.0, 1.0), 40, obs_shape=(3, 2), structure="rows")
FLAT = EnvSpec("flat", 4, 2, (1.0, 1.0), 200)
OBS = jnp.array([0.5, -1.0, 0.2, 0.4, -0.3, 0.1])
TINY = {"hidden": (6, 5), "samples": 8, "batch": 4, "capacity": 16}
ALIKE = ("gamma", "learning_rate", "adam_eps", "samples", "batch", "capacity", "target_every", "time_limit", "n_step")
BASELINES = ("vdqn", "vdqn-cvar", "uadqn")


def made(name: str, **options: Any) -> Any:
    return make_agent(name, ROWS, **{"preset": "learner", **TINY, **options})


@pytest.mark.parametrize("spec", [ROWS, FLAT], ids=lambda spec: spec.name)
@pytest.mark.parametrize("name", ["cdqn", *BASELINES])
def test_the_learner_is_the_same_for_all_agents(name: str, spec: EnvSpec):
    ours, theirs = (make_agent(one, spec, preset="learner") for one in ("sentinel", name))
    fields = (*ALIKE, "encoder", "hidden", "pace")
    assert {field: getattr(ours, field) for field in fields} == {field: getattr(theirs, field) for field in fields}
    assert theirs.gamma == discount_for(spec)
    assert getattr(theirs, "use_epsilon", True)


@pytest.mark.parametrize("name", BASELINES)
def test_without_an_encoder_nothing_has_changed(name: str):
    """Neither what names a run, nor what a policy consists of."""
    plain = make_agent(name, FLAT, hidden=(3,))
    assert plain == make_agent(name, FLAT, hidden=(3,), preset="paper", encoder=None)
    assert "encoder" not in identity(plain)
    online = jax.eval_shape(lambda key: plain.init(FLAT, key), jax.random.key(0)).online
    assert type(online) is (Networks if name == "uadqn" else Posterior)
    assert len(jax.tree.leaves(online)) == (4 if name == "uadqn" else 8)
    assert "preset" not in named_options(plain)[1]


@pytest.mark.parametrize("name", BASELINES)
def test_an_agent_can_be_made_again_from_its_options(name: str):
    agent = made(name)
    _, options = named_options(agent)
    assert options["preset"] == "learner"
    assert make_agent(name, ROWS, **options) == agent


@pytest.fixture(scope="module")
def posterior() -> EncodedPosterior:
    online: EncodedPosterior = jax.jit(lambda key: made("vdqn", initial_sd=0.3).init(ROWS, key).online)(
        jax.random.key(1)
    )
    return online


def test_the_posterior_is_over_the_last_layer(posterior: EncodedPosterior):
    """Drawn unit by unit or as whole networks, the values have one law, and the encoder is the same in all draws."""
    keys = jax.random.split(jax.random.key(2), 4_000)
    whole = np.asarray(jax.jit(jax.vmap(lambda key: posterior.draw(key)(OBS)[0, :, 0]))(keys), float)
    units = np.asarray(jax.jit(lambda: posterior.outputs(OBS, posterior.noise(keys[0], 4_000)))(), float)
    np.testing.assert_allclose(units.mean(axis=0), whole.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(units.T), np.cov(whole.T), atol=0.02)
    assert posterior.units == ROWS.num_actions
    assert posterior.parameters == posterior.draw(keys[0]).parameters + (5 + 1) * ROWS.num_actions
    assert len(jax.tree.leaves(posterior.sd)) == 2


def test_rows_that_change_places_are_the_same_to_the_encoder(posterior: EncodedPosterior):
    noise = posterior.noise(jax.random.key(0), 2)
    swapped = OBS.reshape(3, 2)[jnp.array([0, 2, 1])].reshape(-1)
    np.testing.assert_allclose(posterior.outputs(OBS, noise), posterior.outputs(swapped, noise), rtol=1e-5)


@pytest.mark.parametrize(("name", "layer_norm"), [("vdqn", None), ("vdqn", True), ("uadqn", True)])
def test_encoder_and_last_layer_learn(name: str, layer_norm: bool | None):
    """And gains and shifts of layers that are normalised, which the anchors hold as well."""
    sizes = {"quantiles": 4} if name == "uadqn" else {"draws": 8}
    agent = made(name, **sizes, target_every=1, layer_norm=layer_norm)

    def run(key: jax.Array) -> tuple[Any, Any]:
        first = state = agent.init(ROWS, key)
        for t in range(4):
            step = Transition(OBS * t, jnp.int32(t % 3), jnp.ones(()), OBS, jnp.array(False), jnp.array(False))
            state = agent.observe(state, jnp.int32(t), step, key)
        return first, agent.learn(state, jnp.int32(1), key)[0]

    first, after = jax.jit(run)(jax.random.key(3))
    for old, new in zip(jax.tree.leaves(first.online), jax.tree.leaves(after.online), strict=True):
        assert np.all(np.isfinite(new))
        assert np.any(old != new)
    copied = members(after.online, slice(0, 1)) if name == "uadqn" else after.online
    assert all(map(np.array_equal, jax.tree.leaves(copied), jax.tree.leaves(after.target)))
    if name == "uadqn":
        assert isinstance(after.online, EncodedNetworks)
        assert all(
            map(np.array_equal, jax.tree.leaves(after.anchors), jax.tree.leaves(members(first.online, POSTERIORS)))
        )
        weights = np.asarray(jax.tree.leaves(first.online.parameters_of_encoder)[0])
        assert np.all(weights[0] != weights[1]), "f, g1 and g2 have encoders of their own"


def test_a_network_per_action_is_no_encoder():
    with pytest.raises(UsageError, match="'separate' is a network per action"):
        made("vdqn", encoder="separate").init(ROWS, jax.random.key(0))
    with pytest.raises(UsageError, match="unknown preset 'louder': choose one of paper, learner"):
        made("uadqn", preset="louder")


def test_options_are_stronger_than_the_preset():
    agent = made("uadqn", gamma=0.5, use_epsilon=False, encoder="mlp")
    assert (agent.gamma, agent.use_epsilon, agent.encoder, agent.hidden) == (0.5, False, "mlp", (6, 5))
    assert dataclasses.replace(agent, gamma=0.9) == made("uadqn", gamma=0.9, use_epsilon=False, encoder="mlp")
