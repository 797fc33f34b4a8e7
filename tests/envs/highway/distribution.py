"""Is play in the float32 twin, from its own starts, distributed as play in highway-env?

    python -m tests.envs.highway.distribution                    # against results/highway/original.csv
    python -m tests.envs.highway.distribution --record 2000      # record the original anew (an hour or two)

Two-sample tests of episode return, length, mean speed and crash rate, under random and idle actions: Kolmogorov and
Smirnov's for the first three, Fisher's exact one for crashes.
"""

import argparse
import csv
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sentinel_rl.envs.highway import Highway
from tests.envs.highway.episodes import GROUPS
from tests.envs.highway.original import Episode

RESULTS = Path(__file__).parents[3] / "results" / "highway"
FILE = RESULTS / "original.csv"
FIRST_SEED = {"random": 1000, "idle": 10_000}


class Summary(NamedTuple):
    """Episodes in four numbers each."""

    returns: np.ndarray
    length: np.ndarray
    speed: np.ndarray
    crashed: np.ndarray


def summarise(episodes: list[Episode]) -> Summary:
    """What recorded episodes come to; the speed is the ego's, the mean over decisions."""
    rows = [(e.rewards.sum(), len(e.actions), e.cars.speed[:, 0].mean(), bool(e.terminated[-1])) for e in episodes]
    return Summary(*(np.array(column) for column in zip(*rows, strict=True)))


def twin(policy: str, episodes: int, seed: int = 0) -> Summary:
    """Episodes of the twin, in one call."""
    env = Highway.preset("highway-v1")

    def play(key):
        def step(carry, t):
            state, alive = carry
            action = jax.random.randint(jax.random.fold_in(key, t), (), 0, 5) if policy == "random" else jnp.array(1)
            state, after = env.step(state, action, key)
            row = (after.reward * alive, alive, state.speed[0] * alive, after.terminated & alive)
            return (state, alive & ~(after.terminated | after.truncated)), row

        return jax.lax.scan(step, (env.reset(key)[0], jnp.array(True)), jnp.arange(env.max_steps))[1]

    reward, alive, speed, crashed = jax.device_get(
        jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(seed), episodes))
    )
    length = alive.sum(1)
    return Summary(reward.sum(1), length, speed.sum(1) / length, crashed.any(1))


def save(found: dict[str, Summary]) -> None:
    """Write a row per episode."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["policy", "seed", "return", "length", "speed", "crashed"])
        for policy, summary in found.items():
            for i, (total, length, speed, crashed) in enumerate(zip(*summary, strict=True)):
                row = (policy, FIRST_SEED[policy] + i, f"{total:.5f}", length, f"{speed:.4f}", int(crashed))
                writer.writerow(row)


def load() -> dict[str, Summary]:
    """Read the rows again."""
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for policy in FIRST_SEED:
        mine = [row for row in rows if row["policy"] == policy]
        columns = (np.array([float(row[name]) for row in mine]) for name in ("return", "length", "speed", "crashed"))
        found[policy] = Summary(*columns)
    return found


def tests(original: Summary, ours: Summary) -> dict[str, float]:
    """The p-values of equal distributions."""
    values = {name: float(stats.ks_2samp(*pair).pvalue) for name, pair in _pairs(original, ours).items()}
    crashes = [[summary.crashed.sum(), len(summary.crashed) - summary.crashed.sum()] for summary in (original, ours)]
    return values | {"crash rate": float(stats.fisher_exact(crashes).pvalue)}


def _pairs(original: Summary, ours: Summary) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    names = {"return": "returns", "length": "length", "mean speed": "speed"}
    return {name: (getattr(original, field), getattr(ours, field)) for name, field in names.items()}


def table(policy: str, original: Summary, ours: Summary) -> str:
    """Means with standard errors, and p-values."""
    lines = []
    pairs = _pairs(original, ours) | {"crash rate": (original.crashed * 1.0, ours.crashed * 1.0)}
    for name, p in tests(original, ours).items():
        means = (f"{v.mean():.4g} ± {v.std(ddof=1) / len(v) ** 0.5:.2g}" for v in pairs[name])
        lines.append(f"| {policy} | {name} | " + " | ".join(means) + f" | {p:.3f} |")
    return "\n".join(lines)


def main() -> None:
    """Record if asked, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=int, metavar="EPISODES")
    asked = parser.parse_args()
    if asked.record:
        played = {name: GROUPS[name]._replace(first_seed=first) for name, first in FIRST_SEED.items()}
        save({name: summarise(group.record(asked.record)) for name, group in played.items()})
    print("| policy | quantity | highway-env, float64 | twin, float32 | p |\n| --- | --- | --- | --- | --- |")
    for policy, original in load().items():
        print(table(policy, original, twin(policy, len(original.returns))))


if __name__ == "__main__":
    main()
