"""The trained highway policies that come with the library: how they are trained, chosen, written and judged.

    python benchmarks/highway_policies.py train --out runs/highway
    python benchmarks/highway_policies.py ship --out runs/highway
    python benchmarks/highway_policies.py judge
    python benchmarks/highway_policies.py original --episodes 200

``train`` makes 16 runs of 300 000 decisions with neutral and with composite risk (8 minutes on an H200) and evaluates
each policy in 500 episodes. ``ship`` takes the one with the best tail of each, rounds its weights to 11 bits, which
halves the file, and writes it into the library. ``judge`` plays fresh episodes with what was shipped: the best of 16
looks better than it is in the episodes it was chosen by. ``original`` plays the same episodes in highway-env itself and
in its twin, each from the same start, and counts those that end equally: after as many decisions, with a crash or
without one in both.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

from sentinel_rl import evaluate, load_agent, train
from sentinel_rl.agents import make_agent
from sentinel_rl.api import Learner
from sentinel_rl.envs import resolve_env
from sentinel_rl.envs.highway import Highway, HighwayState, from_highway_env
from sentinel_rl.study import summarise
from sentinel_rl.training import measure
from sentinel_rl.training.policy import load_policy, policy_file, save_policy, shipped_policies

ENV = "sentinel/highway-v1"
RISKS = {"highway-neutral": "cvar:1", "highway-composite": "cvar:0.5"}
SEEDS = range(600, 616)
STEPS = 300_000
FRESH = 3_000_000
LIBRARY = Path(__file__).parents[1] / "src" / "sentinel_rl" / "training" / "policies"


def train_all(out: Path) -> None:
    """Train the runs of both risks; one that was interrupted goes on."""
    for name, risk in RISKS.items():
        result = train(
            "sentinel",
            ENV,
            STEPS,
            SEEDS,
            evaluate=500,
            folder=out / name,
            save_every=STEPS,
            progress=True,
            preset="learner",
            k=4,
            epistemic=risk,
            aleatory=risk,
        )
        tails = measure(result.episodes, ["tail"])["tail"]
        np.savetxt(out / f"{name}.csv", np.column_stack([result.seeds, tails]), "%g", ",", header="seed,tail")


def ship(out: Path) -> None:
    """Write the policy with the best tail of each risk into the library."""
    for name, risk in RISKS.items():
        seeds, tails = np.loadtxt(out / f"{name}.csv", delimiter=",", unpack=True)
        seed = int(seeds[np.argmax(tails)])
        saved = load_policy(policy_file(out / name, seed))
        agent = make_agent("sentinel", ENV, preset="learner", k=4, epistemic=risk, aleatory=risk)
        rounded = jax.tree.map(_rounded, saved.agent.policy(saved.state))
        about = resolve_env(ENV), saved.kind, {}, saved.seed, saved.steps
        path = save_policy(LIBRARY / f"{name}.zip", agent, agent.with_policy(rounded), *about, compress=True)
        print(f"{name}: seed {seed}, {path.stat().st_size / 1e6:.2f} MB")


def _rounded(weights: jax.Array) -> np.ndarray:
    """Weights with the precision of half floats."""
    return np.asarray(weights).astype(np.float16).astype(np.float32)


def judge(episodes: int) -> None:
    """Play fresh episodes with the shipped policies, and print means with 95 % bootstrap intervals."""
    for name, path in shipped_policies().items():
        saved = load_policy(path)
        played = evaluate(saved.agent, saved.state, ENV, episodes, FRESH)
        told = measure(played, ["tail", "return"])
        value = summarise(np.asarray(played.discounted), worse="low")
        crashed = 100 * np.mean(played.terminated)
        print(
            f"{name:<18} value {value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]  tail {float(told['tail']):.2f}  "
            f"return {float(told['return']):.2f} of 40  crashed in {crashed:.1f} % of {episodes} episodes"
        )


def compare_with_original(episodes: int) -> None:
    """Play in highway-env and in its twin from the same starts."""
    import gymnasium
    import highway_env  # noqa: F401 (tells Gymnasium its names)

    env = gymnasium.make("highway-v0", config={"lanes_count": 5, "vehicles_count": 10})
    for name in shipped_policies():
        agent = load_agent(name, env)
        ends, starts = [], []
        for episode in range(episodes):
            obs, _ = env.reset(seed=FRESH + episode)
            with jax.enable_x64(True):
                twin, start = from_highway_env(env)
            starts.append(start)
            reward, length, over = 0.0, 0, False
            while not over:
                obs, now, crashed, limit, _ = env.step(agent.predict(obs)[0])
                reward, length, over = reward + float(now), length + 1, crashed or limit
            ends.append((length, bool(crashed), reward))
        lengths, crashes, rewards = map(np.asarray, zip(*ends, strict=True))
        played = _in_the_twin(agent, twin, jax.tree.map(lambda *leaves: np.stack(leaves), *starts))
        equal = (played[0] == lengths) & (played[1] == crashes)
        print(
            f"{name:<18} {np.sum(equal)} of {episodes} episodes end equally; crashed in {np.mean(crashes):.1%} of them "
            f"in highway-env and {np.mean(played[1]):.1%} in the twin, mean return {np.mean(rewards):.2f} and "
            f"{np.mean(played[2]):.2f}"
        )


def _in_the_twin(agent: Learner, twin: Highway, states: HighwayState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths, crashes and returns of episodes from these states; in float64, as highway-env computes."""
    step, observe = (jax.jit(jax.vmap(each)) for each in (twin.step, twin.observe))
    count = len(states.time)
    keys = jax.random.split(jax.random.key(0), count)
    with jax.enable_x64(True):
        obs = np.asarray(observe(states))
    live, length, crashed, reward = np.ones(count, bool), np.zeros(count, int), np.zeros(count, bool), np.zeros(count)
    while live.any():
        action = agent.predict(obs.reshape(count, *agent.handle.obs_shape))[0].astype(np.int32)
        with jax.enable_x64(True):
            states, after = step(states, action, keys)
        obs = np.asarray(after.obs)
        reward, length = reward + live * np.asarray(after.reward), length + live
        crashed = np.where(live, after.terminated, crashed)
        live = live & ~np.asarray(after.terminated | after.truncated)
    return length, crashed, reward


def main() -> None:
    """Train, ship or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "ship", "judge", "original"))
    parser.add_argument("--out", type=Path, default=Path("runs/highway"))
    parser.add_argument("--episodes", type=int, default=2_000)
    given = parser.parse_args()
    if given.what in ("judge", "original"):
        {"judge": judge, "original": compare_with_original}[given.what](given.episodes)
    else:
        {"train": train_all, "ship": ship}[given.what](given.out)


if __name__ == "__main__":
    main()
