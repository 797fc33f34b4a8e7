"""Is play in the float32 twin, from its own starts, distributed as play in highway-env?

    python -m tests.envs.highway.distribution                    # against results/highway/original.csv, minutes
    python -m tests.envs.highway.distribution --record 2000      # first play what is missing there (an hour for all)

Two-sample tests of episode return, length, mean speed and crash rate, under random and idle actions: Kolmogorov and
Smirnov's for the first three, Fisher's exact one for crashes. There are eight, so that Holm's p-values stand beside.

Where the two differ, three more comparisons say why: other starts that the original would draw tell whether ours are
distributed otherwise, the very same starts whether float32 drives otherwise, and how far samples of the original's
starts lie from each other tells whether this one is unusual.
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
from tests.envs.highway.original import POLICIES, make

RESULTS = Path(__file__).parents[3] / "results" / "highway"
FILE = RESULTS / "original.csv"
FIRST_SEED = {"random": 1900, "idle": 10_000}
_OURS = 20_000
_BLIND = {"type": "AttributesObservation", "attributes": ["time"]}


class Summary(NamedTuple):
    """Episodes in four numbers each."""

    returns: np.ndarray
    length: np.ndarray
    speed: np.ndarray
    crashed: np.ndarray


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


def original_starts(policy: str, episodes: int, first_seed: int = 10**6) -> Summary:
    """Episodes of the twin from starts of the original, drawn again, with fresh actions: is our reset the same?"""
    env, rng = Highway.preset("highway-v1"), np.random.default_rng(first_seed)
    firsts = [GROUPS[policy].first(seed) for seed in range(first_seed, first_seed + episodes)]
    drawn = rng.integers(5, size=(40, episodes)) if policy == "random" else np.ones((40, episodes))
    return total(play(env, start(env, firsts), jnp.asarray(drawn, jnp.int32)))


def record(episodes: int) -> None:
    """Play the episodes of the original that the file lacks, and add a row for each as soon as it is over."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not FILE.exists():
        FILE.write_text("policy,seed,return,length,speed,crashed\n")
    played = {policy: len(summary.returns) for policy, summary in load().items()}
    for policy, first in FIRST_SEED.items():
        # These policies see nothing, and what highway-env observes by default takes it a third of its time.
        env = make(GROUPS[policy].name, GROUPS[policy].config | {"observation": _BLIND})
        for seed in range(first + played[policy], first + episodes):
            total, length, speed, crashed = play_original(env, policy, seed)
            with FILE.open("a") as file:
                file.write(f"{policy},{seed},{total:.5f},{length},{speed:.4f},{int(crashed)}\n")


def play_original(env: Any, policy: str, seed: int) -> tuple[float, int, float, bool]:
    """One episode of the original: return, length, the ego's mean speed after the decisions, and whether it crashed."""
    rng = np.random.default_rng([seed, GROUPS[policy].stream])
    env.reset(seed=seed)
    rewards, speeds, over = [], [], False
    while not over:
        _, reward, crashed, truncated, _ = env.step(POLICIES[policy](rng, 1))
        rewards.append(reward)
        speeds.append(env.vehicle.speed)
        over = crashed or truncated
    return float(np.sum(rewards)), len(rewards), float(np.mean(speeds)), bool(crashed)


def load() -> dict[str, Summary]:
    """Read the rows again."""
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for policy in FIRST_SEED:
        mine = sorted((row for row in rows if row["policy"] == policy), key=lambda row: int(row["seed"]))
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


def holm(values: list[float]) -> list[float]:
    """Holm's p-values: the i-th smallest of n times ``n - i``, and not below the one before it.

    Example:
        >>> holm([0.04, 0.01, 0.5])
        [0.08, 0.03, 0.5]
    """
    order, adjusted, worst = np.argsort(values), [0.0] * len(values), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = worst
    return adjusted


def table(pairs: dict[str, tuple[Summary, Summary]]) -> str:
    """Means with standard errors and p-values, of the original and ours under every policy."""
    rows = [
        (policy, name, p, *means)
        for policy, (original, ours) in pairs.items()
        for (name, p), means in zip(tests(original, ours).items(), _means(original, ours), strict=True)
    ]
    lines = ["| policy | quantity | highway-env, float64 | twin, float32 | p | Holm |", "|" + " --- |" * 6]
    for (policy, name, p, theirs, mine), adjusted in zip(rows, holm([row[2] for row in rows]), strict=True):
        lines.append(f"| {policy} | {name} | {theirs} | {mine} | {p:.3f} | {adjusted:.3f} |")
    return "\n".join(lines)


def _means(original: Summary, ours: Summary) -> list[tuple[str, ...]]:
    columns = [*_pairs(original, ours).values(), (original.crashed * 1.0, ours.crashed * 1.0)]
    return [tuple(f"{v.mean():.4g} ± {v.std(ddof=1) / len(v) ** 0.5:.2g}" for v in pair) for pair in columns]


def scatter(policy: str, original: Summary, samples: int = 40) -> str:
    """How far the recorded sample lies from others of its size, whose starts the original would draw."""
    size = len(original.returns)
    others = [original_starts(policy, size, 2 * 10**6 + i * size) for i in range(samples)]
    told = []
    for name, mine, theirs in zip(Summary._fields, original, zip(*others, strict=True), strict=True):
        means = np.array([column.mean() for column in theirs])
        unusual = (mine.mean() - means.mean()) / means.std(ddof=1)
        told.append(f"{name} {means.mean():.4g} ± {means.std(ddof=1):.2g} (this one {mine.mean():.4g}, {unusual:+.1f})")
    return f"{policy}, {samples} samples of {size}: " + ", ".join(told)


def main() -> None:
    """Record if asked, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=int, metavar="EPISODES")
    asked = parser.parse_args()
    if asked.record:
        record(asked.record)
    recorded = load()
    ours = {policy: twin(policy, _OURS) for policy in recorded}
    counts = ", ".join(f"{len(original.returns)} {policy}" for policy, original in recorded.items())
    print(table({policy: (original, ours[policy]) for policy, original in recorded.items()}))
    print(f"\n{_OURS} episodes of the twin each; of highway-env {counts}", flush=True)
    print("\nThe twin from starts of the original (drawn again bit for bit) against its own, p-values:")
    for policy in recorded:
        values = tests(original_starts(policy, _OURS), ours[policy])
        print(f"{policy}: " + ", ".join(f"{name} {p:.3f}" for name, p in values.items()), flush=True)
    print("\nFrom the same starts and with the same actions, float32 against float64:")
    for policy, original in recorded.items():
        again, count = same_starts(policy, len(original.returns)), len(original.returns)
        same = (again.length == original.length) & (again.crashed == original.crashed)
        close = same & (np.abs(again.returns - original.returns) < 1e-2)
        both = f"same length and end in {same.sum()} of {count} episodes, same return to 0.01 in {close.sum()}"
        print(f"{policy}: {both}", flush=True)
    print("\nMeans over other samples of the original's starts, and their standard deviation:")
    for policy, original in recorded.items():
        print(scatter(policy, original), flush=True)


if __name__ == "__main__":
    main()
