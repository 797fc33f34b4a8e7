"""What is asked of trained agents beside the episodes of an evaluation.

In small worlds these are their actions in every cell, and in a coverage gap what they do and what they know there.

Every look returns arrays with the runs on their leading axis, which are kept in the records.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sentinel_paper.caution_cells import CLOSED, World
from sentinel_rl.calibration import ignorance, separations
from sentinel_rl.envs.grid import UNSEEN, GridWorld
from sentinel_rl.envs.registry import make_jax_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.replay import Transition
from sentinel_rl.study import Cell, Record
from sentinel_rl.study.provenance import Stopwatch, provenance
from sentinel_rl.training.compiled import Training

Found = Mapping[str, np.ndarray]
# The scores of `sentinel_rl.calibration.ignorance`.
SCORES = ("epistemic", "disagreement", "laws", "features", "mahalanobis", "observations")
# Transitions of a log.
TRANSITIONS = 1_000
_EPISODES, _QUICK_EPISODES = 200, 8
# Of an episode, at most.
_STEPS = 200
# States on either side of the gap that scores are asked at, at most.
_STATES = 500
# Share of random actions when states are collected: with fewer, hardly any agent shows all of the highway's lanes.
_EPSILON = 0.5
_LOOK_SEED = 1_000_000


class Played(NamedTuple):
    """Episodes side by side, ``[episodes, steps]``.

    Args:
        obs: before every step.
        reward: of every step that still counts.
        inside: whether the state before it is in the gap.
        entered: whether the step led into the gap; an episode may end with it.
        running: whether the step counts.
    """

    obs: Float[Array, "E T obs"]
    reward: Float[Array, "E T"]
    inside: Bool[Array, "E T"]
    entered: Bool[Array, "E T"]
    running: Bool[Array, "E T"]


def cells_look(cells: Sequence[Cell], trainings: Sequence[Training]) -> list[Found]:
    """The greedy action of every run in every cell of a grid world."""
    told: list[Found] = []
    for cell, training in zip(cells, trainings, strict=True):
        env = cell.make_env()
        assert isinstance(env, GridWorld)
        obs = jnp.asarray(observed_cells(env))
        actions = [np.asarray(_greedy(_arrays(training.agents[run]), state, obs)) for run, state in _states(training)]
        told.append({"look/greedy": np.stack(actions).astype(np.float32)})
    return told


def gap_look(world: World, quick: bool) -> Callable[[Sequence[Cell], Sequence[Training]], list[Found]]:
    """Asks agents of their scores inside and outside of a gap, and how often they enter it."""

    def look(cells: Sequence[Cell], trainings: Sequence[Training]) -> list[Found]:
        return [
            _stacked(
                gap_of(_outside(world, cell), training.agents[run], state, training.seeds[run], quick)
                for run, state in _states(training)
            )
            for cell, training in zip(cells, trainings, strict=True)
        ]

    return look


def gap_of(opened: Any, agent: Any, state: Any, seed: int, quick: bool = False) -> dict[str, float]:
    """AUROC of every score for the gap of a world, and what the frozen policy does there.

    One program plays all episodes of agents of one kind: on an accelerator it takes longer to compile than to run.

    Args:
        opened: the world with its gap open, in which episodes start outside, or anywhere on a grid.
        agent: the agent.
        state: of the agent.
        seed: of its run.
        quick: whether few episodes are enough.

    Returns:
        the scores; ``return_open``; ``entered``, the share of the episodes from outside that enter the gap;
        ``inside``, the share of their decisions in it. NaN where nothing was seen.
    """
    agent, key = _arrays(agent), jax.random.key(_LOOK_SEED + seed)
    episodes, limit = (_QUICK_EPISODES if quick else _EPISODES), min(int(opened.spec.max_steps or _STEPS), _STEPS)
    if isinstance(opened, GridWorld):
        obs: np.ndarray = observed_cells(opened)
        gap = np.array([kind == UNSEEN for kind in opened.tables.kinds])
    else:
        some = play_in(agent, state, opened, _EPSILON, limit, episodes, key)
        kept = np.asarray(some.running)
        obs, gap = np.asarray(some.obs)[kept], np.asarray(some.inside)[kept]
    rng = np.random.default_rng(seed)
    seen, unseen = (rng.permutation(obs[mask])[:_STATES] for mask in (~gap, gap))
    told = dict.fromkeys(SCORES, np.nan)
    if len(seen) and len(unseen):
        scores = ignorance(agent, np.concatenate([seen, unseen]), state=state)
        here, there = ({name: part[half] for name, part in scores.items()} for half in _halves(len(seen)))
        told |= separations(here, there)
    played = play_in(agent, state, opened, 0.0, limit, episodes, jax.random.fold_in(key, 1))
    begun_outside = np.logical_not(np.asarray(played.inside[:, 0]))
    rewards = np.asarray(played.reward)[begun_outside]
    told["return_open"] = float(rewards.sum() / len(rewards))
    told["entered"] = float(np.mean(np.asarray(played.entered)[begun_outside].any(axis=1)))
    in_gap, counts = (np.asarray(part)[begun_outside] for part in (played.inside, played.running))
    told["inside"] = float(in_gap.sum() / counts.sum())
    return told


def logged_record(world: World, cell: Cell, quick: bool = False) -> Record:
    """The record of a cell that learns from a log: random transitions of which none enters the gap.

    There, and only there, nothing was seen of the *action* that enters the gap.
    """
    watch = Stopwatch()
    closed, opened = cell.make_env(), _outside(world, cell)
    agent = _arrays(cell.make_agent(closed).planned(cell.steps))
    with watch.measure("training"):
        logs = [logged(opened, seed) for seed in cell.seeds]
        transitions = jax.tree.map(lambda *parts: jnp.stack(parts), *logs)
        keys = jnp.stack([jax.random.key(seed) for seed in cell.seeds])
        states = jax.block_until_ready(_learn_logged(agent, closed, transitions, cell.steps, keys))
    with watch.measure("examining"):
        rows = []
        for run, seed in enumerate(cell.seeds):
            state = jax.tree.map(operator.itemgetter(run), states)
            told = gap_of(opened, agent, state, seed, quick)
            count, key = (_QUICK_EPISODES if quick else _EPISODES), jax.random.key(_LOOK_SEED - seed)
            played = play_in(agent, state, closed, 0.0, int(closed.spec.max_steps or _STEPS), count, key)
            rows.append(told | {CLOSED: float(np.sum(played.reward) / count)})
        found = _stacked(rows)
        found[f"eval/{CLOSED}/reward"] = found.pop(f"look/{CLOSED}")[:, None]
    about = {"seconds": watch.seconds, "batch": [cell.name], "failures": {}, **provenance()}
    return Record(cell, {"steps": np.array([cell.steps]), **found}, about)


def logged(env: Any, seed: int) -> Transition:
    """Random transitions of a maze without slipping, between cells that are not in its gap."""
    tables, rng = env.tables, np.random.default_rng(seed)
    shown = np.array([kind != UNSEEN for kind in tables.kinds])
    pairs = [
        (cell, action)
        for cell in tables.starts
        for action in range(4)
        if shown[cell] and shown[tables.outcomes[cell, action, 0]]
    ]
    cells, actions = np.array(pairs)[rng.integers(len(pairs), size=TRANSITIONS)].T
    following = tables.outcomes[cells, actions, 0]
    goal = np.array([kind == "G" for kind in tables.kinds])[following]
    obs = observed_cells(env)
    reward = np.where(goal, env.goal_reward, -env.step_cost).astype(np.float32)
    parts = obs[cells], actions.astype(np.int32), reward, obs[following], goal, np.zeros(TRANSITIONS, bool)
    return Transition(*map(jnp.asarray, parts))


def observed_cells(env: GridWorld) -> Float[np.ndarray, "C 2"]:
    """What is seen in every cell of a grid world that shows places."""
    scale = np.array([len(env.rows), len(env.rows[0])]) - 1
    return np.asarray(env.tables.places / scale, np.float32)


@partial(jax.jit, static_argnames=("steps", "episodes"))
def play_in(
    agent: Any, state: Any, env: Any, epsilon: float | Array, steps: int, episodes: int, key: jax.Array
) -> Played:
    """Play episodes with the frozen policy, which a share `epsilon` of random actions replaces."""

    def episode(key: jax.Array) -> Played:
        reset_key, run_key = jax.random.split(key)
        begun, obs = env.reset(reset_key)
        inside = env.in_gap if hasattr(env, "in_gap") else lambda _: jnp.array(False)

        def step(carry: Any, key: jax.Array) -> Any:
            world, obs, running = carry
            act_key, step_key, explore_key, any_key = jax.random.split(key, 4)
            drawn = jax.random.randint(any_key, (), 0, env.spec.num_actions)
            explores = jax.random.uniform(explore_key) < epsilon
            action = jnp.where(explores, drawn, agent.greedy(state, obs, act_key))
            following, after = env.step(world, action, step_key)
            reward = jnp.where(running, after.reward, 0.0)
            told = Played(obs, reward, inside(world) & running, inside(following) & running, running)
            return (following, after.obs, running & ~(after.terminated | after.truncated)), told

        played: Played = jax.lax.scan(step, (begun, obs, jnp.array(True)), jax.random.split(run_key, steps))[1]
        return played

    return jax.vmap(episode)(jax.random.split(key, episodes))


@jax.jit
def _greedy(agent: Any, state: Any, obs: Array) -> Array:
    actions: Array = jax.vmap(lambda one: agent.greedy(state, one, jax.random.key(0)))(obs)
    return actions


@eqx.filter_jit
def _learn_logged(agent: Any, env: Any, transitions: Transition, updates: int, keys: jax.Array) -> Any:
    """Learn from every run's log, all runs side by side."""
    return jax.vmap(lambda log, key: learn_from(agent, env.spec, log, updates, key))(transitions, keys)


def learn_from(agent: Any, spec: EnvSpec, log: Transition, updates: int, key: jax.Array) -> Any:
    """The state of an agent that takes in the transitions of a log, then learns from them alone."""
    first, seen_key, learn_key = jax.random.split(key, 3)

    def observe(state: Any, now: Any) -> tuple[Any, None]:
        t, transition = now
        return agent.observe(state, t, transition, jax.random.fold_in(seen_key, t)), None

    def learn(state: Any, update: Any) -> tuple[Any, None]:
        return agent.learn(state, update, jax.random.fold_in(learn_key, update))[0], None

    state, _ = jax.lax.scan(observe, agent.init(spec, first), (jnp.arange(TRANSITIONS), log))
    return jax.lax.scan(learn, state, jnp.arange(1, updates + 1))[0]


def _halves(count: int) -> tuple[slice, slice]:
    return slice(None, count), slice(count, None)


def _outside(world: World, cell: Cell) -> Any:
    """The world of a cell with its gap open; where starts can be told, they are outside."""
    starts = {} if isinstance(cell.make_env(), GridWorld) else {"start": "outside"}
    return make_jax_env(world.opened, **{**cell.env_settings, **starts})


def _states(training: Training) -> list[tuple[int, Any]]:
    """The state of every run's agent with the number of the run."""
    return list(enumerate(training.agent_states()))


def _arrays(agent: Any) -> Any:
    """An agent whose numbers are arrays: others with other numbers share its programs."""
    return jax.tree.map(jnp.asarray, agent)


def _stacked(runs: Any) -> dict[str, np.ndarray]:
    """The numbers of single runs as arrays."""
    rows = list(runs)
    return {f"look/{name}": np.array([row[name] for row in rows], np.float32) for name in rows[0]}
