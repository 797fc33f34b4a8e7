"""A small SENTINEL on CartPole, and its compiled runs, shared by the tests of training.

The sizes are those of `tests.learners`, so that the programs of other tests are used here too.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.training.compiled import Training
from sentinel_rl.training.fused import Population, RunState, run_chunk, start_agent, start_world
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.segments import Segments, segments
from tests.learners import OPTIONS
from tests.storage.trees import assert_same

NAME = "CartPole-v0"
ENV = CartPole(200)
SIZES = OPTIONS["sentinel"] | {"learning_rate": 1e-2}
AGENT = make_sentinel(ENV.spec, **SIZES)
PLAN = Plan(steps=80, learn=Every(20), warmup=20, epsilon_fraction=0.5)
PARTS = segments(PLAN, 0)


def start(agent: Agent, env: Any, seed_key: jax.Array) -> RunState:
    """One run at its beginning."""
    return RunState(start_agent(agent, env, seed_key), *start_world(env, seed_key))


def run_alone(agent: Agent, env: Any, plan: Plan, run: RunState, parts: Segments, steps: int) -> Any:
    """Advance one run by a chunk: its state, trace and metrics."""
    one = Population(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (agent, run)))
    ((after, trace, metrics),) = run_chunk([one], env, plan.exploration, parts, steps)
    return jax.tree.map(lambda leaf: leaf[0], (after.runs, trace, metrics))


begin = jax.jit(start)


@functools.partial(jax.jit, static_argnames=("length", "steps"))
def _advance(agent: Agent, run: RunState, times: Any, length: int | None, steps: int) -> Any:
    return run_alone(agent, ENV, PLAN, run, Segments(*times, length), steps)


def advance(run: RunState, parts: Segments = PARTS, agent: Agent = AGENT) -> Any:
    """Advance one run by a chunk."""
    times = parts.begin, parts.end, parts.update
    return _advance(agent, run, times, parts.length, int(parts.end[-1] - parts.begin[0]))


@functools.cache
def whole_run(seed: int) -> Any:
    """One run from its first step to its last: the state, the trace and the metrics."""
    return advance(begin(AGENT, ENV, jax.random.key(seed)))


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of the programs that are compiled meanwhile."""
    names: list[str] = []

    def note(event: str, seconds: float, **about: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(about["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(note)


# Of a history: the times, which no run repeats, and sums of discounted rewards, whose last bits depend on the chunks.
_TIMES = ("elapsed", "episodes/time")
_SUMS = ("episodes/discounted", "partial/discounted")


def assert_same_training(one: Training | HostTraining, other: Training | HostTraining) -> None:
    """Two trainings would leave the same checkpoint, but for the times."""
    trees = [training.tree() for training in (one, other)]
    histories = [tree.pop("history") for tree in trees]
    exact = [{k: v for k, v in history.items() if k not in (*_TIMES, *_SUMS)} for history in histories]
    assert_same(*trees)
    assert_same(*exact)
    for name in _SUMS:
        np.testing.assert_allclose(*(history[name] for history in histories), rtol=1e-12, err_msg=name)


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of a tree, keys as their words."""
    return [np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in jax.tree.leaves(tree)]


def bit_equal(one: Any, other: Any) -> bool:
    """Whether two trees hold the same bits (and NaN in the same places)."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(leaves(one), leaves(other), strict=True))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
