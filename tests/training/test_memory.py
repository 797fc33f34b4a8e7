"""The memory of a training: counted before anything is allocated, and told when there is not enough."""

import jax
import pytest

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.training.memory import device_memory, require_memory, state_bytes
from sentinel_rl.training.trainer import train

IMAGES = EnvSpec("pictures", 84 * 84 * 4, 6, obs_shape=(84, 84, 4), structure="image")
SMALL = EnvSpec("small", 3, 2)


def test_the_bytes_are_those_of_the_state():
    agent = make_sentinel(SMALL, k=2, hidden=(4,), encoder="mlp", capacity=50)
    made = jax.jit(lambda key: agent.init(SMALL, key))(jax.random.key(0))
    assert state_bytes(agent, SMALL) == sum(leaf.nbytes for leaf in jax.tree.leaves(made))


def test_too_much_is_refused_with_a_capacity_that_fits():
    agent = make_sentinel(IMAGES, k=2)
    with pytest.raises(
        UsageError, match=r"needs 21\.\d GiB of memory, and there are 8 GiB.* such as capacity=\d+"
    ) as told:
        require_memory([agent], IMAGES, 8 * 2**30)
    smaller = make_sentinel(IMAGES, k=2, capacity=int(str(told.value).rsplit("=", 1)[1]))
    require_memory([smaller], IMAGES, 8 * 2**30)
    with pytest.raises(UsageError, match=r"2 runs side by side need .* or fewer seeds at a time"):
        require_memory([agent] * 2, IMAGES, 8 * 2**30)


def test_training_asks_before_it_allocates():
    assert device_memory() is not None
    with pytest.raises(UsageError, match=r"the run needs .* GiB of memory"):
        train("sentinel", "CartPole-v1", 100, capacity=10**8, k=1_000, hidden=(4,))
