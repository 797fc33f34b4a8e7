"""Is play in the float32 twin, from its own starts, distributed as play in highway-env?

    python -m tests.envs.highway.distribution                    # against results/highway/original.csv
    python -m tests.envs.highway.distribution --record 2000      # record the original anew (an hour or two)

Two-sample tests of episode return, length, mean speed and crash rate, under random and idle actions: Kolmogorov and
Smirnov's for the first three, Fisher's exact one for crashes.
"""

import argparse
import csv
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sentinel_rl.envs.highway import Highway, HighwayState
from tests.envs.highway.compare import start
from tests.envs.highway.episodes import GROUPS
from tests.envs.highway.original import POLICIES, Episode

RESULTS = Path(__file__).parents[3] / "results" / "highway"
FILE = RESULTS / "original.csv"
FIRST_SEED = {"random": 1900, "idle": 10_000}
_OURS = 20_000


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


@jax.jit
def play(env: Highway, states: HighwayState, actions: jax.Array) -> Any:
    """Reward, life, speed and crash after every action ``[steps, worlds]``; zeros after the end of an episode."""

    def step(carry, action):
        state, alive = carry
        state, after = jax.vmap(env.step, (0, 0, None))(state, action, jax.random.key(0))
        row = (after.reward * alive, alive, state.speed[:, 0] * alive, after.terminated & alive)
        return (state, alive & ~(after.terminated | after.truncated)), row

    return jax.lax.scan(step, (states, jnp.ones(actions.shape[1], bool)), actions)[1]


def total(rows: Any) -> Summary:
    """Sum up what `play` returned."""
    reward, alive, speed, crashed = jax.device_get(rows)
    length = alive.sum(0)
    return Summary(reward.sum(0), length, speed.sum(0) / length, crashed.any(0))


def twin(policy: str, episodes: int, seed: int = 0) -> Summary:
    """Episodes of the twin from its own starts, in float32."""
    env, shape = Highway.preset("highway-v1"), (40, episodes)
    states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(seed), episodes))
    drawn = jax.random.randint(jax.random.key(seed + 1000), shape, 0, 5)
    return total(play(env, states, drawn if policy == "random" else jnp.ones(shape, jnp.int32)))


def same_starts(policy: str, episodes: int) -> Summary:
    """Episodes of the twin in float32 from the original's starts, with the original's actions."""
    env, seeds = Highway.preset("highway-v1"), range(FIRST_SEED[policy], FIRST_SEED[policy] + episodes)
    actions = np.ones((40, episodes), np.int32)
    for i, seed in enumerate(seeds):
        rng = np.random.default_rng([seed, GROUPS[policy].stream])
        actions[:, i] = [POLICIES[policy](rng, 1) for _ in range(40)]
    firsts = [GROUPS[policy].first(seed) for seed in seeds]
    return total(play(env, start(env, firsts), jnp.asarray(actions)))


def original_starts(policy: str, episodes: int) -> Summary:
    """Episodes of the twin from starts of the original, drawn again, with fresh actions: is our reset the same?"""
    env = Highway.preset("highway-v1")
    firsts = [GROUPS[policy].first(seed) for seed in range(10**6, 10**6 + episodes)]
    drawn = np.random.default_rng(0).integers(5, size=(40, episodes)) if policy == "random" else np.ones((40, episodes))
    return total(play(env, start(env, firsts), jnp.asarray(drawn, jnp.int32)))


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
    """The p-values of equal distributions; rounded, because a return that many episodes have is one value, not two."""
    pairs = {
        name: (a.astype(float).round(3), b.astype(float).round(3)) for name, (a, b) in _pairs(original, ours).items()
    }
    values = {name: float(stats.ks_2samp(*pair).pvalue) for name, pair in pairs.items()}
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
    recorded = load()
    for policy, original in recorded.items():
        print(table(policy, original, twin(policy, _OURS)))
    print(
        f"\n{_OURS} episodes of the twin each; of highway-env "
        + ", ".join(f"{len(original.returns)} {policy}" for policy, original in recorded.items())
    )
    print("\nFrom starts of the original (drawn again bit for bit) against our own, p-values:")
    for policy in recorded:
        values = tests(original_starts(policy, _OURS), twin(policy, _OURS))
        print(f"{policy}: " + ", ".join(f"{name} {p:.3f}" for name, p in values.items()))
    print("\nFrom the same starts and with the same actions, float32 against float64:")
    for policy, original in recorded.items():
        ours, count = same_starts(policy, len(original.returns)), len(original.returns)
        same = (ours.length == original.length) & (ours.crashed == original.crashed)
        close = same & (np.abs(ours.returns - original.returns) < 1e-2)
        print(
            f"{policy}: same length and end in {same.sum()} of {count} episodes, same return to 0.01 in {close.sum()}"
        )


if __name__ == "__main__":
    main()
