"""The highway beside highway-env and EnvPool: decisions a second, in one run on one machine.

    python benchmarks/highway.py                 # 1, 20, 140 and 1 000 worlds on all cores, beside the peers at hand
    python benchmarks/highway.py --no-peers      # ours alone, on whatever JAX runs on
    python benchmarks/highway.py --worlds 140 8192 --no-peers

Random actions, float32, the paper's five lanes and ten cars; worlds that end start again, and that is in the time.
highway-env is one process; EnvPool's Highway-v0 (C++) has as many threads as there are cores. Both are optional.
"""

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import _measure
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from sentinel_rl.envs.highway import Highway

PAPER = {"lanes_count": 5, "vehicles_count": 10}
ENV = Highway.preset("highway-v1")


def rollout(state: Any, keys: jax.Array, steps: int) -> tuple[Any, jax.Array]:
    """Play worlds for some decisions each, with random actions; returns their states and how many episodes ended."""

    def step(carry: tuple[Any, jax.Array], t: jax.Array) -> tuple[tuple[Any, jax.Array], jax.Array]:
        now, ended = carry
        draw = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, t)))(keys)
        actions = jax.vmap(lambda key: jax.random.randint(key, (), 0, 5))(draw[:, 0])
        now, after = jax.vmap(ENV.step)(now, actions, draw[:, 0])
        over = after.terminated | after.truncated
        fresh, _ = jax.vmap(ENV.reset)(draw[:, 1])
        now = jax.tree.map(lambda n, o: jnp.where(over.reshape(-1, *(1,) * (n.ndim - 1)), n, o), fresh, now)
        return (now, ended + over), after.reward

    (state, ended), _ = jax.lax.scan(step, (state, jnp.zeros(keys.shape, jnp.int32)), jnp.arange(steps))
    return state, ended


def ours(worlds: int, steps: int) -> tuple[Callable[[], object], float]:
    """A call that plays all worlds, spread over the devices, and the seconds it took to compile."""
    devices = jax.devices() if worlds % len(jax.devices()) == 0 else jax.devices()[:1]
    mesh, split = Mesh(np.asarray(devices), ("worlds",)), PartitionSpec("worlds")
    keys = jax.random.split(jax.random.key(0), worlds)
    local = partial(rollout, steps=steps)
    if len(devices) > 1:
        local = jax.shard_map(local, mesh=mesh, in_specs=(split, split), out_specs=(split, split), check_vma=False)
    states, _ = jax.jit(jax.vmap(ENV.reset))(keys)
    begin = time.perf_counter()
    play = jax.jit(local).lower(states, keys).compile()
    return lambda: jax.block_until_ready(play(states, keys)), time.perf_counter() - begin


def highway_env(steps: int) -> Callable[[], object]:
    """One process of the original."""
    import gymnasium
    import highway_env  # noqa: F401 (tells Gymnasium its names)

    env = gymnasium.make("highway-v0", config=PAPER)
    rng = np.random.default_rng(0)
    env.reset(seed=0)

    def play() -> None:
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(int(rng.integers(5)))
            if terminated or truncated:
                env.reset()

    return play


def envpool(worlds: int, steps: int, threads: int) -> Callable[[], object]:
    """EnvPool's C++ highway: all worlds at every step."""
    from envpool import make

    envs = make("Highway-v0", env_type="gymnasium", num_envs=worlds, num_threads=min(threads, worlds), seed=0, **PAPER)
    actions = np.random.default_rng(0).integers(5, size=(steps, worlds)).astype(np.int32)
    envs.reset()

    def play() -> None:
        for row in actions:
            envs.step(row)

    return play


def rate(play: Callable[[], object], decisions: int, rounds: int) -> float:
    """Decisions a second, the best of some rounds."""
    return decisions / _measure.best_of(rounds, {"": play})[""]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, nargs="+")
    parser.add_argument("--no-peers", action="store_true", help="leave highway-env and EnvPool out")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))  # a device per core
    devices = jax.devices()
    on_cpu = devices[0].platform == "cpu"
    threads = len(devices) if on_cpu else 2
    print(_measure.machine("jax", "numpy", "highway-env", "envpool"))
    print(f"JAX runs on {len(devices)} x {devices[0].device_kind}")
    peers = () if asked.no_peers else ("highway_env", "envpool")
    there = {name for name in peers if importlib.util.find_spec(name)}
    original = rate(highway_env(60), 60, 1) if "highway_env" in there else float("nan")
    print(f"highway-env, one process: {original:.1f} decisions/s\n")
    print("| worlds | ours, decisions/s | us per call | x highway-env | EnvPool | ours / EnvPool | compiled in |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for worlds in asked.worlds or ([1, 20, 140, 1000] if on_cpu else [1, 20, 140, 1000, 8192]):
        steps = max(20, min(400, 20_000 // worlds)) if on_cpu else 100
        play, compiling = ours(worlds, steps)
        mine = rate(play, worlds * steps, asked.rounds)
        theirs = float("nan")
        if "envpool" in there:
            theirs = rate(envpool(worlds, steps, threads), worlds * steps, asked.rounds)
        print(
            f"| {worlds:,} | {mine:,.0f} | {worlds / mine * 1e6:,.0f} | {mine / original:,.0f} | {theirs:,.0f} | "
            f"{mine / theirs:.1f} | {compiling:.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
