"""The doctor of the support: what it sees in a replay, when it is silent, and that it speaks once."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.errors import SentinelWarning, UsageError
from sentinel_rl.replay import Replay, init_replay
from sentinel_rl.returns import Support
from sentinel_rl.training.support_doctor import SupportDoctor, discounted_returns, seen_returns


def replay_of(rewards: list[float], ends: list[int], capacity: int = 16) -> Replay:
    """A replay of one member with these rewards, episodes truncated after the steps in `ends`."""
    replay = init_replay(capacity, 2, 1)
    rows = np.zeros(replay.rows.shape, np.float32)
    for t, reward in enumerate(rewards):
        rows[t % capacity, 5:8] = reward, 0, t in ends
    return Replay(jnp.asarray(rows), replay.queue, replay.count, jnp.asarray(len(rewards) - 1, jnp.int32), 2)


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), max_size=12), st.floats(0, 1))
def test_returns_equal_the_sums_they_stand_for(steps: list[tuple[float, bool]], gamma: float):
    rewards, ended = np.array([r for r, _ in steps], float), np.array([e for _, e in steps], bool)
    finished = [t for t, end in enumerate(ended) if end]
    expected = [
        sum(gamma ** (s - t) * rewards[s] for s in range(t, min(e for e in finished if e >= t) + 1))
        for t in range(finished[-1] + 1 if finished else 0)
    ]
    np.testing.assert_allclose(discounted_returns(rewards, ended, gamma), expected, atol=1e-9)


def test_returns_are_read_from_the_ring():
    assert seen_returns(replay_of([1, 2, 4], ends=[2]), 0.5) == (3.0, 4.0)
    assert seen_returns(replay_of([1, 2, 4], ends=[]), 0.5) == (0.0, 0.0), "no episode is finished"
    assert seen_returns(replay_of([9, 9, 1, 2, 4, 8], ends=[4, 5], capacity=4), 1.0) == (4.0, 8.0)


def test_it_is_silent_while_returns_fit():
    doctor = SupportDoctor(Support(0.0, 3.0), 1.0)
    doctor.examine(0.0, 0.5, replay_of([1, 1, 1], ends=[2]), 100)
    doctor.examine(0.0, 0.009, replay_of([1, 1, 9], ends=[2]), 100)
    doctor.examine(float("nan"), float("nan"), replay_of([1, 1, 9], ends=[2]), 100)


def test_it_warns_once_with_the_range_that_is_needed():
    doctor = SupportDoctor(Support(0.0, 3.0), 1.0)
    with pytest.warns(
        SentinelWarning, match=r"2\.0% .* \[0, 3\] after 100 steps.* from -1 to 4 .*v_min=-1 and v_max=4"
    ):
        doctor.examine(0.02, 0.0, replay_of([0, 5, -1], ends=[2]), 100)
    doctor.examine(0.02, 0.0, replay_of([0, 5, -1], ends=[2]), 200)


def test_strict_means_an_error():
    with pytest.raises(UsageError, match="v_max=11"):
        SupportDoctor(Support(0.0, 3.0), 1.0, strict=True).examine(0.0, 0.02, replay_of([1, 1, 9], ends=[2]), 100)
