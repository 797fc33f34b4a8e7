"""Evaluations that also tell what an environment says of its states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl import evaluate, make_agent
from sentinel_rl.envs import EnvSpec, TimeStep, Toy
from sentinel_rl.training import evaluate_watched


class Countdown(eqx.Module):
    """Ends after 2 to 4 steps; the speed is the number of the step."""

    @property
    def spec(self):
        """One number, one action."""
        return EnvSpec("Countdown", 1, 1, max_steps=10)

    def reset(self, key):
        """Draw the length."""
        return jnp.stack([jnp.zeros((), int), jax.random.randint(key, (), 2, 5)]), jnp.zeros(1)

    def step(self, state, action, key):
        """Count."""
        state = state.at[0].add(1)
        return state, TimeStep(jnp.zeros(1), jnp.ones(()), state[0] >= state[1], jnp.array(False))

    def diagnostics(self, state):
        """A number, and an array that is left out."""
        return {"mean_speed": state[0].astype(float), "bins": jnp.zeros(3)}


def test_the_episodes_are_those_of_evaluate_and_numbers_are_means_over_their_decisions():
    env = Countdown()
    agent = make_agent("random", env)
    state = agent.init(env.spec, jax.random.key(0))
    played, told = evaluate_watched(agent, state, env, 20, 5)
    for ours, theirs in zip(played, evaluate(agent, state, env, 20, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert set(played.length) == {2, 3, 4}
    assert list(told) == ["mean_speed"]
    np.testing.assert_allclose(told["mean_speed"], (1 + played.length) / 2)


def test_an_environment_without_diagnostics_tells_nothing():
    agent = make_agent("random", Toy())
    played, told = evaluate_watched(agent, agent.init(Toy().spec, jax.random.key(0)), Toy(), 3)
    assert played.length.tolist() == [1, 1, 1]
    assert told == {}
