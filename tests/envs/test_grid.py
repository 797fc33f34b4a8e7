"""Grid worlds: their rules by hand, and their exact answers against brute force and sampled episodes."""

import itertools
from collections import Counter
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.envs import GridWorld, Law, best_cvar, best_mean, law_of, make_env, stepwise_cvar
from sentinel_rl.envs.grid import PRESETS
from sentinel_rl.envs.grid_planning import _Model
from sentinel_rl.errors import UsageError
from sentinel_rl.training.metrics import tail_mean

UP, RIGHT, DOWN, LEFT = range(4)
# Two ways to the goal, one of them guarded; small enough to try every policy.
TINY = GridWorld(
    ("#####", "#...#", "#SgG#", "#####"),
    slip=0.2,
    goal_reward=5.0,
    guard_probability=0.3,
    guard_costs=(2.0, 10.0),
    max_steps=6,
    costly_steps=4,
)
CLIFF = GridWorld(("####", "#..#", "#SG#", "#X##", "####"), wind=0.3, goal_reward=5.0, cliff_cost=7.0, max_steps=5)


def sampled(world: GridWorld, policy: np.ndarray, episodes: int) -> np.ndarray:
    """Returns of episodes of the environment itself, with a policy by time, status and cell or by cell."""
    actions = jnp.asarray(np.broadcast_to(policy, (world.max_steps, _Model(world).statuses, policy.shape[-1])))
    costs = jnp.array([-1.0, 0.0, *world.guard_costs])

    def episode(key):
        first, *keys = jax.random.split(key, world.max_steps + 1)

        def step(carry, key):
            state, total, over = carry
            status = jnp.where(state.met, jnp.argmax(costs == state.cost), 0)
            state, after = world.step(state, actions[state.time, status, state.cell].astype(int), key)
            total = total + jnp.where(over, 0.0, after.reward)
            return (state, total, over | after.terminated), None

        state, _ = world.reset(first)
        return jax.lax.scan(step, (state, jnp.zeros(()), jnp.array(False)), jnp.stack(keys))[0][1]

    return np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(1), episodes)))


@pytest.mark.parametrize("world", [TINY, CLIFF], ids=["guard", "cliff"])
def test_no_policy_is_better_and_one_is_as_good(world: GridWorld):
    """All policies that choose by the cell, and the optimal ones themselves."""
    mean, tail = best_mean(world), best_cvar(world, 0.1)
    ends = np.array([kind in "GX" for kind in world.tables.kinds])
    laws = []
    for choice in itertools.product(range(4), repeat=int((~ends).sum())):
        policy = np.zeros(len(ends), int)
        policy[~ends] = choice
        laws.append(law_of(world, policy))
    assert max(law.mean() for law in laws) <= mean.value + 1e-9
    assert max(law.cvar(0.1) for law in laws) <= tail.value + 1e-9
    assert mean.law.mean() == pytest.approx(mean.value)
    assert tail.law.cvar(0.1) == pytest.approx(tail.value)
    assert tail.value >= mean.law.cvar(0.1)
    assert mean.value >= tail.law.mean()
    for law in (*laws[:20], mean.law, tail.law):
        assert law.probabilities.sum() == pytest.approx(1)
    assert best_cvar(world, 1.0).value == pytest.approx(mean.value), "the CVaR of the whole is the mean"


@pytest.mark.parametrize("world", [TINY, CLIFF], ids=["guard", "cliff"])
def test_sampled_episodes_have_the_exact_law(world: GridWorld):
    for optimum in (best_mean(world), best_cvar(world, 0.1)):
        returns = sampled(world, optimum.policy, 20_000)
        values, counts = np.unique(np.round(returns, 4), return_counts=True)
        assert set(values) <= set(np.round(optimum.law.values, 4))
        shares = dict(zip(values, counts / returns.size, strict=True))
        for value, probability in zip(*optimum.law, strict=True):
            error = np.sqrt(probability * (1 - probability) / returns.size)
            assert shares.get(np.round(value, 4), 0.0) == pytest.approx(probability, abs=4.5 * error + 1e-4)


@pytest.mark.parametrize("world", [TINY, CLIFF], ids=["guard", "cliff"])
@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0])
def test_stepwise_cvar_chooses_by_what_is_still_to_come(world: GridWorld, alpha: float):
    """Beside a recursion from the start on, over the values of what is still to come."""
    tables, costly = world.tables, world.max_steps if world.costly_steps is None else world.costly_steps

    @cache
    def rest(time: int, met: bool, cell: int) -> tuple[tuple[float, float], ...]:
        """What follows from a cell with the best action there."""
        if time == world.max_steps:
            return ((0.0, 1.0),)
        return max((after(time, met, cell, action) for action in range(4)), key=lambda law: (tail(law), tail(law, 1.0)))

    def after(time: int, met: bool, cell: int, action: int) -> tuple[tuple[float, float], ...]:
        found: Counter[float] = Counter()
        price = world.step_cost if time < costly else 0.0
        for there, share in zip(tables.outcomes[cell, action], tables.probabilities[cell, action], strict=True):
            kind = tables.kinds[there]
            if kind in "GX":
                found[world.goal_reward if kind == "G" else -world.cliff_cost] += share
                continue
            costs = {0.0: 1.0}
            if kind == "g" and not met:
                chance = world.guard_probability
                costs = {0.0: 1 - chance} | {cost: chance / len(world.guard_costs) for cost in world.guard_costs}
            for cost, likely in costs.items():
                for value, probability in rest(time + 1, met or kind == "g", int(there)):
                    found[round(value - price - cost, 9)] += share * likely * probability
        return tuple(sorted((float(value), float(share)) for value, share in found.items()))

    def tail(law: tuple[tuple[float, float], ...], share: float = alpha) -> float:
        total, left = 0.0, share
        for value, probability in law:
            total, left = total + value * min(probability, left), left - min(probability, left)
        return round(total / share, 8)

    (start,) = tables.starts
    found = stepwise_cvar(world, alpha)
    assert found.value == pytest.approx(tail(rest(0, False, int(start))), abs=1e-7)
    assert found.law.mean() == pytest.approx(tail(rest(0, False, int(start)), 1.0), abs=1e-7)
    assert found.value <= best_cvar(world, alpha).value + 1e-9
    if alpha == 1:
        assert found.value == pytest.approx(best_mean(world).value), "the mean has no second thoughts"


@pytest.mark.parametrize("name", ["GuardedMaze-v0", "WindyCliff-v0"])
def test_in_the_worlds_of_the_study_cvar_at_every_step_is_as_good_as_that_of_the_whole(name: str):
    world = make_env(f"sentinel/{name}")
    for alpha in (0.05, 0.25):
        assert stepwise_cvar(world, alpha).value == pytest.approx(best_cvar(world, alpha).value, abs=1e-3)


def test_cvar_at_every_step_may_be_worse_than_that_of_the_whole():
    """At the start both ways look too dangerous at every single step, and the agent stays where it is: four costs."""
    assert stepwise_cvar(TINY, 0.3).value == pytest.approx(-4)
    assert best_cvar(TINY, 0.3).value > -1.6


def test_the_cvar_of_a_law_is_that_of_its_values():
    law = Law(np.array([-5.0, 1.0, 2.0, 8.0]), np.array([0.25, 0.25, 0.25, 0.25]))
    for alpha in (0.1, 0.3, 0.625, 1.0):
        assert law.cvar(alpha) == pytest.approx(float(tail_mean(law.values, alpha)))


def test_the_guarded_maze_has_the_answers_of_the_documentation():
    """CeSoR prints 4.2 and -63.3 for the neutral policy, and 2.0 and -6.7 for its own, with another kind of noise."""
    world = make_env("sentinel/GuardedMaze-v0")
    neutral, averse = best_mean(world), best_cvar(world, 0.05)
    assert (neutral.value, neutral.law.cvar(0.05)) == (pytest.approx(3.645, abs=1e-3), pytest.approx(-66.04, abs=1e-2))
    assert (averse.law.mean(), averse.value) == (pytest.approx(1.472, abs=1e-3), pytest.approx(-2.577, abs=1e-3))


def test_the_short_way_by_hand():
    """Without slips: six steps, the fourth into the guarded cell, the last to the goal; fourteen around the walls."""
    world = GridWorld.preset("GuardedMaze-v0", slip=0.0)
    short, long = best_mean(world).law, best_cvar(world, 0.05).law
    assert short.values.max() == 16 - 5
    assert short.mean() == pytest.approx(11 - 0.2 * 32)
    assert short.cvar(0.05) == pytest.approx(11 - 32 * (1 + np.log(4))), "the worst quarter of the guard's costs"
    np.testing.assert_allclose(long.values, 16 - 13)


def test_the_windy_cliff_by_hand():
    """Nine steps on the ledge, eight of which may be blown off it; or fifteen around."""
    world = make_env("sentinel/WindyCliff-v0")
    ledge, around = best_mean(world), best_cvar(world, 0.05)
    fallen = ledge.law.probabilities[ledge.law.values <= -20].sum()
    assert fallen == pytest.approx(1 - 0.98**8)
    assert ledge.law.values.max() == 20 - 8
    assert around.law.values[around.law.probabilities.argmax()] == 20 - 14
    assert around.law.probabilities[around.law.values < 0].sum() < 0.001


def test_steps_of_the_guarded_maze():
    world = make_env("sentinel/GuardedMaze-v0", slip=0.0, guard_probability=1.0, guard_costs=(50.0,))
    step = jax.jit(world.step)
    state, obs = world.reset(jax.random.key(0))
    np.testing.assert_allclose(obs, [6 / 7, 1 / 7], rtol=1e-6)
    rewards = []
    for action in (LEFT, RIGHT, RIGHT, RIGHT, RIGHT, LEFT, RIGHT, RIGHT, UP):
        state, after = step(state, jnp.array(action), jax.random.key(0))
        rewards.append(float(after.reward))
    assert rewards == [-1, -1, -1, -1, -51, -1, -1, -1, 16], "the wall costs a step, the guard costs once"
    assert bool(after.terminated)
    assert not bool(after.truncated)


def test_an_action_that_does_not_exist_is_nan():
    _, after = TINY.step(TINY.reset(jax.random.key(0))[0], jnp.array(4), jax.random.key(0))
    assert np.isnan(after.reward)
    assert np.isnan(after.obs).all()


def test_closed_rooms_have_the_cells_of_open_ones_and_never_show_them():
    closed, opened = (make_env(f"sentinel/{name}", observe="cell") for name in ("MazeGap-v0", "MazeGapOpen-v0"))
    assert closed.spec.obs_size == opened.spec.obs_size
    gap = np.array([kind == "?" for kind in closed.tables.kinds])
    assert gap.sum() == 11
    start = np.zeros(len(gap))
    start[closed.tables.starts] = 1
    assert not start[gap].any()
    reach = start > 0
    for _ in range(60):
        reach[closed.tables.outcomes[reach]] = True
    np.testing.assert_array_equal(reach, ~gap, "all cells but those of the gap can be reached")
    assert gap[opened.tables.starts].any()
    states = jax.vmap(lambda cell: opened.reset(jax.random.key(0))[0]._replace(cell=cell))(jnp.arange(len(gap)))
    np.testing.assert_array_equal(jax.vmap(opened.in_gap)(states), gap)
    assert best_mean(opened).value > best_mean(closed).value, "the unseen way is shorter"


def test_pictures_show_the_map_and_the_agent():
    world = make_env("sentinel/GuardedMaze-v0")
    picture = world.render(world.reset(jax.random.key(0))[0])
    assert picture.shape == (320, 320, 3)
    assert tuple(picture[260, 60]) == (0, 114, 178)
    assert tuple(picture[5, 5]) == (70, 70, 70)
    assert tuple(picture[222, 255]) == (120, 200, 120)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": ("####", "#S.#", "####")}, "is no map"),
        ({"rows": ("###", "SG#", "###")}, "needs walls"),
        ({"slip": 1.5}, "slip = 1.5 is not allowed: give a probability"),
        ({"guard_costs": ()}, "a guard needs guard_costs"),
        ({"max_steps": 0}, "max_steps = 0 is not allowed"),
    ],
)
def test_worlds_that_do_not_exist_are_refused(settings: dict, message: str):
    with pytest.raises(UsageError, match=message):
        make_env("sentinel/GuardedMaze-v0", **settings)


def test_names_and_levels_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="unknown preset 'Maze'"):
        GridWorld.preset("Maze")
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\], got 0"):
        best_cvar(TINY, 0.0)
    with pytest.raises(ValueError, match=r"alpha must be in \(0, 1\], got 1\.5"):
        stepwise_cvar(TINY, 1.5)
    assert all(make_env(f"sentinel/{name}").spec.gamma == 1 for name in PRESETS)
