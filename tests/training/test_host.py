"""The host runner: the fused trace on a JAX environment, and any Gymnasium environment or a clear refusal."""

import dataclasses
import functools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from sentinel_rl.agents.agent import BaseAgent
from sentinel_rl.agents.vdqn import make_vdqn
from sentinel_rl.envs.handle import spec_of
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import NumericalError, UsageError
from sentinel_rl.replay import Replay, Transition, init_replay
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_envs import GymnasiumWorld, HostStep, JaxWorld, VectorWorld
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.segments import segments
from tests.training.pole import AGENT, ENV, PLAN, advance, begin, bit_equal, compilations, run_alone, whole_run


class Keeper(BaseAgent):
    """An agent that keeps what it sees and always takes action 0."""

    def init(self, spec: EnvSpec, key: jax.Array) -> Replay:
        return init_replay(64, spec.obs_size, 1)

    def act(self, state: Replay, obs: jax.Array, epsilon: jax.Array, key: jax.Array) -> jax.Array:
        return jnp.zeros((), jnp.int32)

    def observe(self, state: Replay, t: jax.Array, transition: Transition, key: jax.Array) -> Replay:
        return state.add(t, transition, jnp.ones(1))

    def learn(self, state: Replay, update: jax.Array, key: jax.Array) -> tuple[Replay, dict[str, jax.Array]]:
        return state, {"update": update.astype(jnp.float32)}


class Scripted(gymnasium.Env):
    """Episodes of three steps, with something wrong in one place."""

    def __init__(self, observation: Any = None, action: Any = None, wrong: dict[tuple[int, int], Any] | None = None):
        self.observation_space = spaces.Box(-1, 1, (2,)) if observation is None else observation
        self.action_space = spaces.Discrete(2) if action is None else action
        self.wrong, self.episode, self.taken = wrong or {}, -1, []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.step_number = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.step_number += 1
        reward = self.wrong.get((self.episode, self.step_number, "reward"), 1.0)
        return self._seen(), reward, False, self.step_number == 3, {}

    def _seen(self) -> np.ndarray:
        seen = np.full(self.observation_space.shape, self.episode + self.step_number / 10, np.float32)
        if (self.episode, self.step_number) in self.wrong:
            seen.flat[-1] = self.wrong[self.episode, self.step_number]
        return seen


@functools.cache
def on_jax() -> tuple[HostRun, list[tuple[HostStep, np.ndarray, Any]]]:
    run = HostRun(AGENT, JaxWorld(ENV), PLAN, seed=0)
    return run, [run.step() for _ in range(PLAN.steps)]


def test_the_trace_is_that_of_the_fused_runner():
    _, steps = on_jax()
    _, trace, _ = whole_run(0)
    assert [action for _, [action], _ in steps] == trace.action.tolist()
    assert [step.terminated[0] for step, _, _ in steps] == trace.terminated.tolist()
    assert [step.truncated[0] for step, _, _ in steps] == trace.truncated.tolist()
    assert [step.reward[0] for step, _, _ in steps] == trace.reward.tolist()


def test_what_is_learned_is_bit_equal_to_the_fused_runner_s():
    run, steps = on_jax()
    expected, _, metrics = whole_run(0)
    assert bit_equal(run.state, expected.agent)
    assert np.array_equal(run.obs[0], expected.obs)
    assert [t + 1 for t, (_, _, made) in enumerate(steps) if made] == PLAN.learn_times.tolist()
    losses = [made["loss"] for _, _, updates in steps for made in updates]
    np.testing.assert_array_equal(losses, metrics["loss"][1:])


def test_another_run_compiles_nothing():
    """Neither another seed nor another number of steps, exploration, or lambda of the agent."""
    on_jax()
    plan = Plan(steps=41, learn=PLAN.learn, warmup=10, epsilon_end=0.3)
    with compilations() as names:
        other = HostRun(dataclasses.replace(AGENT, lam=2.0), JaxWorld(ENV), plan, seed=5)
        steps = [other.step() for _ in range(41)]
    assert names == []
    assert sum(len(made) for _, _, made in steps) == 2
    expected, trace, _ = course_of_seed_five(plan)
    assert [int(action) for _, [action], _ in steps] == trace.action.tolist()
    assert bit_equal(other.state.online, expected.agent.online)


def course_of_seed_five(plan: Plan) -> Any:
    """The same in the fused runner."""
    agent = dataclasses.replace(AGENT, lam=2.0)
    run = begin(agent, ENV, jax.random.key(5))
    return jax.jit(lambda a, r: run_alone(a, ENV, plan, r, segments(plan), plan.steps))(agent, run)


def test_an_agent_that_changes_with_the_episode_acts_as_in_the_fused_runner():
    agent = make_vdqn(ENV.spec, acting="episode", hidden=(4,), capacity=64, samples=8, batch=8)
    run = HostRun(agent, JaxWorld(ENV), PLAN, seed=1)
    actions = [int(action) for _ in range(PLAN.steps) for action in run.step()[1]]
    _, trace, _ = advance(begin(agent, ENV, jax.random.key(1)), agent=agent)
    assert actions == trace.action.tolist()
    assert trace.terminated[:-1].any()


def episodes(seed: int, count: int, first: int = 0) -> list[list[np.ndarray]]:
    """The observations of some episodes of Gymnasium's CartPole with alternating actions."""
    world = GymnasiumWorld(gymnasium.make("CartPole-v1"), seed, first)
    seen = [[world.start()[0]]]
    while len(seen) <= count:
        step = world.step(np.array([len(seen[-1]) % 2]), 0)
        seen[-1].append(step.successor[0])
        if step.terminated[0] or step.truncated[0]:
            seen.append([step.obs[0]])
    return seen[:count]


def test_episodes_are_seeded_by_the_run_and_their_number():
    run = episodes(seed=3, count=3)
    assert jax.tree.all(jax.tree.map(np.array_equal, run, episodes(seed=3, count=3)))
    assert jax.tree.all(jax.tree.map(np.array_equal, run[2:], episodes(seed=3, count=1, first=2))), "resumed"
    starts = [tuple(episode[0]) for episode in run] + [tuple(episodes(seed=4, count=1)[0][0])]
    assert len(set(starts)) == 4


def test_sizes_are_read_from_gymnasium():
    spec = spec_of(gymnasium.make("CartPole-v1"))
    assert (spec.name, spec.obs_size, spec.num_actions, spec.max_steps) == ("CartPole-v1", 4, 2, 500)
    table = spec_of(Scripted(observation=spaces.Box(-1, 1, (5, 3))))
    assert (table.name, table.obs_size, table.max_steps) == ("Scripted", 15, None)


def test_a_run_on_a_gymnasium_environment():
    world = GymnasiumWorld(Scripted(action=spaces.Discrete(2, start=1), observation=spaces.Box(-1, 1, (1, 2))), seed=0)
    run = HostRun(Keeper(), world, Plan(steps=10, learn=Every(4), warmup=4), seed=0)
    steps = [run.step() for _ in range(10)]
    assert world.env.taken == [1] * 10, "actions count from 1 in this space"
    assert [action for _, [action], _ in steps] == [0] * 10
    assert [[float(made["update"]) for made in updates] for _, _, updates in steps] == [[]] * 7 + [[1.0]] + [[]] * 2
    rows = np.asarray(run.state.rows)[:10]
    np.testing.assert_allclose(rows[:4, 0], [0, 0.1, 0.2, 1.0], atol=1e-6)
    np.testing.assert_allclose(rows[:4, 2], [0.1, 0.2, 0.3, 1.1], atol=1e-6)
    assert rows[:, 7].tolist() == [0, 0, 1] * 3 + [0], "truncated"
    assert run.t == 10


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({(1, 2): np.nan}, r"observation of Scripted holds nan at index 1 \(step 4, episode 1, step 2 of it, seed 8\)"),
        ({(1, 2): np.inf}, r"observation of Scripted holds inf at index 1 \(step 4"),
        ({(1, 2, "reward"): np.nan}, r"reward of Scripted holds nan .*step 4, episode 1, step 2 of it, seed 8"),
        ({(2, 0): np.nan}, r"observation of Scripted at reset holds nan .*episode 2, .*seed 8"),
    ],
)
def test_what_is_not_finite_stops_the_run_and_is_not_kept(wrong: dict[Any, float], message: str):
    world = GymnasiumWorld(Scripted(wrong=wrong), seed=8)
    run = HostRun(Keeper(), world, Plan(steps=10, learn=Every(4), warmup=4), seed=8)
    done = []
    with pytest.raises(NumericalError, match=message) as error:
        done.extend(run.step() for _ in range(10))
    assert error.value.exit_code == 4
    assert "fix the environment" in str(error.value)
    assert run.t == int(run.state.newest) + 1 == int(run.state.count[0])
    assert run.t == (5 if (2, 0) in wrong else 4)
    assert np.isfinite(run.state.rows).all()


def test_not_finite_at_the_first_reset():
    with pytest.raises(NumericalError, match=r"at reset holds nan .*episode 0, seed 1"):
        GymnasiumWorld(Scripted(wrong={(0, 0): np.nan}), seed=1).start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action": spaces.Box(-1, 1, (1,))}, r"Scripted has the action space Box.*Discrete\(n\).*TransformAction"),
        ({"action": spaces.MultiDiscrete([2, 2])}, r"MultiDiscrete.*Discrete\(n\)"),
        ({"observation": spaces.Text(3)}, r"Text.*holds no numbers: wrap it with .*TransformObservation"),
    ],
)
def test_what_cannot_be_used_says_what_to_do(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        GymnasiumWorld(Scripted(**options), seed=0)


class Counting(gymnasium.Env):
    """Episodes of ``length`` steps that show ``(environment, step)`` and pay 1."""

    observation_space, action_space = spaces.Box(-np.inf, np.inf, (2,)), spaces.Discrete(2, start=1)

    def __init__(self, number: int, length: int):
        self.number, self.length = number, length

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.taken = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(int(action))
        self.taken += 1
        return self._seen(), 1.0, self.taken == self.length, False, {}

    def _seen(self) -> np.ndarray:
        return np.array([self.number, self.taken], np.float32)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_of_environments_in_every_mode_of_starting_anew(mode: AutoresetMode):
    makers = [functools.partial(Counting, number, length) for number, length in [(0, 2), (1, 3), (2, 3)]]
    world = VectorWorld(gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=mode), seed=0)
    run = HostRun(Keeper(), world, Plan(steps=20, learn=Every(4), warmup=4), seed=0)
    updates = []
    while run.t < 20:
        _, actions, made = run.step()
        assert actions.shape == (3,)
        updates += [float(metrics["update"]) for metrics in made]
    assert run.t == 20, "no more and no less, although 20 is no multiple of 3"
    assert updates == [1.0, 2.0, 3.0, 4.0], "after 8, 12, 16 and 20 steps"
    rows = np.asarray(run.state.rows)[:20]
    number, before, after, terminated = rows[:, 0], rows[:, 1], rows[:, 3], rows[:, 6]
    assert np.array_equal(rows[:, 2], number), "a transition stays in its environment"
    np.testing.assert_array_equal(after, before + 1, "the true successor, never the start of the next episode")
    np.testing.assert_array_equal(terminated, after == np.where(number == 0, 2, 3))
    assert int(run.state.count[0]) == 20
    assert min(np.bincount(number.astype(int))) >= 6


def test_an_agent_learns_in_a_vector_of_environments():
    run = HostRun(AGENT, VectorWorld(gymnasium.make_vec("sentinel/CartPole-v1", num_envs=2), seed=3), PLAN, seed=3)
    losses = []
    while run.t < PLAN.steps:
        losses += [float(made["loss"]) for made in run.step()[2]]
    assert run.t == PLAN.steps
    assert len(losses) == PLAN.learn_times.size
    assert np.isfinite(losses).all()


def test_not_finite_in_a_vector_names_the_environment():
    makers = [functools.partial(Scripted, wrong={}), functools.partial(Scripted, wrong={(0, 2): np.nan})]
    world = VectorWorld(gymnasium.vector.SyncVectorEnv(makers), seed=5)
    world.start()
    world.step(np.zeros(2, int), 0)
    with pytest.raises(NumericalError, match=r"holds nan at index 1 \(environment 1, step 2, seed 5\)"):
        world.step(np.zeros(2, int), 2)
