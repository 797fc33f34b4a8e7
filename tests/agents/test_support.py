"""The support of categorical laws beside the returns that were seen, and when it is warned about."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.heads.support import discounted_returns, seen_returns, support_warning
from sentinel_rl.replay import Replay, init_replay
from sentinel_rl.returns import Support
from tests.agents.small import small


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


def warning(metrics: dict[str, float], replay: Replay, t: int = 100) -> str | None:
    return support_warning(Support(0.0, 3.0), 1.0, t, metrics, lambda: replay)


def test_it_is_silent_while_returns_fit():
    assert warning({"clip_low": 0.0, "clip_high": 0.5}, replay_of([1, 1, 1], ends=[2])) is None
    assert warning({"clip_low": 0.0, "clip_high": 0.009}, replay_of([1, 1, 9], ends=[2])) is None
    assert warning({}, replay_of([1, 1, 9], ends=[2])) is None, "there was no update"
    nan = float("nan")
    assert warning({"clip_low": nan, "clip_high": nan}, replay_of([1, 1, 9], ends=[2])) is None


def test_it_names_the_range_that_is_needed():
    message = warning({"clip_low": 0.02, "clip_high": 0.0}, replay_of([0, 5, -1], ends=[2]))
    assert message is not None
    assert "2.0% of the mass of the targets lies outside the support [0, 3] after 100 steps" in message
    assert "returns from -1 to 4 were seen: give v_min=-1 and v_max=4, or wider" in message


def test_the_replay_is_not_fetched_while_no_mass_is_lost():
    def fetched() -> Any:
        raise AssertionError("fetched")

    assert support_warning(Support(0.0, 3.0), 1.0, 9, {"clip_low": 0.0, "clip_high": 0.01}, fetched) is None


def test_an_agent_checks_its_own_support():
    agent = small(gamma=1.0)
    state = type("State", (), {"replay": replay_of([1, 1, 9], ends=[2])})()
    assert agent.check(70, {"clip_low": 0.0, "clip_high": 0.0}, lambda: state) is None
    message = agent.check(70, {"clip_low": 0.0, "clip_high": 0.02}, lambda: state)
    assert message is not None
    assert "[-1, 3] after 70 steps" in message
    assert "v_max=11" in message
